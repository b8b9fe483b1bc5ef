/* SPDX-License-Identifier: Apache-2.0
 *
 * The door's side of a session's tasks: routing a message in, looking at tasks, cancelling them,
 * and who waits for what.
 *
 * Always true: a task is visible to exactly the callers spec/door.md 6.3 names, and one lock covers
 * each whole decision.
 */
#pragma once

#include "base/ids.h"
#include "door/tasks/task_state.h"
#include "door/tasks/tasks.h"

#include <jansson.h>

/* Who asks: what door.md 6.3 decides on. */
struct caller {
    const char *credential; /* NULL on a public door; "operator"; a credential's name */
    const char *member;     /* formation member, or NULL */
};

struct message_intake {
    const char *task_id;    /* NULL: a new task */
    const char *context_id; /* NULL: not given */
    const char *text;
    const json_t *data; /* of its first data part; NULL: none */
    const char *by;     /* who answers, when that is not the credential */
    const char *message_id;
    const char *traceparent;
    const struct strv *references;
    const char *part_kinds; /* a letter for each part: 't' text, 'd' data; NULL: none */
    enum task_origin origin;
    bool is_trusted;
    bool forgets_session;
};

enum route_outcome {
    ROUTE_NEW,             /* stored and queued */
    ROUTE_CONTINUED,       /* delivered to the waiter of an input-required task */
    ROUTE_NOT_RECORDED,    /* its record could not be written: it was not stored */
    ROUTE_BUSY,            /* a rejected task that was never stored */
    ROUTE_NOT_FOUND,       /* unknown or hidden */
    ROUTE_NOT_WAITING,     /* ended, submitted or working: *state */
    ROUTE_CONTEXT_DIFFERS, /* input-required, another context: *context is the task's (owned) */
    ROUTE_NO_ANSWER,       /* input-required, but this answers nothing that is open: *why */
};

struct route_result {
    enum route_outcome outcome;
    json_t *task; /* the task object as routed (NEW, CONTINUED, BUSY); owned */
    char id[ID_LEN + 1];
    enum task_state state;
    char *context;
    char *why; /* owned; NOT_WAITING: what became of the question it would answer, or NULL */
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
