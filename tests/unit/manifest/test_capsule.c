/* SPDX-License-Identifier: Apache-2.0
 *
 * murmur.yaml read as a capsule: the acceptance cases a parse decides, the order of refusals, and
 * every block's rules.
 */
#include "manifest/capsule/capsule_schema.h"
#include "tests/unit/manifest/reading.h"

#include <time.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SECONDS_MAX 10.0 /* of processor time, instrumented */
#else
#define SECONDS_MAX 1.0
#endif

#define DRIVER                                                                                     \
    "- {name: a/d, version: 1, runtime: driver, gateway: {endpoint: 'https://h', api_key: '${K}'}}\n"
#define HTTP    "artifacts:\n" DRIVER "inference: {model: m, driver: {artifact: a/d}}\n"
#define PROCESS "artifacts:\n- {name: a/d, version: 1, runtime: driver}\n"

/* One artifact entry with more keys. */
#define ENTRY(keys) HEAD "artifacts: [{name: a/x, version: 1, " keys "}]\n"
#define CAPS(text)  HEAD "capabilities: {" text "}\n"

static void
test_manifest_01_name_and_version_are_enough (void **state _unused_)
{
    struct capsule_manifest *m = accept ("name: a\nversion: 1.10\n");
    assert_string_equal (m->version, "1.10");
    assert_int_equal (m->artifacts.len, 0);
    assert_null (m->inference);
    assert_null (m->capabilities->network);
    assert_null (m->capabilities->shell);
    assert_false (m->capabilities_are_declared);
    assert_int_equal (m->lifecycle->task_acceptance.value, ACCEPT_SINGLE);
    assert_int_equal (m->lifecycle->shell_grace_secs.value, 10);
    assert_int_equal (m->lifecycle->delegation_deadline_secs.value, 600);
    capsule_manifest_free (m);
}

static void
test_manifest_02_a_number_key_takes_no_text (void **state _unused_)
{
    refuses (HEAD "lifecycle: {queue_depth: \"x\"}\n", E_MAN_002, "m.yaml:3:26",
             "lifecycle.queue_depth", "'x'", NULL);
    refuses (HEAD "lifecycle: {queue_depth: \"5\"}\n", E_MAN_002, "lifecycle.queue_depth", NULL);
    refuses (HEAD "lifecycle: {queue_depth: -1}\n", E_MAN_002, "lifecycle.queue_depth", NULL);
    refuses (HEAD "lifecycle: {queue_depth: 1.0}\n", E_MAN_002, "lifecycle.queue_depth", NULL);
    refuses (HEAD "lifecycle: {max_task_reopens: 4294967296}\n", E_MAN_002, "4294967295", NULL);
    refuses (HEAD "lifecycle: {task_acceptance: many}\n", E_MAN_002, "none, single, queue", NULL);
    refuses (HEAD "network: {internal_port: 65536}\n", E_MAN_002, "65535", NULL);
    accepts (HEAD "lifecycle: {queue_depth: 0x10}\n");
}

static void
test_manifest_03_registry_is_refused_before_the_name (void **state _unused_)
{
    refuses ("registry: {}\n", E_MAN_003, "registry", "registry.sources", NULL);
}

static void
test_manifest_04_mur_version_moved (void **state _unused_)
{
    refuses ("mur_version:\n", E_MAN_003, "deploy.mur_version", NULL);
    struct capsule_manifest *m = accept (HEAD "deploy: {mur_version: ' 0.1.0 '}\n");
    assert_string_equal (m->deploy->mur_version, "0.1.0");
    capsule_manifest_free (m);
}

static void
assert_unknown (const struct capsule_manifest *m, size_t i, const char *key, const char *path,
                const char *suggestion)
{
    assert_true (i < m->unknown_len);
    assert_string_equal (m->unknown_keys[i].key, key);
    assert_string_equal (m->unknown_keys[i].path, path);
    if (! str_eq (m->unknown_keys[i].suggestion, suggestion))
        fail_msg ("%s: suggests %s", key, m->unknown_keys[i].suggestion);
}

static void
test_manifest_05_06_unknown_keys_are_collected_everywhere (void **state _unused_)
{
    struct capsule_manifest *m = accept (
        HEAD
        "quantum_teleport: 1\n"
        "capabilities:\n"
        "  zeta: 1\n"
        "  filesystem: {read-only: [t]}\n"
        "  shell: {allow: [python3], interpreter_runtime: [{binary: python3, dirs: [{path: /a, list_dir: true},"
        " {path: /b, list_dir: true, pth: 1}]}]}\n"
        "artifacts:\n- {name: a/x, version: 1, capabilities: {shell: {allwo: 1, allow: [x]}}, gatway: 1, config: {what: ever}}\n" DRIVER
        "inference: {model: m, driver: {artifact: a/d, confg: 1}, alternates: [], max_turn: 3}\n"
        "network: {authentication: {scheme: bearer, credentials: {dash: {scopes: [GetTask], scope: 1}}}}\n"
        "observability: {eval: {scorers: [{type: exit_ok, expcted: []}]}}\n");
    assert_int_equal (m->unknown_len, 10);
    assert_unknown (m, 0, "quantum_teleport", "", NULL);
    assert_unknown (m, 1, "gatway", "artifacts[0]", "gateway");
    assert_unknown (m, 2, "allwo", "artifacts[0].capabilities.shell", "allow");
    assert_unknown (m, 3, "zeta", "capabilities", NULL);
    assert_unknown (m, 4, "read-only", "capabilities.filesystem", "read_only");
    assert_unknown (m, 5, "pth", "capabilities.shell.interpreter_runtime[0].dirs[1]", "path");
    assert_unknown (m, 6, "max_turn", "inference", "max_turns");
    assert_unknown (m, 7, "confg", "inference.driver", "config");
    assert_unknown (m, 8, "expcted", "observability.eval.scorers[0]", "expected");
    assert_unknown (m, 9, "scope", "network.authentication.credentials.dash", "scopes");
    assert_int_equal (m->capabilities->filesystem->read_only.len, 0);
    capsule_manifest_free (m);
}

static void
test_build_side_keys_are_accepted_in_any_shape (void **state _unused_)
{
    struct capsule_manifest *m =
        accept (HEAD "runtime: [x]\nimplementation: {a: b}\nexecution: 1\nrequires_files: ~\n");
    assert_int_equal (m->unknown_len, 0);
    capsule_manifest_free (m);
}

