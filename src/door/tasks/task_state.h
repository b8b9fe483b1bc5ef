/* SPDX-License-Identifier: Apache-2.0
 *
 * The states of a task, and how each is spelt (spec/door.md 6).
 *
 * What moves a task, each under the registry's lock:
 *
 *     (none)         -> submitted       registry_enqueue, registry_route (a new message)
 *     submitted      -> working         registry_next hands it to the loop
 *     working        -> input-required  registry_ask
 *     input-required -> working         registry_ask, when a reply or its timeout came
 *     working        -> completed, failed, canceled   registry_end
 *     submitted, working, input-required -> canceled  registry_cancel, registry_cancel_all
 *     submitted      -> rejected        registry_close; a task the capsule is too busy for is
 *                                       answered as rejected and never stored
 *
 * Always true: a terminal state is never left.
 */
#pragma once

#include <stdbool.h>

enum task_state {
    TASK_SUBMITTED,
    TASK_WORKING,
    TASK_INPUT_REQUIRED,
    TASK_COMPLETED,
    TASK_FAILED,
    TASK_CANCELED,
    TASK_REJECTED,
};
/* "submitted" ... and "TASK_STATE_SUBMITTED" .... Static storage. */
const char *task_state_word (enum task_state state);
const char *task_state_wire (enum task_state state);
bool task_state_is_terminal (enum task_state state);
