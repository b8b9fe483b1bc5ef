/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur doctor`: the signatures trust.require asks for, and whether the keys it names are there.
 */
#include "artifact/trust/trust_signer.h"
#include "base/alloc.h"
#include "base/diag.h"
#include "cli/health/doctor_internal.h"
#include "manifest/settings/config.h"

static void
rule_line (struct doctor *d, const struct config_trust_rule *rule)
{
    _cleanup_strv_ struct strv shown = { 0 };
    _cleanup_error_ struct mur_error *fault = NULL;
    for (size_t i = 0; ! fault && i < rule->keys.len; i++) {
        _cleanup_trust_key_ struct trust_key key = { 0 };
        if (trust_key_read_trusted (rule->keys.items[i], &key, &fault))
            strv_printf (&shown, "%s (ed25519 %.16s)", key.name, key.id);
    }
    if (fault) {
        d->errors++;
        out_printf ("  ✗  %s   — %s: %s\n", rule->pattern, diag_code_name (fault->code),
                    fault->message);
        return;
    }
    _cleanup_free_ char *keys = strv_join (&shown, " or ");
    d->passed++;
    out_printf ("  ✓  %s   %s%s\n", rule->pattern, shown.len ? "signed by " : "need not be signed",
                keys);
}

void
doctor_trust (struct doctor *d)
{
    const struct config_trust *trust = &d->config->trust;
    if (! trust->count)
        return;
    out_puts ("\nSignatures that trust.require asks for\n");
    for (size_t i = 0; i < trust->count; i++)
        rule_line (d, &trust->rules[i]);
}
