/* SPDX-License-Identifier: Apache-2.0 */
#include "session/launch/launch_script.h"
#include "engine/guest.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/fdio.h"
#include "host/artifact_manager.h"
#include "host/capsule.h"
#include "host/message.h"
#include "host/tool_registry.h"
#include "session/calls/dispatch.h"
#include "session/commands/confine.h"
#include "session/guests/guest_env.h"
#include "session/guests/guest_store.h"
#include "session/launch/completion_report.h"
#include "session/launch/export.h"
#include "session/launch/roost_session.h"
#include "session/launch/script_artifacts.h"
#include "session/launch/script_send.h"
#include "session/launch/script_watch.h"
#include "session/launch/ship.h"
#include "session/launch/termination.h"
#include "session/stage/staged.h"
#include "session/state/session.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- what the script may ask of the runtime --- */

static bool
invoke_tool (void *ctx, const char *name, const char *data, size_t len, const char *log_path,
             struct arena *arena, struct tool_result *result, const char **refusal)
{
    struct session *s = ctx;
    const struct tool_entry *tool = session_tool (s, name);
    if (! tool || ! tool->artifact || tool->artifact->role != ROLE_TOOL ||
        ! tool->artifact->component) {
        *refusal = session_has_removed (s, name)
                       ? arena_printf (arena, "tool %s was removed from this session", name)
                       : arena_printf (arena, "tool %s is not among this capsule's tools", name);
        return false;
    }
    _cleanup_error_ struct mur_error *err = NULL;
    const struct component_call call = { .tool = tool->artifact,
                                         .data = data,
                                         .len = len,
                                         .log_path = log_path,
                                         .cancel = guest_current_cancel () };
    if (call_component (s, &call, arena, result, &err) != GUEST_OK) {
        *refusal = arena_strdup (arena, err->message);
        return false;
    }
    return true;
}

/* --- the run --- */

/* The three ways a script fails read differently (containment.md 5). */
static bool
explain_failure (const struct session *s, enum guest_ending how, struct mur_error **err)
{
    if (how == GUEST_DEADLINE) {
        mur_context (err, "capsule execution exceeded its %llus deadline",
                     (unsigned long long)s->policy->limits.deadline_seconds.value);
        return mur_hint (err, "raise capabilities.limits.deadline_seconds");
    }
    if (how == GUEST_LIMIT)
        return mur_context (err, "capsule execution exceeded its configured resource limits");
    if (how == GUEST_TRAPPED)
        return mur_context (err, "capsule execution trapped");
    return false;
}

/* Lines a closed stream refuses are held in memory: a script that loses none leaves no log. */
static void
hold_refused_lines (struct session *s)
{
    s->places.bootstrap_fd = memfd_create ("refused-lines", MFD_CLOEXEC);
    if (s->places.bootstrap_fd >= 0)
        diag_set_fallback (s->places.bootstrap_fd);
}

static void
keep_refused_lines (struct session *s)
{
    if (s->places.bootstrap_fd < 0)
        return;
    diag_set_fallback (-1);
    char piece[4096];
    off_t at = 0;
    for (ssize_t n; (n = pread (s->places.bootstrap_fd, piece, sizeof (piece), at)) > 0; at += n)
        if (! fs_make_dirs (s->places.records, "logs", 0777, false, NULL) ||
            ! fs_append (s->places.records, "logs/bootstrap.log", piece, (size_t)n, NULL))
            break;
    close (s->places.bootstrap_fd);
    s->places.bootstrap_fd = -1;
}

static bool
run_script (struct session *s, const struct launch_options *options, enum session_ending *ending,
            struct mur_error **err)
{
    struct tool_registry_host registry = { s, invoke_tool };
    struct artifact_manager_host manager = script_artifacts (s);
    struct message_host message = script_messages (s);
    struct linkage_context contexts[] = { { &host_tool_registry, &registry },
                                          { &host_artifact_manager, &manager },
                                          { &host_message, &message } };
    guest_env_fill (s, "");
    struct guest_setup setup = { .component = s->rooms.staged->script,
                                 .kind = GUEST_SCRIPT,
                                 .env = s->kit.guest_env.items,
                                 .contexts = contexts,
                                 .context_count = ARRAY_LEN (contexts) };
    _cleanup_store_ struct guest_store store = { 0 };
    enum guest_ending how = GUEST_OK;
    if (guest_store_open (s, &setup, &store, &how, err))
        how = host_capsule_run (store.guest, NULL, err);
    script_artifacts_record (s);
    script_messages_record (s);
    if (how != GUEST_OK) {
        *ending = how == GUEST_TRAPPED ? ENDING_TRAPPED : ENDING_FAILED;
        return explain_failure (s, how, err);
    }
    *ending = ENDING_OK;
    options->announce (options->ctx, s, "");
    return true;
}

bool
launch_script (struct session *s, const struct launch_options *options, enum session_ending *ending,
               struct mur_error **err)
{
    struct script_watch watch;
    confine_warn_places (s);
    hold_refused_lines (s);
    script_watch_hold (&watch, s);
    s->tally.launched_ms = clock_monotonic_ms ();
    *ending = ENDING_FAILED;
    export_script_begin (s);
    bool is_good = ship_begin (s, err) && roost_session_begin (s, err) &&
                   script_watch_start (&watch, err) && run_script (s, options, ending, err);
    export_script_end (s, session_ending_name (*ending));
    completion_report_send (s, is_good);
    ship_end (s, session_ending_name (*ending));
    script_watch_stop (&watch);
    roost_session_end (s, is_good);
    script_watch_release (&watch);
    options->ended (options->ctx, *ending);
    keep_refused_lines (s);
    return is_good;
}
