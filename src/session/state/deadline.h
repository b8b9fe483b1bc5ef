/* SPDX-License-Identifier: Apache-2.0
 *
 * The session's deadline: when it falls, how much is left, whether the notice is due
 * (docs/spec/session.md 13.3, 8.4).
 *
 * Enforced on the monotonic clock, counted from the start of the process; the wall clock only
 * prints `at`.
 */
#pragma once

#include "session/state/session.h"

struct deadline {
    bool is_set;
    bool is_inherited;
    uint64_t at_ms; /* monotonic */
    /* as declared; for an inherited one the whole seconds left at start, rounded up */
    uint64_t secs;
    uint64_t notice_secs; /* 0: no notice */
    char at_text[25];     /* RFC 3339 UTC, whole seconds */
    bool notice_is_given; /* once a session */
};

/* The earlier of the own and the inherited one; the inherited one on a tie. */
void deadline_fill (const struct session *s, struct deadline *out);
/* Milliseconds left; UINT64_MAX without a deadline, 0 once it passed. */
uint64_t deadline_left_ms (const struct deadline *d);
/* session_start.deadline as JSON text, or NULL. Owned. */
char *deadline_json (const struct deadline *d);
/* Appends the notice line to a dispatched tool result, once a session, and traces it. */
void deadline_give_notice (struct session *s, const char *tool_name, const char *task_id,
                           struct buf *text);
