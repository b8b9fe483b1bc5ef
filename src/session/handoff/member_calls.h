/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls a running task has made to other members of its formation: which are out, which were
 * answered, how each ends (docs/spec/spawn.md C8, docs/spec/door.md 14).
 *
 * Threads: one a call offers and polls; the task loop owns the set. Always true: one call to a
 * member at a time; a call leaves exactly one `member_call` line; no real address or token is in a
 * text or a line.
 */
#pragma once

#include "session/state/running_task.h"

struct member_calls;

/* NULL when the session may call nobody. */
struct member_calls *member_calls_new (struct session *s);
/* W-RUN-008, where its own allow list lets a member that may call others reach no door of this
 * machine. */
void member_calls_warn_network (const struct session *s);
/* With no call out. NULL is fine. */
void member_calls_free (struct member_calls *set);

enum member_call_status {
    MEMBER_CALL_STARTED, /* the member holds its task */
    MEMBER_CALL_BUSY,    /* it will be offered again */
    MEMBER_CALL_COMPLETED,
    MEMBER_CALL_FAILED,
    MEMBER_CALL_CANCELED,
    MEMBER_CALL_REJECTED,
    MEMBER_CALL_TIMED_OUT,
    MEMBER_CALL_UNREACHABLE,
    MEMBER_CALL_ABANDONED,
    MEMBER_CALL_NO_ANSWER,
};
const char *member_call_status_name (enum member_call_status status);

/* What the first offer came to. Strings are owned. */
struct member_call_result {
    enum member_call_status status;
    bool was_canceled; /* the caller's task was stopped meanwhile */
    char *call_id;
    char *task_id; /* started */
    char *output;  /* everything else */
};
void member_call_result_clear (struct member_call_result *r);

/* Why this member cannot be called now (owned), or NULL: nothing was sent. */
char *
member_calls_refusal (struct member_calls *set, const struct running_task *t, const char *member);
/* Offers the task and returns with what came of that: NULL, or why nothing was sent (owned). */
char *member_calls_make (struct member_calls *set, struct running_task *t, const char *member,
                         const char *task, struct member_call_result *out);
/* Calls that are out, or answered and not delivered yet. */
size_t member_calls_count (struct member_calls *set);

/* [{member, status}] of what the running task did not get answered, at most 8; NULL: nothing.
 * Forgets it. */
json_t *member_calls_take_below (struct member_calls *set);
