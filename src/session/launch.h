/* SPDX-License-Identifier: Apache-2.0
 *
 * Launching a staged session and seeing it to its end (docs/spec/session.md 4, 7, 15).
 *
 * Always true: on every return the runtime directory and the running record are gone; the trace of
 * an agent ends with session_end unless it could not be opened.
 */
#pragma once

#include "session/stage.h"

/* How a launch ended; the words of the status line. */
enum session_ending {
    ENDING_OK,
    ENDING_FAILED,
    ENDING_TRAPPED, /* script capsules */
    ENDING_MAX_TURNS,
    ENDING_SPEND_CEILING,
    ENDING_CANCELED,
    ENDING_NO_ANSWER, /* of a task; counts as completed for the launch */
    ENDING_DEADLINE,
    ENDING_FORMATION,
};

/* "ok", "failed", ... as the trace and the status line spell it. */
const char *session_ending_name (enum session_ending ending);

struct launch_options {
    /* Called once with the session announced: url "" for a script (whose run is over by then). */
    void (*announce) (void *ctx, struct session *s, const char *url);
    /* Called last, with the launch's ending: a line that stdout refuses still reaches the log. */
    void (*ended) (void *ctx, enum session_ending ending);
    void *ctx;
};

/* The event sequence of an announced agent, NULL of a script. Borrowed; lives as long as <s>. */
struct streams *session_streams (const struct session *s);

/* Answers, as the person at its terminal, what a task asks; <question_id> NULL: a tool's own
 * question. False with *why (owned, or NULL) when nobody waits for it, or it is no answer. */
bool session_answer (struct session *s, const char *task_id, const char *question_id,
                     const char *text, char **why);

struct launch_counts {
    uint64_t turns, input_tokens, output_tokens, duration_ms;
    bool was_interrupted; /* by Ctrl-C at its terminal */
    bool was_stopped;     /* by a signal that a program sent */
};
/* What the session has used, once its launch ended. */
struct launch_counts session_counts (const struct session *s);
const char *session_id_text (const struct session *s);

/* Takes nothing over. Returns true when the launch ended ok; else *err carries the code of the exit
 * and *ending the status word. */
bool session_launch (struct session *s, const struct launch_options *options,
                     enum session_ending *ending, struct mur_error **err);
