/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowering, refusals in their order, warnings (spec/manifest.md 17.3, 18, 19).
 */
#include "manifest/text/yaml_tree.h"
#include "policy/check.h"
#include "policy/warn.h"
#include "tests/unit/policy/lowering.h"

#define CAPS(text)  HEAD "capabilities: {" text "}\n"
#define ENTRY(keys) HEAD "artifacts: [{name: a/x, version: 1, " keys "}]\n"

static void
test_absent_means_deny (void **state _unused_)
{
    struct lowered l;
    lower (&l,
           HEAD "artifacts: [{name: a/t, version: 1}, {name: a/h, version: 1, runtime: hook}]\n");
    const struct policy *p = l.p;
    assert_int_equal (p->network.allow.len + p->network.peer_fetch_allow.len +
                          p->commands.allow.len + p->spawn_allow.len + p->env_allow.len +
                          p->install.skill.len + p->install.tool.len + p->files.read_only_paths.len,
                      0);
    assert_false (p->network.unix_sockets_allowed || p->files.exec_allowed || p->plan_submit ||
                  p->install.is_declared);
    assert_int_equal (p->containment_floor, CONTAINMENT_ADVISORY);
    assert_int_equal (p->limits.memory_bytes.value, 536870912);
    assert_int_equal (p->resources.cgroup_pids_max.value, 256);
    assert_false (p->grants[0].has_own_network);
    assert_true (p->grants[0].opens_work_dir);
    assert_string_equal (p->grants[0].scope_dir, "");
    assert_true (p->grants[1].has_own_network);
    assert_int_equal (p->grants[1].network.len, 0);
    assert_false (p->grants[1].opens_work_dir);
    assert_null (p->record_store);
    assert_false (policy_may_run_native (p, false));
    lowered_free (&l);
}

static void
test_manifest_23_a_tool_is_clamped_to_the_ceiling (void **state _unused_)
{
    struct lowered l;
    lower (
        &l, HEAD
        "capabilities: {network: {allow: ['https://h', 'g:443']}}\n"
        "artifacts:\n- {name: a/x, version: 1, capabilities: {network: {allow: [h]}}}\n"
        "- {name: a/y, version: 1, capabilities: {network: {allow: ['https://h', 'https://g', g, '*.h']}}}\n"
        "- {name: a/z, version: 1, runtime: hook, capabilities: {network: {allow: [elsewhere]}}}\n"
        "- {name: a/n, version: 1, capabilities: {network: {allow: []}}}\n");
    assert_int_equal (l.p->grants[0].network.len, 0);
    assert_true (l.p->grants[0].has_own_network);
    assert_int_equal (l.p->grants[1].network.len, 2);
    assert_int_equal (l.p->grants[1].dropped.len, 2);
    assert_string_equal (l.p->grants[2].network.items[0], "elsewhere");
    assert_true (l.p->grants[3].has_own_network);
    capture_start ();
    policy_warn_stage (l.p);
    _cleanup_free_ char *text = capture_end ();
    assert_int_equal (occurrences (text, "warning[W-SEC-007]"), 2);
    assert_says (text, "x: outside");
    assert_says (text, "g, *.h");
    assert_succeeds (policy_check_stage (l.p, &l.c, &err));
    lowered_free (&l);
}

static void
test_manifest_24_deadlines_of_tools_and_hooks (void **state _unused_)
{
    static const struct {
        const char *limits, *own;
        uint64_t tool, hook;
    } cases[] = {
        { "{}", "{}", 600, 30 },
        { "{deadline_seconds: 120}", "{}", 120, 120 },
        { "{deadline_seconds: 600}", "{}", 600, 600 },
        { "{deadline_seconds: 120}", "{deadline_seconds: 5}", 120, 5 },
        { "{}", "{deadline_seconds: 5}", 600, 5 },
    };
    for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
        struct lowered l;
        _cleanup_free_ char *text = x_asprintf (
            HEAD
            "capabilities: {limits: %s}\nartifacts:\n- {name: a/t, version: 1, capabilities: {limits: {deadline_seconds: 7}}}\n"
            "- {name: a/h, version: 1, runtime: hook, capabilities: {limits: %s}}\n",
            cases[i].limits, cases[i].own);
        lower (&l, text);
        assert_int_equal (l.p->grants[0].deadline_seconds, cases[i].tool);
        assert_int_equal (l.p->grants[1].deadline_seconds, cases[i].hook);
        lowered_free (&l);
    }
}

