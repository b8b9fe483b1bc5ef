/* SPDX-License-Identifier: Apache-2.0
 *
 * One session as a list shows it: what its records say, and while it runs what its door says.
 *
 * Not thread-safe: whoever holds a list of them has the lock.
 */
#pragma once

#include "cli/running/token_tally.h"
#include "cli/ui/ui_follow.h"
#include "home/running.h"

struct ui_session {
    char *id, *work_root, *records_dir, *trace_path;
    json_t *start;       /* what of session_start is shown; NULL: not read yet */
    json_t *end;         /* session_end; NULL: not read, or there is none */
    bool is_read;        /* both were looked for */
    bool is_provisional; /* start is of the running record: the trace had no line yet */
    /* While it runs. */
    struct ui_live {
        bool is_running, answers;
        char *url;
        struct secret *token;
        struct ui_follow *follow;
        struct token_tally tally;
        json_t *tasks; /* those that are not over: {id, state, question} */
        int64_t seen_bytes;
        int watch;            /* of its trace; -1: none */
        uint64_t ask_at_ms;   /* not asked again before this */
        uint64_t again_at_ms; /* not followed again before this */
    } live;
};

struct ui_session *ui_session_new (const char *id, const char *work_root, const char *records_dir);
void ui_session_free (struct ui_session *s);
/* It runs: what its record says, and its door is followed. */
void ui_session_begin (struct ui_session *s, const struct running_record *record,
                       struct ui_follow_spec *follow);
/* It does not any more. */
void ui_session_over (struct ui_session *s);
/* Takes in the tasks as its door lists them; NULL: it did not answer. */
void ui_session_take_tasks (struct ui_session *s, const json_t *tasks);
/* The row of the list. Owned. */
json_t *ui_session_json (struct ui_session *s);
