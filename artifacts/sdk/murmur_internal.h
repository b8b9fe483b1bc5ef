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

/* A copy as a C string; NUL inside becomes U+FFFD, so that nothing behind it is hidden. */
static inline char *
copy_text (const char *bytes, size_t len)
{
    struct mur_text text = { 0 };
    const char *end = bytes + len;
    while (bytes < end) {
        const char *nul = memchr (bytes, '\0', (size_t)(end - bytes));
        mur_text_add (&text, bytes, (size_t)((nul != NULL ? nul : end) - bytes));
        bytes = nul != NULL ? nul + 1 : end;
        if (nul != NULL)
            mur_text_character (&text, 0xfffd);
    }
    return text.data != NULL ? text.data : copy_bytes ("", 0);
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
