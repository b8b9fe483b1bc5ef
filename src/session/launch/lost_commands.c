/* SPDX-License-Identifier: Apache-2.0 */
#include "session/launch/lost_commands.h"
#include "fs/paths.h"

#include "base/alloc.h"
#include "base/ids.h"
#include "base/json.h"
#include "door/tasks/intake.h"
#include "home/running.h"
#include "session/state/session.h"

#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <sys/file.h>

#define LARGEST_TRACE ((size_t)1 << 30)

struct lost {
    char *work_id, *binary, *command, *task_id;
    uint64_t detached_at_ms;
    bool has_ended;
    bool is_marked;
};

struct task_facts {
    char *task_id;
    bool is_trusted;
};

/* What the dead session's trace tells. */
struct reading {
    char *start_event; /* event_id of its session_start; NULL: unreadable */
    struct lost *lost;
    size_t len, cap;
    struct task_facts *tasks;
    size_t task_len, task_cap;
};

static void
reading_clear (struct reading *r)
{
    for (size_t i = 0; i < r->len; i++) {
        free (r->lost[i].work_id);
        free (r->lost[i].binary);
        free (r->lost[i].command);
        free (r->lost[i].task_id);
    }
    for (size_t i = 0; i < r->task_len; i++)
        free (r->tasks[i].task_id);
    free (r->lost);
    free (r->tasks);
    free (r->start_event);
}

/* --- reading --- */

static char *
member_copy (const json_t *line, const char *key)
{
    const char *text = json_get_string (line, key);
    return x_strdup (text ? text : "");
}

static void
note_detached (struct reading *r, const json_t *line)
{
    if (! json_get_string (line, "work_id"))
        return;
    struct lost l = { .work_id = member_copy (line, "work_id"),
                      .binary = member_copy (line, "binary"),
                      .command = member_copy (line, "command"),
                      .task_id = member_copy (line, "task_id") };
    json_get_u64 (line, "timestamp", &l.detached_at_ms);
    x_grow (r->lost, r->len, r->cap);
    r->lost[r->len++] = l;
}

static void
note_ending (struct reading *r, const json_t *line)
{
    const char *work_id = json_get_string (line, "work_id");
    for (size_t i = 0; i < r->len; i++)
        r->lost[i].has_ended |= str_eq (r->lost[i].work_id, work_id);
}

static void
note_task (struct reading *r, const json_t *line)
{
    x_grow (r->tasks, r->task_len, r->task_cap);
    r->tasks[r->task_len++] =
        (struct task_facts){ member_copy (line, "task_id"),
                             str_eq (json_get_string (line, "trust"), "trusted") };
}

static void
note_start (struct reading *r, const json_t *line)
{
    const char *id = json_get_string (line, "event_id");
    if (id && ! r->start_event)
        r->start_event = x_strdup (id);
}

static const struct {
    const char *event_type;
    void (*note) (struct reading *r, const json_t *line);
} noted[] = {
    { "session_start", note_start },     { "task_start", note_task },
    { "shell_detached", note_detached }, { "shell_completed", note_ending },
    { "shell_abandoned", note_ending },  { "shell_lost", note_ending },
};

