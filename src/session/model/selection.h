/* SPDX-License-Identifier: Apache-2.0
 *
 * What may be changed while a session runs: the driver choice and the output cap (spec/door.md 15,
 * spec/session.md 5.2 step 2, 8.3).
 *
 * Callers: turn.c reads once a call; builtin_switch_driver.c and the control plane change.
 * Thread-safe. Always true: a change applies from the next inference call on; a value that was
 * replaced before any call used it is never reported as applied; nothing persists.
 */
#pragma once

#include "session/state/session.h"

#define CONTROL_APPLIES_FROM "next_inference_call"

/* What one inference call uses, read once. */
struct call_choice {
    const struct driver *driver;
    uint64_t output_cap;
    uint64_t input_budget; /* 0: none */
    const char *budget_basis;
};

/* Who changes a setting, as the trace names it. */
struct control_principal {
    const char *name;     /* "agent", "controller" */
    const char *token_id; /* NULL: none */
};

enum control_verdict {
    CONTROL_DONE,
    CONTROL_UNDECLARED_DRIVER,
    CONTROL_CREDENTIAL_UNRESOLVABLE,
    CONTROL_NO_INPUT_BUDGET,
};

/* The `reason` of a refusal in the trace, and its HTTP status. NULL and 200 for CONTROL_DONE. */
const char *control_reason (enum control_verdict verdict);
unsigned control_status (enum control_verdict verdict);

/* Once the choices are staged. */
struct control_state *control_new (void);
void control_free (struct control_state *c);
DEFINE_CLEANUP (struct control_state, control_free)

/* The choice of that name, or NULL. */
const struct driver *control_choice (const struct session *s, const char *name);
/* True when control.agent_settings or control.settings lists this setting. */
bool control_agent_may (const struct session *s, const char *setting);
bool control_controller_may (const struct session *s, const char *setting);

/* What the next call would use. */
void control_peek (struct session *s, struct call_choice *out);
/* What this call uses; a value used for the first time is traced (control_applied). */
void control_take (struct session *s, const char *task_id, uint64_t turn, struct call_choice *out);

/* Selects a choice by name; *previous is the name it replaced (borrowed). A change is traced
 * (control_change), a refusal is left to the caller. */
enum control_verdict control_set_driver (struct session *s, const struct control_principal *who,
                                         const char *name, const char **previous);
/* Sets the output cap of every choice; *previous is what the selected choice had until now. */
enum control_verdict control_set_max_tokens (struct session *s, const struct control_principal *who,
                                             uint64_t tokens, uint64_t *previous);
/* Whether a choice's credential can produce a value now. */
bool control_has_credential (const struct driver *d);
/* Runs fn, with no switch in between, unless the selected choice is keyed by this secret: then
 * false. */
bool
control_unless_keyed_by (struct session *s, const char *secret, void (*fn) (void *ctx), void *ctx);
/* Traces control_refused of a setting. */
void control_refused (struct session *s, const struct control_principal *who, unsigned status,
                      const char *reason, const char *setting);
