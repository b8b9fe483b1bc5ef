/* SPDX-License-Identifier: Apache-2.0
 *
 * What is said between a member call and the callee's door: offering a task, asking after it,
 * cancelling it (docs/spec/door.md 14). See member_calls.h.
 */
#pragma once

#include "session/handoff/member_calls.h"

#define MEMBER_BUSY_TEXT "task rejected: capsule is busy" /* a constant of the protocol */

struct member_line {
    struct session *session;
    const char *member;
    const char *call_id;
    const char *trust; /* of the calling task */
    char *url;         /* the real door; owned by the call */
};

/* What one exchange came to; strings are owned. */
struct member_said {
    bool is_transport_failure; /* no answer to go by */
    enum member_call_status status;
    char *task_id; /* STARTED */
    char *text;    /* redacted: what the model may read */
    json_t *below; /* entries of metadata.murmur.noAnswerBelow, or NULL */
    bool is_open;  /* asking: it has not ended */
};
void member_said_clear (struct member_said *s);

/* Offer number <n>, from 1. */
void member_offer (const struct member_line *l, unsigned n, const char *task, struct cancel *cancel,
                   struct member_said *out);
void member_ask (const struct member_line *l, const char *task_id, struct cancel *cancel,
                 struct member_said *out);
/* Best effort. */
void member_cancel (const struct member_line *l, const char *task_id);