static void
test_manifest_09_10_tool_names (void **state _unused_)
{
    struct mur_error *err = NULL;
    struct capsule_manifest *m = accept (
        HEAD
        "artifacts: [{name: murmur/t, version: 1}, {name: a/s, version: 1}, {name: ana/t, version: 1}]\n");
    assert_false (policy_check_tool_names (m, &err));
    assert_int_equal (err->code, E_CAP_020);
    assert_says (err->message, "murmur/t and ana/t");
    mur_error_free (err);
    err = NULL;
    capsule_manifest_free (m);
    m = accept (
        HEAD
        "artifacts: [{name: a/t, version: 1}, {name: b/t, version: 1}, {name: x/delegate-task, version: 1, runtime: hook}]\n");
    assert_false (policy_check_tool_names (m, &err));
    assert_int_equal (err->code, E_CAP_013);
    assert_says (err->message, "'delegate-task'");
    assert_says (err->hint, "switch-driver");
    mur_error_free (err);
    capsule_manifest_free (m);
}

static void
test_manifest_12_config_is_bounded (void **state _unused_)
{
    for (size_t size = 65536; size <= 65537; size++) {
        _cleanup_buf_ struct buf text = { 0 };
        buf_puts (&text, HEAD "artifacts: [{name: a/x, version: 1, config: {k: \"");
        for (size_t i = strlen ("{\"k\":\"\"}"); i < size; i++)
            buf_putc (&text, 'x');
        buf_puts (&text, "\"}}]\n");
        if (size == 65536)
            stage_accepts (text.data);
        else
            stage_refuses (text.data, E_CAP_010, "65537 bytes as JSON; at most 65536");
    }
    stage_refuses (ENTRY ("config: ~"), E_CAP_010, "a/x");
    stage_refuses (ENTRY ("config: [1]"), E_CAP_010, "map");
    stage_refuses (ENTRY ("config: {1: a}"), E_CAP_010, "quote");
    stage_refuses (ENTRY ("config: {a: {[x]: b}}"), E_CAP_010, "list");
    struct lowered l;
    lower (&l, ENTRY ("config: {b: 1.0, a: {1: on, d: 2024-01-01}, h: 0x1F}"));
    _cleanup_free_ char *json = policy_artifact_config (&l.m->artifacts.items[0], l.m, NULL);
    assert_string_equal (json, "{\"b\":1.0,\"a\":{\"1\":\"on\",\"d\":\"2024-01-01\"},\"h\":31}");
    lowered_free (&l);
}

static void
test_manifest_21_22_25_and_other_stage_refusals (void **state _unused_)
{
    stage_refuses (
        CAPS ("shell: {allow: [p], staged_runtime: [{binary: p, source_path: /x, pin: v}]}"),
        E_CAP_004, "'advisory'");
    stage_refuses (CAPS ("network: {allow: [ok, 'https://h/p']}"), E_CAP_001,
                   "capabilities.network.allow[1]");
    stage_refuses (ENTRY ("capabilities: {network: {allow: ['']}}"), E_CAP_001,
                   "artifacts[0].capabilities.network.allow[0]");
    stage_refuses (CAPS ("filesystem: {read_only: [ok, ../x]}"), E_CAP_012, "read_only[1]");
    stage_refuses (CAPS ("filesystem: {scope: ../x}"), E_CAP_002, "'../x'");
    stage_refuses (ENTRY ("capabilities: {filesystem: {scope: /x}}"), E_CAP_002, "artifacts[0]");
    stage_refuses (ENTRY ("capabilities: {state: {store: ' '}}"), E_CAP_009,
                   "artifacts[0].capabilities.state.store");
    stage_refuses (ENTRY ("capabilities: {state: {store: .x}}"), E_CAP_009, ".x");
    stage_refuses (
        "name: a/b\nversion: 1\nartifacts: [{name: a/x, version: 1, capabilities: {state: {}}}]\n",
        E_CAP_009, "a/b");
    stage_refuses (HEAD "artifacts: [{name: x, source: ./none, runtime: skill}]\n", E_IO_001,
                   "/home/u/p/./none");
}

