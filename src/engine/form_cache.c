/* SPDX-License-Identifier: Apache-2.0
 *
 * A form lies as <key>-<engine key>.cwasm beside <the same>.cwasm.sha256: its digest on line 1, and
 * on line 2 the stamp of the file when its bytes were last verified. A form whose stamp still holds
 * is not hashed again.
 */
#include "engine/form_cache.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/fdio.h"
#include "base/ids.h"
#include "engine/compiler_process.h"
#include "fs/paths.h"
#include "fs/root.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define COMPILED_DIR  "compiled"
#define FORM_LIMIT    ((size_t)2 << 30)
#define SIDECAR_LIMIT 4096
#define UNUSED_DAYS   30
#define TMP_AGE_S     3600
#define TURN_LOOK_MS  10
#define TURN_WAIT_MS  30000

/* --- where forms lie --- */

static bool
is_at_or_under (const char *path, const char *root)
{
    size_t len = strlen (root);
    while (len > 1 && root[len - 1] == '/')
        len--;
    return strncmp (path, root, len) == 0 &&
           (path[len] == '\0' || path[len] == '/' || (len == 1 && root[0] == '/'));
}

/* True also when it cannot be told. */
static bool
is_reachable (const char *path, const char *root)
{
    _cleanup_free_ char *resolved = fs_canonical_path (path, NULL);
    _cleanup_free_ char *resolved_root = fs_canonical_path (root, NULL);
    return ! resolved || ! resolved_root || is_at_or_under (resolved, resolved_root);
}

static bool
may_use (const struct form_cache_spec *spec, const char *key)
{
    if (! sha256_hex_is_valid (key))
        return false;
    if (! spec->writable_root)
        return true;
    _cleanup_free_ char *compiled = x_asprintf ("%s/" COMPILED_DIR, spec->murmur_dir);
    return ! is_reachable (spec->murmur_dir, spec->writable_root) &&
           ! is_reachable (compiled, spec->writable_root);
}

static bool
is_ours (const struct stat *st, mode_t allowed)
{
    return st->st_uid == geteuid () && (st->st_mode & 07777 & ~allowed) == 0;
}

/* The directory, when it is private and no link. -1 otherwise. */
static int
open_private_dir (const struct form_cache_spec *spec)
{
    _cleanup_free_ char *path = x_asprintf ("%s/" COMPILED_DIR, spec->murmur_dir);
    _cleanup_close_ int fd = open (path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat (fd, &st) < 0 || ! is_ours (&st, 0700))
        return -1;
    return steal_fd (&fd);
}

