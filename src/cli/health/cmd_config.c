/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur config` and `mur beta`: configuration read and written (spec/cli.md 4). A secret is never
 * shown.
 */
#include "base/alloc.h"
#include "base/diag.h"
#include "base/printable.h"
#include "cli/health/commands.h"
#include "cli/line/args.h"
#include "manifest/settings/config.h"
#include "manifest/settings/config_entries.h"
#include "manifest/settings/config_write.h"
#include "manifest/text/suggest.h"

#include <unistd.h>

/* Features a build may hide until they are enabled; this one has none. Ends with NULL. */
static const char *const features[] = { NULL };

int
cmd_config_set (const struct cli_args *args, struct mur_error **err)
{
    const char *key = cli_positional (args, "KEY");
    _cleanup_free_ char *written = NULL;
    if (! config_set (key, cli_positional (args, "VALUE"), cli_has (args, "--global"), &written,
                      err))
        return CLI_FAILED;
    out_printf ("Set %s in %s\n", key, written);
    if (str_eq (key, "inference.api_key"))
        diag_note ("`mur run` does not read inference.api_key: a manifest names its key as "
                   "${NAME}, answered by credentials.<NAME>");
    return CLI_OK;
}

/* --- reading back --- */

struct reading {
    const char *wanted; /* NULL: all */
    bool is_found;
};

static void
list_entry (void *ctx, const struct config_entry *e)
{
    struct reading *r = ctx;
    r->is_found = true;
    out_printf ("%-30s %-40s %s\n", e->key, e->value ? e->value : "(set; not shown)", e->file);
}

/* The first that has the key is the one that holds. */
static void
print_wanted (void *ctx, const struct config_entry *e)
{
    struct reading *r = ctx;
    if (r->is_found || ! str_eq (r->wanted, e->key))
        return;
    r->is_found = true;
    if (e->value)
        out_printf ("%s\n", e->value);
    else
        diag_note ("%s is set in %s; a secret is not shown", e->key, e->file);
}

int
cmd_config_list (const struct cli_args *args, struct mur_error **err)
{
    (void)args;
    struct reading r = { 0 };
    if (! config_entries (list_entry, &r, err))
        return CLI_FAILED;
    if (! r.is_found)
        diag_note ("nothing is configured; `mur config set -g KEY VALUE` begins");
    return CLI_OK;
}

int
cmd_config_get (const struct cli_args *args, struct mur_error **err)
{
    struct reading r = { .wanted = cli_positional (args, "KEY") };
    if (! config_entries (print_wanted, &r, err))
        return CLI_FAILED;
    if (r.is_found)
        return CLI_OK;
    if (! config_key_exists (r.wanted, err))
        return CLI_FAILED;
    mur_fail (err, E_CFG_002, "%s is not set", r.wanted);
    mur_hint (err, "`mur config list` shows what is");
    return CLI_FAILED;
}

int
cmd_config_unset (const struct cli_args *args, struct mur_error **err)
{
    const char *key = cli_positional (args, "KEY");
    _cleanup_free_ char *written = NULL;
    if (! config_set (key, NULL, cli_has (args, "--global"), &written, err))
        return CLI_FAILED;
    out_printf ("Unset %s in %s\n", key, written);
    return CLI_OK;
}

int
cmd_config_path (const struct cli_args *args, struct mur_error **err)
{
    (void)args;
    _cleanup_config_ struct config *config = config_load (err);
    if (! config)
        return CLI_FAILED;
    if (config->project_path)
        out_printf ("%s%s\n", config->project_path,
                    access (config->project_path, F_OK) == 0 ? "" : "  (absent)");
    out_printf ("%s%s\n", config->global_path,
                access (config->global_path, F_OK) == 0 ? "" : "  (absent)");
    return CLI_OK;
}

static bool
is_known (const char *feature)
{
    for (size_t i = 0; features[i]; i++)
        if (str_eq (features[i], feature))
            return true;
    return false;
}

/* It is kept all the same: another build of one home may know it. */
static void
warn_unknown (const char *typed)
{
    struct suggestion near = { NULL, 0 };
    for (size_t i = 0; features[i]; i++)
        suggestion_offer (&near, typed, features[i]);
    diag_plain_warning ("this build knows no beta feature \"%s\"%s%s; `mur beta list` shows those "
                        "there are",
                        typed, near.word ? ", did you mean " : "", near.word ? near.word : "");
}

int
cmd_beta_list (const struct cli_args *args, struct mur_error **err)
{
    (void)args;
    _cleanup_config_ struct config *config = config_load_global (err);
    if (! config)
        return CLI_FAILED;
    if (! features[0])
        out_puts ("This build has no beta features.\n");
    for (size_t i = 0; features[i]; i++)
        out_printf ("%-24s %s\n", features[i],
                    strv_contains (&config->beta, features[i]) ? "enabled" : "disabled");
    return CLI_OK;
}

int
cmd_beta_set (const struct cli_args *args, struct mur_error **err)
{
    const char *feature = cli_positional (args, "FEATURE");
    bool enables = str_eq (cli_command_of (args)->name, "beta enable");
    bool is_changed;
    if (! text_is_printable (feature, TEXT_NAME)) {
        mur_fail (err, E_CFG_002, "\"%s\" is no name of a beta feature", feature);
        mur_hint (err, "`mur beta list` shows those there are");
        return CLI_FAILED;
    }
    if (! config_set_beta (feature, enables, &is_changed, err))
        return CLI_FAILED;
    if (! is_known (feature))
        warn_unknown (feature);
    out_printf (is_changed ? "%s is %s.\n" : "%s was already %s.\n", feature,
                enables ? "enabled" : "disabled");
    return CLI_OK;
}
