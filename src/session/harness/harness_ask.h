/* SPDX-License-Identifier: Apache-2.0
 *
 * What a harness asks by its own means: whether it may do something, and what its model wants to
 * know of a person. Both become questions of the task; the driver has made the answers beforehand,
 * so nothing a harness prints can pass for one.
 *
 * Always true: exactly one answer is written for each question; without a person's word, or a rule
 * that lets it pass, it is a refusal.
 */
#pragma once

#include "session/harness/harness_run.h"

/* <text> is what the driver told (artifacts/sdk/murmur_process.h: mur_event_permission,
 * mur_event_questions). Waits for the person. Under the loop lock. */
void harness_ask (struct harness_run *run, const char *text, size_t len);
/* A line of the trace, secrets taken out. */
void harness_note (struct harness_run *run, const char *text);
/* The call of this id is over (NULL: all are): what it alone was approved for is closed. */
void harness_ask_end (struct harness_run *run, const char *id);
