/* SPDX-License-Identifier: Apache-2.0
 *
 * What both sides of a session's tasks work on: one entry a task, and the registry that holds them.
 *
 * Always true: every function here is called with the registry's lock held. A revision is taken
 * with each state and each ending, so the list by revision is the order in which things happened.
 */
#pragma once

#include "door/tasks/ended.h"
#include "door/tasks/intake.h"
#include "door/tasks/registry.h"
#include "door/tasks/streams.h"
#include "door/tasks/task_json.h"

#include <pthread.h>

#define ENDED_HELD    256
#define ENDED_HELD_MS (60 * 60 * 1000ull)

enum lane { LANE_USER, LANE_PEER, LANE_BACKGROUND, LANE_COUNT };

struct waiter {
    registry_settled_fn *fn;
    void *ctx;
    struct waiter *next;
};

struct task_entry {
    struct task task;
    struct task_view view; /* what the task object is made of */
    bool is_settled;       /* how it ends is decided, but not recorded yet: no cancel any more */
    enum task_state settled_as;
    bool has_ending;
    uint64_t revision;
    struct task_entry *newer, *older; /* by revision */
    struct task_entry *next_queued;
    bool is_queued;
    char *reply;                       /* the answer to an input-required prompt */
    char *reply_by;                    /* who sent it: a credential, or NULL */
    struct strv answers;               /* ids of the messages that answered structured questions */
    char *answered_id, *answered_with; /* of the last such question; NULL: none yet */
    struct waiter *waiters;
};

struct registry {
    struct registry_spec spec;
    struct streams *streams;
    registry_completion_fn *take_completion;
    void *completion_ctx;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct task_entry **entries; /* by id: ids grow as they are minted */
    size_t len, cap;
    struct task_entry *newest, *oldest;
    struct task_entry *lanes[LANE_COUNT];
    struct task_entry *active;
    struct task_entry *handed; /* what the loop was given last: it reads it until the next */
    struct ended_tasks *ended; /* NULL: every task is held here for ever */
    size_t ended_held;         /* ended ones among the entries */
    unsigned waiting;          /* queued and not cancelled */
    bool has_run, is_closed, is_interrupted, is_poked;
    uint64_t revision;
    uint64_t generation;
    registry_residue_fn *residue; /* NULL: nothing can be left running */
    void *residue_ctx;
};

/* By id; NULL: no such task. */
struct task_entry *task_entry_find (struct registry *r, const char *id);
/* A new task, submitted, not queued yet. NULL for an id or context mints one. */
struct task_entry *task_entry_add (struct registry *r, enum task_origin origin, const char *id,
                                   const char *context_id);
/* Takes the newest away again, as if it had never been; it is not queued yet. */
void task_entry_drop_last (struct registry *r, struct task_entry *e);
/* At the end of its origin's lane. */
void task_entry_queue (struct registry *r, struct task_entry *e);
void task_entry_set_state (struct registry *r, struct task_entry *e, enum task_state state);
/* Whoever waits for it to settle is answered with what it is now. */
void task_entry_answer_waiters (struct task_entry *e);
/* The response, if there is one, and the one terminal status. */
void task_entry_stream_ending (struct registry *r, struct task_entry *e);
/* Records how it ended; the state is written already. The stream is told now, but of a task
 * cancelled while it is queued only when the loop comes to it. */
void task_entry_record_ending (struct registry *r, struct task_entry *e, const char *status_text,
                               const char *response, const json_t *metadata);
/* Puts what ended long ago on disk: more than ENDED_HELD ended tasks, or older ones than
 * ENDED_HELD_MS, are not held. Called where nobody but the loop looks at an entry. */
void task_entries_retire (struct registry *r);
/* True when a cancel comes too late; <*state> is what it ends or ended as. */
bool task_entry_is_over (const struct task_entry *e, enum task_state *state);
/* Under the lock. A queued task has stopped by being cancelled; a running one ends when the loop
 * says so. The caller raises the task's cancel once the lock is released: its listeners take locks
 * whose holders call registry_poke. */
void task_entry_cancel (struct registry *r, struct task_entry *e);
