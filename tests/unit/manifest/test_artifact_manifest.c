/* SPDX-License-Identifier: Apache-2.0
 *
 * An artifact's own manifest: identity, packaging, models, upstream_auth, hook contracts.
 */
#include "tests/unit/testing.h"

#include "manifest/settings/artifact_manifest.h"
#include "manifest/settings/hook_contract.h"
#include "manifest/settings/literals.h"

#include <string.h>

static struct artifact_manifest *
read_text (const char *text)
{
    struct mur_error *err = NULL;
    struct artifact_manifest *m = artifact_manifest_parse (text, strlen (text), "m.yaml", &err);
    if (! m)
        fail_msg ("%s: %s", diag_code_name (err->code), err->message);
    return m;
}

static void
refuses (const char *text, enum diag_code code, const char *words)
{
    _cleanup_error_ struct mur_error *err = NULL;
    assert_null (artifact_manifest_parse (text, strlen (text), "m.yaml", &err));
    if (err->code != code || ! strstr (err->message, words))
        fail_msg ("%s: %s", diag_code_name (err->code), err->message);
}

#define HEAD(runtime) "name: x\nversion: 1.0.0\nruntime: " runtime "\n"

static void
test_identity_is_text (void **state _unused_)
{
    refuses ("version: 1.0.0\nruntime: tool\n", E_MAN_001, "'name'");
    refuses ("name: ~\nversion: 1.0.0\nruntime: tool\n", E_MAN_001, "'name'");
    refuses ("name: x\nversion: 1.10\nruntime: tool\n", E_MAN_003, "m.yaml:2:10: version");
    refuses ("name: x\nversion: 1.0.0\n", E_MAN_001, "'runtime'");
    refuses ("name: [x]\nversion: 1.0.0\nruntime: tool\n", E_MAN_003, "name");
    refuses ("registry: {}\nname: [x]\n", E_MAN_003, "registry");
    refuses ("name: [x\n", E_MAN_002, "m.yaml:");
    struct artifact_manifest *m =
        read_text (HEAD ("tool") "description: [not, text]\nwhat: ever\n");
    assert_null (m->description);
    artifact_manifest_free (m);
}

static void
test_packaging_is_derived_or_declared (void **state _unused_)
{
    static const struct {
        const char *text;
        enum packaging packaging;
        size_t files;
    } cases[] = {
        { HEAD ("tool"), PACKAGING_WASM, 0 },
        { HEAD ("skill"), PACKAGING_STATIC, 1 },
        { HEAD ("skill") "requires_files: []\n", PACKAGING_STATIC, 0 },
        { HEAD ("tool") "implementation: native\n", PACKAGING_NATIVE, 0 },
        { HEAD ("driver") "implementation: native\n", PACKAGING_WASM, 0 },
        { HEAD ("capsule") "execution: STATIC\nrequires_files: [a, b]\n", PACKAGING_STATIC, 2 },
    };
    for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
        struct artifact_manifest *m = read_text (cases[i].text);
        assert_int_equal (m->packaging, cases[i].packaging);
        assert_int_equal (m->requires_files.len, cases[i].files);
        artifact_manifest_free (m);
    }
    refuses (HEAD ("tool") "execution: elf\n", E_MAN_003, "wasm, native, static");
    refuses (HEAD ("tool") "requires_files: x\n", E_MAN_003, "requires_files");
    refuses (HEAD ("tool") "requires_files: [1]\n", E_MAN_003, "requires_files[0]");
    refuses (HEAD ("driver") "upstream: some\n", E_MAN_003, "upstream");
}

static bool
models_of (const char *text, size_t *len, struct mur_error **err)
{
    struct artifact_manifest *m = read_text (text);
    const struct model_limits *models;
    bool ok = artifact_manifest_models (m, E_BLD_005, &models, len, err);
    artifact_manifest_free (m);
    return ok;
}

static void
test_models (void **state _unused_)
{
    size_t len = 0;
    assert_succeeds (models_of (
        HEAD (
            "driver") "models: {m-1: {max_output_tokens: 1, context_window: 4294967295, max_input_tokens: 9}}\n",
        &len, &err));
    assert_int_equal (len, 1);
    assert_succeeds (models_of (HEAD ("tool") "models: ~\n", &len, &err));
    static const char *const bad[] = {
        HEAD ("tool") "models: {}\n",
        HEAD ("driver") "models: []\n",
        HEAD ("driver") "models: {m: 1}\n",
        HEAD ("driver") "models: {' ': {max_output_tokens: 1, context_window: 1}}\n",
        HEAD ("driver") "models: {4.1: {max_output_tokens: 1, context_window: 1}}\n",
        HEAD ("driver") "models: {m: {context_window: 1}}\n",
        HEAD ("driver") "models: {m: {max_output_tokens: 1}}\n",
        HEAD ("driver") "models: {m: {max_output_tokens: 0, context_window: 1}}\n",
        HEAD ("driver") "models: {m: {max_output_tokens: 1, context_window: 4294967296}}\n",
        HEAD (
            "driver") "models: {m: {max_output_tokens: 1, context_window: 5, max_input_tokens: 6}}\n",
        HEAD ("driver") "models: {m: {max_output_tokens: 1, context_window: 5, price: 6}}\n",
    };
    for (size_t i = 0; i < ARRAY_LEN (bad); i++)
        assert_fails (models_of (bad[i], &len, &err), E_BLD_005);
}

