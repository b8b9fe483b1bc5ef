/* SPDX-License-Identifier: Apache-2.0 */
#include "net/auth_challenge.h"

#include "base/alloc.h"
#include "base/buf.h"

#include <ctype.h>
#include <string.h>

#define VALUE_MAX 4096 /* bytes of one value */

static size_t
token_len (const char *at)
{
    size_t len = 0;
    while (isalnum ((unsigned char)at[len]) || (at[len] && strchr ("!#$%&'*+-.^_`|~", at[len])))
        len++;
    return len;
}

/* A token or a quoted string, and where it ends. Owned; NULL: neither. */
static char *
read_value (const char **at)
{
    const char *p = *at;
    struct buf out = { 0 };
    if (*p != '"') {
        size_t len = token_len (p);
        *at = p + len;
        return len ? x_strndup (p, len) : NULL;
    }
    for (p++; *p && *p != '"' && out.len < VALUE_MAX; p++) {
        if (*p == '\\' && p[1])
            p++;
        buf_putc (&out, *p);
    }
    bool is_whole = *p == '"';
    *at = is_whole ? p + 1 : p + strlen (p);
    if (is_whole && out.len)
        return buf_steal (&out);
    buf_free (&out);
    return is_whole ? x_strdup ("") : NULL;
}

void
auth_challenge_each (const char *header, auth_challenge_fn *take, void *ctx)
{
    const char *scheme = "";
    size_t scheme_len = 0;
    for (const char *at = header ? header : ""; *at;) {
        at += strspn (at, " \t,");
        const char *name = at;
        size_t len = token_len (at);
        at += len;
        const char *after = at + strspn (at, " \t");
        if (! len) {
            at += *at != '\0';
        } else if (*after == '=' && after[1] != '=') {
            at = after + 1;
            at += strspn (at, " \t");
            _cleanup_free_ char *value = read_value (&at);
            if (value)
                take (ctx, scheme, scheme_len, name, len, value);
        } else {
            scheme = name;
            scheme_len = len;
            take (ctx, scheme, scheme_len, NULL, 0, NULL);
        }
    }
}
