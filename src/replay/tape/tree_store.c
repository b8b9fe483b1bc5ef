/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/tape/tree_store.h"

#include "base/alloc.h"
#include "base/fdio.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DEEPEST_LEVEL  200
#define LEFT_OUT_SHOWN 100
#define FRESH_NS       100000000L /* younger than this, a time stamp may not tell of the next change */

/* An entry as it was seen last. */
struct node {
    char *name;
    struct stat st;
    bool is_fresh;
    char sha[SHA256_HEX_LEN + 1]; /* "": left out */
    struct node *children;        /* of a folder, by name */
    size_t len, cap;
};

struct tree_look_store {
    struct tree_limits limits;
    struct node root;
};

struct taking {
    struct tree_look_store *store;
    struct tape *tape;
    struct tree_taken *out;
    struct timespec now;
    char path[PATH_MAX];
    unsigned level;
    bool has_failed;
};

static void
node_clear (struct node *n)
{
    for (size_t i = 0; i < n->len; i++)
        node_clear (&n->children[i]);
    free (n->children);
    free (n->name);
    *n = (struct node){ 0 };
}

struct tree_look_store *
tree_store_new (const struct tree_limits *limits)
{
    struct tree_look_store *s = x_new0 (struct tree_look_store);
    s->limits = *limits;
    return s;
}

void
tree_store_free (struct tree_look_store *s)
{
    if (! s)
        return;
    node_clear (&s->root);
    free (s);
}

void
tree_taken_clear (struct tree_taken *t)
{
    strv_free (&t->left_out);
    *t = (struct tree_taken){ 0 };
}

/* --- one entry --- */

static bool
is_excluded (const struct taking *x, const char *name)
{
    const char *const *patterns = x->store->limits.exclude;
    for (size_t i = 0; i < x->store->limits.exclude_count; i++)
        if (fnmatch (patterns[i], name, 0) == 0 || fnmatch (patterns[i], x->path, 0) == 0)
            return true;
    return false;
}

static void
leave_out (struct taking *x, struct node *n)
{
    n->sha[0] = '\0';
    if (x->out->left_out.len < LEFT_OUT_SHOWN)
        strv_push (&x->out->left_out, x->path);
    x->out->left_out_count++;
}

static bool
is_same_time (struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool
is_untouched (const struct node *old, const struct stat *st)
{
    return old && old->sha[0] && ! old->is_fresh && old->st.st_ino == st->st_ino &&
           old->st.st_dev == st->st_dev && old->st.st_size == st->st_size &&
           is_same_time (old->st.st_mtim, st->st_mtim) &&
           is_same_time (old->st.st_ctim, st->st_ctim);
}

static bool
is_fresh (const struct taking *x, const struct stat *st)
{
    int64_t age = (int64_t)(x->now.tv_sec - st->st_ctim.tv_sec) * 1000000000L +
                  (x->now.tv_nsec - st->st_ctim.tv_nsec);
    return age < FRESH_NS;
}

static bool
keep_body (struct taking *x, const void *data, size_t len, struct node *n)
{
    if (! x->tape) {
        sha256_hex (data ? data : "", len, n->sha);
        return true;
    }
    return tape_body (x->tape, data, len, n->sha);
}

static void
take_file (struct taking *x, int dir_fd, struct node *n, const struct node *old)
{
    uint64_t size = (uint64_t)n->st.st_size;
    if (size > x->store->limits.max_file || x->out->bytes + size > x->store->limits.max_bytes) {
        leave_out (x, n);
        return;
    }
    if (is_untouched (old, &n->st)) {
        memcpy (n->sha, old->sha, sizeof n->sha);
    } else {
        _cleanup_buf_ struct buf body = { 0 };
        _cleanup_close_ int fd =
            openat (dir_fd, n->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0 || ! fd_read_all (fd, (size_t)x->store->limits.max_file, &body)) {
            leave_out (x, n); /* unreadable, or it grew meanwhile */
            return;
        }
        if (! keep_body (x, body.data, body.len, n))
            x->has_failed = true;
        n->is_fresh = is_fresh (x, &n->st);
    }
    x->out->files++;
    x->out->bytes += size;
}

static void
take_link (struct taking *x, int dir_fd, struct node *n)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat (dir_fd, n->name, target, sizeof target);
    if (len < 0)
        leave_out (x, n);
    else if (! keep_body (x, target, (size_t)len, n))
        x->has_failed = true;
}

/* --- a folder --- */

