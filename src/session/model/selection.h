/* SPDX-License-Identifier: Apache-2.0
 *
 * What may be changed while a session runs: the driver choice and the output cap
 * (docs/spec/door.md 15, docs/spec/session.md 5.2 step 2, 8.3).
 *
 * A change of either setting, from any thread, under one lock:
 *
 *     (none)    -> announced   selection_set_driver, selection_set_max_tokens: control_change
 *     announced -> announced   the same again before any call: the earlier one is never applied
 *     announced -> applied     selection_take, by the call that uses it: control_applied
 *     refused                  nothing moves; selection_refuse writes control_refused
 *
 * Always true: a change applies from the next inference call on; a value that was
 * replaced before any call used it is never reported as applied; nothing persists.
 */
#pragma once

#include "session/state/session.h"

#define CONTROL_APPLIES_FROM "next_inference_call"

/* Who changes a setting, as the trace names it. */
struct selection_principal {
    const char *name;     /* "agent", "controller" */
    const char *token_id; /* NULL: none */
};

enum selection_verdict {
    SELECTION_DONE,
    SELECTION_UNDECLARED_DRIVER,
    SELECTION_CREDENTIAL_UNRESOLVABLE,
    SELECTION_NO_INPUT_BUDGET,
};

/* The `reason` of a refusal in the trace, and its HTTP status. NULL and 200 for SELECTION_DONE. */
const char *selection_reason (enum selection_verdict verdict);
unsigned selection_status (enum selection_verdict verdict);

/* Once the choices are staged. */
struct selection *selection_new (void);
void selection_free (struct selection *c);
DEFINE_CLEANUP (struct selection, selection_free)

/* The choice of that name, or NULL. */
const struct choice *selection_choice (const struct session *s, const char *name);
/* True when control.agent_settings or control.settings lists this setting. */
bool selection_agent_may (const struct session *s, const char *setting);
bool selection_controller_may (const struct session *s, const char *setting);

/* What the next call would use. */
void selection_peek (struct session *s, struct call_choice *out);
/* What this call uses; a value used for the first time is traced (control_applied). */
void
selection_take (struct session *s, const char *task_id, uint64_t turn, struct call_choice *out);

/* Selects a choice by name; *previous is the name it replaced (borrowed). A change is traced
 * (control_change), a refusal is left to the caller. */
enum selection_verdict
selection_set_driver (struct session *s, const struct selection_principal *who, const char *name,
                      const char **previous);
/* Sets the output cap of every choice; *previous is what the selected choice had until now. */
enum selection_verdict
selection_set_max_tokens (struct session *s, const struct selection_principal *who, uint64_t tokens,
                          uint64_t *previous);
/* Whether a choice's credential can produce a value now. */
bool selection_has_credential (const struct choice *d);
/* Runs fn, with no switch in between, unless the selected choice is keyed by this secret: then
 * false. */
bool selection_unless_keyed_by (struct session *s, const char *secret, void (*fn) (void *ctx),
                                void *ctx);
/* Traces control_refused of a setting. */
void selection_refuse (struct session *s, const struct selection_principal *who, unsigned status,
                       const char *reason, const char *setting);
