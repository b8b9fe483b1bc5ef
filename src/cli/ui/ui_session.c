/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ui/ui_session.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/ids.h"
#include "cli/running/door_task.h"
#include "cli/ui/ui_heads.h"
#include "client/door_message.h"
#include "home/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#define YOUNG_MS 3000

struct ui_session *
ui_session_new (const char *id, const char *work_root, const char *records_dir)
{
    struct ui_session *s = x_new0 (struct ui_session);
    s->id = x_strdup (id);
    s->work_root = x_strdup (work_root);
    s->records_dir = x_strdup (records_dir);
    s->trace_path = x_asprintf ("%s/trace.jsonl", records_dir);
    s->live.tally.fd = s->live.watch = -1;
    return s;
}

static void
clear_live (struct ui_session *s)
{
    ui_follow_free (s->live.follow);
    free (s->live.url);
    secret_free (s->live.token);
    token_tally_clear (&s->live.tally);
    json_decref (s->live.tasks);
    s->live = (struct ui_live){ .tally.fd = -1, .watch = -1 };
}

void
ui_session_free (struct ui_session *s)
{
    clear_live (s);
    json_decref (s->start);
    json_decref (s->end);
    free (s->id);
    free (s->work_root);
    free (s->records_dir);
    free (s->trace_path);
    free (s);
}

/* Reads what is shown of its records, unless that was done. */
static void
read_records (struct ui_session *s)
{
    static const char *const shown[] = { "capsule_name",      "capsule_version", "model",
                                         "spawned_by",        "delegation_id",   "formation_id",
                                         "resumed_from",      "replay_of",       "formation_member",
                                         "context_id",        "capture",         "timestamp",
                                         "max_session_tokens" };
    if (! s->start || s->is_provisional) {
        _cleanup_json_ json_t *first = ui_trace_first (s->trace_path);
        if (str_eq (json_get_string (first, "event_type"), "session_start")) {
            json_decref (s->start);
            s->start = json_object ();
            s->is_provisional = false;
            for (size_t i = 0; i < ARRAY_LEN (shown); i++)
                if (json_object_get (first, shown[i]))
                    json_object_set (s->start, shown[i], json_object_get (first, shown[i]));
        }
    }
    if (! s->is_read && ! s->live.is_running)
        s->end = ui_trace_end (s->trace_path);
    s->is_read = ! s->live.is_running;
}

void
ui_session_begin (struct ui_session *s, const struct running_record *record,
                  struct ui_follow_spec *follow)
{
    struct ui_live *l = &s->live;
    json_decref (steal_ptr (&s->end));
    s->is_read = false;
    l->is_running = l->answers = true;
    l->url = x_strdup (record->url);
    l->token = record->door_token ? secret_copy (record->door_token) : NULL;
    token_tally_open (&l->tally, s->records_dir);
    follow->session_id = s->id;
    follow->url = l->url;
    follow->token = l->token;
    l->follow = ui_follow_new (follow);
    if (! s->start) {
        s->is_provisional = true;
        s->start = json_pack ("{s:s, s:s}", "capsule_name", record->capsule_name, "capsule_version",
                              record->capsule_version);
        if (record->spawned_by)
            json_set_string (s->start, "spawned_by", record->spawned_by);
        if (record->formation_id)
            json_set_string (s->start, "formation_id", record->formation_id);
        if (record->formation_member)
            json_set_string (s->start, "formation_member", record->formation_member);
    }
}

void
ui_session_over (struct ui_session *s)
{
    clear_live (s);
    s->is_read = false;
    json_decref (steal_ptr (&s->start));
}

/* --- what it does --- */

static const char *const resting[] = { "TASK_STATE_COMPLETED", "TASK_STATE_FAILED",
                                       "TASK_STATE_CANCELED", "TASK_STATE_REJECTED" };

static bool
is_open (const char *state)
{
    for (size_t i = 0; i < ARRAY_LEN (resting); i++)
        if (str_eq (state, resting[i]))
            return false;
    return state != NULL;
}

