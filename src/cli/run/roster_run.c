/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/roster_run.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "cli/run/run_inputs.h"
#include "client/door_client.h"
#include "deploy/team.h"
#include "home/paths.h"
#include "policy/containment.h"
#include "spawn/formation/formation.h"
#include "spawn/formation/formation_retire.h"

#include <string.h>

static bool
probe (void *ctx, const char *url, const struct secret *token, const char *session_id)
{
    struct running_record record = { 0 };
    record.url = x_strdup (url);
    record.session_id = x_strdup (session_id);
    record.door_token = token ? secret_copy (token) : NULL;
    bool is_answered = door_answers (ctx, &record);
    running_record_clear (&record);
    return is_answered;
}

/* Formations do not nest: a member cannot launch another. */
static bool
check_environment (struct mur_error **err)
{
    const char *id = getenv ("MURMUR_FORMATION_ID");
    if (! id || ! id[strspn (id, " \t\r\n")])
        return home_check_for_launch (err);
    return mur_fail (err, E_RUN_046,
                     "MURMUR_FORMATION_ID is set: a member of a formation launches no other");
}

static bool
check_flags (const struct cli_args *args, struct mur_error **err)
{
    enum containment_class ignored;
    return ! cli_has (args, "--containment") ||
           containment_flag (cli_value (args, "--containment"), &ignored, err);
}

static void
warn_overfull (const struct admission *a)
{
    for (size_t i = 0; i < a->roster->len; i++)
        if (a->members[i].overfull)
            diag_warn (DIAG_PLAIN, W_ROS_001, "%s", a->members[i].overfull);
}

static const char *
given (const struct cli_args *args, const char *option)
{
    return cli_has (args, option) ? cli_value (args, option) : NULL;
}

static int
launch (const struct cli_args *args, const struct team *team, uint64_t started_ms,
        struct mur_error **err)
{
    /* Read here: the entry member's standard input is not ours. */
    _cleanup_buf_ struct buf piped = { 0 };
    bool is_piped = str_eq (given (args, "--task"), "-");
    if (is_piped && ! run_read_task ("-", &piped, err))
        return CLI_FAILED;
    struct http_client *client = http_client_new ();
    const struct formation_plan plan = {
        .roster = team->admission.roster,
        .sha256 = team->sha256,
        .project_dir = team->dir,
        .task = is_piped ? (piped.data ? piped.data : "") : given (args, "--task"),
        .containment = given (args, "--containment"),
        .is_json = cli_has (args, "--json"),
        .is_verbose = cli_has (args, "--verbose"),
        .has_no_env_file = cli_has (args, "--no-env-file"),
        .deadline_secs = cli_has (args, "--deadline") ? cli_number (args, "--deadline") : 0,
        .started_ms = started_ms,
        .probe = probe,
        .probe_ctx = client,
    };
    struct formation formation = { .plan = &plan };
    int status = 0;
    bool was_launched = formation_run (&formation, &status, err);
    if (formation.has_begun)
        formation_retire (&formation, team_entry (team));
    formation_clear (&formation);
    http_client_free (client);
    return was_launched || status ? status : CLI_FAILED;
}

int
roster_run (const struct cli_args *args, struct mur_error **err)
{
    uint64_t started_ms = clock_monotonic_ms ();
    const char *path = cli_value (args, "--roster"), *public_url, *records_store;
    /* Keys and records store are the members': they inherit where those are. */
    if (! check_environment (err) || ! check_flags (args, err) ||
        ! run_read_surroundings (args, &public_url, &records_store, err))
        return CLI_FAILED;
    _cleanup_team_ struct team team = { 0 };
    if (! team_read (path, &team, err))
        return CLI_FAILED;
    warn_overfull (&team.admission);
    return launch (args, &team, started_ms, err);
}
