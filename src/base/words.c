/* SPDX-License-Identifier: Apache-2.0 */
#include "base/words.h"

#include <string.h>

const char words_unclosed[] = "a quote of the command is not closed: nothing was started";

static bool
is_blank (char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Within double quotes a backslash is itself but before these. */
static bool
is_escapable (char c)
{
    return c == '$' || c == '`' || c == '"' || c == '\\' || c == '\n';
}

/* One quoted part from its opening quote on; returns its closing quote, NULL when there is none. */
static const char *
take_quoted (const char *at, struct buf *word)
{
    const char quote = *at++;
    for (; *at && *at != quote; at++) {
        if (quote == '"' && *at == '\\' && is_escapable (at[1])) {
            if (*++at == '\n') /* a continued line */
                continue;
        }
        buf_putc (word, *at);
    }
    return *at ? at : NULL;
}

bool
words_split (const char *command, struct strv *words)
{
    _cleanup_buf_ struct buf word = { 0 };
    bool is_word = false;
    for (const char *at = command; *at; at++) {
        if (is_blank (*at)) {
            if (is_word)
                strv_take (words, buf_steal (&word));
            is_word = false;
            continue;
        }
        if (at[0] == '\\' && at[1] == '\n') {
            at++;
            continue;
        }
        is_word = true;
        if (*at == '\'' || *at == '"') {
            if (! (at = take_quoted (at, &word)))
                return false;
        } else {
            if (*at == '\\' && at[1])
                at++;
            buf_putc (&word, *at);
        }
    }
    if (is_word)
        strv_take (words, buf_steal (&word));
    return true;
}
