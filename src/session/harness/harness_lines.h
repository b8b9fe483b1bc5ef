/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of a harness through its driver, and the ends that are no line of it.
 *
 * Always true: a run that is kept or served has one line a call of the driver, so that what is made
 * of each is known.
 */
#pragma once

#include "session/harness/harness_run.h"

#define HARNESS_LINES_A_PARSE 256

/* How many lines the driver is handed at once. */
size_t harness_lines_most (const struct harness_run *run);
/* Hands complete lines to the driver and takes what it makes of them. */
void harness_lines_take (struct harness_run *run, const char *const *lines, const size_t *lens,
                         size_t count);
/* The process is over, its end told as <cause>: where no line said so, the driver judges. */
void harness_lines_end (struct harness_run *run, const char *cause);

/* How long a harness may be silent. */
uint64_t harness_inactivity_ms (void);
void harness_fail_inactive (struct harness_run *run, uint64_t window_ms);
/* Its provider refuses the key, and it asks on. */
void harness_fail_key (struct harness_run *run);
/* A line was too long. */
void harness_fail_line (struct harness_run *run);
