/* SPDX-License-Identifier: Apache-2.0 */
#include "home/conversations.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fdio.h"
#include "base/ids.h"
#include "fs/paths.h"
#include "fs/replace.h"
#include "fs/root.h"
#include "home/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define RECORD_FILE    "conversation.jsonl"
#define HARNESS_FILE   "harness-session.json"
#define LARGEST_RECORD ((size_t)1 << 30)

/* --- reading --- */

/* Reads a regular file below an open directory. False with errno set; ENOENT when it is not there.
 */
static bool
read_file (int dir, const char *name, struct buf *out, struct stat *st)
{
    _cleanup_close_ int fd = openat (dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat (fd, st) < 0)
        return false;
    if (! S_ISREG (st->st_mode)) {
        errno = EINVAL;
        return false;
    }
    return fd_read_all (fd, LARGEST_RECORD, out);
}

static bool
is_header (const json_t *line)
{
    return str_eq (json_get_string (line, "type"), "murmur.record") &&
           ! json_object_get (line, "role");
}

static void
split_lines (struct conversation_file *f)
{
    size_t cap = 0;
    for (size_t at = 0; at < f->text.len;) {
        const char *start = f->text.data + at;
        const char *end = memchr (start, '\n', f->text.len - at);
        size_t len = end ? (size_t)(end - start) : f->text.len - at;
        json_t *line = json_loadb (start, len, 0, NULL);
        if (json_get_string (line, "role")) {
            const char *id = json_get_string (line, "id");
            x_grow (f->lines, f->len, cap);
            f->lines[f->len++] = (struct conversation_line){ at, len, line, id ? id : "" };
        } else if (is_header (line) && ! f->header) {
            f->header = line;
        } else {
            json_decref (line);
        }
        at += len + 1;
    }
}

static void
file_clear (struct conversation_file *f)
{
    for (size_t i = 0; i < f->len; i++)
        json_decref (f->lines[i].message);
    free (f->lines);
    free (f->record);
    free (f->context_id);
    free (f->dir);
    free (f->path);
    json_decref (f->header);
    buf_free (&f->text);
}

/* Adds one context when it has a record, or a harness that keeps the conversation itself. */
static bool
read_context (int context_fd, const char *dir, const char *record, const char *context_id,
              struct conversation_files *out, struct mur_error **err)
{
    struct conversation_file f = { 0 };
    struct stat st;
    if (! read_file (context_fd, RECORD_FILE, &f.text, &st) &&
        (errno != ENOENT || fstatat (context_fd, HARNESS_FILE, &st, AT_SYMLINK_NOFOLLOW) < 0)) {
        buf_free (&f.text);
        return errno == ENOENT ||
               mur_fail_errno (err, E_IO_003, "cannot read %s/" RECORD_FILE, dir);
    }
    f.record = x_strdup (record);
    f.context_id = x_strdup (context_id);
    f.dir = x_strdup (dir);
    f.path = x_asprintf ("%s/" RECORD_FILE, dir);
    f.bytes = f.text.len;
    f.touched_ms = (uint64_t)st.st_mtim.tv_sec * 1000 + (uint64_t)st.st_mtim.tv_nsec / 1000000;
    split_lines (&f);
    x_grow (out->items, out->len, out->cap);
    out->items[out->len++] = f;
    return true;
}

