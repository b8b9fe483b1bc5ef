/* SPDX-License-Identifier: Apache-2.0
 *
 * The untrusted fence: text that came from outside, marked so that the model reads it as data
 * (docs/spec/session.md 8.2).
 *
 * Always true: whatever the content holds, the only closing marker in the result is its last line,
 * and only there does the capsule's word stand; clean content is unchanged byte for byte. The word
 * (told in the system prompt) is what tells the end from characters that only look like one.
 */
#pragma once

#include "base/buf.h"

#define FENCE_WORD_LEN 8
struct fence_word {
    char text[FENCE_WORD_LEN + 1]; /* digits; "": ends stand alone */
};

/* The word of <capsule> under a key that only this installation has: the same at each launch, so
 * that requests are the same bytes. */
struct fence_word fence_word_of (const void *key, size_t key_len, const char *capsule);

/* Appends the fenced block. <source> is the label ("tool:echo"); a '>' in it becomes '_', a newline
 * a space. */
void fence_append (struct buf *out, const struct fence_word *word, const char *source,
                   const char *content, size_t len);
/* Appends text that was fenced in an earlier session, its ends with the word of now: those of then
 * may have another, or none. */
void fence_renew (struct buf *out, const struct fence_word *word, const char *fenced);
