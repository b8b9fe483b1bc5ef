/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls between a formation's members: what the caller wrote of each, joined with what the
 * callee wrote, each below the call whose task was making it. See formation.h.
 */
#include "trace/read/formation_internal.h"

#include "base/alloc.h"
#include "trace/read/formation_member.h"

#include <string.h>

struct call {
    const char *id;
    const struct member_trace *caller, *callee; /* NULL: its trace was not found */
    const char *caller_task;                    /* the caller's task that made it; NULL */
    const char *member;                         /* whom it was for, as the caller says */
    const char *callee_name; /* for a call only the callee knows of: the caller */
    const char *member_task; /* NULL: never held */
    uint64_t start_ms;
    size_t busy;
    const json_t *ending;   /* member_call; NULL: none */
    const json_t *task_end; /* of the callee's task; NULL: none */
    struct call *parent;
    unsigned depth;
    bool is_shown;
};

struct calls {
    const struct formation_traces *f;
    struct call *items;
    size_t len, cap;
};

/* --- joining --- */

static struct call *
call_of (struct calls *all, const char *id)
{
    for (size_t i = 0; i < all->len; i++)
        if (str_eq (all->items[i].id, id))
            return &all->items[i];
    x_grow (all->items, all->len, all->cap);
    struct call *c = &all->items[all->len++];
    *c = (struct call){ .id = id };
    return c;
}

static void
take_callers_line (struct calls *all, const struct member_trace *m, const json_t *o)
{
    const char *id = json_get_string (o, "call_id"), *type = json_get_string (o, "event_type");
    if (! id || ! str_starts (type, "member_call"))
        return;
    struct call *c = call_of (all, id);
    const char *task = json_get_string (o, "member_task_id");
    if (! c->caller) {
        c->caller = m;
        c->caller_task = json_get_string (o, "task_id");
        c->member = json_get_string (o, "member");
        c->start_ms = member_number (o, "timestamp");
    }
    if (task)
        c->member_task = task;
    c->busy += str_eq (type, "member_call_busy");
    if (str_eq (type, "member_call"))
        c->ending = o;
}

/* A call's message is "msg_" and its id. */
static const char *
call_id_of (const json_t *received)
{
    const char *message = json_get_string (received, "message_id");
    return message && str_starts (message, "msg_mcl_") ? message + strlen ("msg_") : NULL;
}

static void
take_callees_line (struct calls *all, const struct member_trace *m, const json_t *o)
{
    const char *task = json_get_string (o, "task_id");
    if (! str_eq (json_get_string (o, "event_type"), "a2a_task_received") || ! task)
        return;
    struct call *c = NULL;
    for (size_t i = 0; i < all->len && ! c; i++)
        if (str_eq (all->items[i].member_task, task))
            c = &all->items[i];
    if (! c && ! (member_has (o, "caller_member") && call_id_of (o)))
        return;
    if (! c)
        c = call_of (all, call_id_of (o));
    c->callee = m;
    c->member_task = task;
    if (c->caller)
        return;
    c->callee_name = json_get_string (o, "caller_member");
    c->member = formation_member_name (m);
    c->start_ms = member_number (o, "timestamp");
}

static void
each_line (struct calls *all,
           void (*take) (struct calls *, const struct member_trace *, const json_t *))
{
    const json_t *o;
    size_t n;
    for (size_t i = 0; i < all->f->len; i++)
        json_array_foreach (all->f->members[i].lines, n, o) take (all, &all->f->members[i], o);
}

static void
find_ends (struct calls *all)
{
    const json_t *o;
    size_t n;
    for (size_t i = 0; i < all->len; i++) {
        struct call *c = &all->items[i];
        if (! c->callee)
            continue;
        json_array_foreach (c->callee->lines, n, o)
        {
            if (str_eq (json_get_string (o, "event_type"), "task_end") &&
                str_eq (json_get_string (o, "task_id"), c->member_task))
                c->task_end = o;
        }
    }
}

/* --- the tree --- */

static int
by_start (const void *a, const void *b)
{
    const struct call *x = a, *y = b;
    if (x->start_ms != y->start_ms)
        return x->start_ms < y->start_ms ? -1 : 1;
    return strcmp (x->id, y->id);
}

static void
find_parents (struct calls *all)
{
    for (size_t i = 0; i < all->len; i++)
        for (size_t p = 0; p < all->len && ! all->items[i].parent; p++)
            if (p != i && all->items[i].caller_task &&
                str_eq (all->items[p].member_task, all->items[i].caller_task))
                all->items[i].parent = &all->items[p];
}

/* --- rows --- */

/* What the callee's side adds, each on a line of its own. */
static void
put_notes (struct report *r, const struct call *c, int indent)
{
    const char *status = json_get_string (c->ending, "status");
    const char *ended = json_get_string (c->task_end, "exit_status");
    if (c->busy)
        report_text (r, "%*sbusy ×%zu\n", indent, "", c->busy);
    if (! c->caller)
        report_text (r, "%*scaller trace not found\n", indent, "");
    if (! c->member_task)
        report_text (r, "%*snever held\n", indent, "");
    else if (! c->callee)
        report_text (r, "%*scallee trace not found\n", indent, "");
    else if (! c->task_end)
        report_text (r, "%*scallee's task has no task_end\n", indent, "");
    else if (! str_eq (ended, "ok") || ! str_eq (status, "completed"))
        report_text (r, "%*scallee's task ended %s\n", indent, "", ended ? ended : "—");
}

static void
put_call (struct report *r, struct call *c)
{
    const char *caller = c->caller        ? formation_member_name (c->caller)
                         : c->callee_name ? c->callee_name
                                          : "—";
    int indent = (int)(2 * c->depth);
    report_text (r, "%*s%s  %s → %s  ", indent, "", c->id, caller, c->member ? c->member : "—");
    if (c->ending)
        report_text (r, "%s  %s  %s\n", member_text (c->ending, "status"),
                     duration_text (member_number (c->ending, "duration_ms")).text,
                     json_is_true (json_object_get (c->ending, "delivered")) ? "delivered"
                                                                             : "not delivered");
    else
        report_text (r, "%s\n", c->member_task ? "no ending" : "not yet held");
    put_notes (r, c, indent + 2);
    c->is_shown = true;
}

/* A call, then what its task called. */
static void
put_tree (struct report *r, struct calls *all, struct call *c, unsigned depth)
{
    c->depth = depth;
    put_call (r, c);
    for (size_t i = 0; i < all->len; i++)
        if (all->items[i].parent == c && ! all->items[i].is_shown && depth < 100)
            put_tree (r, all, &all->items[i], depth + 1);
}

void
formation_calls_report (const struct formation_traces *f, struct report *r)
{
    struct calls all = { .f = f };
    each_line (&all, take_callers_line);
    each_line (&all, take_callees_line);
    find_ends (&all);
    if (all.len)
        qsort (all.items, all.len, sizeof (*all.items), by_start);
    find_parents (&all);
    report_line (r, "calls", "%zu", all.len);
    for (size_t i = 0; i < all.len; i++)
        if (! all.items[i].parent)
            put_tree (r, &all, &all.items[i], 0);
    /* What is left hangs below itself. */
    for (size_t i = 0; i < all.len; i++)
        if (! all.items[i].is_shown)
            put_tree (r, &all, &all.items[i], 0);
    free (all.items);
}
