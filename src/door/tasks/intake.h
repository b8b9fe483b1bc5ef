/* SPDX-License-Identifier: Apache-2.0
 *
 * The task loop's side of a session's tasks: which one is next, how it ended, what is closed.
 */
#pragma once

#include "door/tasks/question.h"
#include "door/tasks/task_state.h"
#include "door/tasks/tasks.h"

#include <jansson.h>

struct task_intake {
    const char *id;         /* minted by the caller; NULL: here */
    const char *context_id; /* NULL: a new ctx_ */
    const char *text;       /* may be NULL for the launch's own */
    const char *source;     /* "task_md" */
    enum task_origin origin;
    size_t parts_bytes; /* of the message it was, when it was one */
    bool is_trusted;
    bool forgets_session;
};

/* Enqueues the launch's own task or a report of the runtime: bypasses acceptance, counts as
 * pending, has no owner. NULL once the registry is closed. */
const struct task *registry_enqueue (struct registry *r, const struct task_intake *intake);

enum registry_next {
    REGISTRY_TASK,            /* *task is the one to run; it is the active one and `working` now */
    REGISTRY_CANCELED_QUEUED, /* *task was cancelled while queued: its terminal status was streamed
                                 now; trace it, run nothing */
    REGISTRY_NOTHING,         /* nothing came within the wait */
    REGISTRY_INTERRUPTED,     /* registry_interrupt was called */
    REGISTRY_POKED,           /* registry_poke was called: look at what you hold, come again */
};

/* Takes the next task: lane user, peer, bg; FIFO inside. Waits up to wait_ms for one (UINT64_MAX:
 * without bound). */
enum registry_next registry_next (struct registry *r, uint64_t wait_ms, const struct task **task);
/* Makes a waiting registry_next return, now and from now on, whatever is queued (termination). */
void registry_interrupt (struct registry *r);
/* Makes a waiting registry_next, or the next one, return REGISTRY_POKED once. */
void registry_poke (struct registry *r);

struct task_ending {
    enum task_state state;   /* COMPLETED or FAILED; CANCELED when the loop saw the cancel */
    const char *status_text; /* "task completed", "task failed (driver_error): ..."; NULL: the
                                state's own text */
    const char *response;    /* the answer of a completed task; NULL or "" = no artifact */
    json_t *metadata;        /* {"murmur": ...} content, borrowed; NULL = none */
};

/* Decides the active task's ending before it is told anywhere: a cancel that was accepted by now
 * wins, a later one is answered CANCEL_ENDED. Returns the state that stands; registry_end records
 * it. */
enum task_state
registry_settle (struct registry *r, const struct task *task, enum task_state state);

/* Records the active task's ending: one lock for state and ending; generation +1. An earlier
 * `canceled` stays. Returns the state that stands. */
enum task_state
registry_end (struct registry *r, const struct task *task, const struct task_ending *ending);
/* input-required: shows the question and waits for the reply. False when cancelled, timed out or
 * the task is not the active working one. timeout_ms UINT64_MAX: none. */
bool registry_ask (struct registry *r, const struct task *task, const struct question *question,
                   uint64_t timeout_ms, struct question_reply *reply);
/* True when somebody can be asked about the task: it is the active one. */
bool registry_can_ask (struct registry *r, const struct task *task);
/* Closes to new work under the enqueue lock. What was still queued becomes `rejected`; *tasks (free
 * the array only) lists it in order. <was_stopped> picks the text ("the session was stopped ..." or
 * "the session ended ..."). */
/* Tasks cancelled while queued are not among them: registry_next still hands those out (and never a
 * task to run). */
size_t registry_close (struct registry *r, bool was_stopped, const struct task ***tasks);
/* Cancels every live task, running and queued; returns their ids sorted (caller frees). */
void registry_cancel_all (struct registry *r, struct strv *ids);
/* What goes on beside the loop after its task was cancelled (door.md 7.5): appends one object for
 * each to <items>, of one task or of all (NULL). Called without the registry's lock, from the
 * door's thread; it must not wait. */
typedef void registry_residue_fn (void *ctx, const char *task_id, json_t *items);
void registry_set_residue (struct registry *r, registry_residue_fn *fn, void *ctx);
/* Who hears that a delegated child has ended (door.md 7.8): true when that delegation is awaited,
 * or was reported before. Called without the registry's lock, from the door's thread; it must not
 * wait. Set before the door serves. */
typedef bool registry_completion_fn (void *ctx, const char *delegation_id);
void registry_set_completions (struct registry *r, registry_completion_fn *fn, void *ctx);
bool registry_is_closed (struct registry *r);
uint64_t registry_generation (struct registry *r);
