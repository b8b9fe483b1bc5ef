/* SPDX-License-Identifier: Apache-2.0
 *
 * submit-plan: reads a plan, keeps it below plans/ of the runtime directory, has it judged and
 * run, and answers with what every step gave (docs/spec/session.md 12).
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/json_write.h"
#include "session/plan/plan.h"
#include "session/plan/plan_check.h"
#include "session/plan/plan_run.h"
#include "session/state/outcome.h"
#include "session/state/provided.h"
#include "session/state/running_task.h"
#include "session/state/session.h"

#include <string.h>

static const char plan_parameters[] =
    "{\"properties\":{\"plan\":{\"properties\":{"
    "\"id\":{\"description\":\"A name for the plan.\",\"type\":\"string\"},"
    "\"steps\":{\"items\":{\"properties\":{"
    "\"capsule\":{\"description\":\"Has another capsule work: <name>@<version>. Its input is the "
    "task.\",\"type\":\"string\"},"
    "\"depends_on\":{\"description\":\"Ids of steps that must be done "
    "before.\",\"items\":{\"type\":"
    "\"string\"},\"type\":\"array\"},"
    "\"id\":{\"description\":\"Unique in the plan.\",\"type\":\"string\"},"
    "\"if\":{\"description\":\"Runs the step only when this holds: comparisons (== != > <) of "
    "quoted "
    "literals and references, joined by && and ||, no parentheses. $build.status == 'success'\","
    "\"type\":\"string\"},"
    "\"input\":{\"description\":\"What the tool or capsule is given.\"},"
    "\"on_error\":{\"description\":\"What a failure does: fail (the default) ends the plan, skip "
    "and "
    "continue go on.\",\"enum\":[\"fail\",\"skip\",\"continue\"],\"type\":\"string\"},"
    "\"retries\":{\"description\":\"How often a failed step is tried again. Default "
    "0.\",\"minimum\":0,"
    "\"type\":\"integer\"},"
    "\"shell\":{\"description\":\"Runs a command line; its first word is a command this capsule "
    "may "
    "run.\",\"type\":\"string\"},"
    "\"tool\":{\"description\":\"Calls this tool.\",\"type\":\"string\"}},"
    "\"required\":[\"id\"],\"type\":\"object\"},\"type\":\"array\"}},"
    "\"required\":[\"id\",\"steps\"],\"type\":\"object\"}},\"required\":[\"plan\"],\"type\":"
    "\"object\"}";

static bool
plan_is_offered (const struct session *s)
{
    return s->manifest->inference && s->policy->plan_submit;
}

/* Keeps the plan as it was submitted. A failure is no reason not to run it; a refused path is
 * latched. */
static void
store (struct session *s, const json_t *value)
{
    _cleanup_error_ struct mur_error *err = NULL;
    _cleanup_free_ char *text = json_text (value, JSON_TEXT_ORDERED);
    _cleanup_free_ char *path =
        x_asprintf ("plans/plan-%llu.json", (unsigned long long)++s->tally.plan_count);
    if (fs_make_dirs (s->places.runtime, "plans", 0777, false, &err))
        fs_write (s->places.runtime, path, text, strlen (text), 0666, false, &err);
}

/* --- the trace --- */

static char *
steps_text (const struct plan *plan)
{
    struct buf b = { 0 };
    buf_putc (&b, '[');
    for (size_t i = 0; i < plan->len; i++) {
        const struct plan_step *step = &plan->steps[i];
        buf_puts (&b, i ? ",{\"step_id\":" : "{\"step_id\":");
        json_append_string (&b, step->id, strlen (step->id));
        buf_printf (&b, ",\"kind\":\"%s\",\"depends_on\":[", step_kind_name (step->kind));
        for (size_t d = 0; d < step->depends_on.len; d++) {
            if (d)
                buf_putc (&b, ',');
            json_append_string (&b, step->depends_on.items[d], strlen (step->depends_on.items[d]));
        }
        buf_printf (&b, "],\"has_condition\":%s}", step->condition ? "true" : "false");
    }
    buf_putc (&b, ']');
    return buf_steal (&b);
}

static struct id
trace_start (struct session *s, const struct plan *plan)
{
    struct id node = { 0 };
    _cleanup_free_ char *steps = steps_text (plan);
    const struct trace_plan_start line = { .plan_id = plan->id,
                                           .step_count = plan->len,
                                           .steps = steps };
    trace_write (s->trace, TRACE_EVENT_plan_start, &line, &node, NULL);
    return node;
}

