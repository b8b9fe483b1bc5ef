/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/running/stop_session.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "cli/running/task_words.h"
#include "client/door_client.h"
#include "trace/read/reader.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#define ENDINGS_WITHIN_MS 5000
#define KILLED_WITHIN_MS  5000

struct stop {
    const struct running_record *record;
    json_t *report; /* answer of murmur.StopSession, or NULL */
    char *unasked;  /* why there is none */
    const char *signal;
};

static void
stop_clear (struct stop *s)
{
    json_decref (s->report);
    free (s->unasked);
}

static void
ask_door (struct stop *s)
{
    struct http_client *client = http_client_new ();
    struct door_call call = { s->record->url, s->record->door_token, "murmur.StopSession", NULL,
                              30000 };
    int code;
    _cleanup_error_ struct mur_error *err = NULL;
    if (door_answers (client, s->record))
        s->report = door_call (client, &call, &code, &err);
    if (! s->report)
        s->unasked = x_strdup (err ? err->message : "its door does not answer");
    http_client_free (client);
}

/* --- endings of the cancelled tasks --- */

static bool
has_ended (const struct trace *t, const char *task_id)
{
    for (size_t i = 0; t && i < t->count; i++) {
        const char *type = trace_type (t, i);
        bool is_canceled = str_eq (type, "task_canceled");
        if (! is_canceled && ! str_eq (type, "task_end"))
            continue;
        const struct trace_event *e = trace_at (t, i);
        bool is_ending = ! is_canceled || str_eq (json_get_string (e->object, "phase"), "queued");
        if (is_ending && str_eq (json_get_string (e->object, "task_id"), task_id))
            return true;
    }
    return false;
}

/* Waits until every cancelled task has its ending in the trace, a while at most. */
static struct trace *
wait_for_endings (const struct stop *s)
{
    const json_t *canceled = json_object_get (s->report, "canceled");
    _cleanup_free_ char *path = x_asprintf ("%s/trace.jsonl", s->record->records_dir);
    uint64_t deadline = clock_monotonic_ms () + ENDINGS_WITHIN_MS;
    for (struct trace *t = NULL;; poll (NULL, 0, 100)) {
        trace_free (t);
        t = trace_read (path, TRACE_TOLERANT, NULL);
        bool are_all_there = true;
        size_t i;
        const json_t *id;
        json_array_foreach (canceled, i, id) are_all_there &= has_ended (t, json_string_value (id));
        if (are_all_there || clock_monotonic_ms () >= deadline)
            return t;
    }
}

/* --- signals --- */

/* Waits until the process is gone. */
static bool
is_gone_within (const struct running_record *r, uint64_t ms)
{
    uint64_t deadline = clock_monotonic_ms () + ms;
    const char *reason;
    while (running_check (r->pid, r->process_start, &reason) != RUNNING_GONE) {
        if (clock_monotonic_ms () >= deadline)
            return false;
        poll (NULL, 0, 20);
    }
    return true;
}

/* Signals and waits. *is_gone tells whether the process ended; false: it may not or could not be
 * signalled. */
static bool
signal_and_wait (struct stop *s, int number, const char *name, uint64_t wait_ms, bool *is_gone,
                 struct mur_error **err)
{
    enum running_liveness liveness = RUNNING_HELD;
    if (running_signal (s->record->pid, s->record->process_start, number, &liveness)) {
        s->signal = name;
        *is_gone = is_gone_within (s->record, wait_ms);
        return true;
    }
    *is_gone = liveness == RUNNING_GONE;
    if (*is_gone)
        return true;
    if (liveness == RUNNING_UNVERIFIED)
        return mur_fail (err, E_RUN_024,
                         "%s: the start time of process %ld cannot be read, so it is not "
                         "signalled",
                         s->record->session_id, (long)s->record->pid);
    return mur_fail_errno (err, E_RUN_024, "%s: process %ld cannot be signalled",
                           s->record->session_id, (long)s->record->pid);
}

static bool
end_process (struct stop *s, uint64_t timeout_s, struct mur_error **err)
{
    bool is_gone = false;
    uint64_t grace_ms = timeout_s > 100000 ? 100000000 : timeout_s * 1000;
    if (timeout_s && ! signal_and_wait (s, SIGTERM, "SIGTERM", grace_ms, &is_gone, err))
        return false;
    if (! is_gone && ! signal_and_wait (s, SIGKILL, "SIGKILL", KILLED_WITHIN_MS, &is_gone, err))
        return false;
    return is_gone || mur_fail (err, E_RUN_024, "%s (pid %ld) still runs after SIGKILL",
                                s->record->session_id, (long)s->record->pid);
}

/* --- the answer --- */

static void
print_answer (const struct stop *s, const struct trace *t)
{
    size_t i;
    const json_t *item;
    out_printf ("stopped: %s\ncapsule: %s@%s\n", s->record->session_id, s->record->capsule_name,
                s->record->capsule_version);
    out_printf ("signal:  %s\n", s->signal ? s->signal : "none — the process had already exited");
    json_array_foreach (json_object_get (s->report, "canceled"), i, item)
    {
        const char *id = json_string_value (item);
        if (has_ended (t, id))
            out_printf ("canceled: %s\n", id);
        else
            out_printf ("unended: %s has no ending in the trace\n", id);
    }
    const json_t *residue = json_object_get (s->report, "residue");
    if (s->unasked)
        out_printf ("residue: unknown — %s\n", s->unasked);
    else if (json_array_size (residue) == 0)
        out_puts ("residue: nothing else was left running\n");
    else
        out_printf ("residue: %zu left running\n", json_array_size (residue));
    json_array_foreach (residue, i, item) print_residue (item);
}

bool
stop_session (const struct running_record *record, uint64_t timeout_s, struct mur_error **err)
{
    _cleanup_ (stop_clear) struct stop s = { .record = record };
    ask_door (&s);
    _cleanup_trace_ struct trace *t = s.report ? wait_for_endings (&s) : NULL;
    if (! end_process (&s, timeout_s, err))
        return false;
    running_remove (record->session_id);
    print_answer (&s, t);
    return true;
}
