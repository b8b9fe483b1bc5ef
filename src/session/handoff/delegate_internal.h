/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two ways of delegating share: everything up to a child that holds its task.
 */
#pragma once

#include "session/handoff/delegations.h"

/* Asks, launches and hands the task over. Returns the delegation, in the session's set; or NULL
 * with <out> telling why, the `delegation` line written and no child left. */
struct delegation *delegate_hand_over (struct session *s, const struct delegate_ask *ask,
                                       bool is_blocking, struct delegate_result *out);

/* Fills the ids of the result from the delegation. */
void delegate_describe (const struct delegation *d, struct delegate_result *out);
