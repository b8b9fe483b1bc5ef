/* SPDX-License-Identifier: Apache-2.0
 *
 * What a session can begin with or do less of, beside its files: calls that run again, tools it is
 * offered, paragraphs of its prompt.
 *
 * Always true: a call that is left away is answered as it was then, and nothing of it runs; a tool
 * that is not offered may be called all the same.
 */
#pragma once

#include "cli/run/cmd_run.h"
#include "replay/play/player.h"

enum other_kind { OTHER_CALLS, OTHER_TOOLS, OTHER_PARAGRAPHS, OTHER_KINDS };

struct other_part {
    char *text; /* what a person is told of a call; a tool's name; a paragraph */
    bool is_kept;
};
struct other_list {
    struct other_part *items;
    size_t len, cap;
};
struct other_parts {
    struct other_list of[OTHER_KINDS];
};

void
other_parts_read (const struct record *r, const struct run_replay *run, struct other_parts *out);
void other_parts_clear (struct other_parts *p);
/* Makes a run one of what is kept; it is this process's last. */
void other_parts_apply (const struct other_parts *p, struct record *r, struct run_replay *run,
                        struct play_modes *modes);
/* ", 1 of 3 calls, ..." of those that there are. */
void other_parts_text (const struct other_parts *p, struct buf *out);
/* calls, tools and paragraphs: {before, after, kept[]}. */
void other_parts_json (const struct other_parts *p, json_t *out);
