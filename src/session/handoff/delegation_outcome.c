/* SPDX-License-Identifier: Apache-2.0 */
#include "session/handoff/delegation_outcome.h"
#include "base/json_write.h"

#include "base/alloc.h"
#include "session/conversation/fence.h"
#include "session/state/session.h"
#include "spawn/report/completion.h"

#include <fcntl.h>
#include <string.h>

#define ANSWER_SHOWN_BYTES ((size_t)64 << 10)
#define ANSWER_LIMIT_BYTES ((size_t)64 << 20)
#define CUT_MARK           " […]"

/* --- the answer --- */

/* One place it may lie. False: nothing there, with why in *reason unless it is merely absent. */
static bool
read_from (int dir_fd, const char *path, const char *name, struct buf *out, char **reason)
{
    _cleanup_error_ struct mur_error *err = NULL;
    int fd = fcntl (dir_fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (fd < 0)
        return false;
    _cleanup_ (fs_root_freep) struct fs_root *root = fs_root_new (fd, path, NULL, false);
    if (fs_read (root, name, ANSWER_LIMIT_BYTES, out, &err))
        return true;
    buf_truncate (out, 0);
    if (err->code != E_IO_001 && ! *reason)
        *reason = x_strdup (err->message);
    return false;
}

char *
delegation_answer (const struct delegation *d, size_t *len, char **reason)
{
    struct mur_child *c = d->child;
    _cleanup_free_ char *own =
        d->child_task_id ? x_asprintf ("out/result_%s.txt", d->child_task_id) : NULL;
    const char *const names[] = { own, "out/result.txt" };
    const struct {
        int fd;
        const char *path;
    } places[] = { { mur_child_records_fd (c), mur_child_records_dir (c) },
                   { mur_child_workdir_fd (c), mur_child_workdir (c) } };
    struct buf text = { 0 };
    *reason = NULL;
    for (size_t i = 0; i < ARRAY_LEN (places); i++)
        for (size_t j = 0; j < ARRAY_LEN (names); j++)
            if (names[j] && read_from (places[i].fd, places[i].path, names[j], &text, reason)) {
                free (*reason);
                *reason = NULL;
                *len = text.len;
                return buf_steal (&text);
            }
    buf_free (&text);
    if (! *reason)
        *reason = x_strdup ("it left no out/result.txt");
    return NULL;
}

/* Well-formed UTF-8 of it. Owned. */
static json_t *
as_text (const char *data, size_t len)
{
    return json_string_lossy (data, len);
}

/* Keeps the whole of an answer that is cut. Returns where, or NULL when it was not written. */
static char *
keep_whole (struct session *s, const struct delegation *d, const char *data, size_t len)
{
    _cleanup_free_ char *path = x_asprintf ("delegations/%s.txt", d->id.text);
    bool is_kept = id_is_valid (d->id.text, "dlg_") &&
                   fs_make_dirs (s->places.runtime, "delegations", 0700, true, NULL) &&
                   fs_write (s->places.runtime, path, data, len, 0600, true, NULL);
    return is_kept ? steal_ptr (&path) : NULL;
}

/* The answer as a block of the summary; what is said about a cut goes to <note>. */
static void
outcome_append (struct session *s, const struct delegation *d, struct buf *out, struct buf *note)
{
    _cleanup_free_ char *reason = NULL;
    size_t raw_len = 0;
    _cleanup_free_ char *raw = delegation_answer (d, &raw_len, &reason);
    if (! raw) {
        buf_printf (out, "result: none (%s)", reason);
        return;
    }
    if (! raw_len) {
        buf_puts (out, "result: empty (its result file has no bytes)");
        return;
    }
    _cleanup_json_ json_t *text = as_text (raw, raw_len);
    const char *data = json_string_value (text);
    size_t len = json_string_length (text);
    size_t shown = len > ANSWER_SHOWN_BYTES ? utf8_cut (data, len, ANSWER_SHOWN_BYTES) : len;
    buf_puts (out, "result:\n");
    buf_append (out, data, shown);
    if (shown == len)
        return;
    buf_puts (out, CUT_MARK);
    _cleanup_free_ char *path = keep_whole (s, d, data, len);
    buf_printf (note, "\nThe result was cut to %zu of %zu bytes; ", shown, len);
    if (path)
        buf_printf (note, "the whole of it is %s in the runtime directory.", path);
    else
        buf_puts (note, "the whole of it could not be written to the runtime directory.");
}

/* --- the record --- */

/* What the record says; false: there is none that can be read. */
static bool
read_record (const struct delegation *d, struct arena *arena, struct completion *c)
{
    return completion_read (mur_child_records_fd (d->child), arena, c, NULL) &&
           str_eq (c->delegation_id, d->id.text);
}

static void
append_line (struct buf *out, const char *key, const char *value)
{
    if (value)
        buf_printf (out, "%s: %s\n", key, value);
}

const char *
delegation_append_outcome (struct session *s, const struct delegation *d, struct buf *text,
                           char **reason)
{
    _cleanup_arena_ struct arena *arena = arena_new ();
    struct completion c = { 0 };
    bool is_known = read_record (d, arena, &c);
    const char *status = is_known ? completion_status_name (c.status) : "unknown";
    *reason = is_known && c.detail ? x_strdup (c.detail)
              : is_known           ? NULL
                                   : x_strdup ("it left no completion record that can be read");
    if (! text)
        return status;
    _cleanup_buf_ struct buf body = { 0 }, note = { 0 };
    const char *bare = delegation_bare (d);
    append_line (&body, "delegation_id", d->id.text);
    buf_printf (&body, "capsule: %s@%s\n", bare, d->version);
    append_line (&body, "session_id", mur_child_session_id (d->child));
    append_line (&body, "status", status);
    if (is_known)
        buf_printf (&body, "duration_ms: %llu\n", (unsigned long long)c.duration_ms);
    append_line (&body, "workdir", mur_child_workdir (d->child));
    append_line (&body, "detail", *reason);
    outcome_append (s, d, &body, &note);
    _cleanup_free_ char *source = x_asprintf ("delegation:%s", bare);
    buf_printf (text, "[delegate-task] %s %s@%s ended %s\n", d->id.text, bare, d->version, status);
    fence_append (text, &s->fence_word, source, body.data, body.len);
    buf_append (text, note.data ? note.data : "", note.len);
    return status;
}
