/* SPDX-License-Identifier: Apache-2.0
 *
 * What a driver answered, read: the response or why there is none, its usage, and what it costs.
 */
#pragma once

#include "host/tool.h"
#include "session/state/spend.h"
#include "trace/lines/events.h"

#include <jansson.h>

struct session;

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

/* The object that the driver answered, or NULL. */
json_t *driver_answer_load (const char *text, size_t len);
/* Takes usage and whether it is a report from a body. */
void driver_answer_read_usage (const json_t *body, struct driver_answer *out);
/* Input tokens the provider counted, cached ones included. */
uint64_t usage_request (const struct usage *u);
/* Takes the text (over) of an answer that came and settles its cost: a response, or malformed.
 * <body> (taken over) may be NULL: it is read here. */
void driver_answer_take (struct session *s, char *text, size_t len, json_t *body, uint64_t estimate,
                         struct driver_answer *out);
void driver_answer_clear (struct driver_answer *a);
#define _cleanup_answer_ _cleanup_ (driver_answer_clear)
