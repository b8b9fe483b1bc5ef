/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/replay/abilities.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/diag.h"
#include "base/json.h"
#include "cli/run/replay_launch.h"
#include "replay/record/tape_read.h"

#include <string.h>

/* The turns of a task that can be forked at; *why: of the first that cannot. Owned. */
static json_t *
forks_of (const struct record *r, size_t task, const char **why)
{
    json_t *turns = json_array ();
    for (uint64_t i = 0; i < replay_turns_of (&r->tasks[task]); i++) {
        const char *no = replay_no_fork (r, task, i);
        if (! no)
            json_array_append_new (turns, json_integer ((json_int_t)i));
        else if (! *why)
            *why = no;
    }
    return turns;
}

static uint64_t
left_out_of (const struct record *r)
{
    uint64_t most = 0;
    for (size_t i = 0; r->tape && i < r->tape->tree_count; i++)
        most = r->tape->trees[i].left_out > most ? r->tape->trees[i].left_out : most;
    return most;
}

static json_t *
abilities_json (const struct record *r)
{
    json_t *o = json_object (), *tasks = json_array ();
    json_set_string (o, "session_id", r->session_id);
    json_set_string (o, "capture", r->capture);
    json_set_bool (o, "complete", r->is_complete);
    json_set_bool (o, "rerun", r->tape && ! record_has_harness (r));
    json_set_bool (o, "strict", r->tape && r->tape->is_whole && ! left_out_of (r));
    json_set_u64 (o, "left_out", left_out_of (r));
    json_set_u64 (o, "children", r->child_count);
    for (size_t i = 0; i < r->task_count; i++) {
        const char *why = NULL;
        json_t *task = json_object (), *forks = forks_of (r, i, &why);
        json_set_u64 (task, "task", i);
        json_set_u64 (task, "turns", replay_turns_of (&r->tasks[i]));
        json_object_set_new (task, "from", forks);
        json_set_string (task, "why_not", why);
        json_array_append_new (tasks, task);
    }
    json_object_set_new (o, "tasks", tasks);
    return o;
}

static void
print_ability (const char *what, bool can, const char *why)
{
    out_printf ("%-14s %s%s%s\n", what, can ? "yes" : "no", why ? ": " : "", why ? why : "");
}

/* "turn 0, 1, 2". Owned. */
static char *
turns_text (const json_t *turns)
{
    _cleanup_buf_ struct buf text = { 0 };
    size_t i;
    const json_t *turn;
    json_array_foreach (turns, i, turn)
        buf_printf (&text, "%s%lld", i ? ", " : "turn ", (long long)json_integer_value (turn));
    return buf_steal (&text);
}

static void
print_text (const struct record *r, const json_t *all)
{
    static const char no_tape[] = "trace.capture: replay was not set";
    out_printf ("%s (%s%s)\n", r->session_id, r->capture ? r->capture : "older",
                r->is_complete ? "" : ", incomplete");
    print_ability ("served", true, "by what is on record, as `mur replay` does without options");
    const char *no = record_has_harness (r) ? "a harness has the conversation" : NULL;
    print_ability ("--each-turn", ! no, no);
    no = no ? no : r->tape ? NULL : no_tape;
    print_ability ("--tools rerun", ! no, no);
    size_t i;
    const json_t *task;
    json_array_foreach (json_object_get (all, "tasks"), i, task)
    {
        _cleanup_free_ char *line = turns_text (json_object_get (task, "from"));
        _cleanup_free_ char *what =
            r->task_count > 1 ? x_asprintf ("--task %zu --from", i) : x_strdup ("--from");
        bool can = json_array_size (json_object_get (task, "from")) > 0;
        print_ability (what, can, can ? line : json_get_string (task, "why_not"));
    }
    if (left_out_of (r))
        out_printf ("left out       %llu entries of the work folder\n",
                    (unsigned long long)left_out_of (r));
    if (r->child_count)
        out_printf ("--deep         %zu children\n", r->child_count);
}

void
abilities_print (const struct record *r, bool is_json)
{
    _cleanup_json_ json_t *all = abilities_json (r);
    if (! is_json) {
        print_text (r, all);
        return;
    }
    _cleanup_free_ char *text = json_pretty (all, JSON_TEXT_ORDERED);
    out_printf ("%s\n", text);
}
