/* SPDX-License-Identifier: Apache-2.0
 *
 * What passes between a session and its harness, kept as it comes (trace.capture: replay), or held
 * against what was kept: how it was started, its lines and what the driver made of them, its calls,
 * what it was written, what people said (docs/spec/records.md 14.1).
 *
 * Always true: the loop lock is held; a run that neither is kept nor served costs one branch here;
 * what is made anew each time (ports, tokens, the work folder) is named, not kept.
 */
#pragma once

#include "session/harness/harness_run.h"

/* What a driver is told in a run that is served, where nothing listens. */
#define PLAYED_BRIDGE_URL  "http://127.0.0.1:1/bridge"
#define PLAYED_GATEWAY_URL "http://127.0.0.1:1/gateway"
#define PLAYED_TOKEN       "0000000000000000000000000000000000000000000000000000000000000000"
#define PLAYED_KEY         "1111111111111111111111111111111111111111111111111111111111111111"

/* The run begins. False in a replay whose record has none here. */
bool harness_tape_begin (struct harness_run *run, struct mur_error **err);
/* The plan is made. False: it is another, and the replay stops. */
bool harness_tape_plan (struct harness_run *run, const char *version, const struct buf *told,
                        struct mur_error **err);
/* One line, and what the driver made of it. */
bool harness_tape_line (struct harness_run *run, const char *line, size_t len,
                        const struct process_events *events, struct mur_error **err);
/* Writes to the harness. */
void harness_tape_write (struct harness_run *run, const char *data, size_t len);
/* What a person, or a rule, said: kept. */
void harness_tape_word (struct harness_run *run, bool is_good, const char *text);
/* In a run that is served, what was said then. False: this run is for real. */
bool harness_tape_next_word (struct harness_run *run, bool *is_good, struct buf *text);
/* It has ended; <made>: what the driver made of that, NULL: it was not asked. */
bool harness_tape_end (struct harness_run *run, const char *cause, const struct process_event *made,
                       struct mur_error **err);
/* The replay stops here. */
void harness_tape_stop (struct harness_run *run, struct mur_error *why);
