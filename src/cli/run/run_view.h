/* SPDX-License-Identifier: Apache-2.0
 *
 * What `mur run` shows of its own session while it runs: the live view of `mur watch` on a
 * terminal, the answer alone for --print, and how a provider's retries go on in either.
 *
 * Always true: a thread of its own writes, so a slow reader never holds the session up; what stdout
 * carries without a terminal and without --print is written elsewhere and stays as it was. What a
 * task asks is asked at the terminal too, and taken from whoever answers first.
 */
#pragma once

#include "session/launch.h"

enum run_view_mode {
    RUN_VIEW_NONE,
    RUN_VIEW_ASKS,   /* nothing but what a task asks, a line on stderr; so do the two below */
    RUN_VIEW_ANSWER, /* answers on a terminal's stdout, nothing else (--quiet) */
    RUN_VIEW_PRINT,  /* --print: the answer on stdout, notices on a terminal's stderr */
    RUN_VIEW_LIVE,   /* everything, on a terminal's stdout */
};

struct run_view_style {
    enum run_view_mode mode;
    bool has_task;       /* the launch has a task of its own: only its answer is printed */
    bool is_json;        /* --print: kept for run_view_print_result instead of printed */
    bool awaits_another; /* nothing goes on before somebody watches at the door */
};

struct run_view;

/* Follows the events of an announced session. NULL when there is nothing to show. */
struct run_view *run_view_start (const struct run_view_style *style, struct session *s);
/* Shows what is still to be shown and stops. Before the session is freed; NULL does nothing. */
void run_view_stop (struct run_view *v);
/* --print --json, after run_view_stop: one object, keys in name order, with the answer of the first
 * task, if it gave one. */
void run_view_print_result (const struct run_view *v, const struct launch_counts *counts,
                            const char *session_id, enum session_ending ending);
void run_view_free (struct run_view *v);
DEFINE_CLEANUP (struct run_view, run_view_free)
