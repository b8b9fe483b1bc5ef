/* SPDX-License-Identifier: Apache-2.0
 *
 * What a trace adds up to: turns, tokens, refusals, and how often each grant was used. Read once
 * from the beginning, then only what was added.
 *
 * Thread-safe.
 */
#pragma once

#include "base/json.h"

struct ui_summaries;

struct ui_summaries *ui_summaries_new (void);
void ui_summaries_free (struct ui_summaries *s);
DEFINE_CLEANUP (struct ui_summaries, ui_summaries_free)
/* {turns, tokens_in, tokens_out, provider_in, provider_out, cached, calls, refused, tools{name: n},
 * commands{}, capsules{}, points[[line, in, out]]}. NULL: it cannot be read. Owned. */
json_t *ui_summary (struct ui_summaries *s, const char *path);