#define AGENT(keys)                                                                                                                   \
    HEAD                                                                                                                              \
        "artifacts: [{name: a/d, version: 1, runtime: driver, gateway: {endpoint: 'https://h.example', api_key: '${POLICY_KEY}'}}]\n" \
        "inference: {model: m, driver: {artifact: a/d}}\n" keys

static void
test_manifest_35_record_names (void **state _unused_)
{
    stage_refuses (AGENT ("context: {record_store: a/b}\n"), E_CAP_011, "context.record_store");
    stage_refuses (AGENT ("context: {record_store: ' '}\n"), E_CAP_011, "context.record_store");
    stage_accepts (AGENT ("context: {record_store: a/b, record: off}\n"));
    struct lowered l;
    lower_with (&l, AGENT (""), (struct policy_request){ .context_id = "../x" });
    assert_string_equal (l.p->record_store, "a");
    assert_fails (policy_check_stage (l.p, &l.c, &err), E_CAP_011);
    lowered_free (&l);
}

static void
test_manifest_31_a_sleeping_capsule_keeps_handles_short (void **state _unused_)
{
    static const struct {
        const char *keys, *flag;
        bool is_fine;
    } cases[] = {
        { "exports: {peer_files: {root: s}}\n", NULL, true },
        { "exports: {peer_files: {root: s}}\n", "sleep", false },
        { "exports: {peer_files: {root: s, max_ttl: 16m}}\nlifecycle: {after_task: sleep}\n", NULL,
          false },
        { "exports: {peer_files: {root: s, max_ttl: 15m}}\nlifecycle: {after_task: sleep}\n", NULL,
          true },
        { "exports: {peer_files: {root: s, max_ttl: 1d}}\nlifecycle: {after_task: sleep}\n", "exit",
          true },
    };
    for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
        struct lowered l;
        _cleanup_free_ char *text = x_asprintf (HEAD "%s", cases[i].keys);
        lower_with (&l, text, (struct policy_request){ .flag_after_task = cases[i].flag });
        if (cases[i].is_fine)
            assert_succeeds (policy_check_stage (l.p, &l.c, &err));
        else
            assert_fails (policy_check_stage (l.p, &l.c, &err), E_CAP_008);
        lowered_free (&l);
    }
}

static void
test_flags_over_the_manifest (void **state _unused_)
{
    struct lowered l;
    lower_with (&l, HEAD "lifecycle: {queue_depth: 0}\n",
                (struct policy_request){ .flag_task_acceptance = "queue" });
    assert_fails (policy_check_stage (l.p, &l.c, &err), E_MAN_003);
    lowered_free (&l);
    struct capsule_manifest *m = accept (HEAD);
    struct policy_request request = { .flag_after_task = "doze" };
    struct mur_error *err = NULL;
    assert_null (policy_lower (m, &request, &err));
    assert_int_equal (err->code, E_IO_003);
    assert_says (err->message, "--lifecycle-after-task must be one of: exit, sleep; got 'doze'");
    mur_error_free (err);
    capsule_manifest_free (m);
}

static void
test_manifest_26_credential_names_are_refused_unseen (void **state _unused_)
{
    struct mur_error *err = NULL;
    unsetenv ("FOO_API_KEY");
    struct capsule_manifest *m = accept (CAPS (
        "env: {allow: [FOO_API_KEY, PATH, DB_URL, FOO_API_KEY, GITHUB_TOKEN]}, shell: {allow: [git], strip_env: [DB_*]}"));
    assert_false (policy_check_env (m, &err));
    assert_int_equal (err->code, E_CAP_016);
    assert_says (err->message, "'FOO_API_KEY' (credential backstop pattern '*_API_KEY'), "
                               "'DB_URL' (capabilities.shell.strip_env pattern 'DB_*'), "
                               "'GITHUB_TOKEN' (credential backstop pattern 'GITHUB_TOKEN')");
    mur_error_free (err);
    capsule_manifest_free (m);
}

static struct secret *
no_credential (const void *ctx _unused_, const char *name _unused_)
{
    return NULL;
}

static struct secret *
one_credential (const void *ctx, const char *name)
{
    return strcmp (ctx, name) == 0 ? secret_new ("v", 1) : NULL;
}

