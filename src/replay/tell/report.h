/* SPDX-License-Identifier: Apache-2.0
 *
 * What a replay came to, for a person and as JSON (docs/spec/records.md 14).
 */
#pragma once

#include "replay/play/player.h"

/* The report as text: a line a turn, then the first difference. <session_id> is the replay's own.
 */
void replay_report_text (const struct player *p, const char *session_id, struct buf *out);
/* The same as an object. Owned. */
json_t *replay_report_json (const struct player *p, const char *session_id);
