/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur trace show`, `list` and `rm` (spec/records.md 8). What they print is made in trace/.
 */
#include "base/alloc.h"
#include "base/diag.h"
#include "base/ids.h"
#include "cli/line/args.h"
#include "cli/records/commands.h"
#include "cli/records/fleet_trace.h"
#include "cli/records/recorded.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "home/paths.h"
#include "home/running.h"
#include "trace/read/body.h"
#include "trace/read/formation.h"
#include "trace/read/text.h"
#include "trace/tell/show.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* --- show --- */

static char *
directory_of (const char *path)
{
    const char *slash = strrchr (path, '/');
    return slash ? x_strndup (path, slash == path ? 1 : (size_t)(slash - path)) : x_strdup (".");
}

static bool
print_body (const struct cli_args *args, const struct trace *t, struct mur_error **err)
{
    _cleanup_buf_ struct buf body = { 0 };
    _cleanup_free_ char *records = directory_of (t->path);
    uint64_t turn = cli_number (args, "--turn");
    if (! trace_body (t, records, cli_value (args, "--body"),
                      cli_has (args, "--turn") ? &turn : NULL, &body, err))
        return false;
    /* A file or a pipe gets the bytes; a terminal, what is safe of them. */
    (isatty (STDOUT_FILENO) ? out_write : out_raw) (body.data ? body.data : "", body.len);
    return true;
}

static bool
show_formation (const struct cli_args *args, const char *id, const char *work_root,
                struct mur_error **err)
{
    if (cli_has (args, "--body"))
        return mur_fail (err, E_TRC_001,
                         "a formation has no bodies of its own: name one of its sessions");
    _cleanup_formation_ struct formation_traces *f = formation_traces_read (id, work_root, err);
    if (! f)
        return false;
    if (! formation_member_count (f)) {
        mur_fail (err, E_TRC_002, "no session of formation %s is recorded for %s", id, work_root);
        return mur_hint (err, "its entry's sessions are those of the roster's folder: name it with "
                              "--workdir");
    }
    struct report report = { .put = out_raw, .use_colour = diag_wants_colour (STDOUT_FILENO) };
    formation_report (f, &report);
    report_end (&report);
    return true;
}

int
cmd_trace_show (const struct cli_args *args, struct mur_error **err)
{
    if (cli_has (args, "--turn") && ! cli_has (args, "--body")) {
        mur_fail (err, E_TRC_001, "--turn says which turn --body means, and --body was not given");
        return CLI_FAILED;
    }
    const char *address = cli_positional (args, "SESSION");
    _cleanup_free_ char *work_root = home_work_root (cli_value (args, "--workdir"), ".", err);
    if (! work_root)
        return CLI_FAILED;
    if (cli_has (args, "--tree"))
        return fleet_trace_tree (args, address, err) ? CLI_OK : CLI_FAILED;
    if (address && ! cli_has (args, "--fleet") && str_starts (address, "frm_"))
        return show_formation (args, address, work_root, err) ? CLI_OK : CLI_FAILED;
    _cleanup_trace_ struct trace *t = recorded_trace (args, address, TRACE_TOLERANT, err);
    if (! t)
        return CLI_FAILED;
    if (cli_has (args, "--body"))
        return print_body (args, t, err) ? CLI_OK : CLI_FAILED;
    struct report report = { .put = out_raw, .use_colour = diag_wants_colour (STDOUT_FILENO) };
    trace_show (t, work_root, &report);
    report_end (&report);
    return CLI_OK;
}

/* --- list --- */

#define TRACE_HEAD (4 * 1024 * 1024) /* where a first task_start is looked for */

/* The context of a trace's first task, or NULL: no task, no trace, a line that does not parse
 * before it. Owned. */
static char *
first_context (int group_fd, const char *session_id)
{
    _cleanup_free_ char *name = x_asprintf ("%s/trace.jsonl", session_id);
    _cleanup_close_ int fd =
        openat (group_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    _cleanup_fclose_ FILE *file = fd < 0 ? NULL : fdopen (fd, "r");
    if (! file)
        return NULL;
    fd = -1; /* the stream owns it */
    _cleanup_free_ char *line = NULL;
    size_t cap = 0, seen = 0;
    for (ssize_t len; seen < TRACE_HEAD && (len = getline (&line, &cap, file)) > 0;) {
        seen += (size_t)len;
        _cleanup_json_ json_t *event = json_loadb (line, (size_t)len, 0, NULL);
        if (! event)
            return NULL;
        const char *context = json_get_string (event, "context_id");
        if (str_eq (json_get_string (event, "event_type"), "task_start"))
            return context ? x_strdup (context) : NULL;
    }
    return NULL;
}

static bool
is_running (const struct running_scan *scan, const char *session_id)
{
    for (size_t i = 0; i < scan->len; i++)
        if (scan->entries[i].liveness != RUNNING_GONE &&
            str_eq (scan->entries[i].record.session_id, session_id))
            return true;
    return false;
}

static json_t *
session_json (const struct recorded_group *g, const struct running_scan *scan, const char *id)
{
    json_t *o = json_object ();
    _cleanup_free_ char *records = x_asprintf ("%s/%s", g->path, id);
    _cleanup_free_ char *context = first_context (g->fd, id);
    json_set_string (o, "session_id", id);
    json_set_string (o, "records_dir", records);
    json_set_string (o, "started_at",
                     id_is_valid (id, "ses_") ? time_text (id_time_ms (id)).text : NULL);
    json_set_string (o, "context_id", context);
    json_set_bool (o, "running", is_running (scan, id));
    return o;
}

static void
print_table (const struct recorded_group *g, const json_t *sessions)
{
    size_t i;
    const json_t *o;
    out_printf ("%-38s%-26s%-9s%s\n", "SESSION", "STARTED", "STATUS", "CONTEXT");
    json_array_foreach (sessions, i, o)
    {
        const char *started = json_get_string (o, "started_at");
        const char *context = json_get_string (o, "context_id");
        out_printf ("%-38s%-26s%-9s%s\n", json_get_string (o, "session_id"),
                    started ? started : "-",
                    json_is_true (json_object_get (o, "running")) ? "running" : "ended",
                    context ? context : "-");
    }
    out_printf ("records: %s\n", g->path);
}

int
cmd_trace_list (const struct cli_args *args, struct mur_error **err)
{
    _cleanup_ (recorded_group_free) struct recorded_group g = RECORDED_GROUP_EMPTY;
    _cleanup_ (running_scan_free) struct running_scan scan = { 0 };
    if (! recorded_group_open (cli_value (args, "--workdir"), &g, err) ||
        ! running_scan (false, &scan, err))
        return CLI_FAILED;
    _cleanup_json_ json_t *sessions = json_array ();
    for (size_t i = 0; i < g.names.len; i++)
        json_array_append_new (sessions, session_json (&g, &scan, g.names.items[i]));
    if (cli_has (args, "--json")) {
        _cleanup_json_ json_t *answer = json_object ();
        json_set_string (answer, "workdir_root", g.work_root);
        json_set_string (answer, "records_group", g.path);
        json_object_set (answer, "sessions", sessions);
        _cleanup_free_ char *text = json_pretty (answer, JSON_TEXT_ORDERED);
        out_printf ("%s\n", text);
    } else if (g.names.len == 0) {
        out_printf ("no sessions in workdir at %s (records in %s)\n", g.work_root, g.path);
    } else {
        print_table (&g, sessions);
    }
    return CLI_OK;
}

/* --- rm --- */

/* What goes, in this order: a failure on the way leaves the session listed and removable. */
struct removal {
    char *session_id;
    char *work_folder;    /* <work root>/<id>, NULL when it is not ours or not there */
    char *records;        /* NULL when not there */
    char *running_record; /* a stale one, or NULL */
};

static void
removal_free (struct removal *r)
{
    free (r->session_id);
    free (r->work_folder);
    free (r->records);
    free (r->running_record);
}

/* A directory that may be removed: *path is kept, or set to NULL when nothing is there. False: a
 * link or odd file. */
static bool
judge_directory (char **path, struct mur_error **err)
{
    struct stat st;
    if (lstat (*path, &st) < 0) {
        if (errno != ENOENT && errno != ENOTDIR)
            return mur_fail_errno (err, E_IO_003, "cannot look at %s", *path);
        free (*path);
        *path = NULL;
        return true;
    }
    if (S_ISDIR (st.st_mode))
        return true;
    mur_fail (err, E_RUN_050, "%s is %s, so nothing was removed", *path,
              S_ISLNK (st.st_mode) ? "a symbolic link" : "not a directory");
    return mur_hint (err, "remove it yourself if it is what you mean");
}

static bool
remove_directory (const char *path, struct mur_error **err)
{
    _cleanup_free_ char *parent = directory_of (path);
    _cleanup_close_ int dir = open (parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return mur_fail_errno (err, E_IO_003, "cannot open %s", parent);
    return fs_remove_tree_at (dir, strrchr (path, '/') + 1, err) ||
           mur_context (err, "cannot remove %s", path);
}

/* Refuses while the process lives or may live; notes a stale record. */
static bool
judge_process (struct removal *r, struct mur_error **err)
{
    _cleanup_ (running_scan_free) struct running_scan scan = { 0 };
    if (! running_scan (false, &scan, err))
        return false;
    for (size_t i = 0; i < scan.len; i++) {
        const struct running_entry *e = &scan.entries[i];
        if (! str_eq (e->record.session_id, r->session_id))
            continue;
        if (e->liveness == RUNNING_GONE) {
            r->running_record = x_strdup (e->path);
            continue;
        }
        mur_fail (err, E_RUN_024, "%s is still running (pid %ld)", r->session_id,
                  (long)e->record.pid);
        return mur_hint (err, "end it first: mur stop %s", r->session_id);
    }
    return true;
}

/* The session an address names; a full id also when only its work folder is left. */
static bool
name_session (const char *address, const struct recorded_group *g, char **session_id,
              struct mur_error **err)
{
    if (strchr (address, '/') || str_ends (address, ".jsonl")) {
        mur_fail (err, E_TRC_002, "%s is a path: only sessions by address are removed", address);
        return mur_hint (err, "`mur trace list` shows them");
    }
    if (id_is_valid (address, "ses_")) {
        _cleanup_free_ char *work = x_asprintf ("%s/%s", g->work_root, address);
        struct stat st;
        bool is_left = lstat (work, &st) == 0 ||
                       (g->fd >= 0 && fstatat (g->fd, address, &st, AT_SYMLINK_NOFOLLOW) == 0);
        if (is_left) {
            *session_id = x_strdup (address);
            return true;
        }
    }
    struct recorded_session found;
    if (! recorded_session_resolve (address, g->work_root, NULL, E_TRC_002, &found, err))
        return false;
    *session_id = steal_ptr (&found.session_id);
    recorded_session_free (&found);
    return true;
}

static bool
carry_out (const struct removal *r, struct mur_error **err)
{
    if (r->work_folder && ! remove_directory (r->work_folder, err))
        return false;
    if (r->records && ! remove_directory (r->records, err))
        return false;
    if (r->running_record)
        running_remove (r->session_id);
    return true;
}

static void
report_removal (const struct removal *r, bool is_json)
{
    if (! is_json) {
        if (r->work_folder)
            out_printf ("removed work folder %s\n", r->work_folder);
        if (r->records)
            out_printf ("removed records %s\n", r->records);
        if (r->running_record)
            out_printf ("removed running record %s\n", r->running_record);
        return;
    }
    _cleanup_json_ json_t *o = json_object ();
    json_set_string (o, "session_id", r->session_id);
    json_set_string (o, "records_dir", r->records);
    json_set_string (o, "session_dir", r->work_folder);
    json_set_string (o, "running_record", r->running_record);
    _cleanup_free_ char *text = json_pretty (o, JSON_TEXT_ORDERED);
    out_printf ("%s\n", text);
}

int
cmd_trace_rm (const struct cli_args *args, struct mur_error **err)
{
    _cleanup_ (recorded_group_free) struct recorded_group g = RECORDED_GROUP_EMPTY;
    _cleanup_ (removal_free) struct removal r = { 0 };
    const char *workdir = cli_value (args, "--workdir");
    if (! recorded_group_open (workdir, &g, err) ||
        ! name_session (cli_positional (args, "SESSION"), &g, &r.session_id, err) ||
        ! judge_process (&r, err))
        return CLI_FAILED;
    r.records = x_asprintf ("%s/%s", g.path, r.session_id);
    if (! judge_directory (&r.records, err))
        return CLI_FAILED;
    if (! workdir) {
        r.work_folder = x_asprintf ("%s/%s", g.work_root, r.session_id);
        if (! judge_directory (&r.work_folder, err))
            return CLI_FAILED;
    }
    if (! carry_out (&r, err))
        return CLI_FAILED;
    report_removal (&r, cli_has (args, "--json"));
    return CLI_OK;
}
