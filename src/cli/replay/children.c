/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/replay/children.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/fdio.h"
#include "base/json.h"
#include "trace/read/formation.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LARGEST_REPORT ((size_t)64 << 20)
#define GONE_THROUGH   "MURMUR_REPLAY_FORMATION" /* whose members another process replays */

extern char **environ;

/* What the process wrote on its two streams. False: it could not be started. */
static bool
run_process (char *const *argv, struct buf *out, struct buf *complaint)
{
    int streams[2], errors[2];
    posix_spawn_file_actions_t actions;
    pid_t pid;
    if (pipe (streams) != 0)
        return false;
    if (pipe (errors) != 0) {
        close (streams[0]);
        close (streams[1]);
        return false;
    }
    posix_spawn_file_actions_init (&actions);
    posix_spawn_file_actions_adddup2 (&actions, streams[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2 (&actions, errors[1], STDERR_FILENO);
    posix_spawn_file_actions_addclose (&actions, streams[0]);
    posix_spawn_file_actions_addclose (&actions, errors[0]);
    bool is_started = posix_spawn (&pid, "/proc/self/exe", &actions, NULL, argv, environ) == 0;
    posix_spawn_file_actions_destroy (&actions);
    close (streams[1]);
    close (errors[1]);
    if (is_started) {
        (void)fd_read_all (streams[0], LARGEST_REPORT, out);
        (void)fd_read_all (errors[0], LARGEST_REPORT, complaint);
        while (waitpid (pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    close (streams[0]);
    close (errors[0]);
    return is_started;
}

/* It, or what it started. */
static bool
has_diverged (const json_t *report)
{
    size_t i;
    const json_t *below;
    if (str_eq (json_get_string (report, "verdict"), "diverged"))
        return true;
    json_array_foreach (json_object_get (report, "children"), i, below)
    {
        if (has_diverged (below))
            return true;
    }
    return false;
}

/* <member> NULL: of no formation's. */
static json_t *
replay_child (const struct rec_child *c, const char *member, const char *tools, bool *is_good)
{
    _cleanup_buf_ struct buf out = { 0 }, complaint = { 0 };
    _cleanup_free_ char *path = x_asprintf ("%s/trace.jsonl", c->records_dir);
    char *argv[] = {
        (char *)"mur",     (char *)"replay",         path, (char *)"--json", (char *)"--deep",
        (char *)"--tools", (char *)(uintptr_t)tools, NULL
    };
    json_t *o = json_object ();
    json_set_string (o, "session_id", c->session_id);
    json_set_string (o, "member", member);
    json_t *report = run_process (argv, &out, &complaint)
                         ? json_loadb (out.data ? out.data : "", out.len, 0, NULL)
                         : NULL;
    if (! report) {
        buf_putc (&complaint, '\0');
        json_set_string (o, "error", complaint.data);
        return o;
    }
    static const char *const members[] = { "verdict", "first", "children" };
    for (size_t i = 0; i < ARRAY_LEN (members); i++)
        json_object_set (o, members[i], json_object_get (report, members[i]));
    *is_good = *is_good && ! has_diverged (report);
    json_decref (report);
    return o;
}

/* The other members; what members started is found from them. */
static void
replay_members (const struct record *r, const char *work_root, const char *tools, bool *is_good,
                json_t *all)
{
    _cleanup_formation_ struct formation_traces *f =
        formation_traces_read (r->formation.id, work_root, NULL);
    setenv (GONE_THROUGH, r->formation.id, 1);
    for (size_t i = 0; f && i < formation_member_count (f); i++) {
        const struct formation_member_view m = formation_member_at (f, i);
        if (! m.name || str_eq (m.session_id, r->session_id))
            continue;
        _cleanup_free_ char *dir = x_asprintf ("%s/%s", m.group, m.session_id);
        const struct rec_child member = { m.session_id, dir };
        json_array_append_new (all, replay_child (&member, m.name, tools, is_good));
    }
    unsetenv (GONE_THROUGH);
}

json_t *
children_replay (const struct record *r, const char *work_root, const char *tools, bool *is_good)
{
    json_t *all = json_array ();
    const char *gone = getenv (GONE_THROUGH);
    *is_good = true;
    for (size_t i = 0; i < r->child_count; i++)
        json_array_append_new (all, replay_child (&r->children[i], NULL, tools, is_good));
    if (r->formation.id && ! str_eq (gone, r->formation.id))
        replay_members (r, work_root, tools, is_good, all);
    return all;
}

void
children_print (const json_t *children, unsigned level)
{
    size_t i;
    const json_t *one;
    json_array_foreach (children, i, one)
    {
        const char *verdict = json_get_string (one, "verdict");
        const char *error = json_get_string (one, "error");
        const char *member = json_get_string (one, "member");
        out_printf ("%*s%s%s %s: %s\n", (int)level * 2, "", member ? "member " : "child",
                    member ? member : "", json_get_string (one, "session_id"),
                    verdict ? verdict : "not replayed");
        if (error)
            out_printf ("%*s%.*s\n", (int)level * 2 + 2, "", (int)strcspn (error, "\n"), error);
        children_print (json_object_get (one, "children"), level + 1);
    }
}
