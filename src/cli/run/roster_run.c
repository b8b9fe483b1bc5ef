/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/roster_run.h"

#include "artifact/store/admission.h"
#include "artifact/store/lock_file.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "cli/run/run_inputs.h"
#include "client/door_client.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "home/paths.h"
#include "policy/containment.h"
#include "spawn/formation/formation.h"
#include "spawn/formation/formation_retire.h"

#include <libgen.h>
#include <string.h>
#include <sys/stat.h>

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

/* The folder a roster lies in: a directory that was named, or the one of the file. Owned. */
static char *
folder_of (const char *path, struct mur_error **err)
{
    struct stat st;
    if (stat (path, &st) == 0 && S_ISDIR (st.st_mode))
        return fs_canonical_path (path, err);
    _cleanup_free_ char *copy = x_strdup (path);
    return fs_canonical_path (dirname (copy), err);
}

static const char *
given (const struct cli_args *args, const char *option)
{
    return cli_has (args, option) ? cli_value (args, option) : NULL;
}

static int
launch (const struct cli_args *args, const struct admission *a, const char *dir,
        uint64_t started_ms, struct mur_error **err)
{
    /* Read here: the entry member's standard input is not ours. */
    _cleanup_buf_ struct buf piped = { 0 };
    bool is_piped = str_eq (given (args, "--task"), "-");
    if (is_piped && ! run_read_task ("-", &piped, err))
        return CLI_FAILED;
    struct http_client *client = http_client_new ();
    _cleanup_free_ const char **digests = x_new_array (const char *, a->roster->len);
    for (size_t i = 0; i < a->roster->len; i++)
        digests[i] = a->members[i].capsule->package->sha256;
    const struct formation_plan plan = {
        .roster = a->roster,
        .sha256 = digests,
        .project_dir = dir,
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
        formation_retire (&formation, a->members[a->roster->entry].manifest);
    formation_clear (&formation);
    http_client_free (client);
    return was_launched || status ? status : CLI_FAILED;
}

int
roster_run (const struct cli_args *args, struct mur_error **err)
{
    uint64_t started_ms = clock_monotonic_ms ();
    const char *path = cli_value (args, "--roster");
    if (! check_environment (err) || ! check_flags (args, err))
        return CLI_FAILED;
    _cleanup_free_ char *dir = folder_of (path, err);
    _cleanup_stores_ struct stores *stores = dir ? stores_new (dir, err) : NULL;
    _cleanup_lock_ struct lock *lock = stores ? lock_read (dir, err) : NULL;
    _cleanup_admission_ struct admission admission = { 0 };
    if (! lock || ! roster_admission (path, stores, lock, &admission, err))
        return CLI_FAILED;
    warn_overfull (&admission);
    return launch (args, &admission, dir, started_ms, err);
}
