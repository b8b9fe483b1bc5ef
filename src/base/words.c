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

/* The digits of a number after a backslash, <max> of them at most; what they say. */
static char
take_number (const char **at, unsigned base, unsigned max)
{
    unsigned value = 0;
    for (; max && **at; max--, ++*at) {
        char c = **at;
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                         : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
                                                : base;
        if (digit >= base)
            break;
        value = value * base + digit;
    }
    return (char)value;
}

/* $'...' from its quote on: backslashes spell characters. As take_quoted. */
static const char *
take_spelled (const char *at, struct buf *word)
{
    static const char names[] = "abefnrtv", meant[] = "\a\b\033\f\n\r\t\v";
    for (at++; *at && *at != '\'';) {
        if (*at != '\\' || ! at[1]) {
            buf_putc (word, *at++);
            continue;
        }
        const char *name = strchr (names, *++at);
        if (*at == 'x' || (*at >= '0' && *at <= '7')) {
            at += *at == 'x';
            char spelled = take_number (&at, at[-1] == 'x' ? 16 : 8, at[-1] == 'x' ? 2 : 3);
            if (spelled) /* no word holds a NUL */
                buf_putc (word, spelled);
        } else {
            buf_putc (word, name ? meant[name - names] : *at);
            at++;
        }
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
        if (*at == '$' && at[1] == '\'') {
            if (! (at = take_spelled (at + 1, &word)))
                return false;
        } else if (*at == '\'' || *at == '"') {
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