static void
test_manifest_07_a_bare_name_is_refused_with_three_offers (void **state _unused_)
{
    refuses (HEAD "artifacts: [{name: tool-x, version: 1}]\n", E_MAN_003, "artifacts[0].name",
             "murmur/tool-x", "<owner>/tool-x", "local/tool-x", NULL);
    refuses (HEAD "artifacts: [{name: murmur-y, version: 1}]\n", E_MAN_003, "murmur/y", NULL);
    refuses (HEAD "artifacts: [{name: a/b/c, version: 1}]\n", E_MAN_003, "exactly one '/'", NULL);
}

static void
test_manifest_08_a_source_has_a_bare_name (void **state _unused_)
{
    refuses (HEAD "artifacts: [{name: a/x, source: ./x, runtime: skill}]\n", E_MAN_003, "name: x",
             NULL);
    refuses (HEAD "artifacts: [{name: x, source: ./x}]\n", E_MAN_003, "artifacts[0].source",
             "local_source", NULL);
    struct capsule_manifest *m = accept (
        HEAD
        "artifacts: [{name: x, source: ./x, runtime: skill, version: 2}, {name: y, source: ./y, local_source: true}]\n");
    assert_string_equal (m->artifacts.items[0].version, "local");
    assert_true (m->artifacts.items[0].version_is_ignored);
    assert_false (m->artifacts.items[1].version_is_ignored);
    assert_true (m->artifacts.items[0].may_be_prompt);
    assert_false (m->artifacts.items[1].may_be_prompt);
    capsule_manifest_free (m);
}

static void
test_manifest_11_a_skill_takes_nothing (void **state _unused_)
{
    refuses (ENTRY ("runtime: skill, capabilities: {}"), E_MAN_003, "artifacts[0].capabilities",
             NULL);
    refuses (ENTRY ("runtime: skill, config: ~"), E_MAN_003, "artifacts[0].config", NULL);
    refuses (ENTRY ("runtime: skill, gateway: ~"), E_MAN_003, "artifacts[0].gateway", NULL);
}

static void
test_manifest_13_14_15_16_17_gateways (void **state _unused_)
{
    const char *leaky = ENTRY ("gateway: {endpoint: 'https://u:p4ss@evil.example'}");
    refuses (leaky, E_MAN_003, "evil.example", NULL);
    struct mur_error *err = NULL;
    assert_null (capsule_manifest_parse (leaky, strlen (leaky), "m", MANIFEST_WITH_SECRETS, &err));
    assert_null (strstr (err->message, "p4ss"));
    mur_error_free (err);
    refuses (ENTRY ("gateway: {endpoint: 'https://${H}/v1'}"), E_MAN_003, "interpolation", NULL);
    refuses (ENTRY ("gateway: {endpoint: 'http://127.0.0.1:1'}"), E_CAP_018, "artifacts[0]", "a/x",
             "http://127.0.0.1:1", "keyless: true", NULL);
    refuses (ENTRY ("gateway: {endpoint: 'https://h', api_key: ' '}"), E_CAP_018, NULL);
    refuses (ENTRY ("gateway: {endpoint: 'http://127.0.0.1:1', api_key: , keyless: true}"),
             E_MAN_003, "keyless", NULL);
    refuses (ENTRY ("gateway: {endpoint: 'http://[::ffff:127.0.0.1]', keyless: true}"), E_MAN_003,
             "http://", NULL);
    refuses (ENTRY ("gateway: ~"), E_MAN_003, "artifacts[0].gateway.endpoint", NULL);
    refuses (ENTRY ("gateway: {}"), E_MAN_003, "artifacts[0].gateway.endpoint", NULL);
    refuses (ENTRY ("gateway: {endpoint: 'https://h', keyless: 'yes'}"), E_MAN_002, "keyless",
             NULL);
    refuses (ENTRY ("gateway: []"), E_MAN_002, "artifacts[0].gateway", NULL);
}

static void
test_a_literal_key_is_held_as_a_secret_and_nowhere_else (void **state _unused_)
{
    const char *text = ENTRY ("gateway: {endpoint: 'https://h/v1/', api_key: \" sk-l1teral \"}");
    struct capsule_manifest *m = accept (text);
    const struct gateway_block *g = m->artifacts.items[0].gateway;
    assert_true (g->has_literal);
    assert_null (g->key_reference);
    assert_string_equal (secret_reveal (g->key_literal), "sk-l1teral");
    assert_null (strstr (g->written_api_key->text, "l1teral"));
    _cleanup_buf_ struct buf masked = { 0 };
    capsule_manifest_mask (m, text, strlen (text), &masked);
    assert_null (strstr (masked.data, "l1teral"));
    assert_says (masked.data, "api_key: \"***\"}");
    capsule_manifest_free (m);
    m = accept_as (text, MANIFEST_SECRETLESS);
    assert_null (m->artifacts.items[0].gateway->key_literal);
    assert_true (m->artifacts.items[0].gateway->has_literal);
    capsule_manifest_free (m);
}

static void
test_masking_counts_characters_and_keeps_the_rest (void **state _unused_)
{
    const char *text =
        "name: ä\nversion: '日本'\nartifacts:\n"
        "- name: a/x # é\n  version: 1\n  gateway:\n    endpoint: https://h\n    api_key: |\n      s3cret\n"
        "- name: a/y\n  version: 1\n  gateway: {endpoint: 'https://h', api_key: other-s3cret}\n# ö\n";
    struct capsule_manifest *m = accept (text);
    _cleanup_buf_ struct buf masked = { 0 };
    capsule_manifest_mask (m, text, strlen (text), &masked);
    capsule_manifest_free (m);
    assert_null (strstr (masked.data, "s3cret"));
    m = accept (masked.data);
    assert_int_equal (m->artifacts.len, 2);
    assert_string_equal (secret_reveal (m->artifacts.items[1].gateway->key_literal), "***");
    assert_says (masked.data, "# ö\n");
    capsule_manifest_free (m);
}

