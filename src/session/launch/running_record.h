/* SPDX-License-Identifier: Apache-2.0
 *
 * The record by which others on this machine find a running session (docs/spec/records.md 7).
 */
#pragma once

struct session;

/* Writes it; a failure is a warning (W-SEC-023). */
void running_record_begin (struct session *s);
void running_record_end (struct session *s);
