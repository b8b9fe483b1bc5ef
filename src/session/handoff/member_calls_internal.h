/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls of a task, as those who make them and those who close them share them.
 */
#pragma once

#include "base/ids.h"
#include "session/handoff/member_offer.h"

#define BELOW_MAX 8

struct member_call {
    struct member_calls *set;
    struct id id;
    const char *task_id; /* of the calling task; borrowed from the registry */
    char *member, *text;
    struct member_line line;
    uint64_t started_ms; /* monotonic */
    pthread_t thread;
    struct cancel *stop;    /* its thread is to wait and poll no longer */
    struct cancel *hang_up; /* not even for an offer in flight */
    /* Guarded by the set's lock. */
    enum member_call_status status;
    bool is_answered;  /* the first offer came to "held" or "busy" */
    bool is_in_flight; /* an offer is under way */
    bool is_abandoned;
    bool has_ended;
    char *member_task_id;
    char *output;
    bool is_truncated;
    uint64_t ended_ms;
    json_t *below;
};

struct member_calls {
    struct session *session;
    pthread_mutex_t lock; /* a leaf but for the trace */
    pthread_cond_t changed;
    struct member_call **items; /* in the order they were made */
    size_t len, cap;
    uint64_t news;
    uint64_t bound_ms;
    json_t *below; /* the task loop's: what was not answered in the running task */
};

void member_call_free (struct member_call *c);
void member_calls_remove (struct member_calls *set, struct member_call *c);
void member_call_trace (struct member_calls *set, const struct member_call *c, bool is_delivered);
/* Remembers what this call, or one below it, left unanswered. */
void member_calls_note_below (struct member_calls *set, const struct member_call *c);
