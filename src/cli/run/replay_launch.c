/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/replay_launch.h"

#include "base/alloc.h"
#include "cli/line/parse.h"
#include "replay/record/tape_read.h"
#include "sandbox/kernel/no_sockets.h"
#include "session/stage.h"

#include <string.h>

/* --- launching --- */

struct watching {
    const struct replay_steps *steps;
    char *session_id;
};

static bool
on_staged (void *ctx, struct session *s, struct mur_error **err)
{
    struct watching *w = ctx;
    w->session_id = x_strdup (session_id (s));
    return ! w->steps->staged || w->steps->staged (w->steps->ctx, s, err);
}

static void
on_ended (void *ctx, struct session *s)
{
    const struct watching *w = ctx;
    if (w->steps->ended)
        w->steps->ended (w->steps->ctx, s);
}

/* An end that is a verdict is told by the report. */
static bool
is_told (const struct mur_error *e)
{
    return e->code == E_RPL_002 || e->code == E_RPL_003 || e->code == E_RUN_040 ||
           e->code == E_RUN_053 || e->code == E_RPL_006 || e->code == E_RUN_007 ||
           e->code == E_RUN_001 || (e->code >= E_RUN_033 && e->code <= E_RUN_036);
}

/* Where nobody is asked for real, nobody can be. Commands that run again get walls first, which the
 * kernel wants a socket for: the launch closes behind them. */
static bool
close_network (const struct player *p, struct mur_error **err)
{
    return player_is_live (p) || player_modes (p)->tools != PLAY_RECORDED ||
           no_sockets_enter (false, err);
}

bool
replay_launch (const struct cli_table *table, const struct run_replay *run,
               const struct replay_steps *steps, char **session_id, struct mur_error **err)
{
    char *argv[] = { (char *)"mur", (char *)"run", (char *)"--no-env-file", NULL };
    _cleanup_ (cli_args_freep) struct cli_args *args = NULL;
    struct watching w = { .steps = steps };
    const struct run_steps around = {
        .case_id = steps->case_id, .replay = run, .staged = on_staged, .ended = on_ended, .ctx = &w
    };
    _cleanup_error_ struct mur_error *caught = NULL;
    enum session_ending ending;
    if (! close_network (run->player, err))
        return false;
    /* Its options are known: it cannot but be read. */
    if (cli_parse (table, run->needs_keys ? 2 : 3, argv, &args) != CLI_RUN)
        return mur_fail (err, E_RPL_009, "the replay could not be put as a launch");
    bool is_over = run_with_steps (args, &around, &ending, &caught);
    *session_id = w.session_id;
    if (is_over || (w.session_id && is_told (caught)))
        return true;
    if (caught->code == E_RUN_008 || caught->code == E_REG_001)
        caught->code = E_RPL_008;
    return mur_propagate (err, steal_ptr (&caught));
}

/* --- what a record allows --- */

size_t
replay_turns_of (const struct rec_task *t)
{
    size_t turns = 0;
    for (size_t i = 0; i < t->models.count; i++)
        if (! t->models.items[i].origin && t->models.items[i].turn >= turns)
            turns = (size_t)t->models.items[i].turn + 1;
    return turns;
}

const char *
replay_no_fork (const struct record *r, size_t task, uint64_t turn)
{
    const struct rec_task *t = &r->tasks[task];
    const struct rec_tree *tree = record_tree_before (r, task, turn);
    if (turn >= replay_turns_of (t))
        return "it lies past the end";
    if (t->has_harness)
        return "a harness has the conversation";
    if (! tree)
        return "the files of that turn are not on record (trace.capture: replay keeps them)";
    if (tree->left_out)
        return "files of that turn were left out of the record (trace.snapshot)";
    if (t->has_background)
        return "a command ran in the background, and what it did meanwhile is not on record";
    return NULL;
}
