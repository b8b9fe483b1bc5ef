/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/record/tree_restore.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/fdio.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEEPEST_LEVEL 200

struct listed {
    char kind;
    mode_t mode;
    char sha[SHA256_HEX_LEN + 1];
    char name[256];
};

/* --- listings --- */

static bool
unescape (const char *text, char out[256])
{
    size_t len = 0;
    for (; *text; text++) {
        unsigned byte = (unsigned char)*text;
        if (*text == '%') {
            if (sscanf (text + 1, "%2x", &byte) != 1 || ! byte)
                return false;
            text += 2;
        }
        if (byte == '/' || len >= 255)
            return false;
        out[len++] = (char)byte;
    }
    out[len] = '\0';
    return len && strcmp (out, ".") != 0 && strcmp (out, "..") != 0;
}

static bool
read_entry (const char *line, struct listed *out)
{
    unsigned mode;
    unsigned long long size;
    int name_at = 0;
    if (sscanf (line, "%c %o %llu %64s %n", &out->kind, &mode, &size, out->sha, &name_at) != 4 ||
        ! name_at || ! strchr ("fld-", out->kind))
        return false;
    out->mode = mode & 0777;
    return (out->kind == '-' || sha256_hex_is_valid (out->sha)) &&
           unescape (line + name_at, out->name);
}

/* Calls <each> for every entry of a listing. */
typedef bool entry_fn (void *ctx, const struct listed *entry, struct mur_error **err);

static bool
each_entry (const struct record *r, const char *sha, entry_fn *each, void *ctx,
            struct mur_error **err)
{
    _cleanup_buf_ struct buf listing = { 0 };
    if (! record_body (r, sha, &listing, err))
        return false;
    char *rest = listing.data;
    for (char *line; rest && *rest && (line = strsep (&rest, "\n"));) {
        struct listed e;
        if (! read_entry (line, &e))
            return mur_fail (err, E_RPL_004, "%s/blobs/%s is no listing of a folder", r->dir, sha);
        if (! each (ctx, &e, err))
            return false;
    }
    return true;
}

/* --- putting back --- */