static void
test_manifest_18_process_transport_refuses_what_it_ignores (void **state _unused_)
{
#define UNDER_PROCESS(keys)                                                                        \
    HEAD PROCESS "inference: {transport: process, driver: {artifact: a/d}, " keys "}\n"
    refuses (UNDER_PROCESS ("max_tokens: 5"), E_MAN_003, "inference.max_tokens", NULL);
    refuses (UNDER_PROCESS ("retry: {}"), E_MAN_003, "inference.retry", NULL);
    refuses (UNDER_PROCESS ("alternates: []"), E_MAN_003, "inference.alternates", NULL);
    refuses (UNDER_PROCESS ("tool_refresh: compaction"), E_MAN_003, "inference.tool_refresh", NULL);
    refuses (UNDER_PROCESS ("compaction: {max_tokens: 5}"), E_MAN_003,
             "inference.compaction.max_tokens", NULL);
    accepts (UNDER_PROCESS (
        "retry: ~, alternates: ~, tool_refresh: ~, command: x, max_turns: 3, compaction: {}"));
    refuses (HEAD PROCESS "inference: {transport: process, driver: {artifact: a/d}}\n"
                          "capabilities: {install: {skill: ['*']}}\n",
             E_MAN_003, "capabilities.install", NULL);
    refuses (HEAD PROCESS "inference: {transport: process, command: claude}\n", E_MAN_003,
             "inference.driver.artifact", "no longer selects", NULL);
    refuses (HEAD "artifacts: [{name: a/d, version: 1, runtime: driver, config: {a: b}}]\n"
                  "inference: {transport: process, driver: {artifact: a/d}}\n",
             E_MAN_003, "artifacts[0].config", NULL);
    refuses (HEAD "artifacts:\n" DRIVER
                  "inference: {transport: process, driver: {artifact: a/d}}\n",
             E_MAN_003, "artifacts[0].gateway", NULL);
    refuses (
        HEAD
        "artifacts: [{name: a/d, version: 1}]\ninference: {transport: process, driver: {artifact: a/d}}\n",
        E_MAN_003, "inference.driver.artifact", "driver", NULL);
}

static void
test_manifest_19_shell_entries_are_bare_names (void **state _unused_)
{
    refuses (CAPS ("shell: {allow: []}"), E_MAN_003, "capabilities.shell.allow", NULL);
    refuses (CAPS ("shell: {}"), E_MAN_003, "capabilities.shell.allow", NULL);
    refuses (CAPS ("shell: {allow: [git, /bin/sh]}"), E_MAN_003, "capabilities.shell.allow[1]",
             "/bin/sh", NULL);
    refuses (CAPS ("shell: {allow: ['a b']}"), E_MAN_003, "capabilities.shell.allow[0]", "a b",
             NULL);
    refuses (CAPS ("shell: {allow: [\"a\\tb\"]}"), E_MAN_003, "a\\tb", NULL);
    refuses (CAPS ("shell: {allow: ['..']}"), E_MAN_003, NULL);
    refuses (CAPS ("shell: {allow: ['']}"), E_MAN_003, NULL);
    refuses (ENTRY ("capabilities: {shell: {allow: []}}"), E_MAN_003, "capabilities.shell.allow",
             NULL);
}

static void
test_manifest_20_list_dir_must_be_said (void **state _unused_)
{
    refuses (CAPS ("shell: {allow: [p], interpreter_runtime: [{binary: p, dirs: [{path: /x}]}]}"),
             E_MAN_003, "capabilities.shell.interpreter_runtime[0].dirs[0].list_dir", NULL);
    refuses (
        CAPS (
            "shell: {allow: [p], interpreter_runtime: [{binary: q, dirs: [{path: /x, list_dir: true}]}]}"),
        E_MAN_003, "interpreter_runtime[0].binary", "shell.allow", NULL);
    refuses (
        CAPS (
            "shell: {allow: [p], interpreter_runtime: [{binary: p, dirs: [{path: x, list_dir: true}]}]}"),
        E_MAN_003, "dirs[0].path", NULL);
    refuses (CAPS ("shell: {allow: [p], interpreter_runtime: [{binary: p}]}"), E_MAN_003, "dirs",
             NULL);
    refuses (CAPS ("shell: {allow: [p], staged_runtime: [{binary: p, source_path: /x, pin: ' '}]}"),
             E_MAN_003, "pin", NULL);
    refuses (
        CAPS (
            "shell: {allow: [p], interpreter_runtime: [{binary: p, dirs: [{path: /x, list_dir: true}]}],"
            " staged_runtime: [{binary: p, source_path: /x, pin: v}]}"),
        E_MAN_003, "staged_runtime[0].binary", NULL);
    accepts (
        CAPS ("shell: {allow: [p], staged_runtime: [{binary: p, source_path: /none, pin: v}]}"));
}

static void
test_manifest_32_a_queue_needs_room (void **state _unused_)
{
    refuses (HEAD "lifecycle: {task_acceptance: queue, queue_depth: 0}\n", E_MAN_003,
             "lifecycle.queue_depth", NULL);
    struct capsule_manifest *m =
        accept (HEAD "lifecycle: {task_acceptance: single, queue_depth: 0}\n");
    assert_int_equal (lifecycle_tasks_held (m->lifecycle), 1);
    capsule_manifest_free (m);
    m = accept (HEAD "lifecycle: {task_acceptance: queue, queue_depth: 4}\n");
    assert_int_equal (lifecycle_tasks_held (m->lifecycle), 5);
    capsule_manifest_free (m);
    m = accept (HEAD "lifecycle: {task_acceptance: none}\n");
    assert_int_equal (lifecycle_tasks_held (m->lifecycle), 0);
    capsule_manifest_free (m);
}

static void
test_manifest_33_retain_is_strict (void **state _unused_)
{
    static const char *const blocks[] = { "trace", "context" };
    for (size_t i = 0; i < ARRAY_LEN (blocks); i++) {
        static const char *const bad[] = { "{}",
                                           "~",
                                           "",
                                           "[1]",
                                           "{max_age: 5 minutes}",
                                           "{max_agee: 1d}",
                                           "{max_age: 0}",
                                           "{max_sessions: 0, max_messages: 0}" };
        for (size_t j = 0; j < ARRAY_LEN (bad); j++) {
            _cleanup_free_ char *text = x_asprintf (HEAD "%s: {retain: %s}\n", blocks[i], bad[j]);
            refuses (text, E_MAN_003, "retain", NULL);
        }
    }
    refuses (HEAD "trace: {retain: {max_agee: 1d}}\n", E_MAN_003, "max_sessions, max_age", NULL);
    struct capsule_manifest *m = accept (
        HEAD
        "trace: {retain: {max_sessions: 3, max_age: 2d}}\ncontext: {retain: {max_messages: 7}}\n");
    assert_int_equal (m->trace->retain->max_count, 3);
    assert_int_equal (m->trace->retain->max_age_secs, 172800);
    assert_int_equal (m->context->retain->max_count, 7);
    assert_int_equal (m->context->retain->max_age_secs, 0);
    capsule_manifest_free (m);
}

