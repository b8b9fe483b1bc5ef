/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/bundle/bundle_text.h"

#include "base/alloc.h"
#include "base/digest.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define BODIES "blobs/"

struct renaming {
    struct bundle_files *all;
    bundle_replace_fn *replace;
    void *ctx;
    bool *is_done; /* by file */
    char (*now)[SHA256_HEX_LEN + 1];
    unsigned depth;
};

static const char *
name_of (const struct bundle_file *f)
{
    return str_starts (f->name, BODIES) ? f->name + strlen (BODIES) : NULL;
}

/* The place of a body by its name of before; the count of files: there is none. */
static size_t
find_body (const struct renaming *x, const char *sha)
{
    for (size_t i = 0; i < x->all->len; i++) {
        const char *name = name_of (&x->all->items[i]);
        if (name && strncmp (name, sha, SHA256_HEX_LEN) == 0)
            return i;
    }
    return x->all->len;
}

static void rename_body (struct renaming *x, size_t i);

static bool
is_digest_at (const char *text, size_t left)
{
    if (left < SHA256_HEX_LEN)
        return false;
    for (size_t i = 0; i < SHA256_HEX_LEN; i++)
        if (! isxdigit ((unsigned char)text[i]) || isupper ((unsigned char)text[i]))
            return false;
    return true;
}

/* The new text of a file: words taken out, bodies called by their new names. */
static void
rewrite (struct renaming *x, struct buf *data)
{
    size_t len;
    _cleanup_free_ char *text = x->replace (x->ctx, data->data ? data->data : "", data->len, &len);
    struct buf out = { 0 };
    for (size_t i = 0; i < len;) {
        size_t body = is_digest_at (text + i, len - i) ? find_body (x, text + i) : x->all->len;
        if (body == x->all->len) {
            buf_putc (&out, text[i++]);
            continue;
        }
        rename_body (x, body);
        buf_append (&out, x->now[body], SHA256_HEX_LEN);
        i += SHA256_HEX_LEN;
    }
    buf_free (data);
    *data = out;
}

/* A listing names bodies, which are renamed first. */
static void
rename_body (struct renaming *x, size_t i)
{
    struct bundle_file *f = &x->all->items[i];
    if (x->is_done[i] || x->depth > 200)
        return;
    x->is_done[i] = true;
    memcpy (x->now[i], name_of (f), SHA256_HEX_LEN); /* should it name itself */
    x->depth++;
    rewrite (x, &f->data);
    x->depth--;
    sha256_hex (f->data.data ? f->data.data : "", f->data.len, x->now[i]);
}

/* The end of a tape vouches for what now stands before it. */
static void
vouch_again (struct buf *tape)
{
    static const char mark[] = "{\"kind\":\"end\"";
    char sha[SHA256_HEX_LEN + 1];
    char *end = tape->data ? strstr (tape->data, mark) : NULL;
    if (! end || (end > tape->data && end[-1] != '\n'))
        return;
    size_t len = (size_t)(end - tape->data), lines = 0;
    for (size_t i = 0; i < len; i++)
        lines += tape->data[i] == '\n';
    buf_truncate (tape, len);
    sha256_hex (tape->data, len, sha);
    buf_printf (tape, "%s,\"lines\":%zu,\"sha256\":\"%s\"}\n", mark, lines, sha);
}

void
bundle_text_replace (struct bundle_files *all, bundle_replace_fn *replace, void *ctx)
{
    struct renaming x = { .all = all, .replace = replace, .ctx = ctx };
    x.is_done = x_calloc (all->len + 1, sizeof *x.is_done);
    x.now = x_calloc (all->len + 1, sizeof *x.now);
    for (size_t i = 0; i < all->len; i++) {
        if (name_of (&all->items[i]))
            rename_body (&x, i);
        else
            rewrite (&x, &all->items[i].data);
        if (strcmp (all->items[i].name, "replay.jsonl") == 0)
            vouch_again (&all->items[i].data);
    }
    for (size_t i = 0; i < all->len; i++)
        if (name_of (&all->items[i])) {
            free (all->items[i].name);
            all->items[i].name = x_asprintf (BODIES "%s", x.now[i]);
        }
    free (x.is_done);
    free (x.now);
}
