/* SPDX-License-Identifier: Apache-2.0
 *
 * switch-driver: the model selects another of the declared driver choices (spec/session.md 8.3,
 * spec/manifest.md 7.3). The work is control.c's.
 */
#include "base/alloc.h"
#include "session/builtin.h"
#include "session/control.h"
#include "session/dispatch.h"

#include <string.h>

#define TOOL    "switch-driver"
#define SETTING "inference.driver"

static const struct control_principal agent = { .name = "agent" };

bool
switch_driver_is_offered (const struct session *s)
{
    return s->manifest->inference && control_agent_may (s, SETTING);
}

const char *
switch_driver_parameters (const struct session *s)
{
    _cleanup_buf_ struct buf b = { 0 };
    buf_puts (&b, "{\"properties\":{\"driver\":{\"description\":\"The choice: ");
    for (size_t i = 0; i < s->choice_count; i++)
        buf_printf (&b, "%s%s", i ? ", " : "", s->choices[i]->name);
    buf_puts (&b, ".\",\"enum\":[");
    for (size_t i = 0; i < s->choice_count; i++)
        buf_printf (&b, "%s\"%s\"", i ? "," : "", s->choices[i]->name);
    buf_puts (&b, "],\"type\":\"string\"}},\"required\":[\"driver\"],\"type\":\"object\"}");
    return arena_strndup (s->arena, b.data, b.len);
}

static void
refuse (struct session *s, unsigned status, const char *reason, struct call_outcome *out)
{
    _cleanup_strv_ struct strv names = { 0 };
    for (size_t i = 0; i < s->choice_count; i++)
        strv_push (&names, s->choices[i]->name);
    _cleanup_free_ char *list = strv_join (&names, ", ");
    control_refused (s, &agent, status, reason, SETTING);
    outcome_set_error (out, TOOL " was refused (%s): the choices are %s; nothing changed", reason,
                       list);
}

void
builtin_switch_driver (struct session *s, struct running_task *task, const json_t *input,
                       struct call_outcome *out)
{
    (void)task;
    const char *name = json_get_string (input, "driver"), *previous;
    if (! name) {
        refuse (s, 422, "invalid_value", out);
        return;
    }
    enum control_verdict verdict = control_set_driver (s, &agent, name, &previous);
    if (verdict != CONTROL_DONE) {
        refuse (s, control_status (verdict), control_reason (verdict), out);
        return;
    }
    _cleanup_free_ char *text =
        x_asprintf ("{\"applies_from\":\"" CONTROL_APPLIES_FROM "\",\"name\":\"" SETTING
                    "\",\"previous\":\"%s\",\"value\":\"%s\"}",
                    previous, name);
    outcome_set_result (out, TOOL, TOOL_PASSED, text, strlen (text));
}