static void
test_a_10_000_artifact_manifest_is_read_quickly (void **state _unused_)
{
    _cleanup_buf_ struct buf text = { 0 };
    buf_puts (&text, HEAD "artifacts:\n");
    for (int i = 0; i < 10000; i++)
        buf_printf (
            &text,
            "- {name: a/tool-%d, version: 1.0.%d, capabilities: {network: {allow: [h%d.example.com]}}}\n",
            i, i, i);
    struct timespec from, to;
    clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &from);
    struct capsule_manifest *m = accept (text.data);
    clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &to);
    assert_int_equal (m->artifacts.len, 10000);
    assert_string_equal (capsule_manifest_artifact (m, "a/tool-777")->version, "1.0.777");
    assert_null (capsule_manifest_artifact (m, "a/tool-10000"));
    capsule_manifest_free (m);
    double took = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
    assert_true (took < SECONDS_MAX);
}

/* --- the order of refusals --- */

/* Each fault alone gives its own words; all later ones are hidden by it. */
static void
test_refusals_come_in_the_order_of_the_specification (void **state _unused_)
{
    static const struct {
        const char *key, *lines;
        enum diag_code code;
        const char *words;
    } faults[] = {
        { "trace2", "deploy: {mur_version: []}\n", E_MAN_002, "deploy.mur_version" },
        { "registry", "registry: 1\n", E_MAN_003, "registry" },
        { "mur_version", "mur_version: 1\n", E_MAN_003, "mur_version" },
        { "version", NULL, E_MAN_001, "version" }, /* left out */
        { "artifacts", "artifacts: [{name: a/t, version: 1, runtime: wasm}]\n", E_MAN_003,
          "artifacts[0].runtime" },
        { "config", "config: {}\n", E_MAN_003, "config" },
        { "capabilities", "capabilities: {containment: tight, spawn: {allow: [a/b]}}\n", E_MAN_003,
          "capabilities.containment" },
        { "inference", "inference: {transport: carrier-pigeon}\n", E_MAN_003,
          "inference.transport" },
        { "context", "context: {record: maybe}\n", E_MAN_003, "context.record" },
        { "trace", "trace: {capture: all}\n", E_MAN_003, "trace.capture" },
        { "network", "network: {authentication: {scheme: basic}}\n", E_MAN_003,
          "network.authentication.scheme" },
        { "lifecycle", "lifecycle: {keep_working: {}}\n", E_MAN_003, "lifecycle.keep_working" },
        { "exports", "exports: {files: {root: ../x, mode: read-only}}\n", E_MAN_003,
          "exports.files.root" },
        { "control", "control: {secrets: [x]}\n", E_MAN_003, "control" },
    };
    for (size_t first = 0; first < ARRAY_LEN (faults); first++) {
        _cleanup_buf_ struct buf text = { 0 };
        bool version_is_left_out = false;
        buf_puts (&text, "name: a\n");
        for (size_t i = first; i < ARRAY_LEN (faults); i++) {
            if (faults[i].lines)
                buf_puts (&text, faults[i].lines);
            else
                version_is_left_out = true;
        }
        if (! version_is_left_out)
            buf_puts (&text, "version: 1\n");
        refuses (text.data, faults[first].code, faults[first].words, NULL);
    }
}

static void
test_an_entrys_faults_come_in_order (void **state _unused_)
{
    static const struct {
        const char *key, *words;
    } faults[] = {
        { "name: bare", "artifacts[0].name" },
        { "runtime: native", "artifacts[0].runtime" },
        { "source: ./x", "artifacts[0].source" },
        { "version: ''", "artifacts[0].version" },
        { "capabilities: {install: {skill: ['*']}}", "capabilities.install" },
        { "on_overflow: spill", "artifacts[0].on_overflow" },
        { "gateway: {}", "artifacts[0].gateway" },
    };
    for (size_t first = 0; first < ARRAY_LEN (faults); first++) {
        if (first == 2)
            continue; /* a source changes what a name must look like */
        _cleanup_buf_ struct buf text = { 0 };
        buf_puts (&text, HEAD "artifacts: [{");
        if (first > 0)
            buf_puts (&text, "name: a/x, ");
        for (size_t i = first; i < ARRAY_LEN (faults); i++)
            if (i != 2)
                buf_printf (&text, "%s, ", faults[i].key);
        if (first > 3)
            buf_puts (&text, "version: 1");
        buf_puts (&text, "}]\n");
        refuses (text.data, E_MAN_003, faults[first].words, NULL);
    }
}

static void
test_type_errors_name_the_first_one_in_the_file (void **state _unused_)
{
    refuses ("trace: []\nname: [1]\n", E_MAN_002, "m.yaml:1:8: trace", NULL);
    refuses ("name: [1]\ntrace: []\n", E_MAN_002, "m.yaml:1:7: name", NULL);
}

/* --- null, empty and absent --- */

static void
test_null_lists (void **state _unused_)
{
    struct capsule_manifest *m =
        accept (HEAD "artifacts:\ncapabilities: {env: {allow: }, network: ~}\n");
    assert_true (m->capabilities->env->allow.is_set);
    assert_null (m->capabilities->network);
    capsule_manifest_free (m);
    refuses (HEAD "artifacts: ~\n", E_MAN_002, "artifacts", NULL);
    refuses (CAPS ("env: {allow: null}"), E_MAN_002, "capabilities.env.allow", NULL);
    accepts (CAPS ("install: {skill: ['*'], from: ~}"));
    accepts (CAPS ("shell: {allow: [sh], strip_env: ~, baseline_env: null}"));
    accepts (HEAD "control: {settings: ~, secrets: ~, agent_settings: ~}\n");
    accepts (HEAD "network: {authentication: {scheme: bearer, credentials: ~}}\n");
    refuses (HEAD "network: {authentication: {scheme: bearer, credentials: {a: ~}}}\n", E_MAN_002,
             "credentials.a", NULL);
    refuses (HEAD "network: {authentication: {scheme: bearer, credentials: {a: {scopes: ~}}}}\n",
             E_MAN_003, "credentials.a.scopes", NULL);
}

