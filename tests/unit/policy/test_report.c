/* SPDX-License-Identifier: Apache-2.0
 *
 * The containment decision and the two forms of the grants report.
 */
#include "policy/check.h"
#include "policy/scope_text.h"
#include "tests/unit/policy/lowering.h"

#include "base/json.h"

static void
test_the_decision_is_a_pure_function (void **state _unused_)
{
    static const struct {
        enum containment_tier host;
        enum containment_class floor;
        bool workdir_exec;
        enum containment_tier applied;
        enum containment_class achieved;
        bool floor_met;
    } cases[] = {
        { TIER_SEALED, CONTAINMENT_ADVISORY, false, TIER_LANDLOCK, CONTAINMENT_SCOPED, true },
        { TIER_SEALED, CONTAINMENT_SCOPED, false, TIER_LANDLOCK, CONTAINMENT_SCOPED, true },
        { TIER_SEALED, CONTAINMENT_SEALED, false, TIER_SEALED, CONTAINMENT_SEALED, true },
        { TIER_SEALED, CONTAINMENT_SEALED, true, TIER_SEALED, CONTAINMENT_ADVISORY, false },
        { TIER_SEALED, CONTAINMENT_ADVISORY, true, TIER_LANDLOCK, CONTAINMENT_ADVISORY, true },
        { TIER_LANDLOCK, CONTAINMENT_SEALED, false, TIER_LANDLOCK, CONTAINMENT_SCOPED, false },
        { TIER_SECCOMP, CONTAINMENT_SCOPED, false, TIER_SECCOMP, CONTAINMENT_ADVISORY, false },
        { TIER_NONE, CONTAINMENT_ADVISORY, false, TIER_NONE, CONTAINMENT_ADVISORY, true },
    };
    for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
        struct host_containment host = { .tier = cases[i].host };
        struct capsule_containment facts = { .workdir_exec = cases[i].workdir_exec };
        struct containment c;
        containment_decide (&host, cases[i].floor, &facts, &c);
        assert_int_equal (c.applied, cases[i].applied);
        assert_int_equal (c.achieved, cases[i].achieved);
        assert_int_equal (c.floor_met, cases[i].floor_met);
        assert_int_equal (c.shortfall_reason == NULL, cases[i].floor_met);
        assert_int_equal (containment_check (&c, NULL), cases[i].floor_met);
        containment_clear (&c);
    }
}

static void
test_manifest_28_the_strongest_floor_counts (void **state _unused_)
{
    struct lowered l;
    struct mur_error *err = NULL;
    lower_with (&l, HEAD "capabilities: {containment: advisory}\n",
                (struct policy_request){ .config_floor = CONTAINMENT_SEALED,
                                         .flag_floor = CONTAINMENT_SCOPED });
    assert_int_equal (l.p->containment_floor, CONTAINMENT_SEALED);
    assert_false (policy_check_stage (l.p, &l.c, &err));
    assert_int_equal (err->code, E_CAP_003);
    assert_says (err->message, "declared containment class 'sealed'");
    assert_says (err->message, "is not achievable on this host");
    assert_says (err->message, "(achieved: 'advisory')");
    assert_says (err->hint, "--containment");
    mur_error_free (err);
    lowered_free (&l);
    assert_int_equal (
        containment_floor (CONTAINMENT_ADVISORY, CONTAINMENT_SCOPED, CONTAINMENT_ADVISORY),
        CONTAINMENT_SCOPED);
    enum containment_class c;
    err = NULL;
    assert_false (containment_flag ("paranoid", &c, &err));
    assert_int_equal (err->code, E_IO_003);
    assert_says (err->message,
                 "--containment must be one of: advisory, scoped, sealed; got 'paranoid'");
    mur_error_free (err);
}

static void
test_manifest_29_workdir_exec_is_named_as_the_cause (void **state _unused_)
{
    struct lowered l;
    struct mur_error *err = NULL;
    lower (&l, HEAD "capabilities: {containment: scoped, filesystem: {workdir_exec: true}}\n");
    assert_false (policy_check_stage (l.p, &l.c, &err));
    assert_says (err->message, "workdir_exec");
    mur_error_free (err);
    lowered_free (&l);
}

