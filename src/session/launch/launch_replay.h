/* SPDX-License-Identifier: Apache-2.0
 *
 * A session that runs a record again (docs/spec/records.md 14).
 *
 * Always true: there is no door, nobody else hears of it, and nothing outside its own records
 * changes.
 */
#pragma once

#include "session/launch.h"

bool launch_replay (struct session *s, const struct launch_options *options,
                    enum session_ending *ending, struct mur_error **err);
