/* SPDX-License-Identifier: Apache-2.0
 *
 * Compaction: hooks replace the conversation's context when it outgrows the input budget
 * (docs/spec/session.md 11.5).
 *
 * Always true: the task's message is never lost; a context whose calls and results do not pair is
 * never sent; what cannot be replaced is kept as it was.
 */
#pragma once

#include "session/hooks/hooks.h"
#include "session/state/running_task.h"

enum compaction_end {
    COMPACTION_NONE, /* not due, or the context is kept */
    COMPACTION_DONE,
    COMPACTION_FAILED,  /* the attempt has failed */
    COMPACTION_REFUSED, /* a spend ceiling refused the hook's own call: t->refusal */
};

/* Step 14: the prompt file and the limits of compaction calls. E-RUN-009, E-RUN-054, E-RUN-055. */
bool stage_compaction (struct session *s, struct mur_error **err);

/* After a response: compacts when the threshold is passed. */
enum compaction_end compaction_after_turn (struct session *s, struct running_task *t,
                                           struct request *request, uint64_t turn);
/* Before the task's message of a session resumed with --resume-mode compact. */
enum compaction_end compaction_on_resume (struct session *s, struct running_task *t);
/* What hooks make of these messages: the first replacement. <out> is empty without one. False: a
 * hook failed (*failed_hook, *failure in the arena). */
bool compaction_ask (struct session *s, struct running_task *t, const struct message_list *list,
                     uint64_t tokens, struct arena *arena, struct hook_messages *out,
                     const char **failed_hook, const char **failure);
