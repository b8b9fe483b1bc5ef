/* SPDX-License-Identifier: Apache-2.0
 *
 * What `mur watch` shows of a session's event stream (spec/door.md 8, 17): plain lines for a pipe,
 * and a live view for a person at a terminal.
 *
 * Pure: events come in as JSON, text comes out in buffers. Always true: nothing an agent says can
 * move a terminal's cursor or colour; in plain text it stands as it came.
 */
#pragma once

#include "base/json.h"

struct watch_style {
    bool is_terminal; /* the live view; else plain lines */
    bool has_colour;
    bool is_own;              /* the view of who started the session: no task is named */
    unsigned (*width) (void); /* of the terminal now, in columns, 0: 80; NULL: always 80 */
    /* "1,234 tokens in, 56 out", or NULL when it is not known; the view frees it. May be NULL. */
    char *(*spent) (void *ctx);
    void *spent_ctx;
};

struct watch_view;

struct watch_view *watch_view_new (const struct watch_style *style);
void watch_view_free (struct watch_view *v);
DEFINE_CLEANUP (struct watch_view, watch_view_free)

/* Shows one StreamResponse. What belongs on stdout is appended to <out>; warnings, a line each, to
 * <notes>. Returns false when it said that the capsule is closed. What is not known is skipped. */
bool
watch_view_event (struct watch_view *v, const json_t *event, struct buf *out, struct buf *notes);
/* Ends a line left open: the stream is over. */
void watch_view_end (struct watch_view *v, struct buf *out);
