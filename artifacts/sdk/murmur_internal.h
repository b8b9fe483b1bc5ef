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

/* Length of the well-formed sequence at `bytes`, or 0. */
size_t utf8_sequence (const unsigned char *bytes, size_t len);
/* Any code up to 0x10ffff; returns behind it. */
char *put_utf8 (char *to, uint32_t code);
/* Adds the bytes; each that is no UTF-8 as the JSON escape of a second half (U+DC80 and up), from
 * which text_join makes the byte again. */
void text_add_escaped (struct mur_text *text, const char *bytes, size_t len);
/* Adds what is whole of a text that comes in pieces: a character whose bytes, or whose surrogates,
 * lie in two pieces is joined; `pending` holds what waits for its other half. */
void text_join (struct mur_text *pending, const char *piece, size_t len, struct mur_text *to);
/* As mur_json_text, with halves of pairs kept for text_join. */
char *json_text_in_halves (const struct mur_json *json, mur_node node);

static inline void
set_error (char **error, char *sentence)
{
    if (error != NULL)
        *error = sentence;
    else
        free (sentence);
}

#endif
