/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/remote_stand.h"

#include "cli/run/launcher_inputs.h"
#include "manifest/settings/secrets_dir.h"
#include "spawn/remote/remote_child.h"
#include "trace/ship/record_store.h"

int
remote_stand_run (const struct cli_args *args, struct mur_error **err)
{
    struct launcher_inputs in = { .grant = launcher_read_grant (err) };
    int status = CLI_FAILED;
    if (in.grant && launcher_inputs_read (&in, err) && secrets_dir_use (NULL, err)) {
        const struct remote_child child = { .ticket = in.grant,
                                            .delegation_id = in.spawner.delegation_id,
                                            .capsule = cli_value (args, "--capsule"),
                                            .version = cli_value (args, "--capsule-version"),
                                            .workdir = cli_value (args, "--workdir"),
                                            .roost_url = getenv ("MURMUR_ROOST_URL"),
                                            .records_store = getenv (RECORDS_STORE_VARIABLE) };
        status = remote_child_run (&child, err);
    }
    launcher_inputs_clear (&in);
    return status;
}
