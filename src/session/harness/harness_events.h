/* SPDX-License-Identifier: Apache-2.0
 *
 * What the events of a harness do: frames for watchers, turns, usage, the trace.
 */
#pragma once

#include "session/harness/harness_run.h"

/* Takes one event. After it run->cause may say that the run is over. */
void harness_event_take (struct harness_run *run, const struct process_event *e);
/* Ends the run as failed by the runtime's own judgement. */
void harness_run_fail (struct harness_run *run, enum harness_cause cause, enum failure_kind kind,
                       const char *text);
/* The line of a failed call: harness_auth, ... or harness_inactive. */
void harness_failed_turn_line (struct harness_run *run, const char *code, const char *text);
/* Records that a ceiling was reached. */
void harness_spend_line (struct harness_run *run);
/* Frees what the events left. */
void harness_events_clear (struct harness_run *run);
