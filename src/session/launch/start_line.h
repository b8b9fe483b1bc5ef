/* SPDX-License-Identifier: Apache-2.0
 *
 * The session_start line: everything a reader of the trace needs to know of the launch
 * (docs/spec/records.md 3.4).
 */
#pragma once

#include "session/state/session.h"

/* Writes it. Fails like trace_write. */
bool start_line_write (struct session *s, struct mur_error **err);