#define WIDE                                                                                                                                                                                                                                                                                                                                                                                                                        \
    HEAD                                                                                                                                                                                                                                                                                                                                                                                                                            \
        "artifacts:\n"                                                                                                                                                                                                                                                                                                                                                                                                              \
        "- {name: a/d, version: 1, runtime: driver, gateway: {endpoint: 'https://h', api_key: s3cret-key}}\n"                                                                                                                                                                                                                                                                                                                       \
        "- {name: a/t, version: 1, capabilities: {state: {}, filesystem: {scope: sub}}, config: {token: s3cret-config}}\n"                                                                                                                                                                                                                                                                                                          \
        "- {name: a/raw, version: 1}\n"                                                                                                                                                                                                                                                                                                                                                                                             \
        "- {name: a/watch, version: 1, runtime: hook}\n"                                                                                                                                                                                                                                                                                                                                                                            \
        "- {name: a/rec, version: 1, runtime: hook, capabilities: {filesystem: {records: true}}}\n"                                                                                                                                                                                                                                                                                                                                 \
        "- {name: a/s, version: 1, runtime: skill}\n"                                                                                                                                                                                                                                                                                                                                                                               \
        "inference: {model: m, driver: {artifact: a/d}}\n"                                                                                                                                                                                                                                                                                                                                                                          \
        "capabilities: {network: {allow: [docs.example.com], unix_sockets: true}, shell: {allow: [git, bash], interpreter_runtime: [{binary: bash, dirs: [{path: /o, list_dir: true}, {path: /p, list_dir: false}]}], staged_runtime: [{binary: git, source_path: /g, pin: v1}]}, env: {allow: [LANG]}, filesystem: {scope: d/../e, read_only: [t]}, plan: {submit: true}, install: {skill: ['*']}, peer_fetch: {allow: [peer]}}\n" \
        "exports: {files: {root: out, mode: read-only}, peer_files: {root: share, max_ttl: 300, max_bytes: 2Mi}, peer_tasks: {accept: true}}\n"

static json_t *
report_of (struct lowered *l)
{
    struct report_facts facts;
    report_facts_fill (l->p, &l->c, &facts);
    return scope_report_json (l->p, &facts);
}

