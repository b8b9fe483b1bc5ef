/* SPDX-License-Identifier: Apache-2.0 */
#include "session/plan/plan_run.h"

#include "base/alloc.h"
#include "sandbox/kernel/cgroup_nest.h"
#include "sandbox/run/confinement.h"
#include "session/commands/confine.h"
#include "session/plan/plan_refs.h"
#include "session/plan/plan_step.h"
#include "session/state/running_task.h"
#include "session/state/session.h"

#include <string.h>

struct scheduler {
    struct session *session;
    struct running_task *task;
    struct plan *plan;
    const char *node;
    struct plan_end *end;
    struct cgroup_nest *nest; /* NULL: where nothing can be nested */
};

/* --- trace --- */

static char *const *
names_of (const struct strv *v)
{
    static char *const none[] = { NULL };
    return v->len ? v->items : none;
}

static void
trace_begin (const struct scheduler *p, const struct plan_step *step)
{
    const struct trace_plan_step_start line = { .plan_id = p->plan->id,
                                                .step_id = step->id,
                                                .kind = step_kind_name (step->kind),
                                                .depends_on = names_of (&step->depends_on) };
    trace_write_under (p->session->trace, TRACE_PARENT_PLAN, p->node, TRACE_EVENT_plan_step_start,
                       &line, NULL, NULL);
}

/* Records what became of a step, in the trace and for the report. */
static void
report_step (const struct scheduler *p, const struct plan_step *step)
{
    p->plan->reported[p->plan->reported_len++] = step;
    _cleanup_free_ char *input =
        step->kind == STEP_TOOL && step->sent ? json_text (step->sent, JSON_TEXT_SORTED) : NULL;
    const struct trace_plan_step line = { .plan_id = p->plan->id,
                                          .step_id = step->id,
                                          .kind = step_kind_name (step->kind),
                                          .status = step_status_name (step->status),
                                          .attempts = step->attempts,
                                          .duration_ms = step->duration_ms,
                                          .error = step->error,
                                          .input = input,
                                          .state_effect = step->state_effect,
                                          .resource_id = step->resource_id };
    trace_write_under (p->session->trace, TRACE_PARENT_PLAN, p->node, TRACE_EVENT_plan_step, &line,
                       NULL, NULL);
}

/* --- what is ready --- */

struct readiness {
    const struct plan *plan;
    bool is_ready;
};

static bool
is_done (void *ctx, const char *step_id)
{
    struct readiness *r = ctx;
    const struct plan_step *before = plan_find (r->plan, step_id);
    r->is_ready &= ! before || before->status != STEP_PENDING;
    return r->is_ready;
}

/* A step waits for what it depends on and for what it refers to. */
static bool
is_ready (const struct plan *plan, const struct plan_step *step)
{
    struct readiness r = { plan, step->status == STEP_PENDING };
    for (size_t i = 0; i < step->depends_on.len && r.is_ready; i++)
        is_done (&r, step->depends_on.items[i]);
    return r.is_ready && plan_each_reference (step, is_done, &r);
}

static size_t
collect_ready (struct scheduler *p, struct step_run *wave)
{
    size_t count = 0;
    for (size_t i = 0; i < p->plan->len; i++)
        if (is_ready (p->plan, &p->plan->steps[i]))
            wave[count++] = (struct step_run){ .session = p->session,
                                               .task = p->task,
                                               .plan = p->plan,
                                               .nest = p->nest,
                                               .step = &p->plan->steps[i] };
    return count;
}

/* --- one wave --- */

static bool
must_stop (const struct scheduler *p)
{
    return cancel_is_raised (p->task->cancel) || p->task->fatal;
}

/* Steps whose condition does not hold, or is none, are done without being begun. */
static size_t
judge_conditions (struct scheduler *p, struct step_run *wave, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        struct plan_step *step = wave[i].step;
        char *why = NULL;
        if (! step->condition || plan_condition_holds (p->plan, step->condition)) {
            wave[kept++] = wave[i];
            continue;
        }
        if (plan_condition_check (step->condition, &why)) {
            step->status = STEP_SKIPPED;
            report_step (p, step);
            continue;
        }
        step->status = STEP_FAILED;
        step->error = x_asprintf ("if: %s", why);
        free (why);
        wave[kept++] = wave[i];
    }
    return kept;
}

