/* SPDX-License-Identifier: Apache-2.0
 *
 * The task that runs now: what is carried from turn to turn and from attempt to attempt
 * (docs/spec/session.md 4.5).
 *
 * Touched by the task loop's thread alone; the door sees a task only through the
 * registry.
 */
#pragma once

#include "host/process_driver.h"
#include "session/conversation/conversation.h"
#include "session/state/driver.h"
#include "session/state/spend.h"

struct session;
struct asked_client;

/* How an attempt ended. */
enum attempt_ending {
    ATTEMPT_OK,
    ATTEMPT_FAILED,
    ATTEMPT_MAX_TURNS,
    ATTEMPT_SPEND_CEILING,
    ATTEMPT_CANCELED,
    ATTEMPT_NO_ANSWER,
    ATTEMPT_REOPEN_BUDGET, /* a hook wanted another attempt and there was none left */
};

/* What an attempt that begins anew is told beside the task (restart.h), in this order. */
enum restart_section {
    RESTART_REOPEN,
    RESTART_MEMBERS,
    RESTART_DELEGATIONS,
    RESTART_CHECK,
    RESTART_SECTIONS,
};

/* What the done check has come to. */
struct done_check_state {
    uint64_t runs, reopens;
    bool is_met;            /* the last run passed */
    const char *stopped_by; /* NULL: nothing did */
};

/* Counters of task_end. */
struct task_counts {
    uint64_t turns, input_tokens, output_tokens, tool_calls, shell_calls;
    uint64_t reopens;
    uint64_t hook_calls;    /* completions hooks asked for: they count toward max_turns */
    uint64_t continuations; /* rounds of outcomes that were handed in */
    uint64_t kept_working;
};

/* How full the context is. */
struct context_occupancy {
    /* The last count a provider gave, for which choice, and how many messages of the list it
     * covers. */
    bool has_provider_count;
    const struct choice *provider_choice;
    uint64_t provider_count;
    size_t provider_len;

    uint64_t tokens; /* after the last response */
    bool is_actual;
    bool is_known;
    bool has_compacted; /* since the last call */
};

/* What the driver's side holds of the conversation. */
struct held {
    char *continuation_id;                    /* NULL: none */
    const struct choice *continuation_choice; /* whose side holds it */
    size_t acknowledged;                      /* messages it holds */
};

/* How the present attempt ended; begins empty with each. */
struct attempt_end {
    enum attempt_ending ending;
    char *result;            /* text of out/result.txt, NULL: not written */
    char *response;          /* the answer, for the door's artifact */
    char *reason;            /* of a failure, for the status message */
    const char *cause;       /* task_failed.cause, NULL: no line was written yet */
    bool has_failed_line;    /* task_failed is in the trace */
    struct mur_error *error; /* an error returned by the loop itself: its code is the exit's */
    const char *cancel_phase;
    const char *wait_phase; /* the wait that first saw the cancel, NULL: none did */
    bool input_timed_out;   /* request-input ran into lifecycle.input_timeout_secs */
    bool is_spared;         /* the deadline cut the attempt, but an earlier answer stands */
};

/* What makes an answer go on, and what the next attempt is told. */
struct onward {
    bool is_continuing;                /* the next attempt goes on with the list */
    char *continuation_text;           /* what the next attempt is told; NULL: it begins anew */
    char *standing_answer;             /* of an earlier turn end; NULL: none */
    const char **continued_stopped_by; /* of what continued the task last; NULL: nothing has */
    const char *keep_working_stopped_by;
    struct done_check_state done_check;
    char *original_text;                   /* of the task, once it was rewritten */
    struct buf sections[RESTART_SECTIONS]; /* what was said for attempts that began anew */
    size_t fenced_len;     /* how much of task.md the fence of an untrusted task holds; 0: all */
    bool was_path_refused; /* the latch decided an ending: nothing may reopen it */
    char *declined;        /* why there will be no answer; NULL: there may be one */
};

/* A ceiling that refused a completion a hook asked for. */
struct hook_refusal {
    bool is_refused;
    struct spend_refusal why;
};

/* transport: process. */
struct task_harness {
    char *session;                /* that did something in this task; NULL: none */
    uint64_t used[USAGE_MEMBERS]; /* by that session in all, where it counts so */
    bool has_forgotten;           /* the request to forget the session is spent */
    char *status_note;            /* added to the status of a cancelled task; NULL: nothing */
};

struct running_task {
    const struct task *task; /* the registry's */
    struct cancel *cancel;   /* raised with the task's own, and alone when the deadline spares a
                                standing answer */
    const struct asked_client
        *client;         /* whose call it is, and who is asked; NULL: its own person */
    bool is_fenced;      /* its text is untrusted */
    uint64_t started_ms; /* monotonic */

    struct call_choice choice; /* of the present turn's call; before the first, what it would be */

    struct conversation *record;
    struct message_list list;
    struct message_list seed; /* what a hook put before the conversation, until it begins */
    char *task_message_id;    /* compaction never loses that one */
    struct mur_error *fatal;  /* ends the session: a refusal that could not be recorded */

    struct task_counts counts;
    struct context_occupancy occupancy;
    struct held held;
    struct attempt_end end;
    struct onward onward;
    struct hook_refusal refusal;
    struct task_harness harness;
};
