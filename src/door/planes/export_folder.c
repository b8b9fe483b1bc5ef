/* SPDX-License-Identifier: Apache-2.0 */
#include "door/planes/export_folder.h"

#include "base/alloc.h"
#include "base/fdio.h"
#include "fs/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define HASHED_MAX ((uint64_t)1 << 30) /* of files too large to be read anyway, a listing */
#define DEPTH_MAX  128                 /* levels a listing descends: each holds a descriptor */

static const struct {
    int status;
    const char *name, *message;
} outcomes[] = {
    [EXPORT_OK] = { 200, "ok", "" },
    [EXPORT_NOT_FOUND] = { 404, "not_found", "There is no such file." },
    [EXPORT_OUTSIDE_ROOT] = { 403, "outside_root", "The path does not lie beneath the root." },
    [EXPORT_SYMLINK_REFUSED] = { 403, "symlink_refused", "A symbolic link is on the path." },
    [EXPORT_NOT_A_REGULAR_FILE] = { 403, "not_a_regular_file", "It is not a regular file." },
    [EXPORT_TOO_LARGE] = { 413, "too_large", "The file is larger than max_bytes." },
    [EXPORT_IO_ERROR] = { 500, "io_error", "The file could not be read." },
};

const char *
export_outcome_name (enum export_outcome outcome)
{
    return outcomes[outcome].name;
}

int
export_outcome_status (enum export_outcome outcome)
{
    return outcomes[outcome].status;
}

const char *
export_outcome_message (enum export_outcome outcome)
{
    return outcomes[outcome].message;
}

static enum export_outcome
outcome_of (enum fs_beneath how)
{
    static const enum export_outcome table[] = {
        [FS_BENEATH_OPENED] = EXPORT_OK,
        [FS_BENEATH_ABSENT] = EXPORT_NOT_FOUND,
        [FS_BENEATH_OUTSIDE] = EXPORT_OUTSIDE_ROOT,
        [FS_BENEATH_LINK] = EXPORT_SYMLINK_REFUSED,
        [FS_BENEATH_SPECIAL] = EXPORT_NOT_A_REGULAR_FILE,
        [FS_BENEATH_FAILED] = EXPORT_IO_ERROR,
    };
    return table[how];
}

/* --- paths --- */