/* Somebody else may have put files into a directory that was open to them. */
static void
empty_of_files (int dir_fd)
{
    int fd = openat (dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir (fd);
    for (struct dirent *e; dir && (e = readdir (dir));)
        unlinkat (dir_fd, e->d_name, 0);
}

/* The same, made or narrowed when it is missing or too open. */
static int
make_private_dir (const struct form_cache_spec *spec)
{
    _cleanup_free_ char *path = x_asprintf ("%s/" COMPILED_DIR, spec->murmur_dir);
    if (mkdir (spec->murmur_dir, 0700) < 0 && errno != EEXIST)
        return -1;
    bool is_new = mkdir (path, 0700) == 0;
    _cleanup_close_ int fd = open (path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat (fd, &st) < 0 || st.st_uid != geteuid ())
        return -1;
    if ((st.st_mode & 07777) != 0700) {
        if (fchmod (fd, 0700) < 0)
            return -1;
        if (! is_new && (st.st_mode & 077) != 0)
            empty_of_files (fd);
    }
    return steal_fd (&fd);
}

static char *
form_name (const struct form_cache_spec *spec, const char *key)
{
    char engine[17];
    engine_key (spec->ceiling_bytes, engine);
    return x_asprintf ("%s-%s.cwasm", key, engine);
}

/* --- reading --- */

/* Reads a whole private file without following a link or waiting on a FIFO. The stamp is empty when
 * the file moved under us. */
static bool
read_private (int dir_fd, const char *name, size_t limit, struct buf *out,
              char stamp[FS_STAMP_SIZE])
{
    _cleanup_close_ int fd = openat (dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat before, after;
    if (fd < 0 || fstat (fd, &before) < 0 || ! S_ISREG (before.st_mode) ||
        ! is_ours (&before, 0600))
        return false;
    size_t size = (size_t)before.st_size;
    if (size > limit)
        return false;
    char *into = buf_reserve (out, size + 1);
    if (! fd_read_exact (fd, into, size))
        return false;
    out->len = size;
    if (fstat (fd, &after) < 0)
        return false;
    char then[FS_STAMP_SIZE], now[FS_STAMP_SIZE];
    fs_file_stamp (&before, then);
    fs_file_stamp (&after, now);
    snprintf (stamp, FS_STAMP_SIZE, "%s", strcmp (then, now) == 0 ? now : "");
    return true;
}

struct sidecar {
    char digest[SHA256_HEX_LEN + 1];
    char stamp[FS_STAMP_SIZE]; /* empty when line 2 is missing */
};

static bool
read_sidecar (int dir_fd, const char *name, struct sidecar *s)
{
    _cleanup_buf_ struct buf text = { 0 };
    char stamp[FS_STAMP_SIZE];
    *s = (struct sidecar){ 0 };
    if (! read_private (dir_fd, name, SIDECAR_LIMIT, &text, stamp) || text.len < SHA256_HEX_LEN)
        return false;
    buf_putc (&text, '\0');
    memcpy (s->digest, text.data, SHA256_HEX_LEN);
    const char *rest = text.data + SHA256_HEX_LEN;
    if (*rest == '\n' && rest[1]) {
        size_t len = strcspn (rest + 1, "\n");
        if (len < sizeof s->stamp)
            memcpy (s->stamp, rest + 1, len);
    } else if (*rest && *rest != '\n')
        return false;
    return sha256_hex_is_valid (s->digest);
}

/* Writes beside the target, flushes, renames. */
static bool
write_private (int dir_fd, const char *name, const void *data, size_t len)
{
    char unique[37];
    uuid_text (unique);
    _cleanup_free_ char *tmp = x_asprintf (".%s.%d.%s.tmp", name, getpid (), unique);
    _cleanup_close_ int fd =
        openat (dir_fd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    if (fd_write_all (fd, data, len) && fchmod (fd, 0600) == 0 && fsync (fd) == 0 &&
        renameat (dir_fd, tmp, dir_fd, name) == 0)
        return true;
    unlinkat (dir_fd, tmp, 0);
    return false;
}

static bool
write_sidecar (int dir_fd, const char *name, const char *digest, const char *stamp)
{
    _cleanup_free_ char *text =
        *stamp ? x_asprintf ("%s\n%s\n", digest, stamp) : x_asprintf ("%s\n", digest);
    return write_private (dir_fd, name, text, strlen (text));
}

/* Reads a form whose bytes are the ones that were stored; refreshes its stamp when it had to be
 * hashed. */
static bool
read_verified (int dir_fd, const char *name, struct buf *form)
{
    _cleanup_free_ char *sidecar_name = x_asprintf ("%s.sha256", name);
    struct sidecar sidecar;
    char stamp[FS_STAMP_SIZE];
    if (! read_sidecar (dir_fd, sidecar_name, &sidecar) ||
        ! read_private (dir_fd, name, FORM_LIMIT, form, stamp))
        return false;
    if (*stamp && strcmp (stamp, sidecar.stamp) == 0)
        return true;
    char digest[SHA256_HEX_LEN + 1];
    sha256_hex (form->data, form->len, digest);
    if (strcmp (digest, sidecar.digest) != 0)
        return false;
    if (*stamp)
        write_sidecar (dir_fd, sidecar_name, digest, stamp);
    return true;
}

/* --- pruning --- */

static bool
is_unused (const struct stat *st, time_t now)
{
    time_t last = st->st_atime > st->st_mtime ? st->st_atime : st->st_mtime;
    return now - last > (time_t)UNUSED_DAYS * 24 * 3600;
}

static void
prune_entry (int dir_fd, const char *name, time_t now)
{
    struct stat st, form;
    if (fstatat (dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || ! S_ISREG (st.st_mode))
        return;
    if (name[0] == '.') {
        if (str_ends (name, ".tmp") && now - st.st_mtime > TMP_AGE_S)
            unlinkat (dir_fd, name, 0);
    } else if (str_ends (name, ".cwasm")) {
        if (is_unused (&st, now)) {
            _cleanup_free_ char *sidecar = x_asprintf ("%s.sha256", name);
            unlinkat (dir_fd, name, 0);
            unlinkat (dir_fd, sidecar, 0);
        }
    } else if (str_ends (name, ".cwasm.sha256")) {
        _cleanup_free_ char *of = x_strndup (name, strlen (name) - strlen (".sha256"));
        if (fstatat (dir_fd, of, &form, AT_SYMLINK_NOFOLLOW) < 0 && is_unused (&st, now))
            unlinkat (dir_fd, name, 0);
    }
}

static void
prune (int dir_fd)
{
    int fd = openat (dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir (fd);
    time_t now = time (NULL);
    for (struct dirent *e; dir && (e = readdir (dir));)
        prune_entry (dir_fd, e->d_name, now);
}

/* --- the three uses --- */

static bool
store (const struct form_cache_spec *spec, const char *key, const struct buf *form)
{
    _cleanup_close_ int dir_fd = make_private_dir (spec);
    if (dir_fd < 0)
        return false;
    _cleanup_free_ char *name = form_name (spec, key);
    _cleanup_free_ char *sidecar_name = x_asprintf ("%s.sha256", name);
    char digest[SHA256_HEX_LEN + 1];
    sha256_hex (form->data, form->len, digest);
    _cleanup_buf_ struct buf back = { 0 };
    bool ok = write_private (dir_fd, name, form->data, form->len) &&
              write_sidecar (dir_fd, sidecar_name, digest, "") &&
              read_verified (dir_fd, name, &back); /* records the stamp */
    prune (dir_fd);
    return ok;
}

static struct component *
load (struct engine *e, const struct form_cache_spec *spec, const char *key)
{
    _cleanup_close_ int dir_fd = open_private_dir (spec);
    if (dir_fd < 0)
        return NULL;
    _cleanup_free_ char *name = form_name (spec, key);
    _cleanup_buf_ struct buf form = { 0 };
    if (! read_verified (dir_fd, name, &form))
        return NULL;
    return component_deserialize (e, form.data, form.len, NULL);
}

/* Sessions that begin together find the same form missing: the first compiles, the others need not.
 * The lock is the directory's, held as long as the returned descriptor; -1: nobody to wait for, or
 * waited for long enough. */
static int
take_turn (const struct form_cache_spec *spec, bool *has_waited)
{
    _cleanup_close_ int dir_fd = make_private_dir (spec);
    if (dir_fd < 0)
        return -1;
    for (int waited_ms = 0; flock (dir_fd, LOCK_EX | LOCK_NB) < 0; waited_ms += TURN_LOOK_MS) {
        if (errno != EWOULDBLOCK || waited_ms >= TURN_WAIT_MS)
            return -1;
        *has_waited = true;
        (void)poll (NULL, 0, TURN_LOOK_MS);
    }
    return steal_fd (&dir_fd);
}

static bool
compile (const struct form_cache_spec *spec, const void *wasm, size_t len, struct buf *form,
         struct mur_error **err)
{
    bool is_there = false;
    bool ok =
        spec->compiler && compiler_process_run (spec->compiler, wasm, len, form, &is_there, err);
    return is_there ? ok : component_precompile_apart (wasm, len, form, err);
}

struct component *
form_cache_load (struct engine *e, const struct form_cache_spec *spec, const char *key,
                 form_wasm_fn *wasm, void *ctx, enum form_outcome *outcome, struct mur_error **err)
{
    bool is_usable = may_use (spec, key);
    struct component *hit = is_usable ? load (e, spec, key) : NULL;
    bool has_waited = false;
    _cleanup_close_ int turn = hit || ! is_usable ? -1 : take_turn (spec, &has_waited);
    if (has_waited)
        hit = load (e, spec, key);
    if (outcome)
        *outcome = hit ? FORM_HIT : FORM_COMPILED;
    if (hit)
        return hit;

    const void *bytes;
    size_t len;
    if (! wasm (ctx, &bytes, &len, err))
        return NULL;
    _cleanup_buf_ struct buf form = { 0 };
    if (! compile (spec, bytes, len, &form, err))
        return NULL;
    if (is_usable)
        store (spec, key, &form);
    return component_deserialize (e, form.data, form.len, err);
}

bool
form_cache_has (const struct form_cache_spec *spec, const char *key)
{
    if (! may_use (spec, key))
        return false;
    _cleanup_close_ int dir_fd = open_private_dir (spec);
    if (dir_fd < 0)
        return false;
    _cleanup_free_ char *name = form_name (spec, key);
    _cleanup_buf_ struct buf form = { 0 };
    return read_verified (dir_fd, name, &form);
}

bool
form_cache_store (struct engine *e, const struct form_cache_spec *spec, const char *key,
                  const void *wasm, size_t len, bool *is_stored, struct mur_error **err)
{
    _cleanup_buf_ struct buf form = { 0 };
    if (is_stored)
        *is_stored = false;
    if (! component_precompile (e, wasm, len, &form, err))
        return false;
    bool ok = may_use (spec, key) && store (spec, key, &form);
    if (is_stored)
        *is_stored = ok;
    return true;
}
