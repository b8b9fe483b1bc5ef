/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/ship/s3_answer.h"

#include "base/alloc.h"

#include <ctype.h>
#include <string.h>

#define WORD_MOST 64 /* of what a server says we show codes and regions alone */

typedef bool may_fn (char c);

static bool
is_of_word (char c)
{
    return isalnum ((unsigned char)c) || c == '.' || c == '-';
}

static bool
is_of_text (char c)
{
    return isgraph ((unsigned char)c) && c != '<' && c != '&';
}

static char *
element (const struct http_response *r, const char *name, size_t limit, may_fn *may)
{
    _cleanup_free_ char *open = x_asprintf ("<%s>", name);
    const char *at = r->body.len ? memmem (r->body.data, r->body.len, open, strlen (open)) : NULL;
    if (! at)
        return NULL;
    const char *end = r->body.data + r->body.len, *text = at + strlen (open);
    size_t len = 0;
    while (text + len < end && len < limit && may (text[len]))
        len++;
    return len && text + len < end && text[len] == '<' ? x_strndup (text, len) : NULL;
}

char *
s3_answer_word (const struct http_response *r, const char *name)
{
    return element (r, name, WORD_MOST, is_of_word);
}

char *
s3_answer_text (const struct http_response *r, const char *name, size_t limit)
{
    return element (r, name, limit, is_of_text);
}
