/* SPDX-License-Identifier: Apache-2.0
 *
 * Script capsules: one component, one call of run () (spec/session.md 7).
 *
 * Callers: stage.c (compiling), launch.c. Always true: only allowlisted WASM tools are dispatched;
 * there is no door, no task and, unless something was sent, no trace file.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/digest.h"
#include "base/fdio.h"
#include "engine/form_cache.h"
#include "host/artifact_manager.h"
#include "host/capsule.h"
#include "host/message.h"
#include "host/tool_registry.h"
#include "session/calls/dispatch.h"
#include "session/guests/guests.h"
#include "session/launch/completion_report.h"
#include "session/launch/export.h"
#include "session/launch/roost_session.h"
#include "session/launch/script_artifacts.h"
#include "session/launch/script_send.h"
#include "session/launch/script_watch.h"
#include "session/launch/termination.h"
#include "session/state/session.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define COMPONENT_LIMIT_BYTES ((size_t)1 << 30)

/* --- staging --- */

struct script_wasm {
    struct buf bytes;
};

static bool
give_bytes (void *ctx, const void **wasm, size_t *len, struct mur_error **err)
{
    (void)err;
    struct script_wasm *source = ctx;
    *wasm = source->bytes.data;
    *len = source->bytes.len;
    return true;
}

/* What is no WebAssembly at all is refused by its first bytes, however much more there is. */
static bool
check_head (const char *path, struct mur_error **err)
{
    static const char magic[4] = { 0, 'a', 's', 'm' };
    char head[sizeof magic];
    _cleanup_close_ int fd = open (path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || ! fd_read_exact (fd, head, sizeof head) ||
        memcmp (head, magic, sizeof magic) == 0)
        return true; /* what else is wrong with it, reading and compiling tell */
    return mur_fail (err, E_RUN_001,
                     "the component does not compile: %s does not begin as WebAssembly does", path);
}

static bool
read_component (const struct session *s, struct buf *wasm, struct mur_error **err)
{
    const char *path = s->asked->component_path;
    if (s->asked->capsule)
        return package_read_wasm (s->asked->capsule->package, wasm, err);
    if (! path)
        return mur_fail (err, E_RUN_001, "the capsule has neither a component nor inference");
    return check_head (path, err) && fs_read_regular (path, COMPONENT_LIMIT_BYTES, wasm, err);
}

bool
stage_script (struct session *s, struct mur_error **err)
{
    if (s->manifest->inference)
        return true;
    struct script_wasm source = { 0 };
    bool ok = read_component (s, &source.bytes, err);
    if (ok) {
        char key[SHA256_HEX_LEN + 1];
        sha256_hex (source.bytes.data, source.bytes.len, key);
        struct form_cache_spec spec = { s->policy->request->home_dir, s->asked->work_root,
                                        zip_ceiling () };
        sigset_t before;
        termination_hold_signals (&before);
        s->script = form_cache_load (s->engine, &spec, key, give_bytes, &source, NULL, err);
        termination_release_signals (&before);
    }
    buf_free (&source.bytes);
    for (size_t i = 0; ok && i < s->policy->network_allow.len; i++)
        ok = allow_list_add (&s->script_allow, s->policy->network_allow.items[i], err);
    return ok && s->script;
}

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
    if (dispatch_wasm (s, tool->artifact, data, len, log_path, arena, result,
                       guest_current_cancel (), NULL, &err) != GUEST_OK) {
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
    guests_set_env (s, "");
    struct guest_setup setup = { .component = s->script,
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
    hold_refused_lines (s);
    script_watch_hold (&watch, s);
    s->tally.launched_ms = clock_monotonic_ms ();
    *ending = ENDING_FAILED;
    export_script_begin (s);
    bool is_good = registered_begin (s, err) && script_watch_start (&watch, err) &&
                   run_script (s, options, ending, err);
    export_script_end (s, session_ending_name (*ending));
    spawned_report (s, is_good);
    script_watch_stop (&watch);
    registered_end (s, is_good);
    script_watch_release (&watch);
    keep_refused_lines (s);
    return is_good;
}
