/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of tools against the record: which call, with what input, and what came of it.
 */
#pragma once

#include "replay/play/player.h"

struct play_call {
    uint64_t turn;
    const char *name, *input;
};

/* Compares a call with the record; its place is the next of its turn. PLAY_ANSWER with *call (which
 * may be of a call that came to nothing then), PLAY_ASK (*call NULL: there is no record of it any
 * more), PLAY_REFUSED by a person, PLAY_CANCELED or PLAY_STOP. */
enum play_answer player_call (struct player *p, const struct play_call *now,
                              const struct rec_call **call, struct mur_error **err);
/* What came of a call that was run again. */
struct play_result {
    bool has_run;    /* else it was served */
    bool is_command; /* what it came to then is not promised */
    const char *text;
    size_t len;
};

/* The call of this turn is over: the next place. *then: what the model is given of it after all,
 * NULL when that is what came now. False: the replay stops here. */
bool player_call_over (struct player *p, uint64_t turn, const struct play_result *now,
                       const struct rec_call **then, struct mur_error **err);
/* The text of a served call. */
void player_output (struct player *p, const struct rec_call *call, struct buf *out);
/* Check number <runs> of the running task, NULL: the record has none. */
const struct rec_check *player_check (const struct player *p, uint64_t runs);