static bool
auth_of (const char *text, struct mur_error **err)
{
    struct artifact_manifest *m = read_text (text);
    const char *header, *value;
    bool ok = artifact_manifest_upstream_auth (m, E_RUN_025, &header, &value, err);
    artifact_manifest_free (m);
    return ok;
}

static void
test_upstream_auth (void **state _unused_)
{
    assert_succeeds (auth_of (
        HEAD ("driver") "upstream_auth: {header: x-api-key, value: 'Bearer {key}'}\n", &err));
    static const char *const bad[] = {
        HEAD ("driver"),
        HEAD ("driver") "inference_auth: {}\nupstream_auth: {header: a, value: '{key}'}\n",
        HEAD ("driver") "upstream_auth: {value: '{key}'}\n",
        HEAD ("driver") "upstream_auth: {header: 'a b', value: '{key}'}\n",
        HEAD ("driver") "upstream_auth: {header: Transfer-Encoding, value: '{key}'}\n",
        HEAD ("driver") "upstream_auth: {header: HOST, value: '{key}'}\n",
        HEAD ("driver") "upstream_auth: {header: a, value: 'key'}\n",
        HEAD ("driver") "upstream_auth: {header: a, value: '{key}{key}'}\n",
        HEAD ("driver") "upstream_auth: {header: a, value: \"{key}\\r\\nx: y\"}\n",
        HEAD ("driver") "upstream_auth: x\n",
    };
    for (size_t i = 0; i < ARRAY_LEN (bad); i++)
        assert_fails (auth_of (bad[i], &err), E_RUN_025);
}

static void
assert_hook (const char *keys, const char *words)
{
    _cleanup_free_ char *text = x_asprintf (HEAD ("hook") "%s", keys);
    struct artifact_manifest *m = read_text (text);
    struct hook_contract c;
    _cleanup_error_ struct mur_error *err = NULL;
    bool ok = artifact_manifest_hook (m, "watch", "1.0.0", &c, &err);
    artifact_manifest_free (m);
    if (ok != (words == NULL))
        fail_msg ("%s: %s", keys, ok ? "accepted" : err->message);
    if (words) {
        assert_int_equal (err->code, E_IO_003);
        assert_non_null (strstr (err->message, "watch@1.0.0"));
        if (! strstr (err->message, words))
            fail_msg ("'%s' is not in: %s", words, err->message);
    }
}

static void
test_hook_contracts (void **state _unused_)
{
    static const struct {
        const char *binding, *policy;
    } honoured[] = { { "on-stage", "write-manifests" }, { "on-compaction", "replace-context" },
                     { "on-task-end", "reopen-task" },  { "on-task-start", "seed-context" },
                     { "on-tool-call", "deny" },        { "on-shell", "deny" },
                     { "on-inference", "none" },        { "on-session-start", "none" },
                     { "on-session-end", "none" } };
    static const char *const policies[] = { "none",        "write-manifests", "replace-context",
                                            "reopen-task", "seed-context",    "deny" };
    for (size_t i = 0; i < ARRAY_LEN (honoured); i++)
        for (size_t j = 0; j < ARRAY_LEN (policies); j++) {
            _cleanup_free_ char *keys =
                x_asprintf ("binding: %s\ncommit_policy: %s\n", honoured[i].binding, policies[j]);
            bool is_fine = j == 0 || strcmp (honoured[i].policy, policies[j]) == 0;
            assert_hook (keys, is_fine ? NULL : honoured[i].policy);
        }
    assert_hook ("", NULL);
    assert_hook ("commit_policy: reopen-task\n", NULL);
    assert_hook ("commit_policy: deny\n", "deny");
    assert_hook ("binding: on-tool-call\nexecution_mode: async\ncommit_policy: deny\n", "async");
    assert_hook ("binding: on-stage\nexecution_mode: async\n", "on-stage");
    assert_hook ("binding: on-lunch\n", "on-session-end");
    assert_hook ("execution_mode: later\n", "blocking, async");
    assert_hook ("binding: [on-lunch]\nexecution_mode: 1\ncommit_policy: ~\n", NULL);
}

static void
test_literal_secrets_are_counted (void **state _unused_)
{
    struct artifact_manifest *m = read_text (HEAD (
        "tool") "api_key: ${KEY}\nlist: [{my_token: sk-1}, {password: short}, {Secret: long-enough}]\nmax_tokens: 123456789\n");
    assert_int_equal (artifact_manifest_warn_literals (m->root), 2);
    artifact_manifest_free (m);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_identity_is_text),
        cmocka_unit_test (test_packaging_is_derived_or_declared),
        cmocka_unit_test (test_models),
        cmocka_unit_test (test_upstream_auth),
        cmocka_unit_test (test_hook_contracts),
        cmocka_unit_test (test_literal_secrets_are_counted),
    };
    return cmocka_run_group_tests_name ("manifest/artifact_manifest", tests, NULL, NULL);
}
