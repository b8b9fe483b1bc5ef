/* SPDX-License-Identifier: Apache-2.0
 *
 * What the lines of a trace hold of a session's inputs: one function a kind of line, by a table.
 *
 * Always true: a line belongs to the task that began last; what is unknown is left out.
 */
#pragma once

#include "replay/record/record.h"

/* Takes what one line of trace.jsonl says. */
void record_take_line (struct record *r, const json_t *line);
