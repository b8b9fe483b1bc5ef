/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur trace show`: one trace as a report for a person (spec/records.md 8.1).
 */
#pragma once

#include "trace/read/reader.h"
#include "trace/read/text.h"

/* Appends the report, sections in the order of the chapter. <work_root> (canonical, NULL: none) is
 * where the traces of a member's formation are looked for; <use_colour> only for a terminal. */
void trace_show (const struct trace *t, const char *work_root, struct report *report);
