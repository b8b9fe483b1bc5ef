/* SPDX-License-Identifier: Apache-2.0
 *
 * Delegating: from the question to mur-roost to a child that holds its task, and for a step of a
 * plan on to the child's answer (docs/spec/spawn.md A1-A4, A14, A19, A22).
 *
 * Always true: whatever fails after the child's process was started ends and reaps it before the
 * call returns; no token is in any text; one `delegation` line is traced for each call, by whoever
 * sees its end.
 *
 * The order is the specification's (docs/spec/spawn.md A1): the approval before anything is made,
 * the child's declarations before its process, the trace line before the task.
 */
#pragma once

#include "session/state/session.h"

enum delegate_status {
    DELEGATE_STARTED,   /* delegate_start: the child holds its task */
    DELEGATE_COMPLETED, /* delegate_wait: output is its answer */
    DELEGATE_TIMED_OUT, /* delegate_wait: not within lifecycle.delegation_deadline_secs */
    DELEGATE_CANCELED,  /* the call was cancelled; no child is left */
    DELEGATE_FAILED,    /* approved, but not launched, not handed its task, or its task failed */
    DELEGATE_REFUSED,   /* mur-roost said no: output is its sentence */
};

/* "started" ... "refused". */
const char *delegate_status_name (enum delegate_status status);

/* Borrowed for the call. */
struct delegate_ask {
    const char *capsule; /* the bare part of an entry of spawn.allow; any other name goes to
                            mur-roost as it is, which refuses it */
    const char *version; /* exact */
    const char *task;
    const struct task *running; /* the task on whose behalf */
    struct cancel *cancel;
};

/* Strings are owned; NULL where there is none. */
struct delegate_result {
    enum delegate_status status;
    char *delegation_id;
    char *session_id; /* the child's */
    char *capsule;    /* bare */
    char *version;
    char *child_workdir; /* started: absolute */
    char *output;        /* everything but started: the answer, or what went wrong */
};

void delegate_result_clear (struct delegate_result *r);
#define _cleanup_delegate_result_ _cleanup_ (delegate_result_clear)
/* What the model reads of it: {capsule, delegation_id, session_id, status, version} and
 * child_workdir or output. Compact, keys sorted. Owned. */
char *delegate_result_json (const struct delegate_result *r);

/* Returns once the child holds its task, or why it does not. A started child is one of the
 * session's delegations (delegations.h), which hears of its end. */
void
delegate_start (struct session *s, const struct delegate_ask *ask, struct delegate_result *out);
