/* SPDX-License-Identifier: Apache-2.0
 *
 * Script capsules: one component, one call of run () (docs/spec/session.md 7).
 *
 * Always true: only allowlisted WASM tools are dispatched; there is no door, no task and, unless
 * something was sent, no trace file.
 */
#pragma once

#include "session/launch.h"

struct session;

bool launch_script (struct session *s, const struct launch_options *options,
                    enum session_ending *ending, struct mur_error **err);