static void
test_null_booleans (void **state _unused_)
{
    refuses (CAPS ("network: {unix_sockets: ~}"), E_MAN_002, "unix_sockets", NULL);
    refuses (CAPS ("filesystem: {workdir_exec: }"), E_MAN_002, "workdir_exec", NULL);
    refuses (CAPS ("filesystem: {records: null}"), E_MAN_002, "records", NULL);
    refuses (CAPS ("plan: {submit: ~}"), E_MAN_003, "capabilities.plan.submit", NULL);
    refuses (CAPS ("filesystem: {workdir_exec: 'true'}"), E_MAN_002, "workdir_exec", NULL);
    refuses (CAPS ("filesystem: {workdir_exec: yes}"), E_MAN_002, "workdir_exec", NULL);
}

static void
test_required_fields_are_not_blank (void **state _unused_)
{
    refuses ("", E_MAN_001, "name", NULL);
    refuses ("name: ' '\n", E_MAN_001, "name", NULL);
    refuses ("name: ~\nversion: 1\n", E_MAN_001, "name", NULL);
    refuses ("name: a\nversion:\n", E_MAN_001, "version", NULL);
}

static void
test_list_elements_keep_their_text (void **state _unused_)
{
    struct capsule_manifest *m = accept (CAPS ("env: {allow: [0x1F, on, 1e3, 1.10, ~]}"));
    static const char *const expected[] = { "0x1F", "on", "1e3", "1.10", "~" };
    for (size_t i = 0; i < ARRAY_LEN (expected); i++)
        assert_string_equal (m->capabilities->env->allow.items[i], expected[i]);
    capsule_manifest_free (m);
    refuses (CAPS ("env: {allow: [[x]]}"), E_MAN_002, "capabilities.env.allow[0]", NULL);
}

static void
test_record_on_is_text (void **state _unused_)
{
    struct capsule_manifest *m = accept (HEAD "context: {record: on, record_store: ' '}\n");
    assert_true (m->context->is_recorded);
    assert_string_equal (m->context->record_store, "");
    capsule_manifest_free (m);
    m = accept (HEAD "context: {record: ' off '}\n");
    assert_false (m->context->is_recorded);
    capsule_manifest_free (m);
}

/* --- blocks --- */

static void
test_capability_values (void **state _unused_)
{
    static const struct {
        const char *text, *words;
    } bad[] = {
        { "peer_fetch: {}", "capabilities.peer_fetch.allow" },
        { "peer_fetch: {allow: ['https://h/p']}", "capabilities.peer_fetch.allow[0]" },
        { "spawn: {allow: [kid]}", "capabilities.spawn.allow[0]" },
        { "spawn: {allow: [a/kid, b/kid]}", "capabilities.spawn.allow[1]" },
        { "spawn: {allow: [a/kid], workdir_snapshot: [a/other]}",
          "capabilities.spawn.workdir_snapshot[0]" },
        { "install: {}", "capabilities.install" },
        { "install: {skill: ['**']}", "capabilities.install.skill[0]" },
        { "install: {tool: ['a/b', 'A/*']}", "capabilities.install.tool[1]" },
        { "install: {skill: ['*'], from: []}", "capabilities.install.from" },
        { "install: {skill: ['*'], from: [sources]}", "capabilities.install.from" },
        { "install: {skill: ['*'], from: [stores, stores]}", "capabilities.install.from[1]" },
        { "install: {skill: ['*'], from: [Stores]}", "capabilities.install.from[0]" },
        { "limits: {memory_bytes: 0}", "capabilities.limits.memory_bytes" },
        { "resources: {cgroup_cpu_percent: 0}", "capabilities.resources.cgroup_cpu_percent" },
        { "containment: paranoid", "must be one of: advisory, scoped, sealed" },
        { "conversation: {}", "capabilities.conversation.read" },
        { "plan: {}", "capabilities.plan.submit" },
        { "task_io: {read: true}", "capabilities.task_io" },
        { "filesystem: {records: true}", "capabilities.filesystem.records" },
    };
    for (size_t i = 0; i < ARRAY_LEN (bad); i++) {
        _cleanup_free_ char *text = x_asprintf (CAPS ("%s"), bad[i].text);
        refuses (text, E_MAN_003, bad[i].words, NULL);
    }
    struct capsule_manifest *m = accept (CAPS (
        "spawn: {allow: [a/kid, a/kid]}, containment: ' sealed ', filesystem: {scope: ' data ', read_only: [' t ', ' ', '../x']},"
        " limits: {deadline_seconds: 600}, state: {store: ' '}, network: {allow: ['https://h/p']}"));
    assert_int_equal (m->capabilities->containment, CONTAINMENT_SEALED);
    assert_string_equal (m->capabilities->filesystem->scope, "data");
    assert_int_equal (m->capabilities->filesystem->read_only.len, 2);
    assert_true (m->capabilities->limits->deadline_seconds.is_set);
    assert_int_equal (m->capabilities->limits->memory_bytes.value, 536870912);
    assert_string_equal (m->capabilities->state->store, "");
    capsule_manifest_free (m);
}

static void
test_what_a_role_may_be_granted (void **state _unused_)
{
    refuses (ENTRY ("capabilities: {filesystem: {records: true}}"), E_MAN_003, "records", "tool",
             NULL);
    refuses (ENTRY ("runtime: driver, capabilities: {task_io: {read: true}}"), E_MAN_003, "task_io",
             NULL);
    refuses (ENTRY ("capabilities: {conversation: {read: false}}"), E_MAN_003, "conversation",
             NULL);
    refuses (ENTRY ("runtime: hook, capabilities: {filesystem: {records: true, scope: x}}"),
             E_MAN_003, "records", NULL);
    refuses (ENTRY ("runtime: hook, capabilities: {install: {skill: ['*']}}"), E_MAN_003, "install",
             NULL);
    refuses (ENTRY ("on_overflow: drop"), E_MAN_003, "artifacts[0].on_overflow", NULL);
    refuses (ENTRY ("runtime: hook, on_overflow: ''"), E_MAN_003, "artifacts[0].on_overflow", NULL);
    struct capsule_manifest *m = accept (ENTRY (
        "runtime: hook, on_overflow: block, capabilities: {filesystem: {records: true, scope: ' '}, task_io: {read: true}}"));
    assert_int_equal (m->artifacts.items[0].on_overflow, OVERFLOW_BLOCK);
    capsule_manifest_free (m);
}