static void
begin_wave (struct scheduler *p, struct step_run *wave, size_t count)
{
    _cleanup_free_ bool *is_begun = x_new_array (bool, count + 1);
    for (size_t i = 0; i < count; i++) {
        struct plan_step *step = wave[i].step;
        if (step->status != STEP_PENDING)
            continue;
        if (must_stop (p)) {
            step->status = STEP_SKIPPED;
            continue;
        }
        trace_begin (p, step);
        step_admit (&wave[i]);
        is_begun[i] = true;
    }
    /* While a question is open nothing of the wave runs. */
    for (size_t i = 0; i < count; i++)
        if (is_begun[i])
            step_begin (&wave[i]);
}

/* Tools first, one after the other, while the commands of the wave run. */
static void
finish_wave (struct scheduler *p, struct step_run *wave, size_t count)
{
    (void)p;
    for (int is_tool = 1; is_tool >= 0; is_tool--)
        for (size_t i = 0; i < count; i++)
            if (wave[i].step->status != STEP_SKIPPED && wave[i].step->sent &&
                (wave[i].step->kind == STEP_TOOL) == is_tool)
                step_finish (&wave[i]);
}

/* Records the wave in the plan's order. After a step that fails the plan nothing more is reported.
 * False: the plan ends here. */
static bool
settle_wave (struct scheduler *p, struct step_run *wave, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct plan_step *step = wave[i].step;
        bool has_failed = step->status == STEP_FAILED;
        if (has_failed && step->on_error == STEP_IS_SKIPPED)
            step->status = STEP_SKIPPED;
        report_step (p, step);
        bool is_over = step->on_error == STEP_FAILS_PLAN || p->task->fatal;
        if (! has_failed || ! is_over || cancel_is_raised (p->task->cancel))
            continue;
        p->end->failed_step = step->id;
        for (size_t later = i + 1; later < count; later++)
            wave[later].step->status = STEP_PENDING; /* ran, but is not reported */
        return false;
    }
    return true;
}

static bool
run_wave (struct scheduler *p, struct step_run *wave, size_t count)
{
    count = judge_conditions (p, wave, count);
    begin_wave (p, wave, count);
    finish_wave (p, wave, count);
    bool goes_on = settle_wave (p, wave, count);
    for (size_t i = 0; i < count; i++)
        step_run_clear (&wave[i]);
    return goes_on;
}

/* --- the whole plan --- */

static struct plan_step *
first_pending (const struct plan *plan)
{
    for (size_t i = 0; i < plan->len; i++)
        if (plan->steps[i].status == STEP_PENDING)
            return &plan->steps[i];
    return NULL;
}

/* Nothing is ready and something is left: steps that wait for each other. */
static void
fail_blocked (struct scheduler *p)
{
    struct plan_step *step = first_pending (p->plan);
    if (! step)
        return;
    _cleanup_free_ char *needs = strv_join (&step->depends_on, ", ");
    step->status = STEP_FAILED;
    step->error = x_asprintf ("blocked: it waits for steps that wait for it%s%s",
                              step->depends_on.len ? "; it depends on " : "", needs);
    report_step (p, step);
    p->end->failed_step = step->id;
}

static void
skip_rest (struct scheduler *p)
{
    for (struct plan_step *step; (step = first_pending (p->plan));) {
        step->status = STEP_SKIPPED;
        report_step (p, step);
    }
}

void
plan_run (struct session *s, struct running_task *t, struct plan *plan, const char *node,
          struct plan_end *end)
{
    struct scheduler p = { s, t, plan, node, end, NULL };
    struct confinement *confinement = confine_confinement (s);
    const struct cgroup_scope *scope = confinement ? confinement_scope (confinement) : NULL;
    if (scope)
        p.nest = cgroup_nest_new (cgroup_scope_clone_fd (scope));
    _cleanup_free_ struct step_run *wave = x_new_array (struct step_run, plan->len + 1);
    bool goes_on = true;
    while (goes_on && ! must_stop (&p)) {
        size_t count = collect_ready (&p, wave);
        goes_on = count && run_wave (&p, wave, count);
    }
    cgroup_nest_free (p.nest); /* what steps left running ends with the plan */
    end->is_canceled = cancel_is_raised (t->cancel);
    if (must_stop (&p))
        skip_rest (&p);
    else if (! end->failed_step)
        fail_blocked (&p);
}
