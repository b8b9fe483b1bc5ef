/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur install`, in all its forms (spec/artifacts.md 10).
 */
#include "artifact/sources/install.h"
#include "artifact/sources/install_manifest.h"
#include "base/diag.h"
#include "cli/line/args.h"
#include "cli/packages/commands.h"

static bool
run_ref (const char *text, const struct cli_args *args, bool precompiles, struct mur_error **err)
{
    struct install_ref ref;
    if (! install_ref_parse (text, &ref, err))
        return false;
    bool all_platforms = cli_has (args, "--all-platforms");
    bool is_global = cli_has (args, "--global") || all_platforms;
    _cleanup_install_ struct install in = { 0 };
    bool ok;
    if (all_platforms && (ref.kind != INSTALL_NAME || ! ref.version))
        ok = mur_fail (err, E_IO_003, "--all-platforms needs <scope>/<name>@<version>");
    else if (cli_has (args, "--update") && ref.kind != INSTALL_NAME)
        ok = mur_fail (err, E_IO_003, "--update needs <scope>/<name>[@<version>], or no artifact");
    else
        ok = install_open (&in, is_global, precompiles, err) &&
             (! cli_has (args, "--update") || install_unpin (&in, ref.name, err)) &&
             (all_platforms ? install_all_platforms (&in, &ref, err)
                            : install_ref_run (&in, &ref, err));
    install_ref_clear (&ref);
    return ok;
}

static bool
run_manifest (const struct cli_args *args, bool precompiles, bool *any_failed,
              struct mur_error **err)
{
    if (cli_has (args, "--all-platforms"))
        return mur_fail (err, E_IO_003, "--all-platforms needs <scope>/<name>@<version>");
    _cleanup_install_ struct install in = { 0 };
    if (! install_open (&in, false, precompiles, err) ||
        (cli_has (args, "--update") && ! install_unpin (&in, NULL, err)))
        return false;
    in.is_global = cli_has (args, "--global");
    return install_manifest (&in, any_failed, err);
}

int
cmd_install (const struct cli_args *args, struct mur_error **err)
{
    const char *text = cli_positional (args, "ARTIFACT");
    bool precompiles = ! cli_has (args, "--no-precompile");
    bool any_failed = false;
    if (cli_has (args, "--resolve") && ! install_resolve_lock (err))
        return CLI_FAILED;
    bool ok = text ? run_ref (text, args, precompiles, err)
                   : run_manifest (args, precompiles, &any_failed, err);
    return ok && ! any_failed ? CLI_OK : CLI_FAILED;
}
