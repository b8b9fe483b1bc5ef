/* SPDX-License-Identifier: Apache-2.0
 *
 * All messages an inference line sent, whether it lists them itself or goes on from an earlier line
 * (docs/spec/records.md 3.6). Traces from before lines did so read the same.
 */
#pragma once

#include "trace/lines/sent_lists.h"
#include "trace/read/reader.h"

/* How many messages the line sent. */
size_t sent_count (const json_t *line);
/* The digests of all of them in an array the caller owns, NULL when none were recorded; "" for one
 * whose line is missing. Lines are given in file order; <l> remembers them. */
json_t *sent_shas (struct sent_lists *l, const json_t *line);
/* The digest of message <index>, borrowed from the trace, or NULL. */
const char *sent_sha_at (const struct trace *t, const struct trace_event *e, size_t index);
