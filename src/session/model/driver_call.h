/* SPDX-License-Identifier: Apache-2.0
 *
 * One inference call: attempts, retries and spend, until there is a response or a failure
 * (docs/spec/session.md 5.2 steps 5-8, 5.7).
 *
 * Always true: nothing is sent without an admission; what a dropped or failed attempt costs is
 * settled before this returns; a text that can quote the provider is redacted before it is kept.
 */
#pragma once

#include "host/tool.h"
#include "session/conversation/request.h"
#include "session/state/running_task.h"
#include "trace/lines/writer.h"

struct usage {
    struct trace_num input, output, cached, cache_write, thinking;
};

enum driver_outcome {
    DRIVER_RESPONSE, /* body is a usable response */
    DRIVER_CANCELED,
    DRIVER_SPEND_REFUSED,
    DRIVER_FAILED,    /* status not passed, or stop_reason error: cause, reason */
    DRIVER_MALFORMED, /* passed, but no JSON: error */
    DRIVER_NOT_RUN,   /* the driver could not run: error */
};

struct driver_answer {
    enum driver_outcome outcome;
    json_t *body; /* the response, or of a failed call what it said */
    char *text;   /* raw response body */
    size_t text_len;
    uint64_t tokens;       /* the runtime's count of it */
    char *continuation_id; /* NULL: none */
    bool has_streamed;     /* text was shown while it ran */
    struct usage usage;
    bool has_report;   /* usage has input and output */
    const char *cause; /* "driver_error", "credential_rejected" */
    char *reason;      /* redacted */
    char *retry_note;  /* " (3 attempts; retry stopped: max_retries)", NULL when not retried */
    int provider_status;
    uint32_t attempts;
    const char *retry_stopped;
    struct mur_error *error;
    struct spend_refusal refusal;
};

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
};

/* Calls the driver with this request until it answers. <estimate> is the request's token estimate.
 * One call is in flight at a time: another caller waits for its end. */
void driver_call_as (struct session *s, const struct driver_caller *caller, const char *request,
                     size_t len, uint64_t estimate, struct driver_answer *out);
/* The same as the agent loop, with the choice of this turn. */
void driver_call (struct session *s, struct running_task *t, const char *request, size_t len,
                  uint64_t estimate, struct driver_answer *out);
void driver_answer_clear (struct driver_answer *a);
#define _cleanup_answer_ _cleanup_ (driver_answer_clear)
