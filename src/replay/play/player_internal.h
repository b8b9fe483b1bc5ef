/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of a replay, as the files of this room share it.
 */
#pragma once

#include "replay/play/player.h"

#include <pthread.h>

/* How many answers one origin has had in a turn. */
struct asked {
    char *origin; /* NULL: the agent loop */
    uint64_t turn;
    size_t count;
};

struct player {
    const struct record *record;
    struct play_modes modes;
    pthread_mutex_t lock;
    size_t next_task;
    const struct rec_task *task; /* NULL: between two */
    struct asked *asked;
    size_t asked_len, asked_cap;
    uint64_t call_turn; /* whose calls are counted */
    size_t call_number;
    uint64_t turn;          /* that was asked for last */
    const char *unanswered; /* what a person was asked in vain; NULL: nothing */
    bool is_stopped;
    bool has_forked; /* the rest is no replay any more */
    enum play_verdict verdict;
    struct play_difference *first; /* NULL: none */
    struct play_turn *turns;
    size_t turn_count, turn_cap;
    struct play_counts counts;
    struct strv missing, unpromised;
    /* What runs now; NULL before it is known. */
    struct play_facts *facts;
    struct arena *arena; /* of the facts */
};

/* play_difference.c. All are called under the lock. */
struct difference {
    uint64_t turn;
    bool has_call;
    size_t call, message;
    const char *part;
    const char *recorded, *now; /* texts, NULL: there is none */
    size_t recorded_len, now_len;
    bool is_json;
};
/* Notes it, the first with all its parts. Returns false when the replay stops here, with *err set:
 * E-RPL-002. */
bool play_note (struct player *p, const struct difference *d, struct mur_error **err);
/* Nothing is recorded at this place: the end of a record that is not whole, else a difference.
 * Always false, *err set: E-RPL-003. */
bool play_note_missing (struct player *p, const struct difference *d, const char *what,
                        struct mur_error **err);
/* cause.c: the earliest thing behind a difference. Owned. */
char *play_cause (const struct player *p, const struct difference *d, const char *pointer);
struct play_request;
/* play_request.c: false when something differs and the replay stops. */
bool play_compare (struct player *p, const struct play_request *now, const struct rec_model *m,
                   struct mur_error **err);
/* The entry of the report for a turn, made when there is none. */
struct play_turn *play_turn (struct player *p, uint64_t turn);
