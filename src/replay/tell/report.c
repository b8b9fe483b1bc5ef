/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/tell/report.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/json_write.h"
#include "replay/record/tape_read.h"

#include <string.h>

static const char *const source_names[] = {
    [PLAY_RECORDED] = "recorded",
    [PLAY_SERVED] = "served",
    [PLAY_RERUN] = "rerun",
    [PLAY_LIVE] = "live",
};

/* --- text --- */

static void
append_turn (const struct player *p, const struct play_turn *t, struct buf *out)
{
    bool has_tasks = player_record (p)->task_count > 1;
    if (has_tasks)
        buf_printf (out, "task %zu  ", t->task);
    buf_printf (out, "turn %-3llu %-9s %s", (unsigned long long)t->turn,
                ! t->is_same             ? "DIFFERS"
                : t->now                 ? "agrees"
                : t->source == PLAY_LIVE ? "live"
                                         : "same",
                t->decision ? t->decision : "");
    for (size_t i = 0; i < t->calls.len; i++)
        buf_printf (out, "%s%s", i ? ", " : "  ", t->calls.items[i]);
    buf_putc (out, '\n');
    if (t->now && ! t->is_same)
        buf_printf (out, "         now: %s\n", t->now);
}

/* --- what the record does not promise --- */

/* Turns a live model decided, and how many of them as they were decided then. */
static size_t
count_agreed (const struct player *p, size_t *asked)
{
    size_t count, agreed = 0;
    const struct play_turn *turns = player_turns (p, &count);
    *asked = 0;
    for (size_t i = 0; i < count; i++) {
        *asked += turns[i].now != NULL;
        agreed += turns[i].now && turns[i].is_same;
    }
    return agreed;
}

static const struct rec_tree *
incomplete_tree (const struct player *p)
{
    const struct rec_tape *t = player_record (p)->tape;
    for (size_t i = 0; t && i < t->tree_count; i++)
        if (t->trees[i].left_out)
            return &t->trees[i];
    return NULL;
}

static void
append_unpromised (const struct player *p, struct buf *out)
{
    const struct rec_tree *tree = incomplete_tree (p);
    size_t asked, agreed = count_agreed (p, &asked);
    for (size_t i = 0; i < player_unpromised (p)->len; i++)
        buf_printf (out, "not promised: %s\n", player_unpromised (p)->items[i]);
    if (tree)
        buf_printf (out, "left out of the record: %llu entries, among them %s\n",
                    (unsigned long long)tree->left_out, tree->name_count ? tree->names[0] : "");
    if (asked)
        buf_printf (out, "agreement: %zu of %zu turns\n", agreed, asked);
}

/* One line of what stands there, however many it has. */
static void
append_quoted (struct buf *out, const char *label, const char *text)
{
    buf_printf (out, "  %-9s ", label);
    if (text)
        json_append_string (out, text, strlen (text));
    else
        buf_puts (out, "(nothing)");
    buf_putc (out, '\n');
}

static void
append_difference (const struct play_difference *d, struct buf *out)
{
    buf_printf (out, "\nfirst difference: task %zu, turn %llu", d->task,
                (unsigned long long)d->turn);
    if (d->has_call)
        buf_printf (out, ", call %zu", d->call);
    buf_printf (out, "\n  part      %s", d->part);
    if (strcmp (d->part, "message") == 0)
        buf_printf (out, " %zu", d->message);
    if (str_starts (d->part, "harness_") && d->message)
        buf_printf (out, " after line %zu", d->message);
    if (d->pointer[0])
        buf_printf (out, " %s", d->pointer);
    buf_printf (out, "\n  byte      %zu\n", d->offset);
    append_quoted (out, "recorded", d->recorded_text);
    append_quoted (out, "now", d->now_text);
    buf_printf (out, "  cause     %s\n", d->cause);
}

void
replay_report_text (const struct player *p, const char *session_id, struct buf *out)
{
    size_t count;
    const struct play_turn *turns = player_turns (p, &count);
    struct play_counts counts = player_counts (p);
    buf_printf (out, "replay of %s as %s\n", player_record (p)->session_id, session_id);
    if (player_modes (p)->has_from)
        buf_printf (out, "it leaves the record before turn %llu of task %zu\n",
                    (unsigned long long)player_modes (p)->from_turn, player_modes (p)->from_task);
    for (size_t i = 0; i < count; i++)
        append_turn (p, &turns[i], out);
    if (player_difference (p))
        append_difference (player_difference (p), out);
    for (size_t i = 0; i < player_missing (p)->len; i++)
        buf_printf (out, "missing: %s\n", player_missing (p)->items[i]);
    append_unpromised (p, out);
    buf_printf (out, "served: %llu answers, %llu calls; live calls: %llu\n",
                (unsigned long long)counts.answers, (unsigned long long)counts.calls,
                (unsigned long long)counts.live_calls);
    if (counts.differences > 1)
        buf_printf (out, "differences: %llu\n", (unsigned long long)counts.differences);
    buf_printf (out, "verdict: %s\n", play_verdict_name (player_verdict (p)));
}