static void
test_who_needs_a_gateway (void **state _unused_)
{
    accepts (HEAD HTTP);
    refuses (
        HEAD
        "artifacts: [{name: a/d, version: 1, runtime: driver}]\ninference: {model: m, driver: {artifact: a/d}}\n",
        E_MAN_003, "artifacts[0].gateway", NULL);
    accepts (HEAD "artifacts: [{name: std/driver-scripted, version: 1, runtime: driver}]\n"
                  "inference: {model: m, driver: {artifact: std/driver-scripted}}\n");
    refuses (HEAD "artifacts:\n" DRIVER, E_MAN_003, "artifacts[0].gateway", NULL);
    refuses (
        HEAD
        "artifacts:\n" DRIVER
        "- {name: a/e, version: 1, runtime: driver, gateway: {endpoint: 'https://h', keyless: true}}\n"
        "inference: {model: m, driver: {artifact: a/d}}\n",
        E_MAN_003, "artifacts[1].gateway", NULL);
    refuses (HEAD "artifacts:\n" DRIVER "inference: {model: m, driver: {artifact: b/d}}\n",
             E_MAN_003, "'b/d'", "a/d", NULL);
    accepts (ENTRY ("gateway: {endpoint: 'https://h', keyless: true}"));
}

static void
test_inference_values (void **state _unused_)
{
    static const struct {
        const char *text, *words;
    } bad[] = {
        { "driver: {artifact: a/d}", "inference.model" },
        { "model: ' ', driver: {artifact: a/d}", "inference.model" },
        { "model: m", "inference.driver.artifact" },
        { "model: m, driver: {artifact: a/d}, endpoint: ~", "gateway.endpoint" },
        { "model: m, driver: {artifact: a/d}, api_key: x", "gateway.api_key" },
        { "model: m, driver: {artifact: a/d}, max_task_reopens: 0", "lifecycle.max_task_reopens" },
        { "model: m, driver: {artifact: a/d}, max_turns: 0", "inference.max_turns" },
        { "model: m, driver: {artifact: a/d}, system_prompt: a, system_prompt_file: b",
          "inference.system_prompt" },
        { "model: m, driver: {artifact: a/d, config: [1]}", "inference.driver.config" },
        { "model: m, driver: {artifact: a/d}, tool_refresh: ''", "inference.tool_refresh" },
        { "model: m, driver: {artifact: a/d}, compaction: {threshold: 0}",
          "inference.compaction.threshold" },
        { "model: m, driver: {artifact: a/d}, compaction: {threshold: .nan}",
          "inference.compaction.threshold" },
        { "model: m, driver: {artifact: a/d}, compaction: {threshold: 1.01}",
          "inference.compaction.threshold" },
        { "model: m, driver: {artifact: a/d}, compaction: {system_prompt: a, system_prompt_file: b}",
          "compaction.system_prompt" },
        { "model: m, driver: {artifact: a/d}, retry: {max_retries: 21}",
          "inference.retry.max_retries" },
        { "model: m, driver: {artifact: a/d}, retry: {initial_delay_ms: 0}",
          "inference.retry.initial_delay_ms" },
        { "model: m, driver: {artifact: a/d}, retry: {initial_delay_ms: 60001}",
          "inference.retry.initial_delay_ms" },
        { "model: m, driver: {artifact: a/d}, retry: {initial_delay_ms: 500, max_delay_ms: 400}",
          "inference.retry.max_delay_ms" },
        { "model: m, driver: {artifact: a/d}, system_prompt_artifact: a/none",
          "inference.system_prompt_artifact" },
        { "model: m, driver: {artifact: a/d}, system_prompt_artifact: a/d", "prompt_payload" },
    };
    for (size_t i = 0; i < ARRAY_LEN (bad); i++) {
        _cleanup_free_ char *text =
            x_asprintf (HEAD "artifacts:\n" DRIVER "inference: {%s}\n", bad[i].text);
        refuses (text, E_MAN_003, bad[i].words, NULL);
    }
    struct capsule_manifest *m = accept (
        HEAD
        "artifacts:\n" DRIVER "- {name: a/s, version: 1, runtime: skill}\n"
        "inference: {model: ' m ', driver: {artifact: a/d, config: ~}, max_task_reopens: ~, system_prompt: ' ',"
        " system_prompt_artifact: a/s, tool_refresh: immediate}\n");
    assert_string_equal (m->inference->model, "m");
    assert_null (m->inference->driver->config);
    assert_null (m->inference->system_prompt);
    assert_string_equal (m->inference->prompt_entry->name, "a/s");
    assert_string_equal (m->inference->driver_entry->name, "a/d");
    assert_int_equal (m->inference->tool_refresh, TOOL_REFRESH_IMMEDIATE);
    assert_int_equal (m->inference->retry->max_retries.value, 6);
    assert_false (m->inference->max_turns.is_set);
    capsule_manifest_free (m);
}

static void
test_alternates (void **state _unused_)
{
#define ALTERNATES(list, control)                                                                  \
    HEAD "artifacts:\n" DRIVER "inference: {model: m, driver: {artifact: a/d}, alternates: " list  \
         "}\n" control
#define SELECTABLE "control: {settings: [inference.driver]}\n"
    accepts (ALTERNATES ("[{name: big, model: m2, driver: {artifact: a/d}}]", SELECTABLE));
    refuses (ALTERNATES ("[{name: big, model: m2, driver: {artifact: a/d}}]", ""), E_MAN_003,
             "inference.alternates", "control.settings", NULL);
    static const struct {
        const char *list, *words;
    } bad[] = {
        { "[{name: primary, model: m2, driver: {artifact: a/d}}]", "alternates[0].name" },
        { "[{name: Big, model: m2, driver: {artifact: a/d}}]", "alternates[0].name" },
        { "[{name: x, driver: {artifact: a/d}}]", "alternates[0].model" },
        { "[{name: x, model: m2}]", "alternates[0].driver.artifact" },
        { "[{name: x, model: m2, driver: {artifact: a/d, config: {}}}]",
          "alternates[0].driver.config" },
        { "[{name: x, model: m, driver: {artifact: a/d}}]", "alternates[0]" },
        { "[{name: x, model: m2, driver: {artifact: a/d}}, {name: x, model: m3, driver: {artifact: a/d}}]",
          "alternates[1].name" },
        { "[{name: x, model: m2, driver: {artifact: a/d}}, {name: y, model: m2, driver: {artifact: a/d}}]",
          "alternates[1]" },
        { "[{name: x, model: m2, driver: {artifact: a/none}}]", "alternates[0].driver.artifact" },
    };
    for (size_t i = 0; i < ARRAY_LEN (bad); i++) {
        _cleanup_free_ char *text = x_asprintf (ALTERNATES ("%s", SELECTABLE), bad[i].list);
        refuses (text, E_MAN_003, bad[i].words, NULL);
    }
}

