/* SPDX-License-Identifier: Apache-2.0
 *
 * How much a call may send, from what is known of the model: its context window and its own
 * ceiling.
 */
#pragma once

#include <stdint.h>

/* What a call may send when it reserves <output_cap> tokens for the answer: the smaller of the
 * ceiling (0: none) and what the window (0: unknown) leaves after the answer; 0: no bound is known.
 * <*basis> is its name in the trace. */
uint64_t policy_input_budget (uint64_t window, uint64_t input_ceiling, uint64_t output_cap,
                              const char **basis);
