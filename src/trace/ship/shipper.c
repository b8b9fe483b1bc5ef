/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/ship/shipper.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/diag.h"
#include "base/digest.h"
#include "base/json.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PART_BYTES  ((size_t)1 << 20)
#define PART_MS     5000
#define LOOK_MS     500
#define FIRST_MS    1000 /* between two tries at a store that is away */
#define LONGEST_MS  30000
#define FILE_MAX    ((size_t)64 << 20)
#define HANGS_MS    2000
#define FOLDERS_MAX 4 /* how deep files are looked for */

struct shipper {
    struct record_store *store;
    struct fs_root *records; /* of this thread, without a session's latch */
    json_t *complete;        /* complete.json, being put together */
    json_t *shipped;         /* names of blobs that are there */
    const char *session_id;  /* in <complete> */
    uint64_t sent;           /* bytes of the trace in closed parts */
    uint64_t last_part_ms, next_try_ms, wait_ms;
    struct buf part; /* closed, and not there yet; empty: none */
    bool has_warned;
    bool is_whole;         /* complete.json is there */
    struct cancel *cancel; /* no more patience */

    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool has_thread;
    bool is_ending, is_done; /* under the lock */
    const char *status;      /* how it ended; static */
};

/* --- objects --- */

/* One object of the session, listed in <list> under its name there. */
static bool
ship (struct shipper *s, const char *folder, const char *name, const struct buf *data, json_t *list,
      struct mur_error **err)
{
    char hex[SHA256_HEX_LEN + 1];
    const char *bytes = data->data ? data->data : "";
    _cleanup_free_ char *key = x_asprintf ("%s/%s/%s", s->session_id, folder, name);
    if (! record_store_put (s->store, key, bytes, data->len, s->cancel, err))
        return false;
    sha256_hex (bytes, data->len, hex);
    json_t *entry = json_pack ("{s:s}", "sha256", hex);
    json_set_string (entry, "name", name);
    json_set_u64 (entry, "size", data->len);
    json_array_append_new (list, entry);
    return true;
}

/* Bytes of <data> that are whole lines. */
static size_t
whole_lines (const struct buf *data)
{
    const char *end = data->len ? memrchr (data->data, '\n', data->len) : NULL;
    return end ? (size_t)(end + 1 - data->data) : 0;
}

/* About PART_BYTES of the <fresh> ones as whole lines, more for a long line; at the very end
 * whatever there is. */
static void
read_part (struct shipper *s, int fd, size_t fresh, bool is_last)
{
    size_t wanted = fresh < PART_BYTES ? fresh : PART_BYTES;
    for (;; wanted = wanted * 2 < fresh ? wanted * 2 : fresh) {
        buf_free (&s->part);
        ssize_t n = pread (fd, buf_reserve (&s->part, wanted), wanted, (off_t)s->sent);
        s->part.len = n > 0 ? (size_t)n : 0;
        if (is_last && s->part.len == fresh)
            return;
        size_t whole = whole_lines (&s->part);
        if (! whole && s->part.len == wanted && wanted < fresh)
            continue;
        buf_truncate (&s->part, whole);
        return;
    }
}

/* The next part, when it is time for one. */
static void
close_part (struct shipper *s, bool is_last)
{
    struct stat st;
    uint64_t now = clock_monotonic_ms ();
    _cleanup_close_ int fd = fs_open_read (s->records, "trace.jsonl", NULL);
    if (fd < 0 || fstat (fd, &st) < 0 || (uint64_t)st.st_size <= s->sent)
        return;
    size_t fresh = (size_t)st.st_size - (size_t)s->sent;
    if (! is_last && fresh < PART_BYTES && now - s->last_part_ms < PART_MS)
        return;
    read_part (s, fd, fresh, is_last);
    s->last_part_ms = now;
}

static bool
ship_part (struct shipper *s, struct mur_error **err)
{
    json_t *parts = json_object_get (s->complete, "trace");
    _cleanup_free_ char *name = x_asprintf ("%06zu.jsonl", json_array_size (parts) + 1);
    if (! ship (s, "trace", name, &s->part, parts, err))
        return false;
    s->sent += s->part.len;
    buf_free (&s->part);
    return true;
}

static bool
ship_trace (struct shipper *s, bool is_last, struct mur_error **err)
{
    for (;;) {
        if (! s->part.len)
            close_part (s, is_last);
        if (! s->part.len)
            return true;
        if (! ship_part (s, err))
            return false;
    }
}

/* --- files --- */

