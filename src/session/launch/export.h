/* SPDX-License-Identifier: Apache-2.0
 *
 * When a session exports spans: from its first trace line to its last (docs/spec/records.md 11).
 */
#pragma once

#include "session/state/session.h"

/* Once the trace is open, before its first line; does nothing without observability.otel_endpoint.
 */
void export_start (struct session *s);
/* The run of a script capsule, which has no trace of its own. */
void export_script_begin (struct session *s);
void export_script_end (struct session *s, const char *exit_status);
/* Nothing of the session runs any more: sends what waits, for a bounded while. */
void export_end (struct session *s);