static uint64_t
count_of (const struct plan *plan, enum step_status status)
{
    uint64_t count = 0;
    for (size_t i = 0; i < plan->len; i++)
        count += plan->steps[i].status == status;
    return count;
}

static void
trace_end (struct session *s, const struct plan *plan, const char *plan_id, const struct id *node,
           const struct plan_end *end, uint64_t started_us)
{
    bool has_failed = end->failed_step || end->reason;
    const struct trace_plan_end line = { .plan_id = plan_id,
                                         .outcome = end->is_canceled ? "canceled"
                                                    : has_failed     ? "failed"
                                                                     : "completed",
                                         .failed_step = end->failed_step,
                                         .steps_total = node->text[0] ? plan->len : 0,
                                         .steps_succeeded = count_of (plan, STEP_SUCCEEDED),
                                         .steps_failed = count_of (plan, STEP_FAILED),
                                         .steps_skipped = count_of (plan, STEP_SKIPPED),
                                         .duration_ms = (clock_monotonic_us () - started_us) / 1000,
                                         .reason = end->reason };
    trace_write_under (s->trace, TRACE_PARENT_PLAN, node->text[0] ? node->text : NULL,
                       TRACE_EVENT_plan_end, &line, NULL, NULL);
}

/* --- the report --- */

static void
add_step (json_t *list, const char *id, const char *status, const char *output, const char *error)
{
    json_t *o = json_object ();
    json_set_string (o, "step_id", id);
    json_set_string (o, "status", status);
    json_set_string (o, "output", output);
    json_set_string (o, "error", error);
    json_array_append_new (list, o);
}

/* A plan that was refused reports the step at fault alone, "plan" when it was none at all. */
static json_t *
steps_report (const struct plan *plan, const struct plan_end *end)
{
    json_t *list = json_array ();
    if (end->reason)
        add_step (list, end->failed_step, "failed", NULL, end->reason);
    for (size_t i = 0; i < plan->reported_len; i++) {
        const struct plan_step *step = plan->reported[i];
        add_step (list, step->id, step_status_name (step->status), step->output, step->error);
    }
    return list;
}

static void
set_report (const struct plan *plan, const char *plan_id, const struct plan_end *end,
            struct call_outcome *out)
{
    bool is_completed = ! end->is_canceled && ! end->failed_step;
    _cleanup_json_ json_t *report = json_object ();
    json_set_string (report, "plan_id", plan_id);
    json_set_bool (report, "completed", is_completed);
    json_set_bool (report, "canceled", end->is_canceled);
    json_set_string (report, "failed_step", end->failed_step);
    json_object_set_new (report, "steps", steps_report (plan, end));
    _cleanup_free_ char *text = json_text (report, JSON_TEXT_SORTED);
    outcome_set_result (out, "submit-plan", is_completed ? TOOL_PASSED : TOOL_FAILED, text,
                        strlen (text));
    out->is_canceled = end->is_canceled;
}

static void
plan_call (struct session *s, struct running_task *task, const json_t *input,
           struct call_outcome *out)
{
    const json_t *value = json_object_get (input, "plan");
    uint64_t started_us = clock_monotonic_us ();
    _cleanup_plan_ struct plan plan = { 0 };
    struct plan_end end = { 0 };
    struct id node = { 0 };
    const char *given = json_get_string (value, "id");
    if (json_is_object (value))
        store (s, value);
    bool is_read = plan_read (value, &plan, &end.reason);
    if (is_read)
        node = trace_start (s, &plan);
    else
        end.failed_step = "plan";
    if (is_read && plan_check (s, &plan, &end.failed_step, &end.reason))
        plan_run (s, task, &plan, node.text, &end);
    trace_end (s, &plan, is_read ? plan.id : "", &node, &end, started_us);
    set_report (&plan, given ? given : "", &end, out);
    if (end.is_canceled)
        task->end.wait_phase = "plan";
    free (end.reason);
}

const struct provided_tool provided_submit_plan = {
    .name = "submit-plan",
    .description =
        "Runs a plan: steps that call tools, run commands or have other capsules work, each as soon as "
        "the steps it depends on are done, and answers once with what every step gave. Any string of a "
        "step's input that is exactly $<step id>.output or $<step id>.status is replaced by that "
        "step's output or status.",
    .parameters = plan_parameters,
    .missing = "capabilities.plan.submit",
    .exists = plan_is_offered,
    .call = plan_call,
};
