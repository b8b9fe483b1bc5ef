/* SPDX-License-Identifier: Apache-2.0
 *
 * What a driver of a harness process is written with: how the harness is started, what a line of
 * its output means, how its end is judged. The runtime runs the harness; the driver only says.
 *
 * Four functions are yours to write. One instance serves a whole run of the harness, so what a line
 * told may be kept in a static variable for the next one. Strings handed in are valid until the
 * function returns; strings handed to the functions below are copied.
 */
#ifndef MURMUR_PROCESS_H
#define MURMUR_PROCESS_H

#include "murmur_sdk.h"

/* --- What the harness is --- */

enum mur_interrupt {
    MUR_INTERRUPT_STDIN,  /* the plan's interrupt bytes on standard input */
    MUR_INTERRUPT_SIGNAL, /* SIGINT */
    MUR_INTERRUPT_NONE,
};

/* Lists end with NULL; a list that is NULL is empty. Everything lives as long as the component. */
struct mur_harness {
    const char *harness; /* the name that traces and messages use */
    const char *binary;  /* looked up on the person's PATH */
    const char *const *version_args;
    const char *const *tested_versions;
    enum mur_interrupt interrupt;
    const char *const
        *required_env; /* variables of the person's environment it cannot do without */
    bool streams_text; /* deltas come before each text */
    bool reports_usage;
};

/* Yours: fills what is not zero. */
void mur_process_describe (struct mur_harness *harness);

/* --- How it is started --- */

/* Where the session's tools are served to the harness, over MCP. */
struct mur_bridge {
    const char *server_name;
    const char *url;
    const char *bearer_token;
    const char *const *tool_names; /* ends with NULL */
};

struct mur_launch {
    const char *model; /* NULL: the harness's own choice */
    const char *system_prompt;
    const struct mur_json *config;   /* inference.driver.config; NULL: none */
    const struct mur_bridge *bridge; /* NULL: no tools */
    const char *session_id;          /* a new one's is proposed: the harness may tell another */
    bool is_resumed;
    const char *harness_version; /* as its version arguments printed it; NULL: unknown */
    const char *task;
};

struct mur_plan; /* the SDK's own; made with the functions below */

/* Yours: how the harness is run for this task. */
void mur_process_launch (const struct mur_launch *launch, struct mur_plan *plan);

/* `{files_dir}` in an argument or in a variable's value stands for the private folder of files. */
void mur_plan_arg (struct mur_plan *plan, const char *arg);
void mur_plan_env (struct mur_plan *plan, const char *name, const char *value);
/* A file below `{files_dir}`; `name` is relative. */
void mur_plan_file (struct mur_plan *plan, const char *name, const char *contents, size_t len);
/* What is written to standard input (NULL: nothing). `stays_open`: it is not closed behind that,
 * for an interrupt. */
void mur_plan_stdin (struct mur_plan *plan, const char *bytes, size_t len, bool stays_open);
void mur_plan_interrupt (struct mur_plan *plan, const char *bytes, size_t len);
/* The run cannot be: the sentence is the task's failure. */
void mur_plan_refuse (struct mur_plan *plan, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));

/* --- What it says --- */

/* Yours: one line of standard output, without its end; any number of the functions below, in
 * order. */
void mur_process_line (const char *line, size_t len);

/* `auth` says how the harness is paid for: "api-key", "subscription", "unknown". */
void mur_event_session (const char *id, const char *auth, const char *model);
/* A delta is shown at once; the whole text replaces the deltas before it. */
void mur_event_text_delta (const char *text);
void mur_event_text (const char *text);
void mur_event_thinking_delta (const char *text);
void mur_event_thinking (const char *text);
void mur_event_call_started (const char *id, const char *name);
void mur_event_call_bytes (const char *id, uint64_t total_bytes);
/* `input` is JSON, as the model wrote it. */
void mur_event_call (const char *id, const char *name, const char *input);
void mur_event_result (const char *id, const char *output, bool is_error);
void mur_event_retry (uint32_t attempt, const char *reason);
/* Cumulative for the run; -1 is not told. The cache counts stand beside `input`, `thinking` is
 * inside `output`. */
struct mur_process_usage {
    int64_t input;
    int64_t output;
    int64_t cache_read;
    int64_t cache_creation;
    int64_t thinking;
};
void mur_event_usage (const struct mur_process_usage *usage);
/* A line for the log alone. */
void mur_event_note (const char *text);
/* Bytes for the harness's standard input, of a plan that keeps it open: the answer to what it
 * asked. They travel as a note that begins with U+0002, which no other note does; what is asked
 * below as one that begins with U+0004. */
void mur_event_reply (const char *bytes, size_t len);
/* What tells it to stop from here on, in place of the plan's; likewise with U+0003. */
void mur_event_interrupt (const char *bytes, size_t len);

/* What the harness wants to do and waits for the word of. The rules of the capsule's approvals
 * decide whether a person is asked; with `is_asked_anyway` one is asked even where no rule speaks
 * of it, else it is then allowed. The answer is written to the harness's standard input: `allow`,
 * or the two halves of `refuse` with the reason, as a JSON string, between them. Needs a plan that
 * keeps the input open. */
struct mur_permission {
    const char *id;      /* of the call; NULL: none */
    const char *tool;    /* as its calls are named */
    const char *input;   /* of the call, a JSON object; NULL: nothing is known of it */
    const char *command; /* the line of a shell that it would run; NULL: it is no command */
    bool only_reads;
    bool is_asked_anyway;
    const char *allow;
    const char *refuse[2];
};
void mur_event_permission (const struct mur_permission *permission);

/* What the harness's model wants to know of a person. `answer` has one text more than there are
 * questions: the answers, as JSON strings, go between them. */
struct mur_question {
    const char *text;
    const char *const *options; /* ends with NULL; NULL: none are offered */
};
void mur_event_questions (const struct mur_question *questions, size_t count,
                          const char *const *answer, const char *const refuse[2]);

enum mur_turn_failure {
    MUR_TURN_AUTH,
    MUR_TURN_QUOTA,
    MUR_TURN_MAX_TURNS,
    MUR_TURN_CANCELED,
    MUR_TURN_HARNESS_ERROR,
    MUR_TURN_OTHER,
};

/* The end of the run, by the harness's own word: the answer, or why there is none. */
void mur_event_turn_end (const char *answer);
void mur_event_turn_failed (enum mur_turn_failure kind, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));

/* --- How it ended --- */

struct mur_exit {
    int code;   /* -1: none */
    int signal; /* 0: none */
    const char *stderr_tail;
    bool is_interrupted;
    bool saw_terminal; /* a line already told the end */
};

/* Yours: exactly one of the two functions above. Nothing told is a failure with what is known of
 * the exit; an interrupted run without an end is canceled whatever is told. */
void mur_process_exit (const struct mur_exit *exit);

#endif
