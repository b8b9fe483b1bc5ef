/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur trace steps`: one trace as a tree of what happened (spec/records.md 8.3).
 */
#pragma once

#include "trace/read/reader.h"
#include "trace/read/text.h"

/* Appends the tree. <is_verbose> adds the first text of each call's input. */
void trace_steps (const struct trace *t, bool is_verbose, struct report *report);
