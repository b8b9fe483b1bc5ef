/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur publish`: a packed artifact into the global store, as local/<packed name>, or into an OCI
 * registry (spec/artifacts.md 8.1, 10).
 */
#include "artifact/names/name.h"
#include "artifact/names/platform.h"
#include "artifact/names/version.h"
#include "artifact/package/judge.h"
#include "artifact/registry/oci_publish.h"
#include "artifact/registry/oci_signature.h"
#include "artifact/store/store.h"
#include "artifact/store/store_write.h"
#include "base/alloc.h"
#include "base/diag.h"
#include "cli/line/args.h"
#include "cli/line/missing_manifest.h"
#include "cli/packages/commands.h"
#include "manifest/settings/artifact_manifest.h"
#include "manifest/settings/config.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The archive `mur build` writes here. */
static char *
default_archive (struct mur_error **err)
{
    _cleanup_ (artifact_manifest_freep) struct artifact_manifest *m =
        artifact_manifest_read ("./murmur.yaml", err);
    if (! m && access ("murmur.yaml", F_OK) < 0)
        missing_manifest_hint (
            ".", "run it where mur build wrote a .mur.zip, or name one: mur publish FILE", err);
    if (! m)
        return NULL;
    return x_asprintf ("./%s-%s.mur.zip", m->name, m->version);
}

static bool
check_platform (const char *platform, struct mur_error **err)
{
    if (! platform || (strchr (platform, '-') && version_is_segment (platform)))
        return true;
    return mur_fail (err, E_IO_003, "--platform %s: expected <os>-<arch>, such as linux-x86_64",
                     platform);
}

static bool
publish (struct package *p, const char *platform, struct mur_error **err)
{
    const struct artifact_manifest *m = p->manifest;
    if (version_is_reserved (m->version))
        return mur_fail (err, E_REG_004, "version \"%s\" of %s is reserved and cannot be published",
                         m->version, m->name);
    _cleanup_free_ char *name = x_asprintf ("%s/%s", SCOPE_LOCAL, m->name);
    _cleanup_stores_ struct stores *stores = stores_new (NULL, err);
    if (! stores || ! name_check_full (name, E_REG_007, NULL, err))
        return false;
    struct store_write w = {
        .name = name,
        .version = m->version,
        .platform = platform,
        .forces_native = platform != NULL,
        .overwrite = STORE_PUBLISH,
    };
    bool is_guessed = ! platform && m->packaging == PACKAGING_NATIVE;
    if (is_guessed)
        w.platform = platform_host ();
    if (! store_put (&stores->at[STORE_GLOBAL], p, &w, NULL, err))
        return false;
    if (is_guessed)
        out_printf ("Platform: %s (auto-detected)\n", w.platform);
    out_printf ("Published %s@%s\n", name, m->version);
    return true;
}

/* --- into a registry --- */

static bool
publish_to_registry (struct package *p, const char *to, const char *platform,
                     struct mur_error **err)
{
    _cleanup_oci_ref_ struct oci_ref ref = { 0 };
    _cleanup_oci_published_ struct oci_published out = { 0 };
    _cleanup_config_ struct config *config = config_load_global (err);
    if (! config || ! oci_ref_parse (to, &ref, err))
        return false;
    _cleanup_oci_client_ struct oci_client *client =
        oci_client_new (&(struct oci_options){ .plain_hosts = &config->plain_http });
    bool is_guessed = ! platform && p->manifest->packaging == PACKAGING_NATIVE;
    if (is_guessed)
        platform = platform_host ();
    if (platform && ! platform_is_tag (platform))
        return mur_fail (err, E_IO_003, "--platform %s: a registry knows no such platform",
                         platform);
    if (! oci_publish (client, &ref, p, platform, &out, err))
        return false;
    if (p->signature && ! oci_signature_put (client, &ref, out.digest, out.size, p->signature, err))
        return false;
    if (is_guessed)
        out_printf ("Platform: %s (auto-detected)\n", platform);
    out_printf ("%s %s@%s → oci://%s (%s)\n", out.was_there ? "Already there:" : "Published",
                p->manifest->name, p->manifest->version, out.reference, out.tag_digest);
    if (p->signature)
        out_puts ("Its signature is there, too\n");
    return true;
}

/* A signature that was left behind by an older build is not published. */
static bool
check_signature (const struct package *p, const char *path, struct mur_error **err)
{
    const struct signed_package what = { p->manifest->name, p->manifest->version, p->sha256 };
    _cleanup_free_ char *fault = p->signature ? signature_fault (p->signature, &what) : NULL;
    if (! fault)
        return true;
    mur_fail (err, E_TRU_003, "%s" PACKAGE_SIGNATURE_ENDING " is not of this package: %s", path,
              fault);
    return mur_hint (err, "`mur sign %s --key <name>` makes a new one", path);
}

int
cmd_publish (const struct cli_args *args, struct mur_error **err)
{
    const char *given = cli_positional (args, "ARTIFACT_PATH"), *to = cli_positional (args, "TO");
    bool is_alone = given && ! to && str_starts (given, OCI_SCHEME);
    if (is_alone) {
        to = given;
        given = NULL;
    }
    if (to && ! str_starts (to, OCI_SCHEME)) {
        mur_fail (err, E_IO_003, "%s is no place to publish to", to);
        mur_hint (err, "write oci://<host>/<repository>, or nothing for the global store");
        return CLI_FAILED;
    }
    const char *platform = cli_value (args, "--platform");
    _cleanup_free_ char *path = given ? x_strdup (given) : default_archive (err);
    if (! path || ! check_platform (platform, err))
        return CLI_FAILED;
    _cleanup_package_ struct package *p = package_from_file (path, err);
    struct stat st;
    if (! p && stat (path, &st) == 0 && S_ISDIR (st.st_mode))
        mur_hint (err, "name the .mur.zip that mur build writes there");
    if (! p || ! package_open_zip (p, err) || ! package_check_entries (p, err) ||
        ! package_check_bytes (p, err) || ! check_signature (p, path, err))
        return CLI_FAILED;
    _cleanup_free_ char *odd = package_miscast (p);
    if (odd)
        diag_warn (DIAG_PLAIN, W_REG_005, "%s", odd);
    if (! (to ? publish_to_registry (p, to, platform, err) : publish (p, platform, err)))
        return CLI_FAILED;
    return CLI_OK;
}
