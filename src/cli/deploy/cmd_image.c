/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur image build|push|pull`: a capsule as an image in a folder, and in a registry.
 */
#include "artifact/names/platform.h"
#include "base/alloc.h"
#include "base/diag.h"
#include "cli/deploy/commands.h"
#include "cli/line/args.h"
#include "deploy/image_carry.h"
#include "manifest/settings/config.h"

#include <string.h>

static void
say (const char *what, const char *where, const struct image_made *made)
{
    out_printf ("%s %s (%zu layer%s, %llu bytes)\n%s\n", what, where, made->layers,
                made->layers == 1 ? "" : "s", (unsigned long long)made->size, made->digest);
}

int
cmd_image_build (const struct cli_args *args, struct mur_error **err)
{
    struct image_made made;
    const char *dir = cli_positional (args, "DIR");
    struct image_request r = { .dir = dir ? dir : ".",
                               .output = cli_value (args, "--output"),
                               .base = cli_value (args, "--base"),
                               .is_roster = cli_has (args, "--roster") };
    r.capsules = cli_positionals (args, "CAPSULE", &r.capsule_count);
    if (! image_build (&r, &made, err))
        return CLI_FAILED;
    say ("Built image:", r.output, &made);
    return CLI_OK;
}

/* The reference as it is written, judged. */
static bool
read_ref (const char *text, struct oci_ref *ref, struct mur_error **err)
{
    if (str_starts (text, OCI_SCHEME))
        return oci_ref_parse (text, ref, err);
    mur_fail (err, E_IO_003, "%s is no address of an image", text);
    return mur_hint (err, "write oci://<host>/<repository>:<tag>");
}

int
cmd_image_push (const struct cli_args *args, struct mur_error **err)
{
    struct image_made made;
    _cleanup_oci_ref_ struct oci_ref ref = { 0 };
    if (! read_ref (cli_positional (args, "TO"), &ref, err))
        return CLI_FAILED;
    if (! ref.tag || ref.digest) {
        mur_fail (err, E_REG_007, "%s: an image is pushed under a tag",
                  cli_positional (args, "TO"));
        return CLI_FAILED;
    }
    _cleanup_config_ struct config *config = config_load_global (err);
    if (! config)
        return CLI_FAILED;
    _cleanup_oci_client_ struct oci_client *client =
        oci_client_new (&(struct oci_options){ .plain_hosts = &config->plain_http });
    if (! image_push (client, &ref, cli_positional (args, "DIR"), &made, err))
        return CLI_FAILED;
    _cleanup_free_ char *name = x_asprintf ("%s/%s:%s", ref.host, ref.repository, ref.tag);
    say ("Pushed", name, &made);
    out_printf ("%s/%s@%s\n", ref.host, ref.repository, made.digest);
    return CLI_OK;
}

int
cmd_image_pull (const struct cli_args *args, struct mur_error **err)
{
    struct image_made made;
    _cleanup_oci_ref_ struct oci_ref ref = { 0 };
    const char *platform = cli_value (args, "--platform");
    if (platform && ! platform_is_tag (platform)) {
        mur_fail (err, E_IO_003, "--platform %s: expected <os>-<arch>, such as linux-x86_64",
                  platform);
        return CLI_FAILED;
    }
    _cleanup_config_ struct config *config = config_load_global (err);
    if (! config || ! read_ref (cli_positional (args, "FROM"), &ref, err))
        return CLI_FAILED;
    _cleanup_oci_client_ struct oci_client *client =
        oci_client_new (&(struct oci_options){ .plain_hosts = &config->plain_http });
    if (! image_pull (client, &ref, platform ? platform : platform_host (),
                      cli_value (args, "--output"), &made, err))
        return CLI_FAILED;
    say ("Pulled", cli_value (args, "--output"), &made);
    return CLI_OK;
}
