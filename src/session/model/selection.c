/* SPDX-License-Identifier: Apache-2.0 */
#include "session/model/selection.h"

#include "base/alloc.h"
#include "policy/input_budget.h"
#include "session/model/credential.h"
#include "session/model/steering_internal.h"
#include "session/state/session.h"

#include <string.h>

#define SETTING_DRIVER     "inference.driver"
#define SETTING_MAX_TOKENS "inference.max_tokens"

/* A value with the line that announced it, until a call used it. */
struct pending {
    bool is_set;
    struct id change;
};

struct selection {
    pthread_mutex_t lock; /* base/locks.h: control */
    size_t selected;      /* index of the session's choices */
    uint64_t max_tokens;  /* 0: not set, each choice has its own */
    struct pending driver_change, max_tokens_change;
};

static const struct {
    const char *reason;
    unsigned status;
} verdicts[] = {
    [SELECTION_DONE] = { NULL, 200 },
    [SELECTION_UNDECLARED_DRIVER] = { "undeclared_driver", 422 },
    [SELECTION_CREDENTIAL_UNRESOLVABLE] = { "credential_unresolvable", 409 },
    [SELECTION_NO_INPUT_BUDGET] = { "no_input_budget", 422 },
};

const char *
selection_reason (enum selection_verdict verdict)
{
    return verdicts[verdict].reason;
}

unsigned
selection_status (enum selection_verdict verdict)
{
    return verdicts[verdict].status;
}

struct selection *
selection_new (void)
{
    struct selection *c = x_new0 (struct selection);
    pthread_mutex_init (&c->lock, NULL);
    return c;
}

void
selection_free (struct selection *c)
{
    if (! c)
        return;
    pthread_mutex_destroy (&c->lock);
    free (c);
}

const struct choice *
selection_choice (const struct session *s, const char *name)
{
    for (size_t i = 0; i < s->choices.count; i++)
        if (str_eq (s->choices.all[i]->name, name))
            return s->choices.all[i];
    return NULL;
}

bool
selection_agent_may (const struct session *s, const char *setting)
{
    return s->manifest->control && str_list_has (&s->manifest->control->agent_settings, setting);
}

bool
selection_controller_may (const struct session *s, const char *setting)
{
    return s->manifest->control && str_list_has (&s->manifest->control->settings, setting);
}

/* --- reading --- */

/* Under the lock. */
static void
fill (const struct session *s, const struct selection *c, struct call_choice *out)
{
    const struct choice *d = s->choices.all[c->selected];
    *out = (struct call_choice){ .driver = d,
                                 .output_cap = c->max_tokens ? c->max_tokens : d->output_cap };
    out->input_budget =
        policy_input_budget (d->window, d->input_ceiling, out->output_cap, &out->budget_basis);
}

void
selection_peek (struct session *s, struct call_choice *out)
{
    pthread_mutex_lock (&s->rooms.steering->selection->lock);
    fill (s, s->rooms.steering->selection, out);
    pthread_mutex_unlock (&s->rooms.steering->selection->lock);
}

void
selection_take (struct session *s, const char *task_id, uint64_t turn, struct call_choice *out)
{
    struct selection *c = s->rooms.steering->selection;
    pthread_mutex_lock (&c->lock);
    fill (s, c, out);
    struct pending driver = c->driver_change, max_tokens = c->max_tokens_change;
    c->driver_change.is_set = c->max_tokens_change.is_set = false;
    pthread_mutex_unlock (&c->lock);
    if (driver.is_set) {
        _cleanup_free_ char *value = x_asprintf ("\"%s\"", out->driver->name);
        TRACE (s->trace, NULL, control_applied, .turn = turn, .task_id = task_id,
               .name = SETTING_DRIVER, .value = value, .change_id = driver.change.text);
    }
    if (max_tokens.is_set) {
        _cleanup_free_ char *value = x_asprintf ("%llu", (unsigned long long)out->output_cap);
        TRACE (s->trace, NULL, control_applied, .turn = turn, .task_id = task_id,
               .name = SETTING_MAX_TOKENS, .value = value, .change_id = max_tokens.change.text);
    }
}

