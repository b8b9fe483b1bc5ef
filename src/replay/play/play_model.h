/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests to the model against the record.
 */
#pragma once

#include "replay/play/player.h"

struct play_request {
    const char *origin; /* NULL: the agent loop */
    uint64_t turn;
    const char *model;
    uint64_t max_tokens;
    const char *driver_config; /* compact JSON */
    const char *system, *system_sha, *tools, *tools_sha;
    const char **messages, **message_shas; /* wire texts */
    size_t *message_lens;
    size_t message_count;
};

/* Compares the request with the record and says where its answer comes from. */
enum play_answer
player_ask (struct player *p, const struct play_request *now, const struct rec_model **model,
            const struct rec_refusal **refusal, struct mur_error **err);
/* A live model decided at the place of <m>, <text> being its answer: noted in the turn. */
void player_decided (struct player *p, const struct rec_model *m, const char *text, size_t len);
/* True once: the turn that begins is the first that is no replay. */
bool player_forks (struct player *p, uint64_t turn);
