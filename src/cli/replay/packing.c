/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/replay/packing.h"

#include "artifact/store/store.h"
#include "base/alloc.h"
#include "base/diag.h"
#include "fs/paths.h"
#include "manifest/text/grammar.h"
#include "replay/bundle/bundle.h"

#include <dirent.h>
#include <libgen.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#define SHORTEST_WORD 4

extern char **environ;

/* --- what ran --- */

/* The files of one payload: its archive, hash and sidecar. */
static bool
add_payload (struct bundle_files *out, const struct store_payload *p, const char *name,
             const char *version, struct mur_error **err)
{
    DIR *dir = opendir (p->dir);
    bool is_good = dir != NULL;
    size_t stem_len = strlen (p->stem);
    for (struct dirent *e; is_good && (e = readdir (dir));) {
        if (strncmp (e->d_name, p->stem, stem_len) != 0)
            continue;
        _cleanup_free_ char *path = x_asprintf ("%s/%s", p->dir, e->d_name);
        x_grow (out->items, out->len, out->cap);
        struct bundle_file *f = &out->items[out->len++];
        *f = (struct bundle_file){ .name = x_asprintf ("%s/%s/%s", name, version, e->d_name) };
        is_good = fs_read_regular (path, (size_t)1 << 30, &f->data, err);
    }
    if (dir)
        closedir (dir);
    return is_good || *err || mur_fail_errno (err, E_IO_003, "cannot read %s", p->dir);
}

static bool
add_artifact (struct bundle_files *out, const struct stores *stores, const struct rec_artifact *a,
              struct mur_error **err)
{
    _cleanup_payload_ struct store_payload found = { 0 };
    _cleanup_error_ struct mur_error *caught = NULL;
    if (! a->name || ! a->version || ! a->sha256)
        return true;
    enum store_found how = stores_find (stores, a->name, a->version, NULL, &found, &caught);
    if (how == STORE_FOUND && str_eq (found.sha256, a->sha256))
        return add_payload (out, &found, a->name, a->version, err);
    diag_plain_warning ("%s@%s is packed by its digest alone: %s", a->name, a->version,
                        how == STORE_FOUND ? "another one is in the store by now"
                                           : "it is in no store");
    return true;
}

/* --- what is taken out --- */

struct word {
    char *text;
    const char *put;
};
struct words {
    struct word *items;
    size_t len, cap;
};

static void
words_clear (struct words *w)
{
    for (size_t i = 0; i < w->len; i++)
        free (w->items[i].text);
    free (w->items);
}

static void
add_word (struct words *w, const char *text, const char *put)
{
    if (! text || strlen (text) < SHORTEST_WORD)
        return;
    x_grow (w->items, w->len, w->cap);
    w->items[w->len++] = (struct word){ x_strdup (text), put };
}

/* Values of variables that are named as credentials are, then who and where one is. */
static void
fill_words (struct words *w)
{
    char host[256] = "";
    const struct passwd *user = getpwuid (getuid ());
    for (char **e = environ; *e; e++) {
        const char *equals = strchr (*e, '=');
        _cleanup_free_ char *name = equals ? x_strndup (*e, (size_t)(equals - *e)) : NULL;
        bool is_builtin;
        if (name && env_stripped_by (name, NULL, 0, &is_builtin))
            add_word (w, equals + 1, "[redacted]");
    }
    add_word (w, getenv ("HOME"), "/home/user");
    add_word (w, user ? user->pw_name : NULL, "user");
    if (gethostname (host, sizeof host - 1) == 0)
        add_word (w, host, "host");
}

static char *
replace_words (void *ctx, const char *text, size_t len, size_t *out_len)
{
    const struct words *w = ctx;
    struct buf out = { 0 };
    for (size_t i = 0; i < len;) {
        const struct word *found = NULL;
        for (size_t k = 0; k < w->len && ! found; k++) {
            size_t n = strlen (w->items[k].text);
            if (n <= len - i && memcmp (text + i, w->items[k].text, n) == 0)
                found = &w->items[k];
        }
        if (found)
            buf_puts (&out, found->put);
        else
            buf_putc (&out, text[i]);
        i += found ? strlen (found->text) : 1;
    }
    *out_len = out.len;
    return out.data ? buf_steal (&out) : x_strdup ("");
}

/* --- packing --- */

bool
packing_pack (const struct record *r, const char *path, bool is_redacted, struct mur_error **err)
{
    _cleanup_bundle_files_ struct bundle_files store = { 0 };
    _cleanup_buf_ struct buf packed = { 0 };
    __attribute__ ((cleanup (words_clear))) struct words words = { 0 };
    _cleanup_free_ char *copy = r->code.manifest_path ? x_strdup (r->code.manifest_path) : NULL;
    _cleanup_stores_ struct stores *stores = stores_new (copy ? dirname (copy) : NULL, err);
    if (! stores)
        return false;
    for (size_t i = 0; i < r->code.artifact_count; i++)
        if (! add_artifact (&store, stores, &r->code.artifacts[i], err))
            return false;
    if (is_redacted)
        fill_words (&words);
    return bundle_pack (r->dir, r->session_id, &store, is_redacted ? replace_words : NULL, &words,
                        &packed, err) &&
           fs_replace_path (path, packed.data, packed.len, 0600, false, err);
}