/* What cannot be read, or is too large, stays here. */
static bool
read_file (struct shipper *s, const char *path, struct buf *data)
{
    return fs_read (s->records, path, FILE_MAX, data, NULL);
}

/* A blob that is still being written has another digest than its name, and comes next time. */
static bool
ship_blob (struct shipper *s, const char *sha256, struct mur_error **err)
{
    char hex[SHA256_HEX_LEN + 1];
    _cleanup_buf_ struct buf data = { 0 };
    _cleanup_free_ char *path = x_asprintf ("blobs/%s", sha256);
    if (! read_file (s, path, &data))
        return true;
    sha256_hex (data.data ? data.data : "", data.len, hex);
    if (! str_eq (hex, sha256))
        return true;
    if (! ship (s, "blobs", sha256, &data, json_object_get (s->complete, "blobs"), err))
        return false;
    json_object_set_new (s->shipped, sha256, json_true ());
    return true;
}

static bool
ship_blobs (struct shipper *s, struct mur_error **err)
{
    int fd = fs_open_dir (s->records, "blobs", NULL);
    _cleanup_closedir_ DIR *d = fd >= 0 ? fdopendir (fd) : NULL;
    for (struct dirent *e; d && (e = readdir (d));)
        if (sha256_hex_is_valid (e->d_name) && ! json_object_get (s->shipped, e->d_name) &&
            ! ship_blob (s, e->d_name, err))
            return false;
    return true;
}

/* A file as it is now, once. */
static bool
ship_file (struct shipper *s, const char *path, struct mur_error **err)
{
    _cleanup_buf_ struct buf data = { 0 };
    if (json_object_get (s->shipped, path) || ! read_file (s, path, &data))
        return true;
    if (! ship (s, "files", path, &data, json_object_get (s->complete, "files"), err))
        return false;
    json_object_set_new (s->shipped, path, json_true ());
    return true;
}

