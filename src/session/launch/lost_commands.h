/* SPDX-License-Identifier: Apache-2.0
 *
 * Background commands a killed session left without an ending (docs/spec/session.md 8.6).
 *
 * Always true: what is reported was marked in the dead session's trace first, so that no later
 * launch reports it again.
 *
 * The dead session's trace is read line by line and forgivingly: its last line may be torn, and
 * what lies around what is looked for does not matter here.
 */
#pragma once

#include "session/state/session.h"

/* Marks what the resumed session lost and enqueues the one task that reports it. Nothing when
 * nothing is resumed, when the session still runs, or when its trace cannot be read or written. */
void lost_commands_report (struct session *s);
