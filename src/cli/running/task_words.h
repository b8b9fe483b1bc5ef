/* SPDX-License-Identifier: Apache-2.0
 *
 * What doors say about tasks, as commands print it.
 */
#pragma once

#include "base/json.h"

/* "TASK_STATE_INPUT_REQUIRED" as murmur's word "input-required". Owned. */
char *printed_state (const char *state);
/* Prints one residue item: what a cancelled task or session left running. */
void print_residue (const json_t *item);
