/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/bundle/bundle.h"

#include "artifact/package/zip.h"
#include "base/alloc.h"
#include "base/digest.h"
#include "base/json.h"
#include "fs/paths.h"
#include "replay/bundle/bundle_text.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGEST_BUNDLE ((size_t)2 << 30) /* packed, and unpacked */
#define ABOUT          "bundle.json"

void
bundle_files_clear (struct bundle_files *f)
{
    for (size_t i = 0; i < f->len; i++) {
        free (f->items[i].name);
        buf_free (&f->items[i].data);
    }
    free (f->items);
    *f = (struct bundle_files){ 0 };
}

static struct buf *
add_file (struct bundle_files *f, char *name)
{
    x_grow (f->items, f->len, f->cap);
    f->items[f->len] = (struct bundle_file){ .name = name };
    return &f->items[f->len++].data;
}

bool
bundle_is_one (const char *path)
{
    struct stat st;
    return path && ! str_ends (path, ".jsonl") && stat (path, &st) == 0 && S_ISREG (st.st_mode);
}

/* --- packing --- */

static bool
take_file (struct bundle_files *all, const char *dir, const char *name, struct mur_error **err)
{
    _cleanup_free_ char *path = x_asprintf ("%s/%s", dir, name);
    return fs_read_regular (path, LARGEST_BUNDLE, add_file (all, x_strdup (name)), err);
}

static int
by_name (const void *a, const void *b)
{
    return strcmp (((const struct bundle_file *)a)->name, ((const struct bundle_file *)b)->name);
}

static bool
take_bodies (struct bundle_files *all, const char *dir, struct mur_error **err)
{
    _cleanup_free_ char *blobs = x_asprintf ("%s/blobs", dir);
    DIR *open = opendir (blobs);
    bool is_good = true;
    size_t first = all->len;
    for (struct dirent *e; is_good && open && (e = readdir (open));) {
        _cleanup_free_ char *name = x_asprintf ("blobs/%s", e->d_name);
        is_good = ! sha256_hex_is_valid (e->d_name) || take_file (all, dir, name, err);
    }
    if (open)
        closedir (open);
    if (all->len > first)
        qsort (all->items + first, all->len - first, sizeof *all->items, by_name);
    return is_good;
}

static bool
has_file (const char *dir, const char *name)
{
    _cleanup_free_ char *path = x_asprintf ("%s/%s", dir, name);
    return access (path, F_OK) == 0;
}

static void
add_about (struct bundle_files *all, const char *session_id, bool is_strict, bool has_tape)
{
    _cleanup_json_ json_t *o = json_object ();
    json_set_u64 (o, "format", BUNDLE_FORMAT);
    json_set_string (o, "session_id", session_id);
    json_set_bool (o, "strict", is_strict);
    json_set_bool (o, "has_replay", has_tape);
    _cleanup_free_ char *text = json_text (o, JSON_TEXT_ORDERED);
    buf_puts (add_file (all, x_strdup (ABOUT)), text);
}

bool
bundle_pack (const char *dir, const char *session_id, const struct bundle_files *store,
             bundle_replace_fn *replace, void *ctx, struct buf *out, struct mur_error **err)
{
    _cleanup_bundle_files_ struct bundle_files all = { 0 };
    bool has_tape = has_file (dir, "replay.jsonl");
    add_about (&all, session_id, ! replace, has_tape);
    if (! take_file (&all, dir, "trace.jsonl", err) ||
        (has_tape && ! take_file (&all, dir, "replay.jsonl", err)) ||
        ! take_bodies (&all, dir, err))
        return false;
    if (replace)
        bundle_text_replace (&all, replace, ctx);
    size_t count = all.len + store->len;
    _cleanup_free_ struct zip_source *entries = x_new_array (struct zip_source, count + 1);
    _cleanup_strv_ struct strv names = { 0 };
    for (size_t i = 0; i < store->len; i++)
        strv_printf (&names, "store/%s", store->items[i].name);
    for (size_t i = 0; i < all.len; i++)
        entries[i] = (struct zip_source){ all.items[i].name,
                                          all.items[i].data.data ? all.items[i].data.data : "",
                                          all.items[i].data.len };
    for (size_t i = 0; i < store->len; i++)
        entries[all.len + i] = (struct zip_source){ names.items[i], store->items[i].data.data,
                                                    store->items[i].data.len };
    return zip_write (entries, count, out, err);
}

/* --- looking --- */

static bool
refuse (const char *label, const char *name, const char *why, struct mur_error **err)
{
    if (name)
        mur_fail (err, E_RPL_004, "%s: \"%s\" %s", label, name, why);
    else
        mur_fail (err, E_RPL_004, "%s", why);
    return mur_hint (err,
                     "take the bundle from where it was packed again; nothing of it was run or "
                     "written");
}

/* <count> plain components after a prefix. */
static bool
is_plain_path (const char *path, size_t count)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+@-";
    for (size_t i = 0; i < count; i++) {
        size_t len = strspn (path, plain);
        bool is_last = i + 1 == count;
        if (! len || path[0] == '.' || path[len] != (is_last ? '\0' : '/'))
            return false;
        path += len + 1;
    }
    return true;
}

static bool
is_known_name (const char *name)
{
    static const char *const single[] = { ABOUT, "trace.jsonl", "replay.jsonl" };
    for (size_t i = 0; i < ARRAY_LEN (single); i++)
        if (strcmp (single[i], name) == 0)
            return true;
    if (str_starts (name, "blobs/"))
        return sha256_hex_is_valid (name + strlen ("blobs/"));
    return str_starts (name, "store/") && is_plain_path (name + strlen ("store/"), 4);
}

