/* SPDX-License-Identifier: Apache-2.0
 *
 * Delegating and waiting for the answer: a capsule step of a plan (docs/spec/spawn.md A19).
 */
#pragma once

#include "session/handoff/delegate.h"

/* Like delegate_start, and waits until the child's task has ended, at most as long as a delegation
 * may take. Never answers DELEGATE_STARTED; the child is gone when it returns. */
void delegate_wait (struct session *s, const struct delegate_ask *ask, struct delegate_result *out);
