/* SPDX-License-Identifier: Apache-2.0
 *
 * The task registry: every task of a session, its state, its ending, and who waits for what
 * (spec/door.md 5.3, 6, 9, 20). The seam between the door, which routes messages in, and the task
 * loop of session/, which takes tasks out and ends them.
 *
 * Threads: door handlers and the task loop call from their own; one lock (base/locks.h: registry)
 * decides everything. Always true: a recorded `canceled` wins over what the loop reports later; a
 * task has one ending, ever; what was refused was never stored; a task is visible to exactly the
 * callers door.md 6.3 names.
 */
#pragma once

#include "base/buf.h"
#include "base/cancel.h"
#include "base/ids.h"
#include "manifest/capsule/capsule.h" /* enum task_acceptance */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum task_state {
    TASK_SUBMITTED,
    TASK_WORKING,
    TASK_INPUT_REQUIRED,
    TASK_COMPLETED,
    TASK_FAILED,
    TASK_CANCELED,
    TASK_REJECTED,
};

/* "submitted" ... and "TASK_STATE_SUBMITTED" .... Static storage. */
const char *task_state_word (enum task_state state);
const char *task_state_wire (enum task_state state);
bool task_state_is_terminal (enum task_state state);

enum task_origin {
    ORIGIN_USER, /* the launch's own */
    ORIGIN_PEER,
    ORIGIN_EVENT,
    ORIGIN_SCHEDULE,
    ORIGIN_COMPLETION,
    ORIGIN_SYSTEM,
};
const char *task_origin_name (enum task_origin origin);

/* One task on its way to or through the loop. Owned by the registry; what the loop holds stays
 * valid until registry_free. The loop may read these fields without the lock: they never change. */
struct task {
    char *id;         /* tsk_... */
    char *context_id; /* as sent, or ctx_... */
    char *text; /* what the agent reads, references rendered in; NULL for the launch's own (task.md
                   is there) */
    char *message_id; /* of the message that began it; NULL for the launch's own */
    char *owner;      /* credential that started it; NULL = none */
    char *caller_member;
    char *traceparent;       /* from the caller; NULL */
    char *source;            /* "task_md", "a2a", ...: as task_start names it */
    size_t parts_bytes;      /* of the message's parts, as the agent reads them */
    bool has_text, has_data; /* kinds of its parts */
    struct strv references;  /* referenceTaskIds */
    enum task_origin origin;
    bool is_trusted;
    bool forgets_session;
    uint64_t received_ms;  /* Unix */
    struct cancel *cancel; /* raised once when the task is to stop */
};

struct registry;
struct streams; /* door/streams.h */

struct registry_spec {
    enum task_acceptance acceptance;
    unsigned queue_depth;
    bool is_public;   /* no door authentication: every caller sees every task */
    bool is_threaded; /* lifecycle.conversation: what connection-ack says */
};

struct registry *registry_new (const struct registry_spec *spec);
/* The session's event sequence: where the loop writes frames. Borrowed. */
struct streams *registry_streams (struct registry *r);
void registry_free (struct registry *r);
DEFINE_CLEANUP (struct registry, registry_free)

/* --- the task loop's side (session/) --- */

struct task_intake {
    const char *id;         /* minted by the caller; NULL: here */
    const char *context_id; /* NULL: a new ctx_ */
    const char *text;       /* may be NULL for the launch's own */
    const char *source;     /* "task_md" */
    enum task_origin origin;
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

/* Records the active task's ending: one lock for state and ending; generation +1. An earlier
 * `canceled` stays. Returns the state that stands. */
enum task_state
registry_end (struct registry *r, const struct task *task, const struct task_ending *ending);

/* input-required: stores the prompt and waits for the reply (owned), NULL when cancelled, timed out
 * (*timed_out) or the task is not the active working one. timeout_ms UINT64_MAX: none. */
char *registry_request_input (struct registry *r, const struct task *task, const char *prompt,
                              uint64_t timeout_ms, bool *timed_out);

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

/* --- the door's side --- */

/* Who asks: what door.md 6.3 decides on. */
struct caller {
    const char *credential; /* NULL on a public door; "operator"; a credential's name */
    const char *member;     /* formation member, or NULL */
};

struct message_intake {
    const char *task_id;    /* NULL: a new task */
    const char *context_id; /* NULL: not given */
    const char *text;
    const char *message_id;
    const char *traceparent;
    const struct strv *references;
    bool has_text, has_data; /* kinds of its parts */
    enum task_origin origin;
    bool is_trusted;
    bool forgets_session;
};

enum route_outcome {
    ROUTE_NEW,             /* stored and queued */
    ROUTE_CONTINUED,       /* delivered to the waiter of an input-required task */
    ROUTE_BUSY,            /* a rejected task that was never stored */
    ROUTE_NOT_FOUND,       /* unknown or hidden */
    ROUTE_NOT_WAITING,     /* ended, submitted or working: *state */
    ROUTE_CONTEXT_DIFFERS, /* input-required, another context: *context is the task's (owned) */
};

struct route_result {
    enum route_outcome outcome;
    json_t *task; /* the task object as routed (NEW, CONTINUED, BUSY); owned */
    char id[ID_LEN + 1];
    enum task_state state;
    char *context;
};
void route_result_clear (struct route_result *r);

/* Routes one message: one lock for the whole decision. */
void registry_route (struct registry *r, const struct caller *caller,
                     const struct message_intake *message, struct route_result *out);

/* The task object (door.md 6.2) as GetTask answers; NULL when unknown or hidden. *is_settled (may
 * be NULL): terminal with its ending recorded, or input-required. */
json_t *registry_task_json (struct registry *r, const struct caller *caller, const char *task_id,
                            bool *is_settled, enum task_state *state);

/* Calls fn once, under the registry's lock, with the task object (owned by fn) as soon as the task
 * is settled: at once when it is already. False (fn never called) when the task is unknown or
 * hidden. fn may only answer a held exchange. */
typedef void registry_settled_fn (void *ctx, json_t *task);
bool registry_when_settled (struct registry *r, const struct caller *caller, const char *task_id,
                            registry_settled_fn *fn, void *ctx);
/* The door is closing: everybody who waits is answered with the task as it stands. */
void registry_settle_waiters (struct registry *r);

struct list_query {
    const char *context_id; /* NULL: all */
    bool has_state;
    bool matches_nothing; /* TASK_STATE_AUTH_REQUIRED */
    enum task_state state;
    unsigned page_size;
    bool has_cursor;
    uint64_t cursor_revision;
    const char *cursor_task_id;
    bool has_after;
    uint64_t after_ms;
    bool includes_artifacts;
};
/* The result object of ListTasks; owned. */
json_t *registry_list_json (struct registry *r, const struct caller *caller,
                            const struct list_query *query);

enum cancel_outcome {
    CANCEL_DONE,
    CANCEL_NOT_FOUND,
    CANCEL_ENDED, /* *state */
};
/* Records `canceled`, raises the task's cancel, gives a queued one's place back. *task (owned) =
 * the task as it is now. */
enum cancel_outcome registry_cancel (struct registry *r, const struct caller *caller,
                                     const char *task_id, json_t **task, enum task_state *state);
/* What is left running of a cancelled task, or of the session (NULL): an array, owned. */
json_t *registry_residue (const struct registry *r, const char *task_id);
/* Hands a completion to whoever awaits it; false: nobody does. */
bool registry_take_completion (const struct registry *r, const char *delegation_id);