static char *
parse_warnings (const char *text, policy_credential_fn *lookup, const void *ctx)
{
    struct lowered l;
    lower (&l, text);
    capture_start ();
    policy_warn_parse (l.p, lookup, ctx);
    char *warnings = capture_end ();
    lowered_free (&l);
    return warnings;
}

static void
test_manifest_27_credential_shaped_names_warn_once (void **state _unused_)
{
    _cleanup_free_ char *text = parse_warnings (
        CAPS ("env: {allow: [DB_PASSWORD, KEYBOARD_LAYOUT, DB_PASSWORD, MURMUR_ARTIFACT_CONFIG]}"),
        NULL, NULL);
    assert_int_equal (occurrences (text, "warning[W-SEC-024]"), 1);
    assert_says (text, "DB_PASSWORD");
    assert_null (strstr (text, "sleep"));
    _cleanup_free_ char *sleeping = parse_warnings (
        CAPS ("env: {allow: [DB_PASSWORD]}") "lifecycle: {after_task: sleep}\n", NULL, NULL);
    assert_says (sleeping, "sleeps");
}

static void
test_gateway_warnings (void **state _unused_)
{
    static const char manifest[] =
        AGENT ("capabilities: {network: {allow: ['https://H.example', other]}}\n");
    unsetenv ("POLICY_KEY");
    _cleanup_free_ char *nowhere = parse_warnings (manifest, no_credential, NULL);
    assert_int_equal (occurrences (nowhere, "warning[W-SEC-027]"), 0);
    setenv ("POLICY_KEY", "k", 1);
    _cleanup_free_ char *from_environment = parse_warnings (manifest, no_credential, NULL);
    unsetenv ("POLICY_KEY");
    assert_int_equal (occurrences (from_environment, "warning[W-SEC-025]"), 1);
    assert_int_equal (occurrences (from_environment, "warning[W-SEC-027]"), 1);
    assert_int_equal (occurrences (from_environment, "warning[W-SEC-030]"), 0);
    char name[] = "POLICY_KEY";
    _cleanup_free_ char *from_config = parse_warnings (manifest, one_credential, name);
    assert_int_equal (occurrences (from_config, "warning[W-SEC-027]"), 0);
    _cleanup_free_ char *tool = parse_warnings (
        ENTRY ("gateway: {endpoint: 'https://h', api_key: l1teral-key}"), no_credential, NULL);
    assert_int_equal (occurrences (tool, "warning[W-SEC-030]"), 1);
    assert_int_equal (occurrences (tool, "warning[W-SEC-027]"), 1);
    assert_null (strstr (tool, "l1teral"));
    _cleanup_free_ char *keyless =
        parse_warnings (ENTRY ("gateway: {endpoint: 'https://h', keyless: true}"), NULL, NULL);
    assert_int_equal (occurrences (keyless, "warning[W-SEC-027]"), 0);
}

static void
test_a_missing_key_names_both_places (void **state _unused_)
{
    struct lowered l;
    struct mur_error *why = NULL;
    unsetenv ("POLICY_KEY");
    lower (&l, AGENT (""));
    assert_false (
        policy_check_gateway_keys (l.p, no_credential, NULL, "/home/u/.murmur/config.yaml", &why));
    assert_int_equal (why->code, E_MAN_003);
    assert_says (why->message, "artifacts[0].gateway.api_key");
    assert_says (why->message, "credentials.POLICY_KEY in /home/u/.murmur/config.yaml");
    mur_error_free (why);
    char name[] = "POLICY_KEY";
    assert_succeeds (policy_check_gateway_keys (l.p, one_credential, name, "", &err));
    setenv ("POLICY_KEY", "", 1);
    assert_fails (policy_check_gateway_keys (l.p, no_credential, NULL, "", &err), E_MAN_003);
    setenv ("POLICY_KEY", "v", 1);
    assert_succeeds (policy_check_gateway_keys (l.p, no_credential, NULL, "", &err));
    unsetenv ("POLICY_KEY");
    lowered_free (&l);
}

