/* SPDX-License-Identifier: Apache-2.0
 *
 * The tasks of a session: all there ever were, in one registry (spec/door.md 5.3, 6, 9, 20).
 *
 * Two sides work on it: messages are routed in by the door (registry.h), and tasks are taken out
 * and ended by the task loop (intake.h).
 *
 * Threads: both sides call from their own; one lock (base/locks.h: registry) decides everything.
 * Always true: a recorded `canceled` wins over what the loop reports later; a task has one ending,
 * ever; what was refused was never stored.
 */
#pragma once

#include "base/buf.h"
#include "base/cancel.h"
#include "manifest/capsule/capsule.h" /* enum task_acceptance */

#include <stdbool.h>
#include <stdint.h>

enum task_origin {
    ORIGIN_USER, /* the launch's own */
    ORIGIN_PEER,
    ORIGIN_EVENT,
    ORIGIN_SCHEDULE,
    ORIGIN_COMPLETION,
    ORIGIN_SYSTEM,
};
const char *task_origin_name (enum task_origin origin);

/* One task on its way to or through the loop. Owned by the registry; what the loop was handed stays
 * valid until it asks for the next one. The loop may read these fields without the lock: they never
 * change. */
struct task {
    char *id;         /* tsk_... */
    char *context_id; /* as sent, or ctx_... */
    char *text; /* what the agent reads, references rendered in; NULL for the launch's own (task.md
                   is there) */
    char *message_id; /* of the message that began it; NULL for the launch's own */
    char *owner;      /* credential that started it; NULL = none */
    char *caller_member;
    char *traceparent;      /* from the caller; NULL */
    char *source;           /* "task_md", "a2a", ...: as task_start names it */
    size_t parts_bytes;     /* of the message's parts, as the agent reads them */
    char *part_kinds;       /* a letter for each part: 't' text, 'd' data; NULL: none */
    struct strv references; /* referenceTaskIds */
    enum task_origin origin;
    bool is_trusted;
    bool forgets_session;
    bool has_made_context; /* nobody named its context: the door made it */
    uint64_t received_ms;  /* Unix */
    struct cancel *cancel; /* raised once when the task is to stop */
};

struct registry;
struct streams;

struct task;

struct registry_spec {
    enum task_acceptance acceptance;
    unsigned queue_depth;
    bool is_public;   /* no door authentication: every caller sees every task */
    bool is_threaded; /* lifecycle.conversation: what connection-ack says */
    /* Puts a message's task on record before its sender is answered; false refuses it. Called
     * under the registry's lock. NULL: nothing is recorded. */
    bool (*record) (void *ctx, const struct task *task);
    /* Likewise a message that resumes a waiting task. NULL: not recorded. */
    void (*record_reply) (void *ctx, const char *task_id, const char *message_id,
                          const char *traceparent);
    void *record_ctx;
    /* A directory of the session's, borrowed, where tasks that ended long ago go. */
    bool has_records;
    int records_fd;
};

struct registry *registry_new (const struct registry_spec *spec);
/* The session's event sequence: where the loop writes frames. Borrowed. */
struct streams *registry_streams (struct registry *r);
void registry_free (struct registry *r);
DEFINE_CLEANUP (struct registry, registry_free)
