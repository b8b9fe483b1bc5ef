/* SPDX-License-Identifier: Apache-2.0
 *
 * switch-driver: the model selects another of the declared driver choices (docs/spec/session.md
 * 8.3, docs/spec/manifest.md 7.3). The selection does the work.
 */
#include "base/alloc.h"
#include "session/model/selection.h"
#include "session/state/outcome.h"
#include "session/state/provided.h"
#include "session/state/session.h"

#include <string.h>

#define TOOL    "switch-driver"
#define SETTING "inference.driver"

static const struct selection_principal agent = { .name = "agent" };

static bool
switch_driver_is_offered (const struct session *s)
{
    return s->manifest->inference && selection_agent_may (s, SETTING);
}

static const char *
switch_driver_parameters (const struct session *s)
{
    _cleanup_buf_ struct buf b = { 0 };
    buf_puts (&b, "{\"properties\":{\"driver\":{\"description\":\"The choice: ");
    for (size_t i = 0; i < s->choices.count; i++)
        buf_printf (&b, "%s%s", i ? ", " : "", s->choices.all[i]->name);
    buf_puts (&b, ".\",\"enum\":[");
    for (size_t i = 0; i < s->choices.count; i++)
        buf_printf (&b, "%s\"%s\"", i ? "," : "", s->choices.all[i]->name);
    buf_puts (&b, "],\"type\":\"string\"}},\"required\":[\"driver\"],\"type\":\"object\"}");
    return arena_strndup (s->arena, b.data, b.len);
}

static void
refuse (struct session *s, enum selection_verdict verdict, const char *name,
        struct call_outcome *out)
{
    selection_refuse (s, &agent, selection_status (verdict), selection_reason (verdict), SETTING);
    if (verdict == SELECTION_CREDENTIAL_UNRESOLVABLE) {
        const struct gateway_block *g = selection_choice (s, name)->artifact->entry->gateway;
        outcome_set_error (out,
                           TOOL " was refused (%s): the key %s of the choice %s has no value now; "
                                "nothing changed",
                           selection_reason (verdict), g->key_reference, name);
        return;
    }
    _cleanup_strv_ struct strv names = { 0 };
    for (size_t i = 0; i < s->choices.count; i++)
        strv_push (&names, s->choices.all[i]->name);
    _cleanup_free_ char *list = strv_join (&names, ", ");
    outcome_set_error (out, TOOL " was refused (%s): the choices are %s; nothing changed",
                       selection_reason (verdict), list);
}

static void
switch_driver_call (struct session *s, struct running_task *task, const json_t *input,
                    struct call_outcome *out)
{
    (void)task;
    const char *name = json_get_string (input, "driver"), *previous = NULL;
    enum selection_verdict verdict =
        name ? selection_set_driver (s, &agent, name, &previous) : SELECTION_UNDECLARED_DRIVER;
    if (verdict != SELECTION_DONE) {
        refuse (s, verdict, name, out);
        return;
    }
    _cleanup_free_ char *text =
        x_asprintf ("{\"applies_from\":\"" CONTROL_APPLIES_FROM "\",\"name\":\"" SETTING
                    "\",\"previous\":\"%s\",\"value\":\"%s\"}",
                    previous, name);
    outcome_set_result (out, TOOL, TOOL_PASSED, text, strlen (text));
}

const struct provided_tool provided_switch_driver = {
    .name = "switch-driver",
    .description =
        "Selects the model that goes on from the next inference call on. The conversation stays.",
    .parameters_of = switch_driver_parameters,
    .missing = "control.agent_settings with inference.driver",
    .exists = switch_driver_is_offered,
    .call = switch_driver_call,
};