/* The real directories in an open one, by name; just <only> when that is given and there. */
static bool
list_directories (int dir_fd, const char *path, const char *only, struct strv *names,
                  struct mur_error **err)
{
    int copy = openat (dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_closedir_ DIR *dir = copy < 0 ? NULL : fdopendir (copy);
    if (! dir) {
        mur_fail_errno (err, E_IO_003, "cannot list %s", path);
        if (copy >= 0)
            close (copy);
        return false;
    }
    const struct dirent *entry;
    while ((entry = readdir (dir))) {
        struct stat st;
        if (entry->d_name[0] == '.' || (only && ! str_eq (only, entry->d_name)))
            continue;
        if (fstatat (dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR (st.st_mode))
            strv_push (names, entry->d_name);
    }
    strv_sort (names);
    return true;
}

static bool
read_store (int store_fd, const char *store_path, const char *record, const char *context_id,
            struct conversation_files *out, struct mur_error **err)
{
    _cleanup_strv_ struct strv contexts = { 0 };
    if (! list_directories (store_fd, store_path, context_id, &contexts, err))
        return false;
    for (size_t i = 0; i < contexts.len; i++) {
        _cleanup_free_ char *dir = x_asprintf ("%s/%s", store_path, contexts.items[i]);
        _cleanup_close_ int fd =
            openat (store_fd, contexts.items[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 && errno != ENOENT)
            return mur_fail_errno (err, E_IO_003, "cannot open %s", dir);
        if (fd >= 0 && ! read_context (fd, dir, record, contexts.items[i], out, err))
            return false;
    }
    return true;
}

bool
conversation_files_read (const char *record, const char *context_id, struct conversation_files *out,
                         struct mur_error **err)
{
    struct mur_error *caught = NULL;
    _cleanup_close_ int top = home_find_dir ("conversations", &caught);
    if (caught)
        return mur_propagate (err, caught);
    if (top < 0)
        return true;
    _cleanup_free_ char *top_path = home_path_below ("conversations", err);
    _cleanup_strv_ struct strv records = { 0 };
    if (! top_path || ! list_directories (top, top_path, record, &records, err))
        return false;
    for (size_t i = 0; i < records.len; i++) {
        _cleanup_free_ char *path = x_asprintf ("%s/%s", top_path, records.items[i]);
        _cleanup_close_ int fd =
            openat (top, records.items[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 && errno != ENOENT)
            return mur_fail_errno (err, E_IO_003, "cannot open %s", path);
        if (fd >= 0 && ! read_store (fd, path, records.items[i], context_id, out, err))
            return false;
    }
    return true;
}

void
conversation_files_free (struct conversation_files *f)
{
    for (size_t i = 0; i < f->len; i++)
        file_clear (&f->items[i]);
    free (f->items);
    *f = (struct conversation_files){ 0 };
}

const json_t *
conversation_truncated (const struct conversation_file *f)
{
    const json_t *truncated = json_object_get (f->header, "truncated");
    return json_is_object (truncated) ? truncated : NULL;
}

/* --- one record's directory --- */

static int
open_store (const struct conversation_file *f, struct mur_error **err)
{
    _cleanup_free_ char *below = x_asprintf ("conversations/%s", f->record);
    struct mur_error *caught = NULL;
    int fd = home_find_dir (below, &caught);
    if (caught)
        mur_propagate (err, caught);
    else if (fd < 0)
        mur_fail (err, E_IO_001, "%s is gone", f->dir);
    return fd;
}

static int
open_context (const struct conversation_file *f, struct mur_error **err)
{
    _cleanup_close_ int store = open_store (f, err);
    if (store < 0)
        return -1;
    int fd = openat (store, f->context_id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        mur_fail_errno (err, E_IO_003, "cannot open %s", f->dir);
    return fd;
}

json_t *
conversation_harness (const struct conversation_file *f)
{
    _cleanup_close_ int dir = open_context (f, NULL);
    _cleanup_buf_ struct buf text = { 0 };
    struct stat st;
    if (dir < 0 || ! read_file (dir, HARNESS_FILE, &text, &st))
        return NULL;
    return json_loadb (text.data ? text.data : "", text.len, 0, NULL);
}

bool
conversation_remove (const struct conversation_file *f, struct mur_error **err)
{
    _cleanup_close_ int store = open_store (f, err);
    return store >= 0 && (fs_remove_tree_at (store, f->context_id, err) ||
                          mur_context (err, "cannot remove %s", f->dir));
}

/* --- cutting --- */

/* The header a cut record begins with: the old one's owner and birth, and what is gone in all.
 * Owned text with line end. */
static char *
header_line (const struct conversation_file *f, uint64_t dropped, size_t first_kept)
{
    uint64_t created_ms = 0, before = 0;
    const char *owner = json_get_string (f->header, "capsule");
    if (! json_get_u64 (f->header, "created_ms", &created_ms))
        created_ms =
            id_is_valid (f->lines[0].id, "msg_") ? id_time_ms (f->lines[0].id) : f->touched_ms;
    (void)json_get_u64 (conversation_truncated (f), "dropped", &before);
    _cleanup_json_ json_t *header = json_object ();
    json_t *truncated = json_object ();
    json_set_u64 (truncated, "dropped", before + dropped);
    json_set_string (truncated, "oldest_surviving_id", f->lines[first_kept].id);
    json_set_string (truncated, "last_dropped_id", f->lines[first_kept - 1].id);
    json_set_u64 (truncated, "at_ms", clock_unix_ms ());
    json_set_string (header, "type", "murmur.record");
    json_set_string (header, "capsule", owner ? owner : f->record);
    json_set_u64 (header, "created_ms", created_ms);
    json_object_set_new (header, "truncated", truncated);
    _cleanup_free_ char *text = json_text (header, JSON_TEXT_ORDERED);
    return x_asprintf ("%s\n", text);
}

bool
conversation_cut (const struct conversation_file *f, uint64_t keep, uint64_t *dropped,
                  struct mur_error **err)
{
    *dropped = f->len > keep ? f->len - keep : 0;
    if (! *dropped)
        return true;
    size_t first_kept = (size_t)*dropped;
    _cleanup_close_ int dir = open_context (f, err);
    if (dir < 0)
        return false;
    _cleanup_free_ char *header = header_line (f, *dropped, first_kept);
    _cleanup_buf_ struct buf now = { 0 };
    _cleanup_buf_ struct buf text = { 0 };
    struct stat st;
    /* A running session may have appended since the record was read: its lines are kept as well. */
    if (! read_file (dir, RECORD_FILE, &now, &st))
        return mur_fail_errno (err, E_IO_003, "cannot read %s", f->path);
    if (now.len < f->text.len || memcmp (now.data, f->text.data, f->text.len) != 0)
        return mur_fail (err, E_IO_003, "%s was rewritten by somebody else: try again", f->path);
    buf_puts (&text, header);
    buf_append (&text, now.data + f->lines[first_kept].start, now.len - f->lines[first_kept].start);
    return fs_replace_at (dir, RECORD_FILE, text.data, text.len, 0600, true, err) ||
           mur_context (err, "cannot cut %s", f->path);
}