static bool
check_entry (struct zip *z, size_t i, const char *label, struct mur_error **err)
{
    const struct zip_entry *e = zip_at (z, i);
    if (! is_known_name (e->name))
        return refuse (label, e->name, "is no part of a bundle", err);
    if (e->mode && (e->mode & S_IFMT) && ! S_ISREG (e->mode))
        return refuse (label, e->name, "is no plain file", err);
    return zip_find (z, e->name) == e || refuse (label, e->name, "is there twice", err);
}

static void
count_piece (void *ctx, const void *data, size_t len)
{
    uint64_t *left = ctx;
    (void)data;
    *left -= len < *left ? len : *left;
}

/* Bounded as a whole, whatever its headers say, and seen to be so before any of it is kept. */
static bool
check_sizes (struct zip *z, const char *label, struct mur_error **err)
{
    uint64_t left = LARGEST_BUNDLE;
    for (size_t i = 0; i < zip_count (z); i++) {
        bool is_over = false;
        const struct zip_entry *e = zip_at (z, i);
        _cleanup_error_ struct mur_error *caught = NULL;
        if (! check_entry (z, i, label, err))
            return false;
        if (! zip_stream (z, e, left, count_piece, &left, &is_over, &caught))
            return refuse (label, e->name,
                           is_over ? "unpacks to more than a bundle may hold" : "cannot be read",
                           err);
    }
    return true;
}

static bool
check_parts (struct zip *z, const char *label, struct mur_error **err)
{
    static const char *const parts[] = { ABOUT, "trace.jsonl" };
    for (size_t i = 0; i < ARRAY_LEN (parts); i++)
        if (! zip_find (z, parts[i]))
            return refuse (label, parts[i], "is missing: this is no bundle", err);
    return true;
}

static bool
read_entries (struct zip *z, const char *label, struct bundle_files *all, struct mur_error **err)
{
    uint64_t left = LARGEST_BUNDLE;
    for (size_t i = 0; i < zip_count (z); i++) {
        bool is_over = false;
        const struct zip_entry *e = zip_at (z, i);
        struct buf *data = add_file (all, x_strdup (e->name));
        _cleanup_error_ struct mur_error *caught = NULL;
        if (! zip_read (z, e, left, data, &is_over, &caught))
            return refuse (label, e->name,
                           is_over ? "unpacks to more than a bundle may hold" : "cannot be read",
                           err);
        left -= data->len;
    }
    return true;
}

static const struct buf *
find_file (const struct bundle_files *all, const char *name)
{
    for (size_t i = 0; i < all->len; i++)
        if (strcmp (all->items[i].name, name) == 0)
            return &all->items[i].data;
    return NULL;
}

static bool
check_about (const struct bundle_files *all, const char *label, bool *is_strict,
             struct mur_error **err)
{
    const struct buf *text = find_file (all, ABOUT), *tape = find_file (all, "replay.jsonl");
    _cleanup_json_ json_t *o = json_loadb (text->data ? text->data : "", text->len, 0, NULL);
    uint64_t format = 0;
    json_get_u64 (o, "format", &format);
    *is_strict = json_is_true (json_object_get (o, "strict"));
    if (! json_is_object (o))
        return refuse (label, ABOUT, "is no JSON object", err);
    if (format != BUNDLE_FORMAT) {
        mur_fail (err, E_RPL_004, "%s is a bundle of format %llu, and this mur reads format %d",
                  label, (unsigned long long)format, BUNDLE_FORMAT);
        return mur_hint (err, "replay it with the mur that packed it, or a newer one");
    }
    if (json_is_true (json_object_get (o, "has_replay")) && (! tape || ! tape->len))
        return refuse (label, "replay.jsonl", "is missing, and it was packed", err);
    return true;
}

/* --- unpacking --- */

static bool
make_dirs (const char *dir, const char *name, struct mur_error **err)
{
    _cleanup_free_ char *path = x_asprintf ("%s/%s", dir, name);
    for (char *slash = path + strlen (dir) + 1; (slash = strchr (slash, '/')); slash++) {
        *slash = '\0';
        if (mkdir (path, 0700) != 0 && errno != EEXIST)
            return mur_fail_errno (err, E_IO_003, "cannot make %s", path);
        *slash = '/';
    }
    return true;
}

static bool
put_file (const char *dir, const struct bundle_file *f, struct mur_error **err)
{
    bool is_store = str_starts (f->name, "store/");
    _cleanup_free_ char *name =
        is_store ? x_asprintf (".murmur/artifacts/%s", f->name + strlen ("store/"))
                 : x_strdup (f->name);
    _cleanup_free_ char *path = x_asprintf ("%s/%s", dir, name);
    return make_dirs (dir, name, err) &&
           fs_replace_path (path, f->data.data ? f->data.data : "", f->data.len, 0600, false, err);
}

bool
bundle_unpack (const char *path, const char *dir, bool *is_strict, struct mur_error **err)
{
    _cleanup_buf_ struct buf packed = { 0 };
    _cleanup_bundle_files_ struct bundle_files all = { 0 };
    _cleanup_error_ struct mur_error *caught = NULL;
    if (! fs_read_regular (path, LARGEST_BUNDLE, &packed, err))
        return false;
    _cleanup_ (zip_closep) struct zip *z =
        zip_open (packed.data ? packed.data : "", packed.len, path, &caught);
    if (! z)
        return refuse (path, NULL, caught->message, err);
    if (! check_sizes (z, path, err) || ! check_parts (z, path, err) ||
        ! read_entries (z, path, &all, err) || ! check_about (&all, path, is_strict, err))
        return false;
    for (size_t i = 0; i < all.len; i++)
        if (! put_file (dir, &all.items[i], err))
            return false;
    return true;
}