static void
read_lines (struct reading *r, const char *text, size_t len)
{
    for (const char *at = text, *end = text + len, *stop; at < end; at = stop + 1) {
        stop = memchr (at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        _cleanup_json_ json_t *line = json_loadb (at, (size_t)(stop - at), 0, NULL);
        const char *type = json_get_string (line, "event_type");
        for (size_t i = 0; type && i < ARRAY_LEN (noted); i++)
            if (str_eq (noted[i].event_type, type))
                noted[i].note (r, line);
    }
}

/* --- marking --- */

static bool
mark (struct trace_writer *w, const struct session *s, const struct lost *l, const char *task_id)
{
    return TRACE (w, NULL, shell_lost, .work_id = l->work_id, .binary = l->binary,
                  .command = l->command, .detached_at_ms = l->detached_at_ms,
                  .reconciled_by_session = s->id.text, .reconciled_task_id = task_id);
}

/* True when every command that is reported was started by a task that was trusted. */
static bool
is_trusted (const struct reading *r)
{
    for (size_t i = 0; i < r->len; i++) {
        bool is_known = false;
        for (size_t t = 0; t < r->task_len && r->lost[i].is_marked; t++)
            is_known |= r->tasks[t].is_trusted && str_eq (r->tasks[t].task_id, r->lost[i].task_id);
        if (r->lost[i].is_marked && ! is_known)
            return false;
    }
    return true;
}

static void
enqueue (struct session *s, const struct reading *r, const char *dir, const char *task_id)
{
    _cleanup_buf_ struct buf text = { 0 };
    buf_printf (&text,
                "The session before this one, %s, ended without telling what became of its "
                "background commands. They run no more and their results are lost:\n",
                s->asked->resume.session);
    for (size_t i = 0; i < r->len; i++)
        if (r->lost[i].is_marked)
            buf_printf (&text,
                        "\nwork_id: %s\ncommand: %s %s\ndetached_at_ms: %llu\noutput: "
                        "%s/logs/%s.log\n",
                        r->lost[i].work_id, r->lost[i].binary, r->lost[i].command,
                        (unsigned long long)r->lost[i].detached_at_ms, dir, r->lost[i].work_id);
    const struct task_intake intake = { .id = task_id,
                                        .context_id = s->asked->context_id,
                                        .text = text.data,
                                        .source = "detached_lost",
                                        .origin = ORIGIN_COMPLETION,
                                        .is_trusted = is_trusted (r) };
    registry_enqueue (s->registry, &intake);
}

/* --- the whole --- */

/* A session that runs still has its commands. */
static bool
runs_still (const char *session_id)
{
    struct running_scan scan = { 0 };
    bool is_running = false;
    if (! running_scan (false, &scan, NULL))
        return false;
    for (size_t i = 0; i < scan.len; i++)
        is_running |= scan.entries[i].liveness != RUNNING_GONE &&
                      str_eq (scan.entries[i].record.session_id, session_id);
    running_scan_free (&scan);
    return is_running;
}

static void
reconcile (struct session *s, struct fs_root *records, const char *file_name)
{
    /* Of two launches that resume the same session at once one marks, the other leaves it to it. */
    _cleanup_close_ int held = fs_open_read (records, file_name, NULL);
    _cleanup_buf_ struct buf text = { 0 };
    if (held < 0 || flock (held, LOCK_EX | LOCK_NB) < 0 ||
        ! fs_read (records, file_name, LARGEST_TRACE, &text, NULL))
        return;
    _cleanup_ (reading_clear) struct reading r = { 0 };
    read_lines (&r, text.data ? text.data : "", text.len);
    _cleanup_ (trace_writer_freep) struct trace_writer *w = NULL;
    struct id task_id = id_new ("tsk_");
    size_t count = 0;
    for (size_t i = 0; i < r.len; i++) {
        if (r.lost[i].has_ended)
            continue;
        if (! w)
            w = trace_writer_reopen (records, file_name, s->asked->resume.session, r.start_event,
                                     NULL);
        r.lost[i].is_marked = w && mark (w, s, &r.lost[i], task_id.text);
        count += r.lost[i].is_marked;
    }
    if (count)
        enqueue (s, &r, fs_root_path (records), task_id.text);
}

void
lost_commands_report (struct session *s)
{
    const char *trace = s->asked->resume.trace;
    if (! trace || runs_still (s->asked->resume.session))
        return;
    _cleanup_free_ char *for_dir = x_strdup (trace), *for_name = x_strdup (trace);
    _cleanup_free_ char *dir = fs_canonical_path (dirname (for_dir), NULL);
    int fd = dir ? open (dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    _cleanup_ (fs_root_freep) struct fs_root *records = fs_root_new (fd, dir, NULL, true);
    reconcile (s, records, basename (for_name));
}
