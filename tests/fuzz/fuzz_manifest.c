/* SPDX-License-Identifier: Apache-2.0
 *
 * Every reader of a manifest on any text: the capsule reader twice (with and without secrets, one
 * verdict), what follows from it (policy, checks, both reports, the masked copy), the artifact
 * reader and the roster reader.
 */
#include "policy/check.h"
#include "tests/fuzz/fuzzing.h"

#include "base/json.h"
#include "manifest/capsule/capsule_mask.h"
#include "manifest/settings/artifact_manifest.h"
#include "manifest/settings/hook_contract.h"
#include "manifest/settings/roster.h"
#include "policy/scope_report.h"
#include "policy/scope_text.h"

static void
use_policy (const struct capsule_manifest *m)
{
    const struct policy_request request = { .home_dir = "/nowhere/.murmur",
                                            .manifest_dir = "/nowhere",
                                            .bind_addr = "127.0.0.1" };
    _cleanup_ (policy_freep) struct policy *p = policy_lower (m, &request, NULL);
    assert (p);
    struct host_containment host = { .tier = TIER_LANDLOCK,
                                     .userns_grant = "withheld",
                                     .landlock_abi = 3 };
    struct capsule_containment facts = { .workdir_exec = p->files.exec_allowed };
    struct containment c;
    containment_decide (&host, p->containment_floor, &facts, &c);
    (void)policy_check_stage (p, &c, NULL);
    (void)policy_check_paths (p, NULL);
    (void)policy_check_explain (p, NULL);
    struct report_facts report;
    report_facts_fill (p, &c, &report);
    _cleanup_json_ json_t *object = scope_report_json (p, &report);
    _cleanup_buf_ struct buf text = { 0 };
    scope_report_text (p, &report, &text);
    assert (object && text.len);
    containment_clear (&c);
}

static void
use_capsule (const char *text, size_t size)
{
    _cleanup_error_ struct mur_error *err = NULL, *other = NULL;
    struct capsule_manifest *m =
        capsule_manifest_parse (text, size, "fuzz.yaml", MANIFEST_WITH_SECRETS, &err);
    struct capsule_manifest *bare =
        capsule_manifest_parse (text, size, "fuzz.yaml", MANIFEST_SECRETLESS, &other);
    assert ((m == NULL) == (err != NULL));
    assert ((m == NULL) == (bare == NULL));
    if (err && other)
        assert (err->code == other->code && strcmp (err->message, other->message) == 0);
    if (m) {
        _cleanup_buf_ struct buf masked = { 0 };
        capsule_manifest_mask (m, text, size, &masked);
        use_policy (m);
    }
    capsule_manifest_free (m);
    capsule_manifest_free (bare);
}

static void
use_artifact (const char *text, size_t size)
{
    _cleanup_ (artifact_manifest_freep) struct artifact_manifest *m =
        artifact_manifest_parse (text, size, "fuzz.yaml", NULL);
    if (! m)
        return;
    const struct model_limits *models;
    const char *header, *value;
    struct hook_contract contract;
    size_t len;
    (void)artifact_manifest_models (m, E_BLD_005, &models, &len, NULL);
    (void)artifact_manifest_upstream_auth (m, E_RUN_025, &header, &value, NULL);
    (void)artifact_manifest_hook (m, m->name, m->version, &contract, NULL);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    char *text = fuzz_text (data, size);
    use_capsule (text, size);
    use_artifact (text, size);
    roster_free (roster_parse (text, size, "roster.yaml", NULL));
    free (text);
    return 0;
}
