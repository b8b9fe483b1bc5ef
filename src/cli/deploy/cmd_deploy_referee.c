/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur deploy referee`: the daemon of a fleet, as objects of a cluster.
 */
#include "base/alloc.h"
#include "base/diag.h"
#include "cli/deploy/commands.h"
#include "cli/deploy/rendered.h"
#include "cli/line/args.h"
#include "deploy/referee.h"

#include <string.h>

/* They are Secrets, and no output of ours has one. */
static void
note_secrets (const char *space)
{
    diag_note (
        "it waits for its keys and certificate: head -c 64 /dev/urandom >key; kubectl create "
        "secret generic " REFEREE_KEY_SECRET " --namespace %s --from-file=key; kubectl "
        "create secret tls " REFEREE_TLS_SECRET " --namespace %s --cert=FILE --key=FILE",
        space, space);
}

int
cmd_deploy_referee (const struct cli_args *args, struct mur_error **err)
{
    static const char *const numbers[] = { "--max-depth", "--max-concurrent", "--max-live-capsules",
                                           "--queue-timeout" };
    _cleanup_ (deploy_files_free) struct deploy_files files = { 0 };
    _cleanup_strv_ struct strv allowed = { 0 };
    const char *space = cli_value (args, "--namespace"), *url = cli_value (args, "--roost-url");
    _cleanup_free_ char *usual = x_asprintf ("https://" REFEREE_NAME ".%s.svc", space);
    size_t count = 0;
    const char *const *names = cli_positionals (args, "CAPSULE", &count);
    for (size_t i = 0; i < count; i++)
        strv_push (&allowed, names[i]);
    struct referee_deployment d = { .image = cli_value (args, "--image"),
                                    .space = space,
                                    .roost_url = url ? url : usual,
                                    .ca = cli_value (args, "--ca"),
                                    .seccomp = cli_value (args, "--seccomp-profile"),
                                    .queue = cli_value (args, "--queue"),
                                    .records_store = cli_value (args, "--records-store"),
                                    .records_role = cli_value (args, "--records-role"),
                                    .placement = cli_value (args, "--placement"),
                                    .spawn_allow = &allowed };
    for (size_t i = 0; i < ARRAY_LEN (numbers); i++) {
        const char *text = d.limits[i][1] = cli_value (args, numbers[i]);
        d.limits[i][0] = numbers[i];
        if (text && (! *text || strspn (text, "0123456789") != strlen (text))) {
            mur_fail (err, E_DEP_005, "%s: %s is no whole number", numbers[i], text);
            return CLI_FAILED;
        }
    }
    if (! deploy_referee (&d, &files, err) ||
        ! rendered_write (&files, cli_value (args, "--out"), err))
        return CLI_FAILED;
    rendered_note_tag (d.image);
    note_secrets (space);
    return CLI_OK;
}
