/* SPDX-License-Identifier: Apache-2.0
 *
 * What the sources of the guest SDK share among themselves; guests include murmur_sdk.h.
 */
#ifndef MURMUR_INTERNAL_H
#define MURMUR_INTERNAL_H

#include "murmur_sdk.h"

#include <stdlib.h>
#include <string.h>

static inline void *
must (void *memory)
{
    if (memory == NULL)
        abort ();
    return memory;
}

static inline char *
copy_bytes (const void *bytes, size_t len)
{
    char *copy = must (malloc (len + 1));
    if (len > 0)
        memcpy (copy, bytes, len);
    copy[len] = '\0';
    return copy;
}

static inline void
set_error (char **error, char *sentence)
{
    if (error != NULL)
        *error = sentence;
    else
        free (sentence);
}

#endif
