/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur replay`: a recorded session runs again on what came from outside then, and says where and
 * why it differs (docs/spec/cli.md).
 *
 * Always true: everything that can be refused is refused before anything runs; recorded modes take
 * the network from this very process before staging.
 */
#include "base/alloc.h"
#include "base/diag.h"
#include "base/json.h"
#include "cli/line/args.h"
#include "cli/replay/abilities.h"
#include "cli/replay/addressed.h"
#include "cli/replay/children.h"
#include "cli/replay/commands.h"
#include "cli/replay/eval_export.h"
#include "cli/replay/minimise.h"
#include "cli/run/cmd_run.h"
#include "cli/run/replay_launch.h"
#include "cli/run/unpacked.h"
#include "fs/paths.h"
#include "home/paths.h"
#include "home/running.h"
#include "replay/bundle/bundle.h"
#include "replay/play/play_guest.h"
#include "replay/record/record_read.h"
#include "replay/record/tape_read.h"
#include "replay/tell/report.h"

#include <libgen.h>
#include <string.h>
#include <sys/utsname.h>

#define LARGEST_MANIFEST ((size_t)8 << 20)

struct replay {
    const struct cli_args *args;
    char *work_root;
    struct record *record;
    struct player *player;
    struct buf manifest;
    char *manifest_dir, *manifest_name;
    struct buf prompt;
    char *artifact;   /* of --with-artifact, without its version */
    char *session_id; /* the replay's own; NULL: it never began */
    struct unpacked unpacked;
    json_t *children; /* of --deep; NULL: not asked for */
    bool are_children_good;
};

static void
replay_clear (struct replay *r)
{
    free (r->work_root);
    player_free (r->player);
    record_free (r->record);
    buf_free (&r->manifest);
    free (r->manifest_dir);
    free (r->manifest_name);
    buf_free (&r->prompt);
    free (r->artifact);
    free (r->session_id);
    unpacked_close (&r->unpacked);
    json_decref (r->children);
}

/* --- the record --- */

/* A live session's record grows; what is finished of it can be replayed by name of its end. */
static bool
check_running (const struct replay *r, struct mur_error **err)
{
    struct running_scan scan = { 0 };
    bool is_running = false;
    if (cli_has (r->args, "--until") || ! running_scan (false, &scan, NULL))
        return true;
    for (size_t i = 0; i < scan.len; i++)
        is_running =
            is_running || (str_eq (scan.entries[i].record.session_id, r->record->session_id) &&
                           scan.entries[i].liveness != RUNNING_GONE);
    running_scan_free (&scan);
    if (! is_running)
        return true;
    mur_fail (err, E_RPL_005, "%s still runs", r->record->session_id);
    return mur_hint (err, "wait for its end, or replay what is finished: --until TURN");
}

static bool
read_bundle (struct replay *r, const char *path, struct mur_error **err)
{
    return unpacked_open (path, &r->unpacked, err) &&
           (r->record = record_read (r->unpacked.dir, err)) && record_check (r->record, err);
}

static bool
open_record (struct replay *r, struct mur_error **err)
{
    const char *address = cli_positional (r->args, "SESSION");
    r->work_root = home_work_root (cli_value (r->args, "--workdir"), ".", err);
    if (r->work_root && bundle_is_one (address))
        return read_bundle (r, address, err);
    r->record = r->work_root ? record_addressed (address, r->work_root, err) : NULL;
    return r->record && check_running (r, err) && record_check (r->record, err);
}

/* --- what runs --- */

static bool
read_manifest_at (struct replay *r, const char *path, struct mur_error **err)
{
    _cleanup_free_ char *whole = fs_canonical_path (path, err);
    if (! whole || ! fs_read_regular (whole, LARGEST_MANIFEST, &r->manifest, err))
        return false;
    _cleanup_free_ char *copy = x_strdup (whole);
    r->manifest_dir = x_strdup (dirname (copy));
    r->manifest_name = x_strdup (strrchr (whole, '/') + 1);
    return true;
}

/* The one named; else the one at its old place, whatever it says now; else as it was recorded. */
static bool
find_manifest (struct replay *r, struct mur_error **err)
{
    const char *named = cli_value (r->args, "--with-manifest"),
               *old = r->record->code.manifest_path;
    if (named)
        return read_manifest_at (r, named, err);
    if (old && ! r->unpacked.dir && access (old, R_OK) == 0)
        return read_manifest_at (r, old, err);
    if (r->record->code.manifest_sha) {
        r->manifest_dir =
            r->unpacked.dir ? x_strdup (r->unpacked.dir) : fs_canonical_path (".", err);
        r->manifest_name = old ? x_strdup (strrchr (old, '/') + 1) : NULL;
        return r->manifest_dir &&
               record_body (r->record, r->record->code.manifest_sha, &r->manifest, err);
    }
    mur_fail (err, E_RPL_001, "the trace of %s does not say which manifest it ran",
              r->record->session_id);
    return mur_hint (err, "name it: mur replay %s --with-manifest murmur.yaml",
                     r->record->session_id);
}

/* The prompt of --with-system-prompt, else the one the launch was given in place of the manifest's.
 */
static bool
find_prompt (struct replay *r, struct run_replay *run, struct mur_error **err)
{
    const char *named = cli_value (r->args, "--with-system-prompt");
    const struct record *record = r->record;
    if (named && access (named, R_OK) == 0) {
        if (! fs_read_regular (named, LARGEST_MANIFEST, &r->prompt, err))
            return false;
    } else if (named) {
        buf_puts (&r->prompt, named);
    } else if (! str_eq (record->code.prompt_source, "cli")) {
        return true;
    } else if (record->code.prompt_sha &&
               ! record_body (record, record->code.prompt_sha, &r->prompt, err)) {
        return false;
    }
    run->has_prompt = true;
    run->prompt = r->prompt.len ? r->prompt.data : NULL;
    return true;
}

/* --- running it --- */

static enum play_source
source_of (const char *word)
{
    static const char *const words[] = { [PLAY_RECORDED] = "recorded",
                                         [PLAY_SERVED] = "served",
                                         [PLAY_RERUN] = "rerun",
                                         [PLAY_LIVE] = "live" };
    for (size_t i = 0; i < ARRAY_LEN (words); i++)
        if (str_eq (words[i], word))
            return (enum play_source)i;
    return PLAY_RECORDED;
}

static struct play_modes
modes_of (const struct cli_args *args)
{
    struct play_modes m = { .model = source_of (cli_value (args, "--model")),
                            .tools = source_of (cli_value (args, "--tools")),
                            .hooks = PLAY_RERUN,
                            .goes_on = cli_has (args, "--keep-going"),
                            .each_turn = cli_has (args, "--each-turn"),
                            .has_from = cli_has (args, "--from"),
                            .has_until = cli_has (args, "--until") };
    if (m.has_until)
        m.until_turn = cli_number (args, "--until");
    if (m.has_from)
        m.from_turn = cli_number (args, "--from");
    if (cli_has (args, "--task"))
        m.from_task = (size_t)cli_number (args, "--task");
    return m;
}

/* --- whether it can be done --- */

/* A fork stands on the files of its turn. */
static bool
check_fork (const struct replay *r, const struct play_modes *m, struct mur_error **err)
{
    const struct record *record = r->record;
    if (! m->has_from)
        return true;
    if (m->from_task >= record->task_count)
        return mur_fail (err, E_RPL_007, "%s has no task %zu; it has %zu", record->session_id,
                         m->from_task, record->task_count);
    const char *why = replay_no_fork (record, m->from_task, m->from_turn);
    size_t turns = replay_turns_of (&record->tasks[m->from_task]);
    if (! why)
        return true;
    mur_fail (err, E_RPL_007, "%s cannot be forked at turn %llu of task %zu: %s",
              record->session_id, (unsigned long long)m->from_turn, m->from_task, why);
    if (m->from_turn >= turns && turns)
        return mur_hint (err, "the turns of that task are 0 to %zu", turns - 1);
    return mur_hint (err, "mur replay %s --can names the turns that can", record->session_id);
}

/* A harness keeps its conversation, and works outside of the tools: it is served or not at all. */
static bool
check_harness (const struct replay *r, const struct play_modes *m, struct mur_error **err)
{
    const struct {
        const char *option;
        bool is_asked;
    } no[] = { { "--tools", m->tools != PLAY_RECORDED },
               { "--model live", m->model == PLAY_LIVE },
               { "--from", m->has_from },
               { "--until", m->has_until },
               { "--each-turn", m->each_turn },
               { "--minimise", cli_has (r->args, "--minimise") } };
    bool has_harness = record_has_harness (r->record);
    for (size_t i = 0; has_harness && i < ARRAY_LEN (no); i++)
        if (no[i].is_asked)
            return mur_fail (err, E_RPL_009, "%s ran a harness, which is served: not with %s",
                             r->record->session_id, no[i].option);
    return true;
}

/* What runs again needs what it was given then. */
static bool
check_modes (const struct replay *r, const struct play_modes *m, struct mur_error **err)
{
    if (! check_harness (r, m, err))
        return false;
    if (m->tools != PLAY_RERUN || r->record->tape)
        return check_fork (r, m, err);
    mur_fail (err, E_RPL_001,
              "%s cannot have its tools run again: its trace keeps no files, clocks and random "
              "numbers",
              r->record->session_id);
    return mur_hint (err, "record with this in the manifest, then run it again:\n  trace:\n"
                          "    capture: replay");
}

static bool
find_artifact (struct replay *r, struct run_replay *run, struct mur_error **err)
{
    const char *ref = cli_value (r->args, "--with-artifact");
    const char *at = ref ? strrchr (ref, '@') : NULL;
    if (! ref)
        return true;
    if (! at || at == ref || ! at[1])
        return mur_fail (err, E_RPL_008, "--with-artifact %s: it is written NAME@VERSION", ref);
    r->artifact = x_strndup (ref, (size_t)(at - ref));
    run->artifact_name = r->artifact;
    run->artifact_version = at + 1;
    return true;
}

static void
print_report (const struct replay *r)
{
    const char *id = r->session_id ? r->session_id : "";
    if (cli_has (r->args, "--json")) {
        _cleanup_json_ json_t *o = replay_report_json (r->player, id);
        if (r->children)
            json_object_set (o, "children", r->children);
        _cleanup_free_ char *text = json_pretty (o, JSON_TEXT_ORDERED);
        out_printf ("%s\n", text);
        return;
    }
    _cleanup_buf_ struct buf text = { 0 };
    replay_report_text (r->player, id, &text);
    out_write (text.data, text.len);
    children_print (r->children, 0);
}

/* A difference is an error of its own, after the report that shows it. */
static bool
judge (const struct replay *r, struct mur_error **err)
{
    const struct play_difference *d = player_difference (r->player);
    if (player_verdict (r->player) != PLAY_DIVERGED)
        return player_fail_unanswered (r->player, err) &&
               (r->are_children_good ||
                mur_fail (err, E_RPL_002, "a child of %s ran otherwise", r->record->session_id));
    mur_fail (err, E_RPL_002, "%s ran otherwise: %s at turn %llu (%s)", r->record->session_id,
              d->part, (unsigned long long)d->turn, d->cause);
    return false;
}

/* What can be done with a record beside running it. */
static bool
use_record (struct replay *r, const struct run_replay *run, bool *is_done, struct mur_error **err)
{
    const char *dir = cli_value (r->args, "--export-eval");
    *is_done = true;
    if (dir)
        return eval_export (r->record, run->manifest, run->manifest_len, dir,
                            cli_value (r->args, "--check"), err);
    const struct minimise_request q = { .table = cli_table_of (r->args),
                                        .record = r->record,
                                        .run = *run,
                                        .check = cli_value (r->args, "--check"),
                                        .max_runs = cli_number (r->args, "--max-runs"),
                                        .into = cli_value (r->args, "--work"),
                                        .is_json = cli_has (r->args, "--json") };
    if (cli_has (r->args, "--minimise"))
        return minimise (&q, err);
    *is_done = false;
    return true;
}

static bool
launch (struct replay *r, const struct run_replay *run, struct mur_error **err)
{
    const struct replay_steps steps = { .ctx = NULL };
    if (! replay_launch (cli_table_of (r->args), run, &steps, &r->session_id, err))
        return false;
    if (cli_has (r->args, "--deep"))
        r->children = children_replay (r->record, r->work_root, cli_value (r->args, "--tools"),
                                       &r->are_children_good);
    print_report (r);
    return judge (r, err);
}

/* A record that words were taken out of is another one: its answers are served whatever is asked.
 */
static void
loosen (const struct replay *r, struct play_modes *modes)
{
    if (! r->unpacked.dir || r->unpacked.is_strict || modes->model != PLAY_RECORDED)
        return;
    diag_plain_warning ("the bundle was redacted: what is asked is not compared");
    modes->model = PLAY_SERVED;
}

/* Guests run again, and a processor's own bits may be among what they compute. */
static void
warn_machine (const struct replay *r)
{
    struct utsname host;
    const char *then = r->record->code.arch;
    if (uname (&host) == 0 && then && ! str_eq (then, host.machine))
        diag_warn (DIAG_RUNTIME, W_RPL_001, "%s was recorded on %s and runs on %s",
                   r->record->session_id, then, host.machine);
}

static bool
run_replay (struct replay *r, struct mur_error **err)
{
    struct play_modes modes = modes_of (r->args);
    bool is_done;
    if (! open_record (r, err))
        return false;
    if (cli_has (r->args, "--can")) {
        abilities_print (r->record, cli_has (r->args, "--json"));
        return true;
    }
    if (! check_modes (r, &modes, err) || ! find_manifest (r, err))
        return false;
    loosen (r, &modes);
    warn_machine (r);
    r->player = player_new (r->record, &modes);
    const char *model = cli_value (r->args, "--with-model");
    bool has_another_one = cli_has (r->args, "--with-manifest");
    struct run_replay run = {
        .player = r->player,
        .work_root = r->work_root,
        .manifest_dir = r->manifest_dir,
        .manifest_name = r->manifest_name,
        .manifest = r->manifest.data ? r->manifest.data : "",
        .manifest_len = r->manifest.len,
        .context_id = r->record->context_id,
        .model = model             ? model
                 : has_another_one ? NULL
                                   : r->record->code.launch_model,
        .max_session_tokens = has_another_one ? 0 : r->record->code.launch_ceiling,
        .needs_host =
            modes.tools != PLAY_RECORDED || modes.has_from || cli_has (r->args, "--minimise"),
        .needs_keys = player_is_live (r->player),
    };
    if (! find_artifact (r, &run, err) || ! find_prompt (r, &run, err) ||
        ! use_record (r, &run, &is_done, err))
        return false;
    return is_done || launch (r, &run, err);
}

int
cmd_replay (const struct cli_args *args, struct mur_error **err)
{
    __attribute__ ((cleanup (replay_clear))) struct replay r = { .args = args,
                                                                 .are_children_good = true };
    return run_replay (&r, err) ? CLI_OK : CLI_FAILED;
}
