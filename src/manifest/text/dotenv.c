/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/text/dotenv.h"

#include "base/alloc.h"
#include "base/text.h"
#include "fs/paths.h"
#include "fs/root.h"

#include <string.h>
#include <unistd.h>

#define DOTENV_BYTES_MAX (1u << 20)
#define BLANKS           " \t\r\v\f"

struct slice {
    const char *text;
    size_t len;
};

static bool
is_blank (char c)
{
    return c && strchr (BLANKS, c);
}

static struct slice
trim (struct slice s)
{
    while (s.len && is_blank (s.text[0]))
        s.text++, s.len--;
    while (s.len && is_blank (s.text[s.len - 1]))
        s.len--;
    return s;
}

/* Where a text is read, and what messages call the place. */
struct reading {
    struct slice rest;
    const char *file;
    size_t number; /* of the line <rest> begins in */
};

static bool
refuse (const struct reading *r, struct mur_error **err, const char *what, const char *hint)
{
    mur_fail (err, E_IO_003, "%s:%zu: %s", r->file, r->number, what);
    return mur_hint (err, "%s", hint);
}

/* Takes the rest of the line, without its end. */
static struct slice
take_line (struct reading *r)
{
    const char *end = memchr (r->rest.text, '\n', r->rest.len);
    struct slice line = { r->rest.text, end ? (size_t)(end - r->rest.text) : r->rest.len };
    size_t taken = line.len + (end ? 1 : 0);
    r->rest.text += taken;
    r->rest.len -= taken;
    r->number += end ? 1 : 0;
    return line;
}

/* A comment begins at a # with a blank before it. */
static struct slice
without_comment (struct slice s)
{
    for (size_t i = 1; i < s.len; i++)
        if (s.text[i] == '#' && is_blank (s.text[i - 1]))
            return trim ((struct slice){ s.text, i });
    return trim (s);
}

/* What a shell's `$env:NAME` or a quote makes of a line is no name. */
static bool
is_name (struct slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (is_blank (s.text[i]) || ! s.text[i] || strchr ("$\"'`:;(){}[]<>|&", s.text[i]))
            return false;
    return s.len > 0;
}

/* What a backslash and this character stand for in double quotes; 0 when the backslash stays. */
static char
escaped (char c)
{
    static const char from[] = "nrt\"\\$`", to[] = "\n\r\t\"\\$`";
    const char *found = c ? strchr (from, c) : NULL;
    return found ? to[found - from] : '\0';
}

/* The text between quotes, lines included; <rest> stands behind the closing one. */
static bool
take_quoted (struct reading *r, struct buf *value, struct mur_error **err)
{
    struct reading begin = *r;
    char quote = r->rest.text[0];
    for (size_t i = 1; i < r->rest.len; i++) {
        char c = r->rest.text[i];
        char next = i + 1 < r->rest.len ? r->rest.text[i + 1] : '\0';
        if (c == quote) {
            r->rest.text += i + 1;
            r->rest.len -= i + 1;
            return true;
        }
        if (c == '\r' && next == '\n')
            continue;
        r->number += c == '\n';
        if (quote == '"' && c == '\\' && escaped (next)) {
            buf_putc (value, escaped (next));
            i++;
        } else if (c) {
            buf_putc (value, c);
        } else {
            return refuse (r, err, "a NUL byte", "write text only");
        }
    }
    return refuse (&begin, err, "a quote is not closed",
                   "close it, or put the whole value in the other quotes when it holds one");
}

/* A quote that nothing follows, not even its closing one, is a value of one character. */
static bool
is_lone_quote (const struct reading *r)
{
    struct reading ahead = *r;
    struct slice line = trim (take_line (&ahead));
    return line.len == 1 && ! memchr (ahead.rest.text, line.text[0], ahead.rest.len);
}

static bool
take_value (struct reading *r, struct buf *value, struct mur_error **err)
{
    while (r->rest.len && is_blank (r->rest.text[0]))
        r->rest.text++, r->rest.len--;
    size_t number = r->number;
    if (r->rest.len && r->rest.text[0] && strchr ("\"'`", r->rest.text[0])) {
        if (is_lone_quote (r)) {
            buf_putc (value, r->rest.text[0]);
            take_line (r);
            return true;
        }
        if (! take_quoted (r, value, err))
            return false;
        struct reading here = *r;
        struct slice after = trim (take_line (r));
        if (after.len && after.text[0] == ';') /* as a shell takes it */
            after = trim ((struct slice){ after.text + 1, after.len - 1 });
        return ! after.len || after.text[0] == '#' ||
               refuse (&here, err, "text behind the closing quote",
                       "quote the whole value, or begin a comment with #");
    }
    const char *before = r->rest.text;
    struct slice line = take_line (r);
    /* The blanks before a comment were taken with those before the value. */
    bool is_comment = line.len && line.text[0] == '#' && is_blank (before[-1]);
    line = is_comment ? (struct slice){ line.text, 0 } : without_comment (line);
    if (memchr (line.text, 0, line.len)) {
        struct reading here = { line, r->file, number };
        return refuse (&here, err, "a NUL byte", "write text only");
    }
    buf_append (value, line.text, line.len);
    return true;
}

/* "export " before the name says nothing here. */
static struct slice
without_export (struct slice name)
{
    static const char word[] = "export";
    size_t len = sizeof (word) - 1;
    bool is_there =
        name.len > len && memcmp (name.text, word, len) == 0 && is_blank (name.text[len]);
    return is_there ? trim ((struct slice){ name.text + len, name.len - len }) : name;
}

static bool
take_entry (struct reading *r, struct dotenv *out, struct mur_error **err)
{
    struct reading begin = *r;
    struct reading ahead = *r;
    struct slice line = trim (take_line (&ahead));
    if (! line.len || line.text[0] == '#') {
        *r = ahead;
        return true;
    }
    const char *equals = memchr (line.text, '=', line.len);
    struct slice exported = without_export (line);
    if (! equals && exported.len < line.len && is_name (exported)) { /* export NAME */
        *r = ahead;
        return true;
    }
    struct slice name =
        trim ((struct slice){ line.text, equals ? (size_t)(equals - line.text) : 0 });
    name = without_export (name);
    if (! is_name (name))
        return refuse (&begin, err, "not a line of NAME=value",
                       "write NAME=value, or begin the line with # for a comment");
    size_t taken = (size_t)(equals + 1 - r->rest.text);
    r->rest.text += taken;
    r->rest.len -= taken;
    _cleanup_buf_ struct buf value = { 0 };
    if (! take_value (r, &value, err))
        return false;
    x_grow (out->entries, out->len, out->cap);
    out->entries[out->len++] = (struct dotenv_entry){
        x_strndup (name.text, name.len),
        buf_steal (&value),
    };
    return true;
}

bool
dotenv_parse (const char *text, size_t len, const char *file, struct dotenv *out,
              struct mur_error **err)
{
    struct reading r = { { text, len }, file, 1 };
    while (r.rest.len)
        if (! take_entry (&r, out, err))
            return false;
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
    text_form_normalise (&text);
    _cleanup_dotenv_ struct dotenv entries = { 0 };
    if (! dotenv_parse (text.data ? text.data : "", text.len, path, &entries, err))
        return false;
    for (size_t i = 0; i < entries.len; i++)
        setenv (entries.entries[i].name, entries.entries[i].value, 0);
    return true;
}
