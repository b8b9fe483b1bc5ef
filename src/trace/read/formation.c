/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/read/formation_internal.h"

#include "base/alloc.h"
#include "base/fdio.h"
#include "base/ids.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "home/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define TRACE_LIMIT  ((size_t)256 << 20)
#define FIRST_LIMIT  ((size_t)1 << 20) /* of a line that may say whose trace it is */
#define MARKER_LIMIT ((size_t)64 << 10)

static const char *const kept[] = { "member_call_busy", "member_call_start", "member_call",
                                    "a2a_task_received", "task_end" };

void
formation_traces_free (struct formation_traces *f)
{
    for (size_t i = 0; i < f->len; i++) {
        free (f->members[i].session_id);
        json_decref (f->members[i].start);
        json_decref (f->members[i].end);
        json_decref (f->members[i].lines);
    }
    free (f->members);
    free (f->id);
    strv_free (&f->searched);
    strv_free (&f->unreadable);
    strv_free (&f->notes);
    free (f);
}

size_t
formation_member_count (const struct formation_traces *f)
{
    return f->len;
}

struct formation_member_view
formation_member_at (const struct formation_traces *f, size_t i)
{
    const struct member_trace *m = &f->members[i];
    return (struct formation_member_view){ m->session_id, m->group,
                                           json_get_string (m->start, "formation_member"),
                                           json_get_string (m->end, "exit_status") };
}

const struct strv *
formation_searched (const struct formation_traces *f)
{
    return &f->searched;
}

const struct strv *
formation_unreadable (const struct formation_traces *f)
{
    return &f->unreadable;
}

/* --- one trace --- */

/* The first line of a trace when it begins a session of this formation. Owned, or NULL. */
static json_t *
read_start (int fd, const char *formation_id)
{
    _cleanup_free_ char *head = x_malloc (FIRST_LIMIT);
    ssize_t len = pread (fd, head, FIRST_LIMIT, 0);
    const char *end = len > 0 ? memchr (head, '\n', (size_t)len) : NULL;
    json_t *start = end ? json_loadb (head, (size_t)(end - head), 0, NULL) : NULL;
    if (str_eq (json_get_string (start, "event_type"), "session_start") &&
        str_eq (json_get_string (start, "formation_id"), formation_id) &&
        ! json_is_object (json_object_get (start, "replay_of"))) /* it took no part */
        return start;
    json_decref (start);
    return NULL;
}

static void
take_line (struct member_trace *m, json_t *line)
{
    const char *type = json_get_string (line, "event_type");
    if (str_eq (type, "session_end")) {
        json_decref (m->end);
        m->end = json_incref (line);
    }
    for (size_t i = 0; i < ARRAY_LEN (kept); i++)
        if (str_eq (type, kept[i]))
            json_array_append (m->lines, line);
}

static void
read_lines (struct member_trace *m, int fd)
{
    _cleanup_buf_ struct buf text = { 0 };
    m->lines = json_array ();
    (void)fd_read_all (fd, TRACE_LIMIT, &text);
    for (size_t at = 0; at < text.len;) {
        const char *stop = memchr (text.data + at, '\n', text.len - at);
        size_t len = stop ? (size_t)(stop - text.data) - at : text.len - at;
        _cleanup_json_ json_t *line = json_loadb (text.data + at, len, 0, NULL);
        if (json_is_object (line))
            take_line (m, line);
        at += len + 1;
    }
}