static bool
clear_folder (int fd, unsigned level)
{
    int copy = openat (fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 || level > DEEPEST_LEVEL ? NULL : fdopendir (copy);
    if (! dir)
        return false;
    bool is_good = true;
    for (struct dirent *e; (e = readdir (dir));) {
        if (strcmp (e->d_name, ".") == 0 || strcmp (e->d_name, "..") == 0)
            continue;
        if (unlinkat (fd, e->d_name, 0) == 0)
            continue;
        _cleanup_close_ int below =
            openat (fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        is_good = below >= 0 && clear_folder (below, level + 1) &&
                  unlinkat (fd, e->d_name, AT_REMOVEDIR) == 0 && is_good;
    }
    closedir (dir);
    return is_good;
}

struct restoring {
    const struct record *record;
    int dir_fd;
    unsigned level;
};

static bool
fill (const struct record *r, const char *sha, int dir_fd, unsigned level, struct mur_error **err);

static bool
put_file (const struct restoring *x, const struct listed *e, struct mur_error **err)
{
    _cleanup_buf_ struct buf body = { 0 };
    if (! record_body (x->record, e->sha, &body, err))
        return false;
    _cleanup_close_ int fd =
        openat (x->dir_fd, e->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd >= 0 && fd_write_all (fd, body.data ? body.data : "", body.len) &&
           fchmod (fd, e->mode) == 0;
}

static bool
put_link (const struct restoring *x, const struct listed *e, struct mur_error **err)
{
    _cleanup_buf_ struct buf target = { 0 };
    return record_body (x->record, e->sha, &target, err) && target.data &&
           symlinkat (target.data, x->dir_fd, e->name) == 0;
}

static bool
put_folder (const struct restoring *x, const struct listed *e, struct mur_error **err)
{
    if (mkdirat (x->dir_fd, e->name, 0700) != 0)
        return false;
    _cleanup_close_ int fd =
        openat (x->dir_fd, e->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 && fill (x->record, e->sha, fd, x->level + 1, err) && fchmod (fd, e->mode) == 0;
}

static bool
put_entry (void *ctx, const struct listed *e, struct mur_error **err)
{
    const struct restoring *x = ctx;
    struct mur_error *caught = NULL;
    bool is_put = e->kind == 'f'   ? put_file (x, e, &caught)
                  : e->kind == 'l' ? put_link (x, e, &caught)
                  : e->kind == 'd' ? put_folder (x, e, &caught)
                                   : true;
    if (is_put)
        return true;
    if (caught)
        return mur_propagate (err, caught);
    return mur_fail_errno (err, E_IO_003, "cannot put back %s", e->name);
}

static bool
fill (const struct record *r, const char *sha, int dir_fd, unsigned level, struct mur_error **err)
{
    struct restoring x = { r, dir_fd, level };
    if (level > DEEPEST_LEVEL)
        return mur_fail (err, E_RPL_004, "%s: folders too many levels deep", r->dir);
    return each_entry (r, sha, put_entry, &x, err);
}

bool
tree_restore (const struct record *r, const char *sha256, int dir_fd, struct mur_error **err)
{
    if (! clear_folder (dir_fd, 0))
        return mur_fail_errno (err, E_IO_003, "cannot empty the replay's folder");
    return fill (r, sha256, dir_fd, 0, err);
}

/* --- looking --- */

struct checking {
    const struct record *record;
    unsigned level;
};

static bool
check_entry (void *ctx, const struct listed *e, struct mur_error **err)
{
    struct checking *x = ctx;
    _cleanup_buf_ struct buf body = { 0 };
    if (e->kind == '-')
        return true;
    if (e->kind != 'd')
        return record_body (x->record, e->sha, &body, err);
    struct checking below = { x->record, x->level + 1 };
    if (below.level > DEEPEST_LEVEL)
        return mur_fail (err, E_RPL_004, "%s: folders too many levels deep", x->record->dir);
    return each_entry (x->record, e->sha, check_entry, &below, err);
}

bool
tree_check (const struct record *r, const char *sha256, struct mur_error **err)
{
    struct checking x = { r, 0 };
    return each_entry (r, sha256, check_entry, &x, err);
}

/* --- what changed --- */

struct entries {
    struct listed *items;
    size_t len, cap;
};

static bool
keep_entry (void *ctx, const struct listed *e, struct mur_error **err)
{
    struct entries *all = ctx;
    (void)err;
    x_grow (all->items, all->len, all->cap);
    all->items[all->len++] = *e;
    return true;
}

static char *
first_change (const struct record *a, const char *a_sha, const struct record *b, const char *b_sha)
{
    struct entries left = { 0 }, right = { 0 };
    char *found = NULL;
    bool can_tell = each_entry (a, a_sha, keep_entry, &left, NULL) &&
                    each_entry (b, b_sha, keep_entry, &right, NULL);
    for (size_t i = 0, k = 0; can_tell && ! found && (i < left.len || k < right.len);) {
        const struct listed *x = i < left.len ? &left.items[i] : NULL;
        const struct listed *y = k < right.len ? &right.items[k] : NULL;
        int order = ! x ? 1 : ! y ? -1 : strcmp (x->name, y->name);
        if (order) {
            found = x_strdup (order < 0 ? x->name : y->name);
        } else if (x->kind == 'd' && y->kind == 'd' && strcmp (x->sha, y->sha) != 0) {
            _cleanup_free_ char *below = first_change (a, x->sha, b, y->sha);
            found = x_asprintf ("%s/%s", x->name, below ? below : "");
        } else if (x->kind != y->kind || x->mode != y->mode || strcmp (x->sha, y->sha) != 0) {
            found = x_strdup (x->name);
        }
        i++;
        k++;
    }
    free (left.items);
    free (right.items);
    return found;
}

char *
tree_first_change (const struct record *then, const char *then_sha, const char *now_dir,
                   const char *now_sha)
{
    const struct record now = { .dir = (char *)(uintptr_t)now_dir };
    return first_change (then, then_sha, &now, now_sha);
}
