/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/tree_changes.h"

#include "base/alloc.h"
#include "base/fdio.h"

#include <fcntl.h>
#include <string.h>

#define FILES_MAX    20000
#define LEVELS_MAX   100
#define HASHED_BYTES ((uint64_t)64 << 20) /* of a look; what lies beyond has no digest */

struct seen {
    char *path;
    struct stat st;
    char sha[SHA256_HEX_LEN + 1]; /* "" not taken */
};

struct tree_look {
    struct seen *items; /* in byte order of their paths */
    size_t len, cap;
    bool is_cut;
};

static int
by_path (const void *a, const void *b)
{
    return strcmp (((const struct seen *)a)->path, ((const struct seen *)b)->path);
}

/* Takes <fd> over. */
static void
look_at_level (struct tree_look *l, int fd, const char *above, unsigned level)
{
    _cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir (fd);
    if (! dir && fd >= 0)
        close (fd);
    for (struct dirent *e; dir && (e = readdir (dir));) {
        struct stat st;
        if (strcmp (e->d_name, ".") == 0 || strcmp (e->d_name, "..") == 0 ||
            strcmp (e->d_name, ".git") == 0 ||
            fstatat (dirfd (dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        bool is_dir = S_ISDIR (st.st_mode);
        if (! is_dir && ! S_ISREG (st.st_mode))
            continue;
        if (l->len == FILES_MAX || (is_dir && level == LEVELS_MAX)) {
            l->is_cut = true;
            return;
        }
        char *path = *above ? x_asprintf ("%s/%s", above, e->d_name) : x_strdup (e->d_name);
        if (is_dir) {
            int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
            look_at_level (l, openat (dirfd (dir), e->d_name, flags), path, level + 1);
            free (path);
            continue;
        }
        x_grow (l->items, l->len, l->cap);
        l->items[l->len++] = (struct seen){ .path = path, .st = st };
    }
}

static struct tree_look *
look (struct fs_root *tree)
{
    struct tree_look *l = x_new0 (struct tree_look);
    look_at_level (l, openat (fs_root_fd (tree), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "", 0);
    if (l->len)
        qsort (l->items, l->len, sizeof *l->items, by_path);
    return l;
}

static void
take_digest (struct fs_root *tree, struct seen *s, uint64_t *budget)
{
    if ((uint64_t)s->st.st_size > *budget)
        return;
    *budget -= (uint64_t)s->st.st_size;
    _cleanup_close_ int fd = fs_open_read (tree, s->path, NULL);
    if (fd < 0 || ! sha256_hex_fd_upto (fd, (uint64_t)s->st.st_size + 1, s->sha))
        s->sha[0] = '\0';
}

struct tree_look *
tree_look_new (struct fs_root *tree)
{
    struct tree_look *l = look (tree);
    uint64_t budget = HASHED_BYTES;
    for (size_t i = 0; i < l->len; i++)
        take_digest (tree, &l->items[i], &budget);
    return l;
}

void
tree_look_free (struct tree_look *l)
{
    if (! l)
        return;
    for (size_t i = 0; i < l->len; i++)
        free (l->items[i].path);
    free (l->items);
    free (l);
}

static bool
is_untouched (const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static const char *
sha_of (const struct seen *s)
{
    return s && s->sha[0] ? s->sha : NULL;
}

bool
tree_changes (const struct tree_look *before, struct fs_root *tree, tree_change_fn *fn, void *ctx)
{
    _cleanup_ (tree_look_freep) struct tree_look *after = look (tree);
    uint64_t budget = HASHED_BYTES;
    for (size_t i = 0, k = 0; i < before->len || k < after->len;) {
        const struct seen *was = i < before->len ? &before->items[i] : NULL;
        struct seen *is = k < after->len ? &after->items[k] : NULL;
        int order = ! was ? 1 : ! is ? -1 : strcmp (was->path, is->path);
        i += order <= 0;
        k += order >= 0;
        if (order == 0 && is_untouched (&was->st, &is->st))
            continue;
        if (order >= 0)
            take_digest (tree, is, &budget);
        if (order < 0)
            fn (ctx, was->path, TREE_DELETED, sha_of (was), NULL);
        else if (order > 0)
            fn (ctx, is->path, TREE_CREATED, NULL, sha_of (is));
        else if (! was->sha[0] || strcmp (was->sha, is->sha) != 0)
            fn (ctx, is->path, TREE_MODIFIED, sha_of (was), sha_of (is));
    }
    return ! before->is_cut && ! after->is_cut;
}
