/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces as the page reads them: where each line is and what it is, so that a window of any trace
 * costs the window.
 *
 * Always true: whatever a line holds, it is a row; one that is torn, malformed or of a later
 * release is marked as that; no body is kept. Thread-safe.
 */
#pragma once

#include "base/error.h"
#include "base/json.h"

struct ui_traces;

struct ui_traces *ui_traces_new (void);
void ui_traces_free (struct ui_traces *t);
DEFINE_CLEANUP (struct ui_traces, ui_traces_free)

struct ui_rows_query {
    const char *kinds; /* event types joined by ","; NULL: all */
    size_t from;       /* of the rows that match, from 0 */
    bool is_tail;      /* the last <limit> instead */
    size_t limit;
};

/* {total, from, rows: [{n, event, mark}]} of the trace at <path>; long values are cut. NULL:
 * E-IO-001, E-IO-003. Owned. */
json_t *ui_traces_rows (struct ui_traces *t, const char *path, const struct ui_rows_query *query,
                        struct mur_error **err);
/* Line <n> (from 0) as it is, at most <limit> bytes. NULL: E-IO-001, E-IO-003. Owned. */
char *ui_traces_line (struct ui_traces *t, const char *path, size_t n, size_t limit, size_t *len,
                      struct mur_error **err);

/* A value whose long strings and lists are cut, for a list. Owned. */
json_t *ui_trace_shortened (const json_t *value, size_t text_limit, size_t list_limit);
