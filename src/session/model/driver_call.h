/* SPDX-License-Identifier: Apache-2.0
 *
 * One inference call: attempts, retries and spend, until there is a response or a failure
 * (docs/spec/session.md 5.2 steps 5-8, 5.7).
 *
 * Always true: nothing is sent without an admission; what a dropped or failed attempt costs is
 * settled before this returns; a text that can quote the provider is redacted before it is kept.
 */
#pragma once

#include "session/conversation/request.h"
#include "session/model/driver_answer.h"
#include "session/state/running_task.h"

/* How this choice reads a conversation, asked for <model> (borrowed). */
struct request_reader
request_reader_of (const struct session *s, const struct choice *d, const char *model);

/* Who calls. */
struct driver_caller {
    const struct choice *driver;
    struct running_task *task; /* whose stream shows the call; NULL: it is silent */
    const char *origin;        /* "hook:<name>", NULL: the agent loop */
    const char *task_id;
    uint64_t turn;
    uint64_t output_cap;
    char *const *env;
    struct cancel *cancel;
    struct request *request;   /* built: what is sent */
    struct message_list *list; /* it was built of */
};

/* Calls the driver with the caller's request until it answers. <estimate> is the request's token
 * estimate. One call is in flight at a time: another caller waits for its end. */
void driver_call_as (struct session *s, const struct driver_caller *caller, uint64_t estimate,
                     struct driver_answer *out);
/* The same as the agent loop, with the choice of this turn. */
void driver_call (struct session *s, struct running_task *t, struct request *request,
                  uint64_t estimate, struct driver_answer *out);
