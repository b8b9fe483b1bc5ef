/* SPDX-License-Identifier: Apache-2.0
 *
 * What passes between a session and its harness, against the record: each thing in its order.
 */
#pragma once

#include "replay/play/player.h"
#include "replay/record/tape_read.h"

/* Two texts of one place. */
struct play_harness {
    uint64_t turn;
    const char *part; /* "system", "tools", "task_text", "harness_plan", "harness_line", ... */
    size_t line;      /* of the harness's, from 1; 0: before its first */
    bool has_call;
    size_t call;                 /* among its calls, from 0 */
    const struct rec_body *then; /* NULL: nothing is recorded there */
    const char *now;             /* NULL: nothing comes there */
    size_t now_len;
    bool is_json;
};

/* The run of the running task that is number <n> of the session. E-RPL-003: there is none. */
const struct rec_harness *player_harness_run (struct player *p, size_t n, struct mur_error **err);
/* False when the two differ and the replay stops, *err set: E-RPL-002; or E-RPL-004. */
bool player_harness_same (struct player *p, const struct play_harness *now, struct mur_error **err);
/* The record ends here. Always false, *err set: E-RPL-003. */
bool
player_harness_missing (struct player *p, uint64_t turn, const char *what, struct mur_error **err);
/* A turn was closed so; one of its calls is <call>. */
void player_harness_turn (struct player *p, uint64_t turn, const char *decision);
void player_harness_call (struct player *p, uint64_t turn, const char *call);