static void
test_inert_blocks_are_named (void **state _unused_)
{
    struct lowered l;
    lower (
        &l,
        CAPS (
            "state: {}, conversation: {read: true}, filesystem: {workdir_exec: true, read_only: [t]}, shell: {allow: [bash, git, python3.11]}") "artifacts:\n"
                                                                                                                                                "- {name: a/x, version: 1, capabilities: {resources: {}, shell: {allow: [x]}, limits: {instances: 5}, containment: scoped, env: {}, plan: {submit: true}}}\n"
                                                                                                                                                "- {name: a/h, version: 1, runtime: hook, capabilities: {limits: {memory_bytes: 5, deadline_seconds: 4}, spawn: {}}}\n"
                                                                                                                                                "- {name: a/q, version: 1, runtime: hook, capabilities: {limits: {deadline_seconds: 4}}}\n");
    capture_start ();
    policy_warn_inert (l.p);
    policy_warn_stage (l.p);
    _cleanup_free_ char *text = capture_end ();
    assert_says (text, "W-SEC-014");
    assert_says (text, "W-SEC-016");
    assert_says (
        text,
        "x: no effect on a tool: capabilities.shell, capabilities.env, capabilities.limits, capabilities.resources, capabilities.containment");
    assert_says (text,
                 "h: no effect on a hook: capabilities.spawn, capabilities.limits.memory_bytes");
    assert_int_equal (occurrences (text, "warning[W-SEC-006]"), 1);
    assert_int_equal (occurrences (text, "warning[W-SEC-017]"), 2);
    assert_int_equal (occurrences (text, "warning[W-SEC-011]"), 1);
    lowered_free (&l);
}