static json_t *
task_of (const json_t *task, const char *state)
{
    json_t *kept = json_object ();
    const json_t *status = json_object_get (task, "status");
    json_set_string (kept, "id", json_get_string (task, "id"));
    json_set_string (kept, "context", json_get_string (task, "contextId"));
    json_set_string (kept, "state", state + strlen ("TASK_STATE_"));
    if (str_eq (state, "TASK_STATE_INPUT_REQUIRED")) {
        const json_t *data = door_message_question (status);
        _cleanup_free_ char *words = door_task_words (task);
        json_set_string (kept, "asks", words);
        if (data)
            json_object_set_new (kept, "question", json_deep_copy (data));
    }
    return kept;
}

void
ui_session_take_tasks (struct ui_session *s, const json_t *tasks)
{
    size_t i;
    const json_t *task;
    s->live.answers = tasks != NULL;
    json_decref (s->live.tasks);
    s->live.tasks = json_array ();
    json_array_foreach (tasks, i, task)
    {
        const char *state = json_get_string (json_object_get (task, "status"), "state");
        if (state && str_starts (state, "TASK_STATE_") && is_open (state))
            json_array_append_new (s->live.tasks, task_of (task, state));
    }
}

/* --- as JSON --- */

/* A session without a door has no running record; its folder is locked while it lives. A young one
 * may not have locked it yet. */
static bool
holds_its_lock (const char *id)
{
    if (id_time_ms (id) + YOUNG_MS > clock_unix_ms ())
        return true;
    _cleanup_free_ char *below = x_asprintf ("sessions/%s/.lock", id);
    _cleanup_free_ char *path = home_path_below (below, NULL);
    _cleanup_close_ int fd = path ? open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    if (fd < 0 || flock (fd, LOCK_SH | LOCK_NB) == 0)
        return false;
    return errno == EWOULDBLOCK;
}

static bool
has_task_in (const json_t *tasks, const char *state)
{
    size_t i;
    const json_t *task;
    json_array_foreach (tasks, i,
                        task) if (str_eq (json_get_string (task, "state"), state)) return true;
    return false;
}

static const char *
state_of (const struct ui_session *s)
{
    if (! s->live.is_running)
        return s->end ? "ended" : holds_its_lock (s->id) ? "works" : "lost";
    if (! s->live.answers)
        return "no answer";
    return has_task_in (s->live.tasks, "INPUT_REQUIRED") ? "asks"
           : json_array_size (s->live.tasks)             ? "works"
                                                         : "waits";
}

static void
put_spend (json_t *row, struct ui_session *s)
{
    if (s->end) {
        uint64_t n;
        static const char *const taken[][2] = { { "total_input_tokens", "tokens_in" },
                                                { "total_output_tokens", "tokens_out" },
                                                { "total_turns", "turns" },
                                                { "duration_ms", "duration_ms" } };
        for (size_t i = 0; i < ARRAY_LEN (taken); i++)
            if (json_get_u64 (s->end, taken[i][0], &n))
                json_set_u64 (row, taken[i][1], n);
        json_set_string (row, "exit_status", json_get_string (s->end, "exit_status"));
        return;
    }
    if (s->live.tally.fd < 0)
        return;
    token_tally_read (&s->live.tally);
    json_set_u64 (row, "tokens_in", s->live.tally.counted_input);
    json_set_u64 (row, "tokens_out", s->live.tally.counted_output);
    json_set_u64 (row, "context_tokens", s->live.tally.context);
    json_set_u64 (row, "context_budget", s->live.tally.budget);
}

json_t *
ui_session_json (struct ui_session *s)
{
    read_records (s);
    json_t *row = json_object ();
    json_set_string (row, "id", s->id);
    json_set_string (row, "state", state_of (s));
    json_set_string (row, "work_root", s->work_root);
    json_set_u64 (row, "started_ms", id_time_ms (s->id));
    if (s->start)
        json_object_update (row, s->start);
    if (json_array_size (s->live.tasks))
        json_object_set (row, "tasks", s->live.tasks);
    put_spend (row, s);
    return row;
}
