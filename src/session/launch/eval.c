/* SPDX-License-Identifier: Apache-2.0
 *
 * A session under evaluation. See eval.h.
 */
#include "session/eval.h"

#include "base/alloc.h"
#include "fs/tree.h"
#include "sandbox/host/host.h"
#include "sandbox/run/command.h"
#include "session/commands/confine.h"
#include "session/commands/native.h"
#include "session/commands/shell.h"
#include "session/state/session.h"

#include <string.h>

#define TAIL_BYTES 4096
#define LOG_NAME   "logs/check.log"

bool
session_fill_work (struct session *s, struct fs_root *from, char digest[SHA256_HEX_LEN + 1],
                   struct mur_error **err)
{
    return tree_copy (from, s->places.work, err) && tree_digest (s->places.work, digest, err);
}

bool
session_was_launched (const struct session *s)
{
    return ! s->manifest->inference || s->trace;
}

/* --- the report --- */

static json_t *
report_new (const struct session *s, const char *result, const char *error)
{
    json_t *report = json_object ();
    json_set_string (report, "result", result);
    json_object_set_new (report, "exit_code", json_null ());
    json_object_set_new (report, "duration_ms", json_null ());
    json_set_string (report, "resource_limit", NULL);
    json_set_string (report, "output_tail", NULL);
    json_set_string (report, "output_log", NULL);
    json_set_string (report, "error", error);
    json_set_string (report, "containment",
                     containment_name (host_decide (s->asked->decision)->achieved));
    return report;
}

/* Both streams whole, output first, and the end of that in the report. */
static void
keep_output (struct session *s, const struct command_result *r, json_t *report)
{
    _cleanup_error_ struct mur_error *err = NULL;
    _cleanup_buf_ struct buf whole = { 0 };
    const struct command_stream *const streams[] = { &r->out, &r->err };
    for (size_t i = 0; i < ARRAY_LEN (streams); i++) {
        size_t len;
        _cleanup_free_ char *text = native_stream_text (streams[i], &len);
        buf_append (&whole, text, len);
    }
    size_t start = whole.len > TAIL_BYTES ? whole.len - TAIL_BYTES : 0;
    while (start && start < whole.len && ((unsigned char)whole.data[start] & 0xc0) == 0x80)
        start++;
    json_set_string_n (report, "output_tail", whole.data ? whole.data + start : "",
                       whole.len - start);
    if (fs_make_dirs (s->places.records, "logs", 0777, false, &err) &&
        fs_write (s->places.records, LOG_NAME, whole.data ? whole.data : "", whole.len, 0666, false,
                  &err)) {
        _cleanup_free_ char *path =
            x_asprintf ("%s/%s", fs_root_path (s->places.records), LOG_NAME);
        json_set_string (report, "output_log", path);
    }
}

static json_t *
report_result (struct session *s, struct command *c, bool has_ended)
{
    struct command_result r = command_look (c);
    json_t *report = report_new (s,
                                 ! has_ended        ? "timed_out"
                                 : r.exit_code == 0 ? "pass"
                                                    : "fail",
                                 NULL);
    if (has_ended)
        json_object_set_new (report, "exit_code", json_integer (r.exit_code));
    json_set_u64 (report, "duration_ms", r.duration_ms);
    json_set_string (report, "resource_limit", r.resource_limit);
    keep_output (s, &r, report);
    return report;
}

/* --- running --- */

static json_t *
run (struct session *s, const struct check_request *check, struct mur_error **err)
{
    if (check->files && ! tree_copy (check->files, s->places.work, err))
        return NULL;
    if (! confine_start (s, err))
        return NULL;
    confine_set_env (s);
    _cleanup_ (command_unrefp) struct command *c = shell_start_line (s, check->command, err);
    if (! c)
        return NULL;
    int64_t timeout_ms =
        check->timeout_secs < INT64_MAX / 1000 ? (int64_t)check->timeout_secs * 1000 : -1;
    bool has_ended = command_wait (c, timeout_ms, NULL);
    if (! has_ended) {
        command_kill (c);
        command_wait (c, -1, NULL);
    }
    return report_result (s, c, has_ended);
}

json_t *
session_check (struct session *s, const struct check_request *check)
{
    _cleanup_error_ struct mur_error *err = NULL;
    json_t *report = run (s, check, &err);
    confine_end (s);
    return report ? report : report_new (s, "error", err->message);
}
