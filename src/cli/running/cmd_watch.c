/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur watch`: follows a running session through its door (spec/cli.md 3, spec/door.md 8.5, 17).
 *
 * A connection that breaks while the door still answers is taken up again behind the last event
 * seen. Exit 0 when the capsule said it is closed, its trace says that it ended, or the reader
 * left.
 */
#include "base/alloc.h"
#include "base/diag.h"
#include "cli/line/args.h"
#include "cli/line/terminal_width.h"
#include "cli/line/watch_keys.h"
#include "cli/running/commands.h"
#include "cli/running/door_stream.h"
#include "cli/running/fleet_sessions.h"
#include "cli/running/running_session.h"
#include "cli/running/token_tally.h"
#include "cli/running/watch_view.h"
#include "client/door_client.h"
#include "trace/read/reader.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define MOST_RESUMES 3 /* in a row without a new event */
#define WAIT_STEP_US 100000

struct watch {
    struct watch_view *view;
    bool is_closed; /* the capsule said so */
};

/* --- events --- */

static void
show (struct buf *out, struct buf *notes)
{
    if (out->len)
        out_raw (out->data, out->len);
    for (char *line = notes->data, *end; line && *line; line = end) {
        end = line + strcspn (line, "\n");
        if (*end)
            *end++ = '\0';
        diag_stderr_line ("%s", line);
    }
    buf_truncate (out, 0);
    buf_truncate (notes, 0);
}

static bool
on_event (void *ctx, const json_t *response)
{
    struct watch *w = ctx;
    _cleanup_buf_ struct buf out = { 0 }, notes = { 0 };
    if (! watch_view_event (w->view, response, &out, &notes))
        w->is_closed = true;
    show (&out, &notes);
    return ! w->is_closed && ! out_is_refused ();
}

/* --- the watch --- */

/* How a session that runs no more says it ended: the word of its trace's last line. NULL: it does
 * not. Owned. */
static char *
recorded_ending (const struct running_record *record)
{
    _cleanup_free_ char *path = x_asprintf ("%s/trace.jsonl", record->records_dir);
    _cleanup_trace_ struct trace *trace = trace_read (path, TRACE_TOLERANT, NULL);
    const struct trace_event *end = trace ? trace_find (trace, "session_end", 0) : NULL;
    const char *status = end ? json_get_string (end->object, "exit_status") : NULL;
    return status ? x_strdup (status) : NULL;
}

/* The connection is gone: a session that ended by itself is the end of its watch, one that was
 * stopped or killed lost it (spec/door.md 17). */
static bool
gone (const struct door_stream *s, const struct running_record *record, const char *why,
      struct mur_error **err)
{
    _cleanup_free_ char *ending =
        record && record->ends_by_itself ? recorded_ending (record) : NULL;
    if (ending && strcmp (ending, "canceled") != 0) {
        diag_stderr_line ("session ended: %s", ending);
        return true;
    }
    if (*s->last_id)
        mur_fail (err, E_IO_003, "the connection to %s was lost after event %s: %s", s->url,
                  s->last_id, why);
    else
        mur_fail (err, E_IO_003, "nothing to watch at %s: %s", s->url, why);
    return mur_hint (err, "a capsule that is stopped ends its watches like this; `mur ps` lists "
                          "what runs");
}

/* Follows until the end, taking up broken connections while the door still answers. */
static bool
watch (struct door_stream *s, struct watch *w, const struct running_record *record,
       struct http_client *client, struct mur_error **err)
{
    _cleanup_free_ char *first_why = NULL; /* of the break after the last event */
    for (unsigned idle = 0;; idle++) {
        size_t before = s->events;
        _cleanup_free_ char *why = NULL;
        enum door_stream_end end = door_stream_follow (s, client, &why, err);
        _cleanup_buf_ struct buf out = { 0 }, notes = { 0 };
        watch_view_end (w->view, &out);
        show (&out, &notes);
        if (w->is_closed)
            diag_stderr_line ("[murmur] capsule closed");
        if (end == DOOR_STREAM_DONE || end == DOOR_STREAM_REFUSED)
            return end == DOOR_STREAM_DONE;
        if (s->events > before) {
            idle = 0;
            free (steal_ptr (&first_why));
        }
        if (! first_why)
            first_why = steal_ptr (&why);
        if (end == DOOR_STREAM_UNREACHABLE || idle >= MOST_RESUMES)
            return gone (s, record, first_why, err);
    }
}

/* Watches what <record> names, or the bare address. */
static bool
watch_door (const char *url, const struct secret *token, const struct running_record *record,
            struct http_client *client, bool has_keys, struct mur_error **err)
{
    const char *terminal = getenv ("TERM");
    struct token_tally tally = { .fd = -1 };
    struct watch_style style = {
        .is_terminal = isatty (STDOUT_FILENO) && ! str_eq (terminal, "dumb"),
        .has_colour = diag_wants_colour (STDOUT_FILENO),
        .width = terminal_width,
        .spent = record ? token_tally_words : NULL,
        .spent_ctx = &tally,
    };
    if (record && style.is_terminal && *record->records_dir)
        token_tally_open (&tally, record->records_dir);
    if (record)
        diag_stderr_line ("watching %s@%s (%s) at %s", record->capsule_name,
                          record->capsule_version, record->session_id, url);
    else
        diag_stderr_line ("watching %s", url);
    diag_stderr_line ("%sCtrl-C ends the watch, not the capsule", has_keys ? "q or " : "");
    struct watch w = { .view = watch_view_new (&style) };
    struct door_stream stream = {
        .url = url, .token = token, .method = "murmur.WatchSession", .event = on_event, .ctx = &w
    };
    bool is_ok = watch (&stream, &w, record, client, err);
    watch_view_free (w.view);
    door_stream_clear (&stream);
    token_tally_clear (&tally);
    return is_ok;
}

/* The session, which with --wait may not have begun yet. */
static const struct running_entry *
find_session (const struct cli_args *args, struct http_client *client, struct running_scan *scan,
              struct mur_error **err)
{
    const char *address = cli_positional (args, "SESSION");
    bool waits = cli_has (args, "--wait");
    for (bool is_told = false;; is_told = true) {
        struct mur_error *caught = NULL;
        const struct running_entry *e =
            fleet_sessions_session (args, address, client, scan, &caught);
        if (e || ! waits || caught->code != E_RUN_022) {
            if (! e)
                mur_propagate (err, caught);
            return e;
        }
        mur_error_free (caught);
        running_scan_free (scan);
        *scan = (struct running_scan){ 0 };
        if (! is_told)
            diag_progress ("waiting for a session to begin");
        usleep (WAIT_STEP_US);
    }
}

static bool
watch_session (const struct cli_args *args, struct http_client *client, bool has_keys,
               struct mur_error **err)
{
    _cleanup_ (running_scan_free) struct running_scan scan = { 0 };
    const struct running_entry *e = find_session (args, client, &scan, err);
    if (! e)
        return false;
    const struct running_record *r = &e->record;
    if (! door_answers (client, r))
        return running_session_deaf (r, err);
    return watch_door (r->url, r->door_token, r, client, has_keys, err);
}

int
cmd_watch (const struct cli_args *args, struct mur_error **err)
{
    const char *url = cli_value (args, "--url");
    struct watch_keys *keys = watch_keys_begin ();
    bool is_ok;
    struct http_client *client = http_client_new ();
    if (url) {
        _cleanup_secret_ struct secret *token = door_token_of_environment ();
        is_ok = watch_door (url, token, NULL, client, keys != NULL, err);
    } else {
        is_ok = watch_session (args, client, keys != NULL, err);
    }
    watch_keys_end (keys);
    http_client_free (client);
    return is_ok ? CLI_OK : CLI_FAILED;
}
