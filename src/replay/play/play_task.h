/* SPDX-License-Identifier: Apache-2.0
 *
 * The tasks of a record, one after another, and what came to them from outside.
 */
#pragma once

#include "replay/play/player.h"

/* The next task to run again, NULL when there is none left or the replay is over. */
const struct rec_task *player_next_task (struct player *p);
/* Its raw text. E-RPL-003 when the record does not hold it, E-RPL-004. */
bool player_task_text (struct player *p, const struct rec_task *t, struct buf *out,
                       struct mur_error **err);
/* Digests of the messages an attempt that began after <turns> turns found before its own; freed
 * with free (). */
const char **player_prior (const struct rec_task *t, uint64_t turns, size_t *count);
/* The user message that stands at <index> of the next request of the running task after <turn>
 * turns; false when there is none. <out>: its text. */
bool player_next_user_text (struct player *p, uint64_t turns, size_t index, struct buf *out);
/* How it ended now, in the words of task_end. */
void player_task_over (struct player *p, const char *ending);
/* The session ended: what the record still holds is a difference. */
void player_finish (struct player *p);
