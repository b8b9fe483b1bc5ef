/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/text/dotenv.h"

#include "base/alloc.h"
#include "fs/root.h"

#include <string.h>
#include <unistd.h>

#define DOTENV_BYTES_MAX (1u << 20)
#define BLANKS           " \t\r\v\f"

struct slice {
    const char *text;
    size_t len;
};

static struct slice
trim (struct slice s)
{
    while (s.len && strchr (BLANKS, s.text[0]))
        s.text++, s.len--;
    while (s.len && strchr (BLANKS, s.text[s.len - 1]))
        s.len--;
    return s;
}

static struct slice
unquote (struct slice s)
{
    bool is_quoted =
        s.len >= 2 && (s.text[0] == '"' || s.text[0] == '\'') && s.text[s.len - 1] == s.text[0];
    return is_quoted ? (struct slice){ s.text + 1, s.len - 2 } : s;
}

static bool
take_line (struct slice line, const char *file, size_t number, struct dotenv *out,
           struct mur_error **err)
{
    line = trim (line);
    if (! line.len || line.text[0] == '#')
        return true;
    const char *equals = memchr (line.text, '=', line.len);
    struct slice name =
        trim ((struct slice){ line.text, equals ? (size_t)(equals - line.text) : 0 });
    if (! equals || ! name.len || memchr (line.text, 0, line.len)) {
        mur_fail (err, E_IO_003, "%s:%zu: not a line of NAME=value", file, number);
        return mur_hint (err, "write NAME=value, or begin the line with # for a comment");
    }
    struct slice value = { equals + 1, line.len - (size_t)(equals + 1 - line.text) };
    value = unquote (trim (value));
    x_grow (out->entries, out->len, out->cap);
    out->entries[out->len++] = (struct dotenv_entry){
        x_strndup (name.text, name.len),
        x_strndup (value.text, value.len),
    };
    return true;
}

bool
dotenv_parse (const char *text, size_t len, const char *file, struct dotenv *out,
              struct mur_error **err)
{
    size_t number = 1;
    for (size_t at = 0; at < len; number++) {
        const char *end = memchr (text + at, '\n', len - at);
        size_t line_len = end ? (size_t)(end - text) - at : len - at;
        if (! take_line ((struct slice){ text + at, line_len }, file, number, out, err))
            return false;
        at += line_len + 1;
    }
    return true;
}

void
dotenv_clear (struct dotenv *d)
{
    for (size_t i = 0; i < d->len; i++) {
        free (d->entries[i].name);
        free (d->entries[i].value);
    }
    free (d->entries);
    *d = (struct dotenv){ 0 };
}

char *
dotenv_root (const char *start)
{
    _cleanup_free_ char *dir = x_strdup (start);
    for (;;) {
        _cleanup_free_ char *manifest = x_asprintf ("%s/murmur.yaml", dir);
        if (access (manifest, F_OK) == 0)
            return steal_ptr (&dir);
        char *slash = strrchr (dir, '/');
        if (! slash || ! dir[1])
            return x_strdup (start);
        slash[slash == dir] = '\0';
    }
}

bool
dotenv_load (const char *root, struct mur_error **err)
{
    _cleanup_free_ char *path = x_asprintf ("%s/.env", root);
    _cleanup_buf_ struct buf text = { 0 };
    struct mur_error *caught = NULL;
    if (! fs_read_path (path, DOTENV_BYTES_MAX, &text, &caught)) {
        bool is_absent = caught->code == E_IO_001;
        if (is_absent)
            mur_error_free (caught);
        else
            mur_propagate (err, caught);
        return is_absent;
    }
    _cleanup_dotenv_ struct dotenv entries = { 0 };
    if (! dotenv_parse (text.data ? text.data : "", text.len, path, &entries, err))
        return false;
    for (size_t i = 0; i < entries.len; i++)
        setenv (entries.entries[i].name, entries.entries[i].value, 0);
    return true;
}