static void
test_tools_without_annotations_are_named (void **state _unused_)
{
    static const struct {
        const char *keys, *schema;
        size_t warnings;
    } cases[] = {
        { "", "s: {properties: {p: {type: string}}}", 0 },
        { "read_only: [t]", "s: {properties: {p: {type: string}}}", 1 },
        { "read_only: [t]", "x: 1", 1 },
        { "read_only: [t]", "s: {properties: {p: {items: [{format: murmur-destination}]}}}", 0 },
        { "read_only: [t]", "s: '{\"format\": \"murmur-opaque\"}'", 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
        struct lowered l;
        struct arena *arena = arena_new ();
        _cleanup_free_ char *text = x_asprintf (CAPS ("filesystem: {%s}"), cases[i].keys);
        lower (&l, text);
        const struct yaml_node *root =
            yaml_parse (arena, cases[i].schema, strlen (cases[i].schema), "s", E_MAN_002, NULL);
        capture_start ();
        policy_warn_unannotated (l.p, "tool-x", yaml_get (root, "s"));
        _cleanup_free_ char *warnings = capture_end ();
        assert_int_equal (occurrences (warnings, "warning[W-SEC-018]"), cases[i].warnings);
        lowered_free (&l);
        arena_free (arena);
    }
}

static void
test_every_way_to_start_a_native_process_is_seen (void **state _unused_)
{
    static const char *const texts[] = {
        CAPS ("shell: {allow: [git]}"),
        CAPS ("spawn: {allow: [a/b]}"),
        CAPS ("install: {tool: ['*']}"),
    };
    static const char harness[] = HEAD
        "artifacts: [{name: a/d, version: 1, runtime: driver}]\ninference: {transport: process, "
        "driver: {artifact: a/d}}\n";
    for (size_t i = 0; i < ARRAY_LEN (texts); i++) {
        struct lowered l;
        lower (&l, texts[i]);
        assert_true (policy_may_run_native (l.p, false));
        lowered_free (&l);
    }
    struct lowered l;
    lower (&l, harness); /* outside of every containment class */
    assert_false (policy_may_run_native (l.p, false));
    lowered_free (&l);
    lower (&l, CAPS ("install: {skill: ['*']}"));
    assert_false (policy_may_run_native (l.p, false));
    assert_true (policy_may_run_native (l.p, true));
    lowered_free (&l);
}

static char *
door_warning (const char *text, const char *bind_addr)
{
    struct lowered l;
    lower_with (&l, text, (struct policy_request){ .bind_addr = bind_addr });
    capture_start ();
    policy_warn_door (l.p, false);
    char *warnings = capture_end ();
    lowered_free (&l);
    return warnings;
}

static void
test_an_exposed_public_door_warns (void **state _unused_)
{
    static const char *const loopback[] = { "localhost", "LocalHost", "127.0.0.1",
                                            "127.9.9.9", "::1",       "[::1]" };
    static const char *const exposed[] = { "0.0.0.0", "::", "", "example.com", "10.0.0.1", "[::]" };
    for (size_t i = 0; i < ARRAY_LEN (loopback); i++) {
        _cleanup_free_ char *text = door_warning (AGENT (""), loopback[i]);
        assert_string_equal (text, "");
    }
    for (size_t i = 0; i < ARRAY_LEN (exposed); i++) {
        _cleanup_free_ char *text = door_warning (AGENT (""), exposed[i]);
        if (strncmp (text, "warning[W-SEC-032]: ", 20) != 0)
            fail_msg ("'%s': %s", exposed[i], text);
        assert_says (
            text,
            "SendMessage, SendStreamingMessage, murmur.WatchSession, GetTask, ListTasks, CancelTask, SubscribeToTask, murmur.StopSession");
        assert_says (text, "tools [], shell: false, network: false, planes []");
    }
    _cleanup_free_ char *authenticated =
        door_warning (AGENT ("network: {authentication: {scheme: bearer}}\n"), "0.0.0.0");
    assert_string_equal (authenticated, "");
    _cleanup_free_ char *script = door_warning (HEAD, "0.0.0.0");
    assert_string_equal (script, "");
}

static void
test_the_tier_of_a_launch_says_what_confines_its_commands (void **state _unused_)
{
    static const struct {
        const char *manifest;
        enum containment_tier tier;
        size_t count;
        enum diag_code codes[TIER_WARNINGS_MAX];
    } rows[] = {
        { HEAD, TIER_SEALED, 0, { 0 } },
        { CAPS ("shell: {allow: [cat]}"), TIER_SEALED, 1, { W_SEC_005 } },
        { CAPS ("shell: {allow: [bash]}, network: {allow: [h]}"), TIER_LANDLOCK, 1, { W_SEC_005 } },
        { CAPS ("shell: {allow: [bash]}, network: {allow: [h]}"), TIER_SECCOMP, 1, { W_SEC_002 } },
        { CAPS ("shell: {allow: [bash]}"), TIER_NONE, 1, { W_SEC_001 } },
        { CAPS ("shell: {allow: [cat]}, network: {allow: [h]}"), TIER_NONE, 1, { W_SEC_001 } },
        { CAPS ("shell: {allow: [cat, bash]}, network: {allow: [h]}"),
          TIER_NONE,
          2,
          { W_SEC_001, W_SEC_003 } },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        struct lowered l;
        struct tier_warning warnings[TIER_WARNINGS_MAX];
        lower (&l, rows[i].manifest);
        assert_int_equal (policy_tier_warnings (l.p, rows[i].tier, warnings), rows[i].count);
        for (size_t n = 0; n < rows[i].count; n++)
            assert_int_equal (warnings[n].code, rows[i].codes[n]);
        lowered_free (&l);
    }
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_absent_means_deny),
        cmocka_unit_test (test_manifest_23_a_tool_is_clamped_to_the_ceiling),
        cmocka_unit_test (test_manifest_24_deadlines_of_tools_and_hooks),
        cmocka_unit_test (test_manifest_09_10_tool_names),
        cmocka_unit_test (test_manifest_12_config_is_bounded),
        cmocka_unit_test (test_manifest_21_22_25_and_other_stage_refusals),
        cmocka_unit_test (test_manifest_35_record_names),
        cmocka_unit_test (test_manifest_31_a_sleeping_capsule_keeps_handles_short),
        cmocka_unit_test (test_flags_over_the_manifest),
        cmocka_unit_test (test_manifest_26_credential_names_are_refused_unseen),
        cmocka_unit_test (test_manifest_27_credential_shaped_names_warn_once),
        cmocka_unit_test (test_gateway_warnings),
        cmocka_unit_test (test_a_missing_key_names_both_places),
        cmocka_unit_test (test_inert_blocks_are_named),
        cmocka_unit_test (test_tools_without_annotations_are_named),
        cmocka_unit_test (test_every_way_to_start_a_native_process_is_seen),
        cmocka_unit_test (test_an_exposed_public_door_warns),
        cmocka_unit_test (test_the_tier_of_a_launch_says_what_confines_its_commands),
    };
    return cmocka_run_group_tests_name ("policy/policy", tests, NULL, NULL);
}
