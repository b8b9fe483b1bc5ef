/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur stop`: ends a running session, or a whole formation (spec/cli.md 3).
 */
#include "base/alloc.h"
#include "base/buf.h"
#include "cli/line/args.h"
#include "cli/running/commands.h"
#include "cli/running/fleet_sessions.h"
#include "cli/running/running_session.h"
#include "cli/running/stop_formation.h"
#include "cli/running/stop_session.h"

int
cmd_stop (const struct cli_args *args, struct mur_error **err)
{
    const char *address = cli_positional (args, "SESSION");
    uint64_t timeout_s = cli_number (args, "--timeout");
    if (cli_has (args, "--fleet"))
        return fleet_sessions_stop (args, address, err);
    if (str_starts (address, "frm_"))
        return stop_formation (address, timeout_s, err) ? CLI_OK : CLI_FAILED;
    _cleanup_ (running_scan_free) struct running_scan scan = { 0 };
    const struct running_entry *e = running_session (address, &scan, err);
    return e && stop_session (&e->record, timeout_s, err) ? CLI_OK : CLI_FAILED;
}