static void
test_the_door (void **state _unused_)
{
#define AUTH(credentials)                                                                          \
    HEAD "network: {authentication: {scheme: bearer, credentials: " credentials "}}\n"
    struct capsule_manifest *m = accept (
        AUTH ("{zoe: {scopes: [' GetTask ', ListTasks]}, ana: {scopes: [resources/files]}}"));
    assert_string_equal (m->network->authentication->credentials.items[0].name, "ana");
    assert_string_equal (m->network->authentication->credentials.items[1].scopes.items[0],
                         "GetTask");
    capsule_manifest_free (m);
    refuses (AUTH ("{operator: {scopes: [GetTask]}}"), E_MAN_003, "operator", NULL);
    refuses (AUTH ("{Zoe: {scopes: [GetTask]}}"), E_MAN_003, "credentials.Zoe", NULL);
    refuses (AUTH ("{a: {scopes: []}}"), E_MAN_003, "credentials.a.scopes", NULL);
    refuses (AUTH ("{a: {scopes: [GetTask, GetTask]}}"), E_MAN_003, "scopes[1]", NULL);
    refuses (AUTH ("{a: {scopes: [gettask]}}"), E_MAN_003, "scopes[0]", NULL);
    refuses (AUTH ("{a: {scopes: [message/send]}}"), E_MAN_003, "SendMessage", NULL);
    refuses (AUTH ("{a: {scopes: [agent/getAuthenticatedExtendedCard]}}"), E_MAN_003,
             "GetExtendedAgentCard", NULL);
    refuses (HEAD "network: {authentication: {}}\n", E_MAN_003, "network.authentication.scheme",
             NULL);
    refuses (HEAD
             "network: {authentication: {scheme: bearer}}\ncapabilities: {spawn: {allow: [a/b]}}\n",
             E_MAN_003, "network.authentication", NULL);
}

static void
test_lifecycle_values (void **state _unused_)
{
    static const struct {
        const char *text, *words;
    } bad[] = {
        { "keep_working: {message: ' ', limit: 1}", "keep_working.message" },
        { "keep_working: {message: x}", "keep_working.limit" },
        { "keep_working: {message: x, limit: 0}", "keep_working.limit" },
        { "done_check: {limit: 1}", "done_check.command" },
        { "done_check: {command: make check, limit: 1}", "done_check.command" },
        { "done_check: {command: gitx status, limit: 1}", "done_check.command" },
        { "done_check: {command: git status}", "done_check.limit" },
        { "done_check: {command: git status, limit: 1, timeout_secs: 0}",
          "done_check.timeout_secs" },
    };
    for (size_t i = 0; i < ARRAY_LEN (bad); i++) {
        _cleanup_free_ char *text =
            x_asprintf (CAPS ("shell: {allow: [git]}") "lifecycle: {%s}\n", bad[i].text);
        refuses (text, E_MAN_003, bad[i].words, NULL);
    }
    struct capsule_manifest *m = accept (CAPS (
        "shell: {allow: [git]}") "lifecycle: {done_check: {command: \" 'git' status\", limit: 0}, keep_working: {message: ' go ', limit: 2}}\n");
    assert_string_equal (m->lifecycle->keep_working->message, " go ");
    assert_int_equal (m->lifecycle->done_check->timeout_secs.value, 600);
    capsule_manifest_free (m);
}

static void
test_export_values (void **state _unused_)
{
    static const struct {
        const char *text, *words;
    } bad[] = {
        { "files: {mode: read-only}", "exports.files.root" },
        { "files: {root: /x, mode: read-only}", "exports.files.root" },
        { "files: {root: a/../b, mode: read-only}", "exports.files.root" },
        { "files: {root: out}", "exports.files.mode" },
        { "files: {root: out, mode: read-write}", "exports.files.mode" },
        { "files: {root: out, mode: read-only, max_bytes: 0}", "exports.files.max_bytes" },
        { "peer_files: {root: ..}", "exports.peer_files.root" },
        { "mcp: {tools: [a], tasks: [{tool: b}]}", "exports.mcp.tasks[0].tool" },
        { "mcp: {tools: [a], tasks: [{required: true}]}", "exports.mcp.tasks[0].tool" },
        { "mcp: {tools: [a], tasks: [{tool: a}, {tool: a}]}", "exports.mcp.tasks[1].tool" },
        { "mcp: {tools: [a], tasks: [{tool: a, wait_secs: 61}]}",
          "exports.mcp.tasks[0].wait_secs" },
        { "peer_files: {root: s, max_ttl: 0}", "exports.peer_files.max_ttl" },
        { "peer_files: {root: s, max_bytes: 10MB}", "exports.peer_files.max_bytes" },
        { "peer_tasks: {}", "exports.peer_tasks.accept" },
    };
    for (size_t i = 0; i < ARRAY_LEN (bad); i++) {
        _cleanup_free_ char *text = x_asprintf (HEAD "exports: {%s}\n", bad[i].text);
        refuses (text, E_MAN_003, bad[i].words, NULL);
    }
    struct capsule_manifest *m = accept (
        HEAD
        "exports: {files: {root: ' a..b/... ', mode: read-only, max_bytes: 2Mi}, peer_files: {root: s}, peer_tasks: {accept: false}}\n");
    assert_string_equal (m->exports->files->root, "a..b/...");
    assert_int_equal (m->exports->files->max_bytes, 2097152);
    assert_int_equal (m->exports->peer_files->max_ttl_secs, 3600);
    assert_false (m->exports->peer_files->max_ttl_is_set);
    assert_int_equal (m->exports->peer_files->max_bytes, 10485760);
    capsule_manifest_free (m);
}

