/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/remote_stand.h"

#include "cli/run/launcher_inputs.h"
#include "spawn/remote/remote_child.h"

int
remote_stand_run (const struct cli_args *args, struct mur_error **err)
{
    struct launcher_inputs in = { .grant = launcher_read_grant (err) };
    int status = CLI_FAILED;
    if (in.grant && launcher_inputs_read (&in, err)) {
        const struct remote_child child = { .ticket = in.grant,
                                            .delegation_id = in.spawner.delegation_id,
                                            .capsule = cli_value (args, "--capsule"),
                                            .version = cli_value (args, "--capsule-version"),
                                            .workdir = cli_value (args, "--workdir"),
                                            .roost_url = getenv ("MURMUR_ROOST_URL") };
        status = remote_child_run (&child, err);
    }
    launcher_inputs_clear (&in);
    return status;
}
