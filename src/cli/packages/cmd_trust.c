/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur trust`: one's own keys, and those of others that are trusted (spec/artifacts.md 8.2).
 */
#include "artifact/trust/trust_key.h"
#include "base/alloc.h"
#include "base/diag.h"
#include "cli/line/args.h"
#include "cli/packages/commands.h"

int
cmd_trust_keygen (const struct cli_args *args, struct mur_error **err)
{
    _cleanup_free_ char *path = NULL;
    const char *name = cli_positional (args, "NAME");
    if (! trust_key_generate (name, &path, err))
        return CLI_FAILED;
    out_printf ("Made the key %s; give others %s\n", name, path);
    return CLI_OK;
}

int
cmd_trust_add (const struct cli_args *args, struct mur_error **err)
{
    _cleanup_trust_key_ struct trust_key key = { 0 };
    if (! trust_key_add (cli_positional (args, "NAME"), cli_positional (args, "FILE"), &key, err))
        return CLI_FAILED;
    out_printf ("Trusted %s (ed25519 %.16s)\n", key.name, key.id);
    return CLI_OK;
}

int
cmd_trust_remove (const struct cli_args *args, struct mur_error **err)
{
    const char *name = cli_positional (args, "NAME");
    if (! trust_key_remove (name, err))
        return CLI_FAILED;
    out_printf ("%s is not trusted any more\n", name);
    return CLI_OK;
}

int
cmd_trust_list (const struct cli_args *args, struct mur_error **err)
{
    (void)args;
    _cleanup_strv_ struct strv own = { 0 }, trusted = { 0 };
    if (! trust_key_names (true, &own, err) || ! trust_key_names (false, &trusted, err))
        return CLI_FAILED;
    for (size_t i = 0; i < own.len; i++) {
        _cleanup_trust_key_ struct trust_key key = { 0 };
        bool is_read = trust_key_read_shown (own.items[i], &key, NULL);
        out_printf ("own      %s  %.16s\n", own.items[i], is_read ? key.id : "unreadable");
    }
    for (size_t i = 0; i < trusted.len; i++) {
        _cleanup_trust_key_ struct trust_key key = { 0 };
        bool is_read = trust_key_read_trusted (trusted.items[i], &key, NULL);
        out_printf ("trusted  %s  %.16s\n", trusted.items[i], is_read ? key.id : "unreadable");
    }
    if (! own.len && ! trusted.len)
        out_puts ("No keys.\n");
    return CLI_OK;
}