static bool
ship_folder (struct shipper *s, const char *path, unsigned depth, struct mur_error **err)
{
    struct stat st;
    bool ok = true;
    int fd = fs_open_dir (s->records, path, NULL);
    _cleanup_closedir_ DIR *d = fd >= 0 ? fdopendir (fd) : NULL;
    for (struct dirent *e; ok && d && (e = readdir (d));) {
        _cleanup_free_ char *below = x_asprintf ("%s/%s", path, e->d_name);
        if (e->d_name[0] == '.' || fstatat (dirfd (d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (S_ISDIR (st.st_mode))
            ok = depth >= FOLDERS_MAX || ship_folder (s, below, depth + 1, err);
        else
            ok = ! S_ISREG (st.st_mode) || ship_file (s, below, err);
    }
    return ok;
}

/* What does not change any more, and that it is all. */
static bool
ship_rest (struct shipper *s, struct mur_error **err)
{
    static const char *const folders[] = { "out", "logs", "hooks" };
    for (size_t i = 0; i < ARRAY_LEN (folders); i++)
        if (! ship_folder (s, folders[i], 1, err))
            return false;
    if (! ship_file (s, "completion.json", err))
        return false;
    json_set_string (s->complete, "status", s->status);
    _cleanup_free_ char *text = json_text (s->complete, JSON_TEXT_ORDERED);
    _cleanup_free_ char *key = x_asprintf ("%s/" SHIP_COMPLETE, s->session_id);
    return record_store_put (s->store, key, text, strlen (text), s->cancel, err);
}

/* --- the thread --- */

static void
warn_once (struct shipper *s, const struct mur_error *why)
{
    if (cancel_is_raised (s->cancel)) /* patience ended, which is said there */
        return;
    if (! s->has_warned)
        diag_warn (DIAG_RUNTIME, W_RUN_011, "%s%s%s; the records stay here, and are offered again",
                   why->message, why->hint ? "; " : "", why->hint ? why->hint : "");
    s->has_warned = true;
}

/* One round. False: the store took something not. */
static bool
ship_round (struct shipper *s, bool is_ending)
{
    _cleanup_error_ struct mur_error *err = NULL;
    uint64_t sent = s->sent;
    bool ok = ship_trace (s, is_ending, &err) &&
              ((s->sent == sent && ! is_ending) || ship_blobs (s, &err)) &&
              (! is_ending || ship_rest (s, &err));
    if (ok) {
        s->wait_ms = 0;
        return true;
    }
    warn_once (s, err);
    uint64_t longest = is_ending ? FIRST_MS : LONGEST_MS;
    s->wait_ms = s->wait_ms ? s->wait_ms * 2 : FIRST_MS;
    s->wait_ms = s->wait_ms > longest ? longest : s->wait_ms;
    s->next_try_ms = clock_monotonic_ms () + s->wait_ms;
    return false;
}

/* Until it is time to look again, or the session ends. True: it ends. */
static bool
wait_for_work (struct shipper *s)
{
    struct timespec until;
    clock_gettime (CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock (&s->lock);
    if (! s->is_ending)
        pthread_cond_timedwait (&s->changed, &s->lock, &until);
    bool is_ending = s->is_ending;
    pthread_mutex_unlock (&s->lock);
    return is_ending;
}

static void *
run (void *ctx)
{
    struct shipper *s = ctx;
    while (! wait_for_work (s))
        if (clock_monotonic_ms () >= s->next_try_ms)
            (void)ship_round (s, false);
    while (! s->is_whole && ! cancel_is_raised (s->cancel)) {
        s->is_whole = ship_round (s, true);
        if (! s->is_whole)
            cancel_sleep (s->cancel, FIRST_MS);
    }
    pthread_mutex_lock (&s->lock);
    s->is_done = true;
    pthread_cond_broadcast (&s->changed);
    pthread_mutex_unlock (&s->lock);
    return NULL;
}

struct shipper *
shipper_new (struct record_store *store, struct fs_root *records, const struct ship_facts *facts)
{
    struct shipper *s = x_new0 (struct shipper);
    s->store = store;
    s->records = fs_root_new (fcntl (fs_root_fd (records), F_DUPFD_CLOEXEC, 3),
                              fs_root_path (records), NULL, true);
    s->complete = json_object ();
    s->shipped = json_object ();
    json_set_string (s->complete, "session_id", facts->session_id);
    json_set_string (s->complete, "capsule", facts->capsule);
    json_set_string (s->complete, "version", facts->version);
    json_set_string (s->complete, "parent_session_id", facts->parent_session_id);
    json_set_string (s->complete, "delegation_id", facts->delegation_id);
    s->session_id = json_get_string (s->complete, "session_id");
    static const char *const lists[] = { "trace", "blobs", "files" };
    for (size_t i = 0; i < ARRAY_LEN (lists); i++)
        json_object_set_new (s->complete, lists[i], json_array ());
    s->cancel = cancel_new ();
    pthread_mutex_init (&s->lock, NULL);
    condition_init (&s->changed);
    s->has_thread = pthread_create (&s->thread, NULL, run, s) == 0;
    return s;
}

static void
shipper_free (struct shipper *s)
{
    record_store_free (s->store);
    fs_root_free (s->records);
    json_decref (s->complete);
    json_decref (s->shipped);
    buf_free (&s->part);
    cancel_unref (s->cancel);
    pthread_cond_destroy (&s->changed);
    pthread_mutex_destroy (&s->lock);
    free (s);
}

/* True when the thread has ended by then. */
static bool
wait_until_done (struct shipper *s, uint64_t patience_ms)
{
    struct timespec until;
    clock_gettime (CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(patience_ms / 1000);
    pthread_mutex_lock (&s->lock);
    while (! s->is_done && pthread_cond_timedwait (&s->changed, &s->lock, &until) == 0)
        ;
    bool is_done = s->is_done;
    pthread_mutex_unlock (&s->lock);
    return is_done;
}

void
shipper_end (struct shipper *s, const char *status, uint64_t patience_ms)
{
    _cleanup_free_ char *id = x_strdup (s->session_id);
    pthread_mutex_lock (&s->lock);
    s->status = status;
    s->is_ending = true;
    pthread_cond_broadcast (&s->changed);
    pthread_mutex_unlock (&s->lock);
    bool is_done = ! s->has_thread || wait_until_done (s, patience_ms);
    cancel_raise (s->cancel);
    /* A request ends with the cancel; a volume that hangs may not, and keeps what it holds. */
    if (! is_done && ! wait_until_done (s, HANGS_MS)) {
        pthread_detach (s->thread);
        diag_warn (DIAG_RUNTIME, W_RUN_011, "the records store hangs: not all of %s is there", id);
        return;
    }
    if (s->has_thread)
        pthread_join (s->thread, NULL);
    if (! s->is_whole && ! s->has_warned)
        diag_warn (DIAG_RUNTIME, W_RUN_011,
                   "the records store took not all of %s in %llu seconds; its records are here", id,
                   (unsigned long long)patience_ms / 1000);
    shipper_free (s);
}
