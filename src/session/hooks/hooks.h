/* SPDX-License-Identifier: Apache-2.0
 *
 * Hooks: components that see what a session does and may answer at the points the spec names
 * (docs/spec/session.md 9).
 *
 * Always true: a hook has one instance for the session, a blocking one runs on the task loop's
 * thread in manifest order; what it answers is honoured by event and by nothing else; a fault of
 * an observer ends nothing, a fault of a deny hook denies.
 */
#pragma once

#include "host/hook.h"
#include "session/conversation/request.h"
#include "session/model/driver_call.h"
#include "session/state/call.h"
#include "session/state/outcome.h"

/* Step 21: hooks of on-stage run once, in instances that are thrown away. Never fails. */
bool stage_hooks (struct session *s, struct mur_error **err);

/* Instantiates every hook (E-IO-003 naming hook and what it lacks), then tells on-session-start. */
bool hooks_start (struct session *s, struct mur_error **err);
/* on-session-end, then the queues of async hooks are drained within 15 s. */
void hooks_end (struct session *s, const char *exit_status);
/* Frees what hooks_start made; hooks_end drained it. */
void hooks_free (struct session *s);

/* Answers an event honours, in manifest order. Lives in the arena of the dispatch. */
struct hook_answer {
    const char *hook_name;
    const struct hook_output *output;
};

struct hook_answers {
    struct hook_answer *items;
    size_t len;
    const char *failed_hook; /* the first blocking hook that failed, NULL: none */
    const char *failure;
};

/* True when some hook is told of this event: what only hooks need is not computed else. */
bool hooks_watch (const struct session *s, enum hook_event_kind kind);
/* Tells every hook of the event. <honoured>: the arm that counts (HOOK_NONE: none does). <t> may be
 * NULL outside a task. */
void hooks_tell (struct session *s, struct running_task *t, const struct hook_event *event,
                 enum hook_arm honoured, struct arena *arena, struct hook_answers *out);
