/* SPDX-License-Identifier: Apache-2.0
 *
 * One run of the harness, (docs/spec/session.md 6).
 *
 * Always true: a turn is what lies between two answers of tools; usage is attributed by growth and
 * never twice; once an ending is known no later event changes it.
 *
 * One attempt through a harness, from the version probe to harness_exit (docs/spec/session.md 6).
 *
 * The steps are the spec's, in its order. The loop lock is held throughout but for the waits.
 */
#pragma once

#include "engine/guest.h"
#include "fs/tree_changes.h"
#include "session/harness/bridge.h"
#include "session/harness/harness_child.h"
#include "session/model/stream_frames.h"
#include "session/state/outcome.h"
#include "session/state/running_task.h"

/* What ended the run; the names are harness_exit.cause. */
enum harness_cause {
    HARNESS_RUNS,
    HARNESS_TERMINAL, /* turn-end or turn-failed */
    HARNESS_EOF,
    HARNESS_MAX_TURNS,
    HARNESS_SPEND_CEILING,
    HARNESS_INACTIVITY,
    HARNESS_CANCELED,
    HARNESS_DRIVER_ERROR,
    HARNESS_KEY_REFUSED,
};

/* A call of the harness's that has no result yet. */
struct pending_call {
    char *id, *name, *input;
    uint64_t started_us;
};

/* What its harness was given the word for, by the call's id: hosts are open until its result. */
struct asked_call {
    char *id, *input_text;
    struct call_outcome outcome;
};

/* The turn that is open. */
struct harness_turn {
    bool is_open;
    bool is_told; /* to who watches: a turn streams before it opens */
    char *tool;   /* the first call of the turn */
    struct buf text;
    bool has_deltas, has_thinking_deltas; /* since the last whole text */
    bool has_shown_text;                  /* in this run */
};

/* How the run ended. */
struct harness_end {
    enum harness_cause cause;
    char *answer; /* of turn-end; NULL: none */
    bool has_failed;
    enum failure_kind failure;
    char *failure_text;
    bool failed_in_runtime; /* harness_failed.source */
    struct mur_error *error;
    struct spend_refusal refusal;
    bool was_interrupted;
};

struct rec_harness;
struct tape;

/* Where a run stands in what is kept of it, or served (harness_tape.h). */
struct harness_log {
    struct tape *tape;              /* NULL: nothing is kept */
    const struct rec_harness *then; /* NULL: it runs for real */
    size_t lines, told, words;      /* so far */
};

struct harness_run {
    struct session *session;
    struct running_task *task;
    struct guest *driver;
    struct harness_child child;
    struct bridge *bridge; /* NULL: nothing to offer */
    struct frames frames;
    struct process_plan plan;
    struct arena *arena;
    struct tree_look *before; /* the work folder; NULL: not looked at */
    struct {
        char *name, *path; /* below its parent, and whole; NULL: not made */
        int parent_fd;     /* open while name is not NULL */
    } files;
    char session_id[128]; /* handed over */
    bool is_resume;
    char *reported_id; /* NULL: the harness reported no session */
    bool did_work;

    struct harness_turn turn;
    struct process_usage seen, attributed;
    struct gateway_usage provider_began; /* what its provider had told before */
    struct pending_call *calls;
    size_t call_count, call_cap;
    struct {
        struct asked_call *items;
        size_t len, cap;
    } asked;

    struct harness_end end;
    struct harness_log log;
};

/* One attempt: a run of the harness. */
void harness_attempt_run (struct session *s, struct running_task *t);
