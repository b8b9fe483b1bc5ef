/* SPDX-License-Identifier: Apache-2.0
 *
 * The harness as a process: its pipes, its lines, its end (docs/spec/session.md 6 steps 7-10).
 *
 * Always true: its output is read while its input is written; a line and what is kept of stderr
 * are bounded; its process group is killed before its leader is reaped, so that nothing of it is
 * left and no other process is hit.
 */
#pragma once

#include "sandbox/run/bare_child.h"
#include "session/harness/harness.h"

#define HARNESS_LINE_MAX ((size_t)32 << 20)
#define HARNESS_TAIL_MAX 4096

struct harness_child {
    struct bare_child process;
    bool is_started, has_exited, is_reaped;
    int in_fd, out_fd, err_fd; /* -1 once closed */
    struct buf input;          /* not written yet */
    size_t input_at;
    bool closes_input; /* once it is written */
    struct buf output; /* not handed out yet */
    size_t output_at;
    size_t whole_lines; /* of it */
    struct buf errors;  /* the end of stderr */
    bool is_too_long;   /* a line passed HARNESS_LINE_MAX */
    bool was_killed;
    int status; /* of waitpid, once reaped */
    uint64_t started_ms, ended_ms;
};

/* Starts the harness of the session in the work folder. E-IO-003. */
bool harness_child_start (struct session *s, char *const *argv, char *const *env,
                          struct harness_child *c, struct mur_error **err);
void harness_child_write (struct harness_child *c, const char *data, size_t len);
/* No more input follows what was written. */
void harness_child_end_input (struct harness_child *c);
/* Waits until something happens or <timeout_ms> (UINT64_MAX: for ever) pass, and moves what can be
 * moved. <wake_fd> also ends the wait; it is not read. */
void harness_child_pump (struct harness_child *c, int wake_fd, uint64_t timeout_ms);
/* The next whole line without its end, or after the end of the output what is left. False: none. */
bool harness_child_line (struct harness_child *c, const char **line, size_t *len);
bool harness_child_has_line (const struct harness_child *c);
/* Everything it wrote was read. */
bool harness_child_is_at_end (const struct harness_child *c);
/* The same, or it has exited and nothing it wrote waits: others may hold its output open. */
bool harness_child_has_said_all (const struct harness_child *c);
bool harness_child_has_exited (const struct harness_child *c);
void harness_child_signal (struct harness_child *c, int number);
/* Kills the harness that runs, if one does, with its group. From any thread. */
void harness_kill (struct session *s);
/* Kills its group. */
void harness_child_kill (struct session *s, struct harness_child *c);
/* After its exit, or to force it: kills what is left of the group and reaps. */
void harness_child_reap (struct session *s, struct harness_child *c);
void harness_child_clear (struct session *s, struct harness_child *c);
/* The last whole lines of stderr, at most HARNESS_TAIL_MAX bytes. Borrowed. */
const char *harness_child_tail (const struct harness_child *c, size_t *len);
