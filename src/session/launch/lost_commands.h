/* SPDX-License-Identifier: Apache-2.0
 *
 * Background commands a killed session left without an ending (spec/session.md 8.6).
 *
 * Callers: launch.c, once, after the session was announced and before its first task. Always true:
 * what is reported was marked in the dead session's trace first, so that no later launch reports
 * it again.
 */
#pragma once

#include "session/state/session.h"

/* Marks what the resumed session lost and enqueues the one task that reports it. Nothing when
 * nothing is resumed, when the session still runs, or when its trace cannot be read or written. */
void lost_commands_report (struct session *s);
