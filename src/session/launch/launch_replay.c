/* SPDX-License-Identifier: Apache-2.0 */
#include "session/launch/launch_replay.h"

#include "base/clock.h"
#include "door/tasks/tasks.h"
#include "replay/play/play_task.h"
#include "sandbox/kernel/no_sockets.h"
#include "session/commands/confine.h"
#include "session/guests/guest_env.h"
#include "session/guests/recording.h"
#include "session/hooks/hooks.h"
#include "session/launch/launch_parts.h"
#include "session/launch/start_line.h"
#include "session/launch/termination.h"
#include "session/loop/loop.h"
#include "session/state/session.h"
#include "session/toolbox/murmur_md.h"

/* The address guests were told then; where it is not known, one that leads nowhere. */
static const char *
url_of (const struct session *s)
{
    const char *url = player_record (s->asked->player)->url;
    return url ? url : "localhost:0";
}

static bool
needs_commands (const struct session *s)
{
    const struct play_modes *m = player_modes (s->asked->player);
    return m->tools != PLAY_RECORDED || m->has_from;
}

/* From here on no command and no guest reaches anybody, unless the replay meets the world. */
static bool
close_network (const struct session *s, struct mur_error **err)
{
    return player_is_live (s->asked->player) || no_sockets_enter (true, err);
}

static bool
begin (struct session *s, const struct launch_options *options, struct mur_error **err)
{
    if (needs_commands (s) && (! confine_start (s, err) || ! close_network (s, err)))
        return false;
    murmur_md_write (s, url_of (s));
    guest_env_fill (s, url_of (s));
    confine_set_env (s);
    s->trace = trace_writer_new (s->places.records, s->id.text, s->redactor, err);
    if (! s->trace || ! start_line_write (s, err) || ! recording_begin (s, url_of (s), err))
        return false;
    launch_make_registry (s);
    if (! hooks_start (s, err))
        return false;
    options->announce (options->ctx, s, "");
    return termination_listen (s, err);
}

bool
launch_replay (struct session *s, const struct launch_options *options, enum session_ending *ending,
               struct mur_error **err)
{
    struct launch_outcome outcome = { .ending = ENDING_OK };
    s->tally.launched_ms = clock_monotonic_ms ();
    launch_open_log (s);
    if (termination_arm (s, &outcome.error) && begin (s, options, &outcome.error))
        loop_run (s, false, &outcome);
    else
        outcome.ending = ENDING_FAILED;
    if (s->registry)
        launch_refuse_queued (s);
    hooks_end (s, session_ending_name (outcome.ending));
    confine_kill_all (s);
    confine_end (s);
    termination_settle (s);
    launch_write_end (s, &outcome);
    recording_end (s);
    player_finish (s->asked->player);
    termination_disarm (s);
    *ending = outcome.ending;
    options->ended (options->ctx, *ending);
    return outcome.error ? mur_propagate (err, outcome.error) : true;
}
