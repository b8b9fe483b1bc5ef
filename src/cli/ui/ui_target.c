/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ui/ui_target.h"

#include "base/alloc.h"

#include <ctype.h>
#include <string.h>

#define MOST_SEGMENTS 5

/* A word of names and numbers: nothing in it leads anywhere. */
static bool
is_word (const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (! isalnum ((unsigned char)text[i]) && text[i] != '_' && text[i] != '-')
            return false;
    return len > 0 && len <= 80;
}

bool
ui_target_read (struct ui_target *t, const char *target)
{
    char *words[MOST_SEGMENTS] = { 0 };
    size_t count = 0, path = strcspn (target, "?#");
    const char *end = target + path;
    bool is_ok = true;
    for (const char *at = target; is_ok && at < end;) {
        size_t len = strcspn (at + 1, "/?#");
        is_ok = *at == '/' && count < MOST_SEGMENTS && is_word (at + 1, len);
        if (is_ok)
            words[count++] = x_strndup (at + 1, len);
        at += 1 + len;
    }
    bool is_session = count > 2 && str_eq (words[1], "session");
    is_ok = is_ok && count > 1 && str_eq (words[0], "api") && (is_session || count == 2);
    if (is_ok && is_session) {
        t->session = steal_ptr (&words[2]);
        t->view = words[3] ? steal_ptr (&words[3]) : x_strdup ("");
        t->leaf = steal_ptr (&words[4]);
    } else if (is_ok) {
        t->view = steal_ptr (&words[1]);
    }
    if (is_ok)
        t->query = x_strdup (*end == '?' ? end + 1 : "");
    for (size_t i = 0; i < MOST_SEGMENTS; i++)
        free (words[i]);
    return is_ok;
}

static int
hex_digit (char c)
{
    return isdigit ((unsigned char)c)    ? c - '0'
           : isxdigit ((unsigned char)c) ? tolower ((unsigned char)c) - 'a' + 10
                                         : -1;
}

/* As encodeURIComponent writes it. NULL: a broken escape, a NUL, or no UTF-8. */
static char *
decode (const char *text, size_t len)
{
    _cleanup_buf_ struct buf out = { 0 };
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c == '%') {
            int high = i + 2 < len ? hex_digit (text[i + 1]) : -1;
            int low = i + 2 < len ? hex_digit (text[i + 2]) : -1;
            if (high < 0 || low < 0)
                return NULL;
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (! c)
            return NULL;
        buf_putc (&out, c);
    }
    return utf8_is_valid (out.data ? out.data : "", out.len) ? buf_steal (&out) : NULL;
}

char *
ui_target_query (const struct ui_target *t, const char *name)
{
    size_t name_len = strlen (name);
    for (const char *at = t->query; at && *at;) {
        size_t len = strcspn (at, "&#");
        if (len > name_len && strncmp (at, name, name_len) == 0 && at[name_len] == '=')
            return decode (at + name_len + 1, len - name_len - 1);
        at += len + (at[len] == '&');
        if (*at == '#')
            break;
    }
    return NULL;
}

uint64_t
ui_target_number (const struct ui_target *t, const char *name, uint64_t fallback)
{
    _cleanup_free_ char *text = ui_target_query (t, name);
    return text && isdigit ((unsigned char)*text) ? strtoull (text, NULL, 10) : fallback;
}

void
ui_target_clear (struct ui_target *t)
{
    free (t->session);
    free (t->view);
    free (t->leaf);
    free (t->query);
}