static int
by_name (const void *a, const void *b)
{
    return strcmp (((const struct node *)a)->name, ((const struct node *)b)->name);
}

static const struct node *
find_old (const struct node *old, const char *name)
{
    const struct node key = { .name = (char *)(uintptr_t)name };
    return old && old->len ? bsearch (&key, old->children, old->len, sizeof *old->children, by_name)
                           : NULL;
}

static void
append_name (struct buf *out, const char *name)
{
    for (const unsigned char *c = (const unsigned char *)name; *c; c++)
        if (*c <= ' ' || *c == '%' || *c >= 0x7f)
            buf_printf (out, "%%%02x", *c);
        else
            buf_putc (out, (char)*c);
}

static void
append_entry (struct buf *out, const struct node *n)
{
    char kind = ! n->sha[0]               ? '-'
                : S_ISDIR (n->st.st_mode) ? 'd'
                : S_ISLNK (n->st.st_mode) ? 'l'
                                          : 'f';
    unsigned long long size =
        kind == 'd' ? (unsigned long long)n->len : (unsigned long long)n->st.st_size;
    buf_printf (out, "%c %o %llu %s ", kind, n->st.st_mode & 0777, size, n->sha[0] ? n->sha : "-");
    append_name (out, n->name);
    buf_putc (out, '\n');
}

static bool
list_names (int fd, struct node *n)
{
    int copy = openat (fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir (copy);
    if (! dir)
        return false;
    for (struct dirent *e; (e = readdir (dir));) {
        if (strcmp (e->d_name, ".") == 0 || strcmp (e->d_name, "..") == 0)
            continue;
        x_grow (n->children, n->len, n->cap);
        n->children[n->len++] = (struct node){ .name = x_strdup (e->d_name) };
    }
    closedir (dir);
    if (n->len)
        qsort (n->children, n->len, sizeof *n->children, by_name);
    return true;
}

static void take_folder (struct taking *x, int fd, struct node *n, const struct node *old);

static void
take_entry (struct taking *x, int dir_fd, struct node *n, const struct node *old)
{
    size_t above = strlen (x->path);
    if (above + strlen (n->name) + 2 >= sizeof x->path)
        return;
    snprintf (x->path + above, sizeof x->path - above, "%s%s", above ? "/" : "", n->name);
    if (fstatat (dir_fd, n->name, &n->st, AT_SYMLINK_NOFOLLOW) < 0 || is_excluded (x, n->name) ||
        x->level >= DEEPEST_LEVEL) {
        leave_out (x, n);
    } else if (S_ISREG (n->st.st_mode)) {
        take_file (x, dir_fd, n, old);
    } else if (S_ISLNK (n->st.st_mode)) {
        take_link (x, dir_fd, n);
    } else if (S_ISDIR (n->st.st_mode)) {
        _cleanup_close_ int fd =
            openat (dir_fd, n->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0)
            take_folder (x, fd, n, old);
        else
            leave_out (x, n);
    } else {
        leave_out (x, n);
    }
    x->path[above] = '\0';
}

static void
take_folder (struct taking *x, int fd, struct node *n, const struct node *old)
{
    _cleanup_buf_ struct buf listing = { 0 };
    if (! list_names (fd, n)) {
        leave_out (x, n);
        return;
    }
    x->level++;
    for (size_t i = 0; i < n->len; i++) {
        take_entry (x, fd, &n->children[i], find_old (old, n->children[i].name));
        append_entry (&listing, &n->children[i]);
    }
    x->level--;
    bool is_known = false;
    if (old && old->sha[0] && x->tape) {
        sha256_hex (listing.data ? listing.data : "", listing.len, n->sha);
        is_known = str_eq (n->sha, old->sha);
    }
    if (! is_known && ! keep_body (x, listing.data, listing.len, n))
        x->has_failed = true;
}

bool
tree_take (struct tree_look_store *s, struct tape *tape, int root_fd, struct tree_taken *out)
{
    struct node now = { 0 };
    struct taking *x = x_new0 (struct taking);
    *out = (struct tree_taken){ 0 };
    *x = (struct taking){ .store = s, .tape = tape, .out = out };
    clock_gettime (CLOCK_REALTIME, &x->now);
    take_folder (x, root_fd, &now, s->root.sha[0] ? &s->root : NULL);
    bool is_good = ! x->has_failed && now.sha[0];
    memcpy (out->sha, now.sha, sizeof out->sha);
    node_clear (&s->root);
    s->root = now;
    free (x);
    return is_good;
}
