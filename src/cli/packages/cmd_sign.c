/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur sign` and `mur verify`: a signature beside a package, and whose it is (spec/artifacts.md
 * 8.2).
 */
#include "artifact/names/name.h"
#include "artifact/package/judge.h"
#include "artifact/store/store.h"
#include "artifact/trust/sigstore.h"
#include "base/alloc.h"
#include "base/diag.h"
#include "base/secret.h"
#include "cli/line/args.h"
#include "cli/packages/commands.h"
#include "fs/paths.h"
#include "manifest/settings/artifact_manifest.h"

#include <string.h>

static struct signed_package
signed_of (const struct package *p)
{
    return (struct signed_package){ p->manifest->name, p->manifest->version, p->sha256 };
}

static bool
sign_one (const char *path, const struct trust_key *key,
          const unsigned char private_key[ED25519_KEY_LEN], struct mur_error **err)
{
    _cleanup_package_ struct package *p = package_from_file (path, err);
    if (! p || ! package_open_zip (p, err) || ! package_check_bytes (p, err))
        return false;
    const struct signed_package what = signed_of (p);
    _cleanup_free_ char *text = signature_make (&what, key, private_key, p->signature);
    _cleanup_free_ char *target = x_asprintf ("%s" PACKAGE_SIGNATURE_ENDING, path);
    if (! text)
        return mur_fail (err, E_TRU_005, "libcrypto signs nothing");
    if (! fs_replace_path (target, text, strlen (text), 0644, true, err))
        return false;
    out_printf ("Signed %s@%s with %s → %s\n", what.name, what.version, key->name, target);
    return true;
}

int
cmd_sign (const struct cli_args *args, struct mur_error **err)
{
    size_t count;
    const char *const *paths = cli_positionals (args, "ZIP", &count);
    unsigned char private_key[ED25519_KEY_LEN];
    _cleanup_trust_key_ struct trust_key key = { 0 };
    if (! ed25519_load (err) ||
        ! trust_key_read_own (cli_value (args, "--key"), &key, private_key, err))
        return CLI_FAILED;
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++)
        ok = sign_one (paths[i], &key, private_key, err);
    secret_wipe (private_key, sizeof private_key);
    return ok ? CLI_OK : CLI_FAILED;
}

/* --- verifying --- */

/* A file, or the package a store has under a name and version. */
static struct package *
open_named (const char *text, struct mur_error **err)
{
    struct install_ref ref;
    if (! install_ref_parse (text, &ref, err))
        return NULL;
    _cleanup_payload_ struct store_payload payload = { 0 };
    _cleanup_free_ char *root = project_root_find (".");
    _cleanup_stores_ struct stores *stores = stores_new (root, err);
    struct package *p = NULL;
    if (! stores)
        p = NULL;
    else if (ref.kind == INSTALL_FILE)
        p = package_from_file (ref.path, err);
    else if (ref.kind != INSTALL_NAME || ! ref.version)
        mur_fail (err, E_IO_003, "%s: give a .mur.zip, or <scope>/<name>@<version>", text);
    else if (stores_find (stores, ref.name, ref.version, NULL, &payload, err) == STORE_FOUND)
        p = store_read (&payload, ref.name, ref.version, err);
    else
        mur_fail (err, E_REG_001, "%s is in no store of this project or user", text);
    install_ref_clear (&ref);
    return p;
}

static bool
verify (const struct package *p, const char *text, const struct trust_ring *ring,
        struct mur_error **err)
{
    const struct signed_package what = signed_of (p);
    _cleanup_free_ char *why = NULL;
    size_t which;
    if (! p->signature) {
        mur_fail (err, E_TRU_001, "%s is not signed", text);
        return mur_hint (err, "its publisher signs it with `mur sign`");
    }
    switch (signature_judge (p->signature, &what, ring->keys, ring->count, &which, &why)) {
    case SIGNATURE_GOOD:
        out_printf ("%s@%s is signed by %s (ed25519 %.16s)\n", what.name, what.version,
                    ring->keys[which].name, ring->keys[which].id);
        return true;
    case SIGNATURE_FOREIGN:
        mur_fail (err, E_TRU_002, "%s is signed by none of the %zu keys that are trusted", text,
                  ring->count);
        return mur_hint (err, "`mur trust add <name> <file.pub>` trusts its publisher's key");
    case SIGNATURE_BROKEN:
        break;
    }
    return mur_fail (err, E_TRU_003, "the signature of %s does not hold: %s", text, why);
}

/* What a bundle beside a file says; it is never asked for. E-TRU-003 when it does not hold. */
static bool
tell_bundle (const struct package *p, const char *path, struct mur_error **err)
{
    _cleanup_free_ char *bundle = sigstore_beside (path), *said = NULL;
    if (! bundle)
        return true;
    if (sigstore_judge (bundle, p, &said) == SIGSTORE_BROKEN)
        return mur_fail (err, E_TRU_003, "%s: its Sigstore bundle %s", path, said);
    out_printf ("%s: its Sigstore bundle %s\n", path, said);
    return true;
}

int
cmd_verify (const struct cli_args *args, struct mur_error **err)
{
    const char *text = cli_positional (args, "ARTIFACT");
    _cleanup_package_ struct package *p = open_named (text, err);
    _cleanup_trust_ring_ struct trust_ring ring = { 0 };
    if (! p || ! package_open_zip (p, err) || ! package_check_bytes (p, err) ||
        ! trust_ring_read (&ring, err))
        return CLI_FAILED;
    return tell_bundle (p, p->label, err) && verify (p, text, &ring, err) ? CLI_OK : CLI_FAILED;
}
