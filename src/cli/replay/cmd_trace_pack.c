/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur trace pack`: a recorded session as one file (docs/spec/records.md 14.2).
 */
#include "base/alloc.h"
#include "base/diag.h"
#include "cli/line/args.h"
#include "cli/replay/addressed.h"
#include "cli/replay/commands.h"
#include "cli/replay/packing.h"
#include "home/paths.h"
#include "replay/record/record_read.h"

static bool
pack (const struct cli_args *args, struct mur_error **err)
{
    _cleanup_free_ char *work_root = home_work_root (cli_value (args, "--workdir"), ".", err);
    _cleanup_record_ struct record *r =
        work_root ? record_addressed (cli_positional (args, "SESSION"), work_root, err) : NULL;
    if (! r || ! record_check (r, err))
        return false;
    _cleanup_free_ char *named = x_asprintf ("%s.murtrace", r->session_id);
    const char *path = cli_value (args, "--output") ? cli_value (args, "--output") : named;
    if (! packing_pack (r, path, cli_has (args, "--redact"), err))
        return false;
    out_printf ("%s\n", path);
    return true;
}

int
cmd_trace_pack (const struct cli_args *args, struct mur_error **err)
{
    return pack (args, err) ? CLI_OK : CLI_FAILED;
}
