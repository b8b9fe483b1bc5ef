/* SPDX-License-Identifier: Apache-2.0
 *
 * A bundled process driver on the build machine: one run of a harness, its lines handed over one by
 * one. For the fuzzers, which want thousands of runs a second and the sanitizers' eyes on them.
 *
 * Always true, or it aborts: what a driver tells is text that may cross a component's boundary;
 * what it writes to its harness is whole lines of JSON, whatever a person answers.
 */
#pragma once

#include "murmur_process.h"

struct native_run {
    const char *config; /* JSON; NULL: none */
    const char *version;
    bool is_resumed, has_bridge;
};

/* False: the driver refused the plan. */
bool native_process_begin (const struct native_run *run);
/* How often the line was answered: written to, or a person asked. */
size_t native_process_line (const char *line, size_t len);
/* The harness is gone; frees what the run allocated and what it kept. */
void native_process_end (const char *stderr_tail);
