/* SPDX-License-Identifier: Apache-2.0
 *
 * What a forked child may use before exec: async-signal-safe helpers and the pipe it reports
 * failure on.
 *
 * Nothing here allocates, locks or uses stdio.
 */
#pragma once

#include "base/cleanup.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct clone_args;

#define CHILD_REPORT_MAX 1024

/* Writes "<step>: <errno>\n<detail>" to the report pipe and exits 125. detail may be NULL. */
_noreturn_ void child_fail (int report_fd, const char *step, const char *detail);

/* Reads what a child reported (until end of file, or what is there of a pipe that does not block);
 * false when it said nothing. Parent side; text is NUL-terminated. */
bool child_report_read (int report_fd, char text[CHILD_REPORT_MAX + 1]);
/* The step and errno of a report; step points into text. */
bool child_report_parse (char *text, const char **step, int *errno_value, const char **detail);

/* clone3, or what clone can do of it where a container's filter knows no clone3 (Docker's answers
 * ENOSYS, as ours does; older ones EPERM). *is_outside, in the child: it was to be born in a
 * control group and has to enter it. Async-signal-safe. */
pid_t child_clone (struct clone_args *args, bool *is_outside);
/* clone3 of a child that shares this process's memory and runs <run> (which does not return) on
 * the stack below <stack_top> (a multiple of 16); the caller is held until it executes a program or
 * exits. Nothing is copied, so it costs the same however large this process is. -1 with errno;
 * ENOSYS also where the machine or a sanitizer does not allow it. Async-signal-safe. */
pid_t child_clone_shared (struct clone_args *args, char *stack_top, size_t stack_bytes,
                          int (*run) (void *), void *arg);
/* Moves this process into a version 2 group. Async-signal-safe. 0, or -1 with errno. */
int child_enter_group (int group_fd);
/* clone3 with a pidfd (set in the parent) and what <args> asks besides. The child starts with every
 * signal held back, so that no handler of ours runs in it: child_reset_signals ends that. */
pid_t child_fork (struct clone_args *args, int *pidfd);
/* In the parent, after child_fork gave <pid>: true once the child executes its program. Else it is
 * reaped and <text> is what it reported; text[0] is NUL and *err set (E-IO-003) when there never
 * was one. Takes both ends of <report>, and <pidfd> when false. */
bool child_await_exec (pid_t pid, int pidfd, const int report[2], char text[CHILD_REPORT_MAX + 1],
                       struct mur_error **err);

/* Default handlers, nothing blocked. */
void child_reset_signals (void);
/* Moves the three descriptors to 0, 1, 2. On failure returns the name of the step, else NULL. */
const char *child_place_streams (const int wanted[3]);

/* Maps only the caller's own uid and gid, denying setgroups. Raises dumpable around the writes and
 * restores it: a non-dumpable process does not own its own /proc files. On failure returns the name
 * of the step, else NULL. */
const char *child_write_id_maps (unsigned uid, unsigned gid);
