/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the cursor of a watched session's view stands: colours, and text that is wrapped between
 * words as it comes.
 */
#pragma once

#include "base/buf.h"
#include "cli/running/watch_view.h"

/* Which kind of text the cursor stands behind. */
enum flow {
    FLOW_NONE,     /* at the start of a line */
    FLOW_TEXT,     /* inside streamed text */
    FLOW_THINKING, /* inside streamed thinking */
    FLOW_CALL,     /* behind the live line of a call being written (terminal only) */
};

struct watched_task {
    char *id;
    uint64_t number; /* of its context, from 1 */
    char *answer;    /* of the `response` artifact; NULL until it came */
    uint64_t turns, calls;
    bool has_text; /* text was shown in this turn */
    struct watched_task *next;
};

struct watched_context {
    char *id;
    uint64_t tasks;
    struct watched_context *next;
};

struct call_line {
    char *id, *name;
    struct call_line *next;
};

struct watch_view {
    struct watch_style style;
    bool is_threaded;
    enum flow flow;
    struct watched_task *tasks;
    struct watched_context *contexts;
    struct call_line *calls; /* being written by the model */
    char *shown_task;        /* whose heading was printed last (terminal) */
    struct buf word;         /* of flowing text: not written yet, it may belong on the next line */
    size_t column, blanks;   /* where the text stands; blanks before the word */
    struct buf *out, *notes; /* of the event at hand */
};

enum ink { INK_PLAIN, INK_BOLD, INK_DIM, INK_GOOD, INK_BAD, INK_ASKING, INK_CALL };

void view_ink (struct watch_view *v, enum ink which);
void view_ink_end (struct watch_view *v, enum ink which);
void view_put_inked (struct watch_view *v, enum ink which, const char *text);
/* Of the terminal now. */
size_t view_width (const struct watch_view *v);
void view_flow_begin (struct watch_view *v);
void view_flow_word (struct watch_view *v);
/* Controls are shown as "·"; a word is written once it is known to have ended. */
void view_flow_text (struct watch_view *v, const char *text);
/* Leaves streamed text or a live line: what follows starts a line. */
void view_break_flow (struct watch_view *v);