static int
hex_digit (char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

void
export_decode_path (const char *text, size_t len, struct buf *out)
{
    for (size_t i = 0; i < len; i++) {
        int high = text[i] == '%' && i + 2 < len ? hex_digit (text[i + 1]) : -1;
        int low = high >= 0 ? hex_digit (text[i + 2]) : -1;
        if (low >= 0)
            i += 2;
        buf_putc (out, low >= 0 ? (char)(high * 16 + low) : text[i]);
    }
}

char *
export_plain_path (const char *decoded, size_t len)
{
    if (len && decoded[len - 1] == '/')
        len--;
    if (! len || memchr (decoded, '\0', len) || ! utf8_is_valid (decoded, len))
        return NULL;
    _cleanup_free_ char *path = x_strndup (decoded, len);
    for (const char *at = path; at; at = strchr (at, '/')) {
        at += at != path;
        size_t part = strcspn (at, "/");
        if (! part || (part == 1 && at[0] == '.') || (part == 2 && at[0] == '.' && at[1] == '.'))
            return NULL;
    }
    return steal_ptr (&path);
}

/* --- the root --- */

/* The root may itself be reached through links, as long as it lies in the work folder now. */
static enum export_outcome
open_root (const struct export_folder *e, int *fd)
{
    return outcome_of (
        fs_open_beneath (fs_root_fd (e->work), e->root, true, O_RDONLY | O_DIRECTORY, fd, NULL));
}

/* --- one file --- */

static enum export_outcome
open_regular (int root, const char *path, bool follows, int *fd, struct stat *st, char **resolved)
{
    enum export_outcome how =
        outcome_of (fs_open_beneath (root, path, follows, O_RDONLY, fd, resolved));
    if (how != EXPORT_OK)
        return how;
    if (fstat (*fd, st) < 0)
        return EXPORT_IO_ERROR;
    return S_ISREG (st->st_mode) ? EXPORT_OK : EXPORT_NOT_A_REGULAR_FILE;
}

static int64_t
mtime_ms (const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
}

void
export_file_clear (struct export_file *f)
{
    free (f->path);
    buf_free (&f->bytes);
    *f = (struct export_file){ 0 };
}

static enum export_outcome
open_asked (const struct export_folder *e, const char *path, int *fd, struct stat *st,
            char **resolved)
{
    _cleanup_close_ int root = -1;
    enum export_outcome how = open_root (e, &root);
    if (how != EXPORT_OK)
        return how;
    how = open_regular (root, path, e->follows_links, fd, st, resolved);
    if (how == EXPORT_OK && (uint64_t)st->st_size > e->max_bytes)
        return EXPORT_TOO_LARGE;
    return how;
}

enum export_outcome
export_read (const struct export_folder *e, const char *path, struct export_file *out)
{
    _cleanup_close_ int fd = -1;
    struct stat st;
    enum export_outcome how = open_asked (e, path, &fd, &st, &out->path);
    if (how != EXPORT_OK)
        return how;
    (void)buf_reserve (&out->bytes, (size_t)st.st_size + 1);
    if (! fd_read_all (fd, e->max_bytes, &out->bytes))
        return errno == EFBIG ? EXPORT_TOO_LARGE : EXPORT_IO_ERROR;
    out->mtime_ms = mtime_ms (&st);
    sha256_hex (out->bytes.data ? out->bytes.data : "", out->bytes.len, out->sha256);
    return EXPORT_OK;
}

enum export_outcome
export_probe (const struct export_folder *e, const char *path, char **resolved)
{
    _cleanup_close_ int fd = -1;
    _cleanup_free_ char *found = NULL;
    struct stat st;
    enum export_outcome how = open_asked (e, path, &fd, &st, &found);
    if (how == EXPORT_OK)
        *resolved = steal_ptr (&found);
    return how;
}

enum export_outcome
export_look (const struct export_folder *e, const char *path, struct stat *st)
{
    _cleanup_close_ int fd = -1;
    _cleanup_free_ char *found = NULL;
    return open_asked (e, path, &fd, st, &found);
}

/* --- the listing --- */

struct entry {
    char *path;
    uint64_t size;
    int64_t mtime_ms;
    char sha256[SHA256_HEX_LEN + 1];
};

struct lister {
    const struct export_folder *folder;
    int root;
    struct cancel *cancel;
    bool reads; /* each file, for its digest */
    struct entry *entries;
    size_t len, cap;
    uint64_t hashed_large; /* bytes of files above max_bytes */
};

/* A file may be of any size, sparse ones of more than anybody waits for: those nobody can read
 * here share a bound. */
static bool
is_worth_hashing (struct lister *l, uint64_t size)
{
    if (size <= l->folder->max_bytes)
        return true;
    if (size > HASHED_MAX - l->hashed_large)
        return false;
    l->hashed_large += size;
    return true;
}

static bool
hash_listed (struct lister *l, int fd, uint64_t size, char out[SHA256_HEX_LEN + 1])
{
    char chunk[65536];
    struct sha256 *hash = sha256_new ();
    ssize_t n = 1;
    while (size && n > 0 && ! cancel_is_raised (l->cancel)) {
        n = read (fd, chunk, size < sizeof chunk ? (size_t)size : sizeof chunk);
        if (n > 0)
            sha256_add (hash, chunk, (size_t)n);
        size -= n > 0 ? (uint64_t)n : 0;
    }
    sha256_finish (hash, out);
    return n >= 0 && ! cancel_is_raised (l->cancel);
}

static void
add_file (struct lister *l, const char *path, int fd, const struct stat *st)
{
    struct entry e = { .size = (uint64_t)st->st_size, .mtime_ms = mtime_ms (st) };
    if (l->reads && is_worth_hashing (l, e.size) && ! hash_listed (l, fd, e.size, e.sha256))
        return; /* it cannot be read any more */
    e.path = x_strdup (path);
    x_grow (l->entries, l->len, l->cap);
    l->entries[l->len++] = e;
}

static void list_directory (struct lister *l, int dir, const char *prefix, unsigned depth);

/* What vanishes or changes its kind meanwhile is left out. */
static void
list_one (struct lister *l, int dir, const char *name, const char *path, unsigned depth)
{
    struct stat st;
    if (fstatat (dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    _cleanup_close_ int fd = -1;
    if (S_ISDIR (st.st_mode)) {
        fd = openat (dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && depth < DEPTH_MAX)
            list_directory (l, fd, path, depth + 1);
        return;
    }
    bool is_link = S_ISLNK (st.st_mode);
    if ((! S_ISREG (st.st_mode) && ! is_link) || (is_link && ! l->folder->follows_links))
        return;
    int from = is_link ? l->root : dir;
    if (open_regular (from, is_link ? path : name, is_link, &fd, &st, NULL) == EXPORT_OK)
        add_file (l, path, fd, &st);
}

static void
list_directory (struct lister *l, int dir, const char *prefix, unsigned depth)
{
    int copy = fcntl (dir, F_DUPFD_CLOEXEC, 3);
    _cleanup_closedir_ DIR *d = copy >= 0 ? fdopendir (copy) : NULL;
    if (! d && copy >= 0)
        close (copy);
    for (const struct dirent *e; d && (e = readdir (d)) && ! cancel_is_raised (l->cancel);) {
        if (str_eq (e->d_name, ".") || str_eq (e->d_name, ".."))
            continue;
        _cleanup_free_ char *path = x_asprintf ("%s%s%s", prefix, *prefix ? "/" : "", e->d_name);
        list_one (l, dir, e->d_name, path, depth);
    }
}

static int
by_path (const void *a, const void *b)
{
    return strcmp (((const struct entry *)a)->path, ((const struct entry *)b)->path);
}

static json_t *
entry_json (const struct entry *e)
{
    json_t *o = json_object ();
    json_set_string (o, "path", e->path);
    json_set_u64 (o, "size_bytes", e->size);
    json_object_set_new (o, "mtime_ms", json_integer (e->mtime_ms));
    json_set_string (o, "sha256", e->sha256[0] ? e->sha256 : NULL);
    return o;
}

static enum export_outcome
list (const struct export_folder *e, bool reads, struct cancel *cancel, struct export_listing *out)
{
    struct lister l = { .folder = e, .root = -1, .cancel = cancel, .reads = reads };
    struct stat st;
    *out = (struct export_listing){ .entries = json_array () };
    enum export_outcome how = open_root (e, &l.root);
    if (how == EXPORT_NOT_FOUND && fstatat (fs_root_fd (e->work), e->root, &st, 0) < 0 &&
        errno == ENOENT)
        return EXPORT_OK;
    if (how != EXPORT_OK)
        return how;
    list_directory (&l, l.root, "", 0);
    close (l.root);
    if (l.len)
        qsort (l.entries, l.len, sizeof *l.entries, by_path);
    for (size_t i = 0; i < l.len; i++) {
        json_array_append_new (out->entries, entry_json (&l.entries[i]));
        out->total_bytes += l.entries[i].size;
        free (l.entries[i].path);
    }
    out->count = l.len;
    free (l.entries);
    return cancel_is_raised (cancel) ? EXPORT_IO_ERROR : EXPORT_OK;
}

enum export_outcome
export_list (const struct export_folder *e, struct cancel *cancel, struct export_listing *out)
{
    return list (e, true, cancel, out);
}

enum export_outcome
export_list_unread (const struct export_folder *e, struct cancel *cancel,
                    struct export_listing *out)
{
    return list (e, false, cancel, out);
}
