/* SPDX-License-Identifier: Apache-2.0
 *
 * Launching a recorded session again, and what a record is asked for before one is.
 */
#pragma once

#include "cli/run/cmd_run.h"
#include "replay/play/player.h"

/* What is done around the launch; members may be NULL. */
struct replay_steps {
    bool (*staged) (void *ctx, struct session *s, struct mur_error **err);
    void (*ended) (void *ctx, struct session *s);
    void *ctx;
    const char *case_id;
    bool may_fail; /* an ending that is an error is an answer, too */
};

/* Takes the network away where nobody is asked for real, then launches. *session_id: the replay's
 * own (owned), NULL: it never began. E-RPL-008, or why it could not be launched. */
bool replay_launch (const struct cli_table *table, const struct run_replay *run,
                    const struct replay_steps *steps, char **session_id, struct mur_error **err);

/* How many turns a task had. */
size_t replay_turns_of (const struct rec_task *t);
/* Why a task cannot be forked at a turn, NULL: it can. */
const char *replay_no_fork (const struct record *r, size_t task, uint64_t turn);