/* --- changing --- */

/* Under the lock, so that lines and values change in one order. */
static void
record (struct session *s, const struct selection_principal *who, const char *setting,
        const char *previous, const char *value, struct pending *change)
{
    const struct trace_control_change line = { .principal = who->name,
                                               .token_id = who->token_id,
                                               .kind = "setting",
                                               .name = setting,
                                               .action = "set",
                                               .previous = previous,
                                               .value = value,
                                               .applies_from = CONTROL_APPLIES_FROM };
    change->is_set = true;
    trace_write (s->trace, TRACE_EVENT_control_change, &line, &change->change, NULL);
}

bool
selection_has_credential (const struct choice *d)
{
    return ! d->artifact->guest.credential ||
           credential_source (d->artifact->guest.credential) != GATEWAY_SOURCE_NONE;
}

enum selection_verdict
selection_set_driver (struct session *s, const struct selection_principal *who, const char *name,
                      const char **previous)
{
    struct selection *c = s->rooms.steering->selection;
    const struct choice *d = selection_choice (s, name);
    *previous = NULL;
    if (! d)
        return SELECTION_UNDECLARED_DRIVER;
    enum selection_verdict verdict = SELECTION_CREDENTIAL_UNRESOLVABLE;
    pthread_mutex_lock (&c->lock);
    *previous = s->choices.all[c->selected]->name;
    if (selection_has_credential (d)) {
        verdict = SELECTION_DONE;
        for (size_t i = 0; i < s->choices.count; i++)
            if (s->choices.all[i] == d)
                c->selected = i;
        _cleanup_free_ char *was = x_asprintf ("\"%s\"", *previous);
        _cleanup_free_ char *now = x_asprintf ("\"%s\"", d->name);
        record (s, who, SETTING_DRIVER, was, now, &c->driver_change);
    }
    pthread_mutex_unlock (&c->lock);
    return verdict;
}

enum selection_verdict
selection_set_max_tokens (struct session *s, const struct selection_principal *who, uint64_t tokens,
                          uint64_t *previous)
{
    struct selection *c = s->rooms.steering->selection;
    *previous = 0;
    for (size_t i = 0; i < s->choices.count; i++)
        if (s->choices.all[i]->window && tokens >= s->choices.all[i]->window)
            return SELECTION_NO_INPUT_BUDGET;
    pthread_mutex_lock (&c->lock);
    struct call_choice now;
    fill (s, c, &now);
    *previous = now.output_cap;
    c->max_tokens = tokens;
    _cleanup_free_ char *was = x_asprintf ("%llu", (unsigned long long)now.output_cap);
    _cleanup_free_ char *value = x_asprintf ("%llu", (unsigned long long)tokens);
    record (s, who, SETTING_MAX_TOKENS, was, value, &c->max_tokens_change);
    pthread_mutex_unlock (&c->lock);
    return SELECTION_DONE;
}

bool
selection_unless_keyed_by (struct session *s, const char *secret, void (*fn) (void *ctx), void *ctx)
{
    struct selection *c = s->rooms.steering->selection;
    pthread_mutex_lock (&c->lock);
    const struct gateway_block *g = s->choices.all[c->selected]->artifact->entry->gateway;
    bool is_keyed = g && str_eq (g->key_reference, secret);
    if (! is_keyed)
        fn (ctx);
    pthread_mutex_unlock (&c->lock);
    return ! is_keyed;
}

void
selection_refuse (struct session *s, const struct selection_principal *who, unsigned status,
                  const char *reason, const char *setting)
{
    TRACE (s->trace, NULL, control_refused, .principal = who->name, .status = status,
           .reason = reason, .kind = "setting", .name = setting, .token_id = who->token_id);
}