static void
test_control_values (void **state _unused_)
{
#define CONTROL(text)                                                                              \
    HEAD "artifacts:\n" DRIVER                                                                     \
         "- {name: a/t, version: 1, gateway: {endpoint: 'https://h', api_key: '${T}'}}\n"          \
         "inference: {model: m, driver: {artifact: a/d}}\ncontrol: {" text "}\n"
    struct capsule_manifest *m = accept (CONTROL (""));
    assert_null (m->control);
    capsule_manifest_free (m);
    m = accept (CONTROL ("settings: [' inference.max_tokens '], secrets: [T]"));
    assert_string_equal (m->control->settings.items[0], "inference.max_tokens");
    capsule_manifest_free (m);
    refuses (HEAD "control: {settings: [inference.max_tokens]}\n", E_MAN_003, "inference", NULL);
    refuses (CONTROL ("settings: [inference.model]"), E_MAN_003, "control.settings[0]", NULL);
    refuses (CONTROL ("settings: [inference.max_tokens, inference.max_tokens]"), E_MAN_003,
             "control.settings[1]", NULL);
    refuses (CONTROL ("settings: [inference.driver]"), E_MAN_003, "control.settings", "alternates",
             NULL);
    refuses (CONTROL ("agent_settings: [inference.max_tokens]"), E_MAN_003,
             "control.agent_settings[0]", NULL);
    refuses (CONTROL ("secrets: [t]"), E_MAN_003, "control.secrets[0]", NULL);
    refuses (CONTROL ("secrets: [OTHER]"), E_MAN_003, "control.secrets[0]", NULL);
    refuses (CONTROL ("secrets: [K]"), E_MAN_003, "control.secrets[0]", NULL);
    refuses (CONTROL ("secrets: [T, T]"), E_MAN_003, "control.secrets[1]", NULL);
}

static void
test_scorers (void **state _unused_)
{
    struct capsule_manifest *m = accept (
        HEAD
        "observability: {otel_endpoint: ' ', eval: {scorers: [{type: max_turns}, {type: vibes}, {type: max_tokens, name: n, max: 5}]}}\n");
    const struct eval_block *eval = m->observability->eval;
    assert_null (m->observability->otel_endpoint);
    assert_int_equal (eval->scorers.len, 2);
    assert_string_equal (eval->scorers.items[0].name, "max_turns");
    assert_int_equal (eval->scorers.items[0].max.value, 10);
    assert_int_equal (eval->scorers.items[1].max.value, 5);
    assert_string_equal (eval->skipped.items[0], "vibes");
    capsule_manifest_free (m);
    refuses (HEAD "observability: {eval: {scorers: [{name: x}]}}\n", E_MAN_002, "scorers[0].type",
             NULL);
}

static void
test_every_key_of_the_tables_can_be_described (void **state _unused_)
{
    const struct schema *stack[64];
    size_t depth = 0, keys = 0;
    stack[depth++] = capsule_schema ();
    while (depth) {
        for (const struct schema_key *k = stack[--depth]->keys; k->name; k++) {
            keys++;
            assert_true (k->doc || k->flags & KEY_HIDDEN);
            assert_true (! k->block || (k->type >= KEY_BLOCK && k->type <= KEY_BLOCK_MAP));
            if (k->block)
                stack[depth++] = k->block;
        }
    }
    assert_true (keys > 200);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_manifest_01_name_and_version_are_enough),
        cmocka_unit_test (test_manifest_02_a_number_key_takes_no_text),
        cmocka_unit_test (test_manifest_03_registry_is_refused_before_the_name),
        cmocka_unit_test (test_manifest_04_mur_version_moved),
        cmocka_unit_test (test_manifest_05_06_unknown_keys_are_collected_everywhere),
        cmocka_unit_test (test_build_side_keys_are_accepted_in_any_shape),
        cmocka_unit_test (test_manifest_07_a_bare_name_is_refused_with_three_offers),
        cmocka_unit_test (test_manifest_08_a_source_has_a_bare_name),
        cmocka_unit_test (test_manifest_11_a_skill_takes_nothing),
        cmocka_unit_test (test_manifest_13_14_15_16_17_gateways),
        cmocka_unit_test (test_a_literal_key_is_held_as_a_secret_and_nowhere_else),
        cmocka_unit_test (test_masking_counts_characters_and_keeps_the_rest),
        cmocka_unit_test (test_manifest_18_process_transport_refuses_what_it_ignores),
        cmocka_unit_test (test_manifest_19_shell_entries_are_bare_names),
        cmocka_unit_test (test_manifest_20_list_dir_must_be_said),
        cmocka_unit_test (test_manifest_32_a_queue_needs_room),
        cmocka_unit_test (test_manifest_33_retain_is_strict),
        cmocka_unit_test (test_a_10_000_artifact_manifest_is_read_quickly),
        cmocka_unit_test (test_refusals_come_in_the_order_of_the_specification),
        cmocka_unit_test (test_an_entrys_faults_come_in_order),
        cmocka_unit_test (test_type_errors_name_the_first_one_in_the_file),
        cmocka_unit_test (test_null_lists),
        cmocka_unit_test (test_null_booleans),
        cmocka_unit_test (test_required_fields_are_not_blank),
        cmocka_unit_test (test_list_elements_keep_their_text),
        cmocka_unit_test (test_record_on_is_text),
        cmocka_unit_test (test_capability_values),
        cmocka_unit_test (test_what_a_role_may_be_granted),
        cmocka_unit_test (test_who_needs_a_gateway),
        cmocka_unit_test (test_inference_values),
        cmocka_unit_test (test_alternates),
        cmocka_unit_test (test_the_door),
        cmocka_unit_test (test_lifecycle_values),
        cmocka_unit_test (test_export_values),
        cmocka_unit_test (test_control_values),
        cmocka_unit_test (test_scorers),
        cmocka_unit_test (test_every_key_of_the_tables_can_be_described),
    };
    return cmocka_run_group_tests_name ("manifest/capsule", tests, NULL, NULL);
}
