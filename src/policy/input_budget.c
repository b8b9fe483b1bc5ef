/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/input_budget.h"

uint64_t
policy_input_budget (uint64_t window, uint64_t input_ceiling, uint64_t output_cap,
                     const char **basis)
{
    *basis = "none";
    if (! window)
        return 0;
    uint64_t left = window > output_cap ? window - output_cap : 0;
    *basis = "context_window_less_output_cap";
    if (! input_ceiling || input_ceiling >= left)
        return left;
    *basis = "max_input_tokens";
    return input_ceiling;
}
