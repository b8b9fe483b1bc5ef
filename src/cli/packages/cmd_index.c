/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur index`: write the index of a folder of packages (spec/artifacts.md 9).
 */
#include "artifact/sources/index.h"
#include "artifact/sources/index_build.h"
#include "base/diag.h"
#include "cli/line/args.h"
#include "cli/packages/commands.h"

int
cmd_index (const struct cli_args *args, struct mur_error **err)
{
    struct index_request request = {
        .dir = cli_positional (args, "DIR"),
        .repo = cli_value (args, "--repo"),
        .release = cli_value (args, "--release"),
        .merge = cli_value (args, "--merge"),
        .output = cli_value (args, "--output"),
    };
    struct index_outcome out;
    bool ok = index_folder (&request, &out, err);
    _cleanup_free_ char *scope = out.scope;
    if (! ok)
        return CLI_FAILED;
    out_printf ("Indexed %zu artifacts (%zu versions) for scope %s into %s", out.artifacts,
                out.versions, scope, request.output);
    if (request.merge)
        out_printf ("; %zu versions kept from %s, %zu replaced", out.kept, request.merge,
                    out.replaced);
    out_puts ("\n");
    return CLI_OK;
}