static void
read_trace (struct formation_traces *f, int group_fd, const char *session_id)
{
    for (size_t i = 0; i < f->len; i++)
        if (str_eq (f->members[i].session_id, session_id))
            return;
    _cleanup_free_ char *path = x_asprintf ("%s/trace.jsonl", session_id);
    _cleanup_close_ int dir =
        openat (group_fd, session_id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    _cleanup_close_ int fd =
        dir < 0 ? -1 : openat (dir, "trace.jsonl", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    json_t *start = fd < 0 ? NULL : read_start (fd, f->id);
    if (! start)
        return;
    x_grow (f->members, f->len, f->cap);
    struct member_trace *m = &f->members[f->len++];
    *m = (struct member_trace){ .session_id = x_strdup (session_id),
                                .group = f->searched.items[f->searched.len - 1],
                                .start = start };
    read_lines (m, fd);
}

/* --- the groups --- */

/* False for a session minted before the formation. */
static bool
may_belong (const struct formation_traces *f, const char *session_id)
{
    return ! id_is_valid (f->id, "frm_") || id_time_ms (session_id) >= id_time_ms (f->id);
}

static bool
read_group (struct formation_traces *f, const char *work_root, struct mur_error **err)
{
    struct mur_error *caught = NULL;
    _cleanup_free_ char *group = home_records_group (work_root, err);
    if (! group)
        return false;
    if (strv_contains (&f->searched, group))
        return true;
    strv_push (&f->searched, group);
    _cleanup_close_ int fd = home_find_records_group (work_root, &caught);
    if (caught)
        return mur_propagate (err, caught);
    _cleanup_strv_ struct strv names = { 0 };
    if (fd >= 0 && ! home_list_sessions (fd, group, &names, err))
        return false;
    for (size_t i = 0; i < names.len; i++)
        if (may_belong (f, names.items[i]))
            read_trace (f, fd, names.items[i]);
    return true;
}

/* One whose failure is only told. */
static void
try_group (struct formation_traces *f, const char *work_root)
{
    _cleanup_error_ struct mur_error *err = NULL;
    if (read_group (f, work_root, &err))
        return;
    strv_printf (&f->notes, "not searched: %s", err->message);
    strv_push (&f->unreadable, work_root);
}

/* The folder the formation was launched from is its entry member's. */
static void
read_entry (struct formation_traces *f, int dir_fd, const char *path)
{
    _cleanup_buf_ struct buf text = { 0 };
    struct fs_root *root = fs_root_new (fcntl (dir_fd, F_DUPFD_CLOEXEC, 3), path, NULL, false);
    bool is_read = fs_read (root, "formation.json", MARKER_LIMIT, &text, NULL);
    fs_root_free (root);
    _cleanup_json_ json_t *marker = is_read ? json_loadb (text.data, text.len, 0, NULL) : NULL;
    const char *project = json_get_string (marker, "project_dir");
    if (project && project[0] == '/')
        try_group (f, project);
}

static void
read_members (struct formation_traces *f)
{
    _cleanup_free_ char *below = x_asprintf ("formations/%s", f->id);
    _cleanup_free_ char *path = home_path_below (below, NULL);
    _cleanup_close_ int fd = home_find_dir (below, NULL);
    if (fd < 0)
        return;
    read_entry (f, fd, path);
    _cleanup_strv_ struct strv names = { 0 };
    int copy = openat (fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_closedir_ DIR *dir = copy < 0 ? NULL : fdopendir (copy);
    for (struct dirent *e; dir && (e = readdir (dir));)
        if (e->d_type != DT_REG && e->d_name[0] != '.')
            strv_push (&names, e->d_name);
    strv_sort (&names);
    for (size_t i = 0; i < names.len; i++) {
        _cleanup_free_ char *root = x_asprintf ("%s/%s", path, names.items[i]);
        _cleanup_free_ char *canonical = fs_canonical_path (root, NULL);
        if (canonical)
            try_group (f, canonical);
    }
}

static int
by_session (const void *a, const void *b)
{
    return strcmp (((const struct member_trace *)a)->session_id,
                   ((const struct member_trace *)b)->session_id);
}

struct formation_traces *
formation_traces_read (const char *formation_id, const char *work_root, struct mur_error **err)
{
    struct formation_traces *f = x_new0 (struct formation_traces);
    f->id = x_strdup (formation_id);
    if (work_root && ! read_group (f, work_root, err)) {
        formation_traces_free (f);
        return NULL;
    }
    if (id_is_valid (formation_id, "frm_"))
        read_members (f);
    if (f->len)
        qsort (f->members, f->len, sizeof (*f->members), by_session);
    return f;
}

/* --- the listing --- */

/* Text padded to columns, counting characters. */
static void
put_column (struct report *r, const char *text, size_t columns)
{
    size_t used = 0;
    for (const char *c = text; *c; c++)
        used += ((unsigned char)*c & 0xc0) != 0x80;
    report_text (r, "  %s%*s", text, used < columns ? (int)(columns - used) : 0, "");
}

static char *
capsule_of (const struct member_trace *m)
{
    return x_asprintf ("%s@%s", member_text (m->start, "capsule_name"),
                       member_text (m->start, "capsule_version"));
}

static const char *
shown_name (const struct member_trace *m)
{
    return member_text (m->start, "formation_member");
}

static void
put_member (struct report *r, const struct member_trace *m, size_t name_columns,
            size_t capsule_columns)
{
    _cleanup_free_ char *capsule = capsule_of (m);
    _cleanup_free_ char *callees = member_list (m->start, "formation_callees");
    report_text (r, "%s", m->session_id);
    put_column (r, shown_name (m), name_columns);
    put_column (r, capsule, capsule_columns);
    report_text (r, "  %s", m->end ? member_text (m->end, "exit_status") : "no session_end");
    if (member_has (m->start, "spawned_by"))
        report_text (r, "  spawned by %s", member_text (m->start, "spawned_by"));
    if (*callees)
        report_text (r, "  may call %s", callees);
    report_text (r, "\n");
}

void
formation_report (const struct formation_traces *f, struct report *r)
{
    size_t name_columns = 0, capsule_columns = 0;
    report_heading (r, "Formation");
    report_line (r, "formation", "%s", f->id);
    for (size_t i = 0; i < f->searched.len; i++)
        report_line (r, "searched", "%s", f->searched.items[i]);
    for (size_t i = 0; i < f->notes.len; i++)
        report_text (r, "%s\n", f->notes.items[i]);
    for (size_t i = 0; i < f->len; i++) {
        _cleanup_free_ char *capsule = capsule_of (&f->members[i]);
        size_t name = strlen (shown_name (&f->members[i])), len = strlen (capsule);
        name_columns = name > name_columns ? name : name_columns;
        capsule_columns = len > capsule_columns ? len : capsule_columns;
    }
    for (size_t i = 0; i < f->len; i++)
        put_member (r, &f->members[i], name_columns, capsule_columns);
    formation_calls_report (f, r);
}
