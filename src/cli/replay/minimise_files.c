/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/replay/minimise_files.h"

#include "base/alloc.h"
#include "fs/paths.h"
#include "replay/record/tree_restore.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGEST_FILE ((size_t)1 << 30)

static void
split_lines (struct start_file *f)
{
    size_t cap = 0;
    for (size_t i = 0; i < f->data.len; i++)
        if (f->data.data[i] == '\n' || i + 1 == f->data.len) {
            x_grow (f->ends, f->line_count, cap);
            f->ends[f->line_count++] = i + 1;
        }
    f->keeps = x_calloc (f->line_count + 1, sizeof *f->keeps);
    memset (f->keeps, true, f->line_count);
}

static int
by_path (const void *a, const void *b)
{
    return strcmp (((const struct start_file *)a)->path, ((const struct start_file *)b)->path);
}

static bool
take_folder (struct start_files *out, const char *root, const char *below, struct mur_error **err)
{
    _cleanup_free_ char *path = x_asprintf ("%s/%s", root, below);
    DIR *dir = opendir (path);
    bool is_good = dir != NULL;
    for (struct dirent *e; is_good && (e = readdir (dir));) {
        struct stat st;
        if (strcmp (e->d_name, ".") == 0 || strcmp (e->d_name, "..") == 0)
            continue;
        _cleanup_free_ char *name = x_asprintf ("%s%s%s", below, *below ? "/" : "", e->d_name);
        _cleanup_free_ char *whole = x_asprintf ("%s/%s", root, name);
        if (lstat (whole, &st) != 0)
            continue;
        if (S_ISDIR (st.st_mode)) {
            is_good = take_folder (out, root, name, err);
        } else if (S_ISREG (st.st_mode)) {
            x_grow (out->items, out->len, out->cap);
            struct start_file *f = &out->items[out->len++];
            *f = (struct start_file){ .path = steal_ptr (&name), .mode = st.st_mode & 0777 };
            f->is_kept = true;
            is_good = fs_read_regular (whole, LARGEST_FILE, &f->data, err);
            split_lines (f);
        }
    }
    if (dir)
        closedir (dir);
    return is_good || *err || mur_fail_errno (err, E_IO_003, "cannot read %s", path);
}

bool
start_files_read (const struct record *r, const char *tree_sha, struct start_files *out,
                  struct mur_error **err)
{
    char name[] = "/tmp/murmur-start-XXXXXX";
    if (! mkdtemp (name))
        return mur_fail_errno (err, E_IO_003, "cannot make a folder below /tmp");
    int fd = open (name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_good =
        fd >= 0 && tree_restore (r, tree_sha, fd, err) && take_folder (out, name, "", err);
    if (fd >= 0)
        close (fd);
    fs_remove_tree_at (AT_FDCWD, name, NULL);
    if (out->len)
        qsort (out->items, out->len, sizeof *out->items, by_path);
    return is_good;
}

void
start_files_clear (struct start_files *f)
{
    for (size_t i = 0; i < f->len; i++) {
        free (f->items[i].path);
        buf_free (&f->items[i].data);
        free (f->items[i].ends);
        free (f->items[i].keeps);
    }
    free (f->items);
    *f = (struct start_files){ 0 };
}

size_t
start_files_lines (const struct start_files *f)
{
    size_t count = 0;
    for (size_t i = 0; i < f->len; i++)
        for (size_t k = 0; f->items[i].is_kept && k < f->items[i].line_count; k++)
            count += f->items[i].keeps[k];
    return count;
}

static bool
make_dirs (char *path, size_t root_len, struct mur_error **err)
{
    for (char *slash = path + root_len + 1; (slash = strchr (slash, '/')); slash++) {
        *slash = '\0';
        bool is_made = mkdir (path, 0777) == 0 || errno == EEXIST;
        if (! is_made)
            return mur_fail_errno (err, E_IO_003, "cannot make %s", path);
        *slash = '/';
    }
    return true;
}

bool
start_files_write (const struct start_files *f, const char *dir, struct mur_error **err)
{
    for (size_t i = 0; i < f->len; i++) {
        const struct start_file *one = &f->items[i];
        _cleanup_buf_ struct buf text = { 0 };
        _cleanup_free_ char *path = x_asprintf ("%s/%s", dir, one->path);
        for (size_t k = 0, from = 0; k < one->line_count; from = one->ends[k++])
            if (one->keeps[k])
                buf_append (&text, one->data.data + from, one->ends[k] - from);
        if (one->is_kept &&
            (! make_dirs (path, strlen (dir), err) ||
             ! fs_replace_path (path, text.data ? text.data : "", text.len, one->mode, false, err)))
            return false;
    }
    return true;
}
