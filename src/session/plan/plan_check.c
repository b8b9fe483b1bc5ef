/* SPDX-License-Identifier: Apache-2.0 */
#include "session/plan/plan_check.h"

#include "base/alloc.h"
#include "session/commands/shell.h"
#include "session/plan/plan_command.h"
#include "session/plan/plan_refs.h"
#include "session/state/session.h"

#include <string.h>

static const char *const on_error_names[] = { "fail", "skip", "continue" };

/* Tools a plan may not call: they change the session a plan runs in, or end the task. */
static const char *const barred[] = { "submit-plan", "switch-driver", "end-without-answer",
                                      "pull-artifact", "remove-artifact" };

static bool check_say (char **reason, const char *fmt, ...) _printf_ (2, 3);

static bool
check_say (char **reason, const char *fmt, ...)
{
    va_list args;
    va_start (args, fmt);
    *reason = x_vasprintf (fmt, args);
    va_end (args);
    return false;
}

static bool
is_barred (const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN (barred); i++)
        if (str_eq (barred[i], name))
            return true;
    return false;
}

static bool
check_tool (struct session *s, const struct plan_step *step, char **reason)
{
    if (is_barred (step->name))
        return check_say (reason, "step %s: %s cannot be a step of a plan", step->id, step->name);
    return session_tool (s, step->name) ||
           check_say (reason, "step %s: there is no tool named %s in this session", step->id,
                      step->name);
}

static bool
check_shell (struct session *s, const struct plan_step *step, char **reason)
{
    _cleanup_free_ char *name = NULL, *command = NULL;
    if (! plan_command_read (step, step->input, &name, &command))
        return check_say (reason, "step %s: the command line is blank", step->id);
    return shell_is_offered (s, name) ||
           check_say (reason, "step %s: %s is not in capabilities.shell.allow", step->id, name);
}

static bool
check_capsule (struct session *s, const struct plan_step *step, char **reason)
{
    (void)s;
    const json_t *objective = json_object_get (step->input, "objective");
    bool is_text = json_is_string (step->input) ||
                   (json_is_string (objective) && json_object_size (step->input) == 1);
    return is_text ||
           check_say (reason,
                      "step %s: the input of a capsule step is its task as a string, or an "
                      "object holding nothing but \"objective\"",
                      step->id);
}

static bool
check_kind (struct session *s, const struct plan_step *step, char **reason)
{
    switch (step->kind) {
    case STEP_TOOL:
        return check_tool (s, step, reason);
    case STEP_SHELL:
        return check_shell (s, step, reason);
    case STEP_CAPSULE:
        return check_capsule (s, step, reason);
    case STEP_UNKNOWN:
    default:
        return check_say (
            reason, "step %s: exactly one of tool, shell and capsule says what it runs", step->id);
    }
}

static bool
check_on_error (struct plan_step *step, char **reason)
{
    if (! step->on_error_word)
        return true;
    for (size_t i = 0; i < ARRAY_LEN (on_error_names); i++)
        if (str_eq (on_error_names[i], step->on_error_word)) {
            step->on_error = (enum step_on_error)i;
            return true;
        }
    return check_say (reason, "step %s: on_error is %s; it must be fail, skip or continue",
                      step->id, step->on_error_word);
}

struct known {
    const struct plan *plan;
    const struct plan_step *step;
    char **reason;
};

static bool
is_known (void *ctx, const char *step_id)
{
    const struct known *known = ctx;
    return plan_find (known->plan, step_id) ||
           check_say (known->reason, "step %s: it refers to %s, which is no step of this plan",
                      known->step->id, step_id);
}

static bool
check_links (const struct plan *plan, const struct plan_step *step, char **reason)
{
    for (size_t i = 0; i < step->depends_on.len; i++)
        if (! plan_find (plan, step->depends_on.items[i]))
            return check_say (reason, "step %s: it depends on %s, which is no step of this plan",
                              step->id, step->depends_on.items[i]);
    struct known known = { plan, step, reason };
    return plan_each_reference (step, is_known, &known);
}

static bool
check_step (struct session *s, const struct plan *plan, struct plan_step *step, char **reason)
{
    if (! step->id[strspn (step->id, " \t\r\n")])
        return check_say (reason, "a step has a blank id");
    if (plan_find (plan, step->id) != step)
        return check_say (reason, "step %s: there are two steps of that id", step->id);
    return check_kind (s, step, reason) && check_on_error (step, reason) &&
           check_links (plan, step, reason);
}

bool
plan_check (struct session *s, const struct plan *plan, const char **bad, char **reason)
{
    for (size_t i = 0; i < plan->len; i++)
        if (! check_step (s, plan, &plan->steps[i], reason)) {
            *bad = plan->steps[i].id;
            return false;
        }
    return true;
}
