/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur doctor`: checks a project and this machine, and says how to mend each problem (spec/cli.md
 * 5).
 */
#include "artifact/store/lock_file.h"
#include "base/alloc.h"
#include "base/diag.h"
#include "cli/health/commands.h"
#include "cli/health/doctor_internal.h"
#include "cli/health/doctor_learn.h"
#include "cli/line/args.h"
#include "cli/line/missing_manifest.h"
#include "cli/line/missing_programs.h"
#include "home/paths.h"
#include "manifest/settings/config.h"
#include "policy/warn.h"
#include "sandbox/host/host.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum containment_class
config_class (enum config_floor floor)
{
    return floor == CONFIG_FLOOR_SEALED   ? CONTAINMENT_SEALED
           : floor == CONFIG_FLOOR_SCOPED ? CONTAINMENT_SCOPED
                                          : CONTAINMENT_ADVISORY;
}

/* Who may come in, by name; scopes as declared. */
static void
bearer_line (const struct door_authentication *a)
{
    out_printf ("door: %s — operator", a->scheme);
    for (size_t i = 0; i < a->credentials.len; i++) {
        const struct door_credential *c = &a->credentials.items[i];
        out_printf (", %s (", c->name);
        for (size_t k = 0; k < c->scopes.len; k++)
            out_printf ("%s%s", k ? ", " : "", c->scopes.items[k]);
        out_puts (")");
    }
    out_puts ("\n");
}

static void
door_line (struct doctor *d)
{
    const struct door_network *network = d->manifest->network;
    const struct door_authentication *a = network ? network->authentication : NULL;
    if (a)
        bearer_line (a);
    else
        out_puts ("door: public (no network.authentication)\n");
    policy_warn_door (d->policy, true);
}

static const char *
plural (size_t n)
{
    return n == 1 ? "" : "s";
}

static int
summary (struct doctor *d)
{
    if (d->errors == 0 && d->warnings == 0)
        out_puts ("\nAll checks passed.\n");
    else {
        out_printf ("\n%zu check%s passed, %zu error%s found", d->passed, plural (d->passed),
                    d->errors, plural (d->errors));
        if (d->warnings)
            out_printf (", %zu warning%s", d->warnings, plural (d->warnings));
        out_puts (".\n");
    }
    for (size_t i = 0; i < d->fixes.len; i++)
        out_printf ("%sFix: %s\n", i ? "" : "\n", d->fixes.items[i]);
    return d->errors ? CLI_FAILED : CLI_OK;
}

struct part {
    const char *title; /* for a person: what was looked at */
    void (*tell) (struct doctor *d);
    bool is_of_machine; /* it can be looked at without a project */
};

static const struct part parts[] = {
    { "the door", door_line },
    { "namespaces, Landlock", doctor_namespaces, true },
    { "the murmur home", doctor_home, true },
    { "grants", doctor_grants },
    { "memory bound", doctor_memory, true },
    { "environment", doctor_environment },
    { "control secrets", doctor_control_secrets },
    { "interfaces", doctor_wit_level },
    { "leftovers of sessions", doctor_leftovers, true },
    { "signatures", doctor_trust, true },
    { "artifacts", doctor_checklist },
    { "limits of models", doctor_model_limits },
    { "folders of a session", doctor_directories },
    { "what a launch would refuse", doctor_concerns },
};

/* One part for a person: a line where all is well, else all that it says. */
static void
tell_shortly (struct doctor *d, const struct part *part)
{
    _cleanup_buf_ struct buf said = { 0 };
    size_t faults = d->errors + d->warnings;
    out_set_aside (&said);
    part->tell (d);
    out_set_aside (NULL);
    if (faults == d->errors + d->warnings)
        out_printf ("\u2713  %s\n", part->title);
    else
        out_raw (said.data ? said.data : "", said.len);
}

static int
report (struct doctor *d, bool is_short)
{
    for (size_t i = 0; i < ARRAY_LEN (parts); i++)
        if (! d->project && ! parts[i].is_of_machine)
            continue;
        else if (is_short)
            tell_shortly (d, &parts[i]);
        else
            parts[i].tell (d);
    int status = summary (d);
    if (is_short)
        out_puts ("(all that was looked at: mur doctor --verbose)\n");
    strv_free (&d->fixes);
    strv_free (&d->natives);
    return status;
}

static int
check_manifest (struct capsule_manifest *manifest, const char *project, const char *path,
                const struct cli_args *args, struct mur_error **err)
{
    _cleanup_free_ char *home = home_path (err);
    if (! home)
        return CLI_FAILED;
    _cleanup_config_ struct config *config = config_load (err);
    _cleanup_lock_ struct lock *lock = config ? lock_read (project ? project : "/", err) : NULL;
    _cleanup_stores_ struct stores *stores = lock ? stores_new (project, err) : NULL;
    struct policy_request request = {
        .home_dir = home,
        .manifest_dir = project ? project : "/",
        .config_floor = config ? config_class (config->containment) : CONTAINMENT_ADVISORY,
        .flag_floor = CONTAINMENT_ADVISORY,
        .bind_addr = cli_value (args, "--bind"),
    };
    struct policy *policy = stores ? policy_lower (manifest, &request, err) : NULL;
    int status = CLI_FAILED;
    if (policy) {
        policy_warn_parse (policy, config_credential_copy, config);
        missing_programs_note (policy);
        struct host_containment host = host_containment_facts ();
        struct capsule_containment capsule = { .workdir_exec = policy->files.exec_allowed &&
                                                               ! policy->files.exec_is_walled };
        struct containment containment = { 0 };
        containment_decide (&host, policy->containment_floor, &capsule, &containment);
        struct doctor d = { .home = home,
                            .project = project,
                            .manifest_path = path,
                            .manifest = manifest,
                            .policy = policy,
                            .containment = &containment,
                            .config = config,
                            .stores = stores,
                            .lock = lock };
        status = report (&d, isatty (STDOUT_FILENO) && ! cli_has (args, "--verbose"));
        containment_clear (&containment);
    }
    policy_free (policy);
    return status;
}

/* A malformed manifest, lock or configuration is the answer: no checklist then. */
static int
check_project (const char *project, const struct cli_args *args, struct mur_error **err)
{
    _cleanup_free_ char *path = x_asprintf ("%s/murmur.yaml", project);
    _cleanup_ (capsule_manifest_freep) struct capsule_manifest *manifest =
        capsule_manifest_read (path, MANIFEST_SECRETLESS, err);
    if (! manifest)
        return CLI_FAILED;
    capsule_manifest_warn_unknown (manifest);
    return check_manifest (manifest, project, path, args, err);
}

/* What holds for every project: people look at a machine before they have one. */
static int
check_machine (const struct cli_args *args, struct mur_error **err)
{
    static const char least[] = "name: none\nversion: \"0.0.0\"\n";
    _cleanup_ (capsule_manifest_freep) struct capsule_manifest *manifest =
        capsule_manifest_parse (least, sizeof least - 1, "murmur.yaml", MANIFEST_SECRETLESS, err);
    int status = manifest ? check_manifest (manifest, NULL, NULL, args, err) : CLI_FAILED;
    diag_note ("only this machine was looked at: there is no murmur.yaml here or above; `mur new "
               "agent hello` creates one");
    return status;
}

/* --- a formation's folder --- */

static int
check_roster (const char *dir, struct mur_error **err)
{
    struct doctor d = { .project = dir };
    int status = doctor_roster (&d, err) ? summary (&d) : CLI_FAILED;
    strv_free (&d.fixes);
    return status;
}

int
cmd_doctor (const struct cli_args *args, struct mur_error **err)
{
    if (cli_has (args, "--learn"))
        return doctor_learn (args, err);
    _cleanup_free_ char *cwd = getcwd (NULL, 0);
    struct stat st;
    if (! cwd) {
        mur_fail_errno (err, E_IO_003, "cannot name the current directory");
        return CLI_FAILED;
    }
    if (stat ("roster.yaml", &st) == 0 && stat ("murmur.yaml", &st) < 0)
        return check_roster (cwd, err);
    _cleanup_free_ char *project = project_root_find (cwd);
    if (project)
        return check_project (project, args, err);
    if (isatty (STDOUT_FILENO))
        return check_machine (args, err);
    mur_fail (err, E_IO_001, "there is no murmur.yaml at or above %s, and no roster.yaml in it",
              cwd);
    missing_manifest_hint (cwd, "run it in a project's folder", err);
    return CLI_FAILED;
}
