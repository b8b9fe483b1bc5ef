/* SPDX-License-Identifier: Apache-2.0
 *
 * What a running child writes (spec/spawn.md A12): the first line of stdout is its readiness line,
 * the rest is relayed; stderr is echoed and its last lines are kept. One thread a child.
 *
 * Always true: both pipes are drained for as long as the child lives, also when our own streams are
 * gone, so that a child never blocks on a full pipe.
 */
#pragma once

#include "base/error.h"

#include <stdint.h>

#define OUTPUT_TAIL_LINES   20
#define OUTPUT_TAIL_WAIT_MS 5000

struct output;

/* Starts draining. Both descriptors are taken over, on failure too. E-IO-003. */
struct output *output_new (int stdout_fd, int stderr_fd, struct mur_error **err);
/* The same for a member of a formation: everything but the first line goes to our stderr, each line
 * behind "[<member>] ". */
struct output *
output_new_of_member (int stdout_fd, int stderr_fd, const char *member, struct mur_error **err);
/* Takes what is in the pipes now, then stops. */
void output_free (struct output *o);

enum output_line {
    OUTPUT_LINE,
    OUTPUT_ENDED,   /* the stream closed before a whole line came */
    OUTPUT_TIMEOUT, /* neither, until the deadline */
    OUTPUT_LEFT,    /* output_leave was called */
};
/* The first line of stdout, without its newline. *line is owned by the caller when OUTPUT_LINE. */
enum output_line output_first_line (struct output *o, uint64_t deadline_ms, char **line);
/* Makes a waiting output_first_line, and every later one that finds no line, return OUTPUT_LEFT. */
void output_leave (struct output *o);
/* The last lines of stderr joined by newlines, each cut at 4 KiB, owned; waits up to <wait_ms> for
 * the stream's end. */
char *output_stderr_tail (struct output *o, uint64_t wait_ms);
