/* SPDX-License-Identifier: Apache-2.0 */
#include "door/tasks/task_state.h"

static const struct {
    const char *word, *wire;
    bool is_terminal;
} states[] = {
    [TASK_SUBMITTED] = { "submitted", "TASK_STATE_SUBMITTED", false },
    [TASK_WORKING] = { "working", "TASK_STATE_WORKING", false },
    [TASK_INPUT_REQUIRED] = { "input-required", "TASK_STATE_INPUT_REQUIRED", false },
    [TASK_COMPLETED] = { "completed", "TASK_STATE_COMPLETED", true },
    [TASK_FAILED] = { "failed", "TASK_STATE_FAILED", true },
    [TASK_CANCELED] = { "canceled", "TASK_STATE_CANCELED", true },
    [TASK_REJECTED] = { "rejected", "TASK_STATE_REJECTED", true },
};

const char *
task_state_word (enum task_state state)
{
    return states[state].word;
}

const char *
task_state_wire (enum task_state state)
{
    return states[state].wire;
}

bool
task_state_is_terminal (enum task_state state)
{
    return states[state].is_terminal;
}