/* --- JSON --- */

static json_t *
difference_json (const struct play_difference *d)
{
    json_t *o = json_object ();
    json_set_u64 (o, "task", d->task);
    json_set_u64 (o, "turn", d->turn);
    json_object_set_new (o, "call",
                         d->has_call ? json_integer ((json_int_t)d->call) : json_null ());
    json_set_string (o, "part", d->part);
    if (strcmp (d->part, "message") == 0)
        json_set_u64 (o, "message", d->message);
    if (str_starts (d->part, "harness_"))
        json_set_u64 (o, "line", d->message);
    json_set_string (o, "pointer", d->pointer);
    json_set_u64 (o, "offset", d->offset);
    json_set_string (o, "recorded_sha", d->recorded_sha);
    json_set_string (o, "now_sha", d->now_sha);
    json_set_string (o, "recorded", d->recorded_text);
    json_set_string (o, "now", d->now_text);
    json_set_string (o, "cause", d->cause);
    return o;
}

static json_t *
turn_json (const struct play_turn *t)
{
    json_t *o = json_object (), *calls = json_array ();
    json_set_u64 (o, "task", t->task);
    json_set_u64 (o, "turn", t->turn);
    json_set_bool (o, "same", t->is_same);
    json_set_string (o, "source", t->source == PLAY_LIVE ? "live" : "record");
    json_set_string (o, "decision", t->decision);
    if (t->now)
        json_set_string (o, "now", t->now);
    for (size_t i = 0; i < t->calls.len; i++)
        json_array_append_new (calls, json_string (t->calls.items[i]));
    json_object_set_new (o, "calls", calls);
    return o;
}

static void
set_unpromised (const struct player *p, json_t *o)
{
    const struct rec_tree *tree = incomplete_tree (p);
    size_t asked, agreed = count_agreed (p, &asked);
    json_t *commands = json_array (), *names = json_array ();
    for (size_t i = 0; i < player_unpromised (p)->len; i++)
        json_array_append_new (commands, json_string (player_unpromised (p)->items[i]));
    for (size_t i = 0; tree && i < tree->name_count; i++)
        json_array_append_new (names, json_string (tree->names[i]));
    json_object_set_new (o, "not_promised", commands);
    json_object_set_new (o, "left_out", names);
    if (asked)
        json_object_set_new (
            o, "agreement",
            json_pack ("{s:I,s:I}", "same", (json_int_t)agreed, "asked", (json_int_t)asked));
}

json_t *
replay_report_json (const struct player *p, const char *session_id)
{
    size_t count;
    const struct play_turn *turns = player_turns (p, &count);
    const struct play_modes *modes = player_modes (p);
    struct play_counts counts = player_counts (p);
    json_t *o = json_object (), *list = json_array (), *missing = json_array ();
    for (size_t i = 0; i < count; i++)
        json_array_append_new (list, turn_json (&turns[i]));
    for (size_t i = 0; i < player_missing (p)->len; i++)
        json_array_append_new (missing, json_string (player_missing (p)->items[i]));
    json_set_string (o, "replay_of", player_record (p)->session_id);
    json_set_string (o, "session_id", session_id);
    json_object_set_new (o, "modes",
                         json_pack ("{s:s,s:s,s:s}", "model", source_names[modes->model], "tools",
                                    source_names[modes->tools], "hooks",
                                    source_names[modes->hooks]));
    json_set_string (o, "verdict", play_verdict_name (player_verdict (p)));
    json_object_set_new (
        o, "first", player_difference (p) ? difference_json (player_difference (p)) : json_null ());
    json_object_set_new (o, "turns", list);
    json_object_set_new (o, "served",
                         json_pack ("{s:I,s:I,s:I}", "answers", (json_int_t)counts.answers, "calls",
                                    (json_int_t)counts.calls, "tasks", (json_int_t)counts.tasks));
    json_set_u64 (o, "differences", counts.differences);
    json_set_u64 (o, "live_calls", counts.live_calls);
    json_set_u64 (o, "network_attempts", counts.network_attempts);
    json_object_set_new (o, "missing", missing);
    set_unpromised (p, o);
    return o;
}