static void
test_manifest_39_the_object_and_its_order (void **state _unused_)
{
    static const char *const keys[] = {
        "declared_containment",
        "achieved_containment",
        "host_containment",
        "floor_met",
        "enforcement_tier",
        "mechanism_covers",
        "userns_grant",
        "landlock_abi",
        "filesystem_scope",
        "workdir_exec",
        "read_only_paths",
        "read_only_advisory_for",
        "preopens",
        "network_allow",
        "unix_sockets",
        "shell_allow",
        "spawn_allow",
        "env_allow",
        "plan_submit",
        "install_skill",
        "install_tool",
        "install_from",
        "interpreter_runtime_grants",
        "derived_interpreter_runtime",
        "trust_store",
        "exports_files",
        "peer_files",
        "peer_tasks",
        "peer_fetch_allow",
        "state_stores",
        "configured_artifacts",
        "staged_runtime_grants",
        "runtime_writes",
        "io_max",
        "filesystem_boundary",
        "runtime_dir",
        "records_dir",
        "temp_dir",
    };
    struct lowered l;
    lower (&l, WIDE);
    _cleanup_json_ json_t *report = report_of (&l);
    size_t i = 0;
    const char *key;
    json_t *value;
    json_object_foreach (report, key, value)
    {
        assert_true (i < ARRAY_LEN (keys));
        assert_string_equal (key, keys[i++]);
    }
    assert_int_equal (i, ARRAY_LEN (keys));
    _cleanup_free_ char *text = json_text (report, JSON_TEXT_ORDERED);
    static const char *const parts[] = {
        "\"filesystem_scope\":\"d/../e\"",
        "\"read_only_advisory_for\":[\"bash\"]",
        "{\"artifact\":\"a/d\",\"role\":\"driver\",\"scope\":null,\"surface\":\"whole-workdir\",\"runtime_dir_reach\":null}",
        "{\"artifact\":\"a/t\",\"role\":\"tool\",\"scope\":\"sub\",\"surface\":\"scoped-subtree\",\"runtime_dir_reach\":null}",
        "{\"artifact\":\"a/raw\",\"role\":\"tool\",\"scope\":null,\"surface\":\"whole-workdir\",\"runtime_dir_reach\":\"unresolved\"}",
        "{\"artifact\":\"a/watch\",\"role\":\"hook\",\"scope\":null,\"surface\":\"nothing\",\"runtime_dir_reach\":null}",
        "{\"artifact\":\"a/rec\",\"role\":\"hook\",\"scope\":null,\"surface\":\"records-hooks\",\"runtime_dir_reach\":null}",
        "\"install_from\":[\"stores\"]",
        "\"interpreter_runtime_grants\":[\"bash: /o (list_dir)\",\"bash: /p\"]",
        "\"exports_files\":{\"root\":\"out\",\"mode\":\"read-only\",\"max_bytes\":10485760}",
        "\"peer_files\":{\"root\":\"share\",\"max_ttl_secs\":300,\"max_bytes\":2097152}",
        "\"peer_tasks\":true",
        "\"state_stores\":[{\"artifact\":\"a/t\",\"store\":\"a\",\"host_path\":\"/home/u/.murmur/state/a\"}]",
        "\"configured_artifacts\":[\"a/t\"]",
        "\"staged_runtime_grants\":[\"git: /g (pin: v1)\"]",
        "\"runtime_dir\":{\"path\":\"/home/u/.murmur/sessions/<session-id>/runtime\",\"read_only_to_commands\":false",
        "\"path\":\"/home/u/.murmur/records/home/u/p/workdir/<session-id>/tmp\"",
    };
    for (size_t j = 0; j < ARRAY_LEN (parts); j++)
        assert_says (text, parts[j]);
    assert_null (strstr (text, "s3cret"));
    lowered_free (&l);
}

static void
test_an_unmet_floor_gives_its_reason (void **state _unused_)
{
    struct lowered l;
    lower (&l, HEAD "capabilities: {containment: sealed}\n");
    _cleanup_json_ json_t *report = report_of (&l);
    _cleanup_free_ char *text = json_text (report, JSON_TEXT_ORDERED);
    assert_says (text, "\"floor_met\":false,\"shortfall_reason\":\"");
    lowered_free (&l);
}

static void
test_what_resolving_adds (void **state _unused_)
{
    struct lowered l;
    lower (
        &l, HEAD
        "artifacts: [{name: a/w, version: 1}, {name: a/n, version: 1, capabilities: {filesystem: {scope: s}}}]\n");
    struct report_facts facts;
    report_facts_fill (l.p, &l.c, &facts);
    const bool is_native[] = { false, true }, is_resolved[] = { true, true };
    facts.artifact_is_native = is_native;
    facts.artifact_is_resolved = is_resolved;
    _cleanup_json_ json_t *report = scope_report_json (l.p, &facts);
    _cleanup_free_ char *text = json_text (report, JSON_TEXT_ORDERED);
    assert_says (text, "\"runtime_dir_reach\":\"murmur-runtime\"");
    assert_says (text, "\"runtime_dir_reach\":\"environment\"");
    lowered_free (&l);
}

