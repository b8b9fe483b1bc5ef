/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur config set` and `mur beta`: the commands that write configuration (spec/cli.md 4).
 */
#include "base/alloc.h"
#include "base/diag.h"
#include "cli/health/commands.h"
#include "cli/line/args.h"
#include "manifest/settings/config.h"
#include "manifest/settings/config_write.h"

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

static bool
is_known (const char *feature)
{
    for (size_t i = 0; features[i]; i++)
        if (str_eq (features[i], feature))
            return true;
    return false;
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
    if (! config_set_beta (feature, enables, &is_changed, err))
        return CLI_FAILED;
    if (! is_known (feature))
        diag_plain_warning ("this build knows no beta feature \"%s\"", feature);
    out_printf (is_changed ? "%s is %s.\n" : "%s was already %s.\n", feature,
                enables ? "enabled" : "disabled");
    return CLI_OK;
}
