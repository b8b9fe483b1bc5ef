/* SPDX-License-Identifier: Apache-2.0
 *
 * Cleanup attributes: what is born in a scope dies with it, on every path out.
 *
 * A variable marked with one of these is released when its scope ends; steal_ptr and steal_fd hand
 * the thing out and leave the variable empty. Everybody includes this.
 */
#pragma once

#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(fn)      __attribute__ ((cleanup (fn)))
#define _printf_(fmt, arg) __attribute__ ((format (printf, fmt, arg)))
#define _unused_           __attribute__ ((unused))
#define _noreturn_         __attribute__ ((noreturn))

#define ARRAY_LEN(a) (sizeof (a) / sizeof ((a)[0]))

static inline void
cleanup_freep (void *p)
{
    free (*(void **)p);
}

static inline void
cleanup_closep (const int *fd)
{
    if (*fd >= 0)
        close (*fd);
}

static inline void
cleanup_fclosep (FILE **f)
{
    if (*f)
        fclose (*f);
}

static inline void
cleanup_closedirp (DIR **d)
{
    if (*d)
        closedir (*d);
}

#define _cleanup_free_     _cleanup_ (cleanup_freep)
#define _cleanup_close_    _cleanup_ (cleanup_closep)
#define _cleanup_fclose_   _cleanup_ (cleanup_fclosep)
#define _cleanup_closedir_ _cleanup_ (cleanup_closedirp)

/* Defines <type>_freep for use with _cleanup_, from an existing <fn> (T *). */
#define DEFINE_CLEANUP(type, fn)                                                                   \
    static inline void fn##p (type **p)                                                            \
    {                                                                                              \
        if (*p)                                                                                    \
            fn (*p);                                                                               \
    }

#define steal_ptr(p)                                                                               \
    ({                                                                                             \
        __typeof__ (*(p)) steal_tmp_ = *(p);                                                       \
        *(p) = NULL;                                                                               \
        steal_tmp_;                                                                                \
    })

static inline int
steal_fd (int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}