static void
test_the_text_says_the_same (void **state _unused_)
{
    struct lowered l;
    lower (&l, WIDE);
    struct report_facts facts;
    report_facts_fill (l.p, &l.c, &facts);
    _cleanup_buf_ struct buf text = { 0 };
    scope_report_text (l.p, &facts, &text);
    static const char *const headings[] = {
        "Containment\n",          "\n\nRuntime directory\n",  "\n\nRecords directory\n",
        "\n\nTemporary folder\n", "\n\nNot protected here\n", "\n\nEffective grants\n",
        "\n\nResource plane\n",   "\n\nPeer handoff\n",       "\n\nRuntime writes\n",
    };
    const char *at = text.data;
    for (size_t i = 0; i < ARRAY_LEN (headings); i++) {
        const char *found = strstr (at, headings[i]);
        if (! found)
            fail_msg ("no heading '%s' in its place", headings[i]);
        at = found;
    }
    static const char *const parts[] = {
        "  declared:  advisory\n  achieved:  advisory\n  host can back: advisory\n  floor met: yes\n  mechanism: none\n",
        "  filesystem scope: d/../e\n  workdir exec:     false\n  read_only:\n    - t\n  read_only enforcement: advisory against bash\n",
        "    - a/t (tool): one subtree of the accessible workdir — capabilities.filesystem.scope: sub\n",
        "    - a/watch (hook): nothing preopened — no capabilities.filesystem.scope declared\n",
        "  network allow:\n    - docs.example.com\n  unix sockets:     true\n",
        "  spawn allow: <none>\n",
        "  install tool: <none>\n  install from: stores\n",
        "  state stores:\n    - a/t: a -> /home/u/.murmur/state/a\n  artifact config:\n    - a/t\n",
        "  exports.files root: out\n  mode:               read-only\n  max bytes:          10485760 (per file)\n",
        "  exports.peer_files root: share\n  max handle ttl:          300s\n  max bytes:               2097152 (per file)\n  exports.peer_tasks: accept\n  peer_fetch allow:\n    - peer\n",
        "    - peer-in (directory, peer-fetch)\n    - out (directory, script-session)\n",
    };
    for (size_t i = 0; i < ARRAY_LEN (parts); i++)
        assert_says (text.data, parts[i]);
    assert_null (strstr (text.data, "s3cret"));
    lowered_free (&l);
}

static void
test_explaining_refuses_only_its_own_part (void **state _unused_)
{
    static const struct {
        const char *text;
        int code;
    } cases[] = {
        { HEAD "capabilities: {network: {allow: ['https://h/p']}}\n", -1 },
        { HEAD
          "capabilities: {filesystem: {scope: ../x, read_only: [../x]}, containment: sealed}\n",
          -1 },
        { HEAD "artifacts: [{name: x, source: ./none, runtime: skill}]\n", -1 },
        { HEAD
          "artifacts: [{name: a/x, version: 1, config: ~, capabilities: {state: {store: .x}, filesystem: {scope: ..}}}]\n",
          E_CAP_009 },
        { HEAD
          "artifacts: [{name: a/x, version: 1, config: ~, capabilities: {filesystem: {scope: ..}}}]\n",
          E_CAP_010 },
        { HEAD "artifacts: [{name: a/x, version: 1, capabilities: {filesystem: {scope: ..}}}]\n",
          E_CAP_002 },
    };
    for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
        struct lowered l;
        _cleanup_error_ struct mur_error *err = NULL;
        lower (&l, cases[i].text);
        bool ok = policy_check_explain (l.p, &err);
        assert_int_equal (ok ? -1 : (int)err->code, cases[i].code);
        lowered_free (&l);
    }
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_the_decision_is_a_pure_function),
        cmocka_unit_test (test_manifest_28_the_strongest_floor_counts),
        cmocka_unit_test (test_manifest_29_workdir_exec_is_named_as_the_cause),
        cmocka_unit_test (test_manifest_39_the_object_and_its_order),
        cmocka_unit_test (test_an_unmet_floor_gives_its_reason),
        cmocka_unit_test (test_what_resolving_adds),
        cmocka_unit_test (test_the_text_says_the_same),
        cmocka_unit_test (test_explaining_refuses_only_its_own_part),
    };
    return cmocka_run_group_tests_name ("policy/report", tests, NULL, NULL);
}
