/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/store/lock_file.h"

#include "artifact/store/lock_merge.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "fs/replace.h"
#include "manifest/text/yaml.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define TURN_WAIT_MS 10000

struct lock *
lock_read (const char *dir, struct mur_error **err)
{
    _cleanup_free_ char *path = x_asprintf ("%s/%s", dir, LOCK_FILE_NAME);
    if (access (path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
        struct lock *empty = x_new0 (struct lock);
        empty->path = steal_ptr (&path);
        return empty;
    }
    _cleanup_buf_ struct buf text = { 0 };
    _cleanup_error_ struct mur_error *caught = NULL;
    if (! yaml_read_text (path, E_RUN_003, &text, &caught)) {
        enum diag_code code = caught->code == E_RUN_003 ? E_RUN_003 : E_IO_003;
        return mur_fail (err, code, "%s", caught->message), NULL;
    }
    return lock_parse (text.data ? text.data : "", text.len, path, err);
}

/* Who writes holds the project's directory for that moment; it is given back with the descriptor.
 */
static bool
take_turn (int dir_fd, const char *path, struct mur_error **err)
{
    uint64_t give_up_ms = clock_monotonic_ms () + TURN_WAIT_MS;
    while (flock (dir_fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return true; /* a file system without such locks: as good as it gets */
        if (clock_monotonic_ms () > give_up_ms)
            return mur_fail (err, E_IO_003, "%s: another program holds its directory", path);
        nanosleep (&(struct timespec){ .tv_nsec = 5000000 }, NULL);
    }
    return true;
}

/* What the file became since it was read is taken in. */
static bool
take_news (struct lock *l, struct mur_error **err)
{
    _cleanup_buf_ struct buf now = { 0 };
    if (access (l->path, F_OK) != 0)
        return true;
    if (! yaml_read_text (l->path, E_RUN_003, &now, err))
        return false;
    bool is_as_read = l->base && strlen (l->base) == now.len &&
                      (now.len == 0 || memcmp (l->base, now.data, now.len) == 0);
    return is_as_read || lock_merge (l, now.data ? now.data : "", now.len, err);
}

static bool
refuse_write (const char *dir, struct mur_error **err)
{
    int why = err && *err ? (*err)->errno_value : 0;
    mur_context (err, "%s", dir);
    if (why == EROFS)
        return mur_hint (err, "murmur.lock is written there, and the folder is mounted read-only "
                              "here: run `mur install` in it where it is not");
    if (why == EACCES || why == EPERM)
        return mur_hint (err, "murmur.lock is written there: make the folder writable for this "
                              "user, or run `mur install` in it as one who may");
    return false;
}

bool
lock_write (struct lock *l, struct mur_error **err)
{
    if (! lock_check (l, err))
        return false;
    const char *slash = strrchr (l->path, '/');
    _cleanup_free_ char *dir =
        slash ? x_strndup (l->path, (size_t)(slash - l->path)) : x_strdup (".");
    _cleanup_close_ int fd = open (dir[0] ? dir : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return mur_fail_errno (err, E_IO_003, "cannot open %s", dir);
    if (! take_turn (fd, l->path, err) || ! take_news (l, err))
        return false;
    _cleanup_free_ char *text = lock_text (l);
    if (! fs_replace_at (fd, LOCK_FILE_NAME, text, strlen (text), 0644, true, err))
        return refuse_write (dir[0] ? dir : "/", err);
    l->exists = true;
    free (l->base);
    l->base = steal_ptr (&text);
    return true;
}
