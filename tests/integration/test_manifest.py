# SPDX-License-Identifier: Apache-2.0
#
# What `mur` says of a murmur.yaml: acceptance cases of spec/manifest.md 21, and its tables row by row. Each manifest is read
# by the real program, mostly under --explain-scope, which refuses everything the parse does and creates nothing.

import json
import os
import re

import pytest
import yaml

from tests.support.fixtures import own_component
from tests.support.packages import component, sha256, skill_package, tool_package, zip_of

HEAD = 'name: a\nversion: "1"\n'


def explain(lab, text, *arguments, name="p"):
    project = lab.project(name)
    (project / "murmur.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    result = project.run("--explain-scope", *arguments)
    assert not (project / "workdir").exists() and not (project / "murmur.lock").exists()
    return result


def refused(lab, text, code, words=(), absent=(), arguments=()):
    result = explain(lab, text, *arguments)
    assert result.code == 1, str(result)
    assert f"error[{code}]: " in result.stderr, str(result)
    assert result.stdout == "status:  failed\n", str(result)
    for word in words:
        assert word in result.stderr, f"{word!r} is missing\n{result}"
    for word in absent:
        assert word not in result.stderr + result.stdout, f"{word!r} is there\n{result}"
    return result


def grants(lab, text, *arguments, name="p"):
    return json.loads(explain(lab, text, "--json", *arguments, name=name).ok().stdout)


# --- one file, two readers; YAML rules (sections 1 and 2) ------------------------------------------------------------------


def test_manifest_01_name_and_version_are_enough(lab):
    seen = grants(lab, "name: a\nversion: 1.10\n")
    for key in ("network_allow", "shell_allow", "spawn_allow", "env_allow", "read_only_paths", "preopens", "install_skill",
                "install_tool", "install_from", "state_stores", "configured_artifacts", "peer_fetch_allow"):
        assert seen[key] == [], key
    assert seen["filesystem_scope"] is None and seen["exports_files"] is None and seen["peer_files"] is None
    assert [seen[key] for key in ("unix_sockets", "workdir_exec", "plan_submit", "peer_tasks")] == [False] * 4


@pytest.mark.parametrize("text,field", [
    ("", "name"), ("# nothing\n", "name"), ("version: '1'\n", "name"), ("name:\nversion: '1'\n", "name"),
    ("name: '  '\nversion: '1'\n", "name"), ("name: a\n", "version"), ("name: a\nversion: ~\n", "version"),
    ("name: a\nversion: ' '\n", "version"),
])
def test_manifest_a_required_field_is_named(lab, text, field):
    refused(lab, text, "E-MAN-001", [f"'{field}'"])


def test_manifest_a_missing_or_unreadable_file_is_named(lab):
    project = lab.project()
    result = project.run().failed("E-IO-001")
    assert "murmur.yaml" in result.stderr
    (project / "murmur.yaml").mkdir()
    assert "murmur.yaml" in project.run().failed("E-IO-003").stderr


@pytest.mark.parametrize("text", [
    "name: [a\n", "a: b: c\n", "- name: a\n", "just text\n", "~\n", HEAD + "---\nname: b\n", HEAD + "name: b\n",
    HEAD + "capabilities: {env: {allow: [], allow: []}}\n", HEAD + "inference: {driver: {config: {a: 1, a: 2}}}\n",
    HEAD + "artifacts: [{name: a/b, version: '1', config: {a: 1, a: 2}}]\n", HEAD + "requires_files: {a: 1, a: 2}\n",
    "\ufeff" + HEAD, HEAD + "x: *nowhere\n", HEAD + "x: &x [*x]\n", HEAD + "x: " + "[" * 128 + "]" * 128 + "\n",
    b"name: a\nversion: '\xff'\n", HEAD + "x: \"\\0\"\n",
])
def test_manifest_what_is_no_such_yaml_is_refused_with_its_place(lab, text):
    result = refused(lab, text, "E-MAN-002")
    assert re.search(r"murmur\.yaml:\d+:\d+: ", result.stderr), str(result)


def test_manifest_127_levels_below_the_root_are_read(lab):
    explain(lab, HEAD + "x: " + "[" * 127 + "]" * 127 + "\n").ok()


@pytest.mark.parametrize("text,key", [
    ("lifecycle: {queue_depth: x}", "lifecycle.queue_depth"),
    ("lifecycle: {queue_depth: '1'}", "lifecycle.queue_depth"),
    ("lifecycle: {queue_depth: -1}", "lifecycle.queue_depth"),
    ("lifecycle: {queue_depth: 1.0}", "lifecycle.queue_depth"),
    ("lifecycle: {queue_depth: 18446744073709551616}", "lifecycle.queue_depth"),
    ("lifecycle: {max_task_reopens: 4294967296}", "lifecycle.max_task_reopens"),
    ("network: {internal_port: 65536}", "network.internal_port"),
    ("lifecycle: {task_acceptance: many}", "lifecycle.task_acceptance"),
    ("lifecycle: {after_task: stay}", "lifecycle.after_task"),
    ("lifecycle: {conversation: on}", "lifecycle.conversation"),
    ("capabilities: {network: {unix_sockets: 'true'}}", "capabilities.network.unix_sockets"),
    ("capabilities: {network: {unix_sockets: yes}}", "capabilities.network.unix_sockets"),
    ("capabilities: {network: {unix_sockets: }}", "capabilities.network.unix_sockets"),
    ("capabilities: {filesystem: {workdir_exec: ~}}", "capabilities.filesystem.workdir_exec"),
    ("capabilities: {filesystem: {records: }}", "capabilities.filesystem.records"),
    ("capabilities: {env: {allow: ~}}", "capabilities.env.allow"),
    ("capabilities: {shell: {allow: bash}}", "capabilities.shell.allow"),
    ("capabilities: {env: {allow: [[a]]}}", "capabilities.env.allow"),
    ("capabilities: []", "capabilities"),
    ("artifacts: {}", "artifacts"),
    ("artifacts: [x]", "artifacts[0]"),
    ("context: {seed_budget: much}", "context.seed_budget"),
    ("observability: {eval: {scorers: [{name: x}]}}", "observability.eval.scorers[0]"),
])
def test_manifest_02_a_value_of_another_type_names_the_key(lab, text, key):
    refused(lab, f"{HEAD}{text}\n", "E-MAN-002", [key, "murmur.yaml:3:"])


def test_manifest_scalars_keep_their_text(lab):
    seen = grants(lab, HEAD + "capabilities: {env: {allow: [0x1F, on, 1e3, True, 010]}, network: {allow: [1.10]}}\n")
    assert seen["env_allow"] == ["0x1F", "on", "1e3", "True", "010"]
    assert seen["network_allow"] == ["1.10"]


@pytest.mark.parametrize("text", [
    "context: {record: on}", "context: {record: off}", "capabilities: {env: {allow: }}", "artifacts:", "capabilities: ~",
    "lifecycle: {queue_depth: 0x10, input_timeout_secs: ~}", "runtime: [1, 2]\nimplementation: {a: b}\nexecution: 1\nrequires_files: x",
    "capabilities: {shell: {allow: [sh], strip_env: ~, baseline_env: ~}}", "network: {authentication: {scheme: bearer, credentials: ~}}",
    "deploy: {mur_version: }", "trace: {capture: content}", "x: &x {a: 1}\ny: *x",
])
def test_manifest_null_and_empty_where_they_are_nothing(lab, text):
    explain(lab, f"{HEAD}{text}\n").ok()


# --- the order of refusals (2.1) -------------------------------------------------------------------------------------------


def test_manifest_03_registry_is_refused_before_the_name(lab):
    refused(lab, "registry: {}\n", "E-MAN-003", ["registry", "hint: ", "project store", "global store", "registry.sources"],
            ["'name'"])


def test_manifest_04_mur_version_moved(lab):
    refused(lab, HEAD + "mur_version:\n", "E-MAN-003", ["mur_version", "deploy.mur_version"])


ORDER = [
    # Each row is refused before the next when both are wrong at once.
    ("x: [", "E-MAN-002", ""),
    ("registry: 1", "E-MAN-003", "registry"),
    ("mur_version: 1", "E-MAN-003", "deploy.mur_version"),
    ("artifacts: [{version: '1'}]", "E-MAN-003", "artifacts[0].name"),
    ("config: {}", "E-MAN-003", "config"),
    ("capabilities: {shell: {allow: []}}", "E-MAN-003", "capabilities.shell.allow"),
    ("inference: {}", "E-MAN-003", "inference."),
    ("context: {retain: {}}", "E-MAN-003", "context.retain"),
    ("trace: {retain: {}}", "E-MAN-003", "trace.retain"),
    ("network: {authentication: {scheme: basic}}", "E-MAN-003", "network.authentication.scheme"),
    ("lifecycle: {task_acceptance: queue, queue_depth: 0}", "E-MAN-003", "lifecycle.queue_depth"),
    ("exports: {files: {root: ../x, mode: read-only}}", "E-MAN-003", "exports.files.root"),
    ("control: {settings: [nothing]}", "E-MAN-003", "control."),
]


@pytest.mark.parametrize("at", range(len(ORDER) - 1))
def test_manifest_2_1_the_first_refusal_of_the_order_wins(lab, at):
    # Written in the opposite order, so that the place in the file decides nothing.
    later = [row[0] for row in reversed(ORDER[at + 1:])]
    text, code, word = ORDER[at]
    refused(lab, "\n".join([*later, "name: a", "version: '1'", text]) + "\n", code, [word])


# --- unknown keys (3) ------------------------------------------------------------------------------------------------------


def unknown_lines(result):
    return [line for line in result.stderr.splitlines() if "W-SEC-019" in line]


@pytest.mark.parametrize("text,key,path,suggestion", [
    ("capabilities: {filesystem: {read-only: [t]}}", "read-only", "capabilities.filesystem", "read_only"),
    ("capabilities: {network: {allwo: []}}", "allwo", "capabilities.network", "allow"),
    ("capabilites: {}", "capabilites", "top level", "capabilities"),
    ("quantum_teleport: 1", "quantum_teleport", "top level", None),
    ("artifacts: [{name: a/b, version: '1', runtme: tool}]", "runtme", "artifacts[0]", "runtime"),
    ("artifacts: [{name: a/b, version: '1', gateway: {endpoint: 'https://h', api_kee: x, keyless: true}}]", "api_kee",
     "artifacts[0].gateway", "api_key"),
    ("artifacts: [{name: a/b, version: '1', capabilities: {shell: {allow: [sh], alow: []}}}]", "alow",
     "artifacts[0].capabilities.shell", "allow"),
    ("capabilities: {shell: {allow: [sh], interpreter_runtime: [{binary: sh, dirs: [{path: /a, list_dir: true}, {path: /b, "
     "list_dir: false, lst_dir: 1}]}]}}", "lst_dir", "capabilities.shell.interpreter_runtime[0].dirs[1]", "list_dir"),
    ("network: {authentication: {scheme: bearer, credentials: {ui: {scopes: [GetTask], scope: x}}}}", "scope",
     "network.authentication.credentials.ui", "scopes"),
    ("observability: {eval: {scorers: [{type: exit_ok}, {type: exit_ok}, {type: exit_ok, maxx: 1}]}}", "maxx",
     "observability.eval.scorers[2]", "max"),
    ("trace: {include_tool_output: true}", "include_tool_output", "trace", None),
    ("lifecycle: {done_check: {command: x, limit: 1, tmeout_secs: 1}}\ncapabilities: {shell: {allow: [x]}}", "tmeout_secs",
     "lifecycle.done_check", "timeout_secs"),
    ("<<: {name: b}", "<<", "top level", None),
    ("deploy: {mur_versoin: x}", "mur_versoin", "deploy", "mur_version"),
])
def test_manifest_05_06_an_unknown_key_is_named_with_its_place(lab, text, key, path, suggestion):
    result = explain(lab, f"{HEAD}{text}\n").ok()
    lines = unknown_lines(result)
    assert len(lines) == 1, str(result)
    assert lines[0].startswith("[murmur-artifact] warning[W-SEC-019]: ")
    assert re.findall(r"'([^']*)'", lines[0]) == [key, *([suggestion] if suggestion else [])]
    assert path in lines[0] and " in " in lines[0]
    assert ("newer release" in lines[0]) == (suggestion is None)
    project = lab.project("p")
    assert unknown_lines(project.mur("doctor")) == lines


def test_manifest_05_a_misspelt_protection_protects_nothing(lab):
    assert grants(lab, HEAD + "capabilities: {filesystem: {read-only: [t]}}\n")["read_only_paths"] == []


def test_manifest_3_unknown_keys_are_ordered_and_their_values_never_shown(lab):
    text = (HEAD + "zz: secret-1\nab: secret-2\nlifecycle: {qq: secret-3}\ntrace: {q: secret-4}\n"
            "artifacts:\n- {name: a/b, version: '1', b1: secret-5, a1: secret-6, config: {zz: 1, unknown: {x: 1}}}\n"
            "capabilities: {envv: secret-7, env: {alow: secret-8}}\n")
    result = explain(lab, text).ok()
    keys = [re.search(r"'([^']*)'", line).group(1) for line in unknown_lines(result)]
    assert keys == ["ab", "zz", "a1", "b1", "envv", "alow", "q", "qq"]
    assert "secret-" not in result.stderr + result.stdout


def test_manifest_3_nothing_is_said_when_the_parse_fails(lab):
    result = refused(lab, HEAD + "quantum: 1\nlifecycle: {queue_depth: x}\n", "E-MAN-002")
    assert unknown_lines(result) == []


# --- artifacts (5) ---------------------------------------------------------------------------------------------------------


ENTRY = "artifacts: [{name: ana/x, version: '1', %s}]"

ARTIFACTS = [
    ("artifacts: [{name: tool-x, version: '1'}]", "E-MAN-003", ["artifacts[0].name", "murmur/tool-x", "<owner>/tool-x", "local/tool-x"]),
    ("artifacts: [{name: murmur-files, version: '1'}]", "E-MAN-003", ["murmur/files", "local/murmur-files"]),
    ("artifacts: [{name: a/x, source: ./x, runtime: skill}]", "E-MAN-003", ["artifacts[0].name", "hint: ", "x"]),
    ("artifacts: [{name: A/x, version: '1'}]", "E-MAN-003", ["artifacts[0].name", "'A'"]),
    ("artifacts: [{name: a/b/c, version: '1'}]", "E-MAN-003", ["artifacts[0].name", "exactly one '/'"]),
    ("artifacts: [{name: ana/x}]", "E-MAN-003", ["artifacts[0].version"]),
    ("artifacts: [{name: ana/x, version: '1'}, {version: '2'}]", "E-MAN-003", ["artifacts[1].name"]),
    (ENTRY % "runtime: wasm", "E-MAN-003", ["artifacts[0].runtime", "wasm", "own manifest"]),
    (ENTRY % "runtime: native", "E-MAN-003", ["artifacts[0].runtime", "own manifest"]),
    (ENTRY % "runtime: ''", "E-MAN-003", ["artifacts[0].runtime", "tool, driver, hook, skill"]),
    (ENTRY % "runtime: Tool", "E-MAN-003", ["artifacts[0].runtime"]),
    ("artifacts: [{name: x, source: ./x}]", "E-MAN-003", ["artifacts[0].source"]),
    ("artifacts: [{name: x, source: ./x, runtime: skill, local_source: false}]", "E-MAN-003", ["artifacts[0].source"]),
    (ENTRY % "runtime: skill, capabilities: {}", "E-MAN-003", ["artifacts[0].capabilities"]),
    (ENTRY % "runtime: skill, config: ~", "E-MAN-003", ["artifacts[0].config"]),
    (ENTRY % "runtime: skill, gateway: ", "E-MAN-003", ["artifacts[0].gateway"]),
    (ENTRY % "on_overflow: drop", "E-MAN-003", ["artifacts[0].on_overflow"]),
    (ENTRY % "runtime: hook, on_overflow: Block", "E-MAN-003", ["artifacts[0].on_overflow", "drop", "block"]),
    (ENTRY % "capabilities: {filesystem: {records: true}}", "E-MAN-003", ["capabilities.filesystem.records"]),
    (ENTRY % "runtime: hook, capabilities: {filesystem: {records: true, scope: s}}", "E-MAN-003", ["capabilities.filesystem.records"]),
    (ENTRY % "capabilities: {task_io: {read: true}}", "E-MAN-003", ["capabilities.task_io"]),
    (ENTRY % "capabilities: {conversation: {read: true}}", "E-MAN-003", ["capabilities.conversation"]),
    (ENTRY % "runtime: hook, capabilities: {task_io: {}}", "E-MAN-003", ["task_io.read"]),
    (ENTRY % "capabilities: {install: {skill: ['*']}}", "E-MAN-003", ["capabilities.install"]),
    (ENTRY % "runtime: hook, capabilities: {shell: {allow: []}}", "E-MAN-003", ["shell.allow"]),
    (ENTRY % "capabilities: {limits: {memory_bytes: 0}}", "E-MAN-003", ["limits.memory_bytes"]),
    # stage
    ("artifacts: [{name: murmur/t, version: '1'}, {name: ana/t, version: '1'}]", "E-CAP-020", ["murmur/t", "ana/t"]),
    ("artifacts: [{name: x/delegate-task, version: '1'}]", "E-CAP-013", ["x/delegate-task", "delegate-task"]),
    ("artifacts: [{name: x/t, version: '1'}, {name: y/t, version: '1'}, {name: x/share-file, version: '1', runtime: hook}]",
     "E-CAP-013", ["share-file"]),
    (ENTRY % "capabilities: {state: {store: ''}}", "E-CAP-009", ["ana/x"]),
    (ENTRY % "capabilities: {state: {store: a/b}}", "E-CAP-009", ["a/b"]),
    (ENTRY % "capabilities: {state: {store: .x}}", "E-CAP-009", [".x"]),
    (ENTRY % "capabilities: {filesystem: {scope: ../x}}", "E-CAP-002", ["../x", "artifacts[0]"]),
    (ENTRY % "capabilities: {filesystem: {scope: /x}}", "E-CAP-002", ["/x"]),
    (ENTRY % "config: ", "E-CAP-010", ["ana/x"]),
    (ENTRY % "config: [1]", "E-CAP-010", ["ana/x"]),
    (ENTRY % "config: {1: x}", "E-CAP-010", ["ana/x"]),
    # gateways
    (ENTRY % "gateway: {endpoint: 'https://u:p-word@evil.example'}", "E-MAN-003", ["artifacts[0].gateway.endpoint", "evil.example", "***"]),
    (ENTRY % "gateway: {endpoint: 'https://${H}/v1', keyless: true}", "E-MAN-003", ["artifacts[0].gateway.endpoint", "${"]),
    (ENTRY % "gateway: {endpoint: 'http://127.0.0.1:1'}", "E-CAP-018", ["artifacts[0]", "ana/x", "http://127.0.0.1:1", "api_key", "keyless: true"]),
    (ENTRY % "gateway: {endpoint: 'http://127.0.0.1:1', api_key: , keyless: true}", "E-MAN-003", ["artifacts[0].gateway.api_key"]),
    (ENTRY % "gateway: {endpoint: 'http://127.0.0.1:1', api_key: ' ', keyless: true}", "E-MAN-003", ["artifacts[0].gateway.api_key"]),
    (ENTRY % "gateway: {endpoint: 'http://127.0.0.1:1', api_key: ' '}", "E-CAP-018", ["ana/x"]),
    (ENTRY % "gateway: {endpoint: 'http://[::ffff:127.0.0.1]', keyless: true}", "E-MAN-003", ["artifacts[0].gateway.endpoint"]),
    (ENTRY % "gateway: {endpoint: 'http://0.0.0.0', keyless: true}", "E-MAN-003", ["artifacts[0].gateway.endpoint"]),
    (ENTRY % "gateway: {endpoint: 'http://10.0.0.1', keyless: true}", "E-MAN-003", ["artifacts[0].gateway.endpoint"]),
    (ENTRY % "gateway: {endpoint: 'ftp://h', keyless: true}", "E-MAN-003", ["artifacts[0].gateway.endpoint"]),
    (ENTRY % "gateway: {endpoint: 'https://h/?q=1', keyless: true}", "E-MAN-003", ["artifacts[0].gateway.endpoint"]),
    (ENTRY % "gateway: {endpoint: 'https://h/#f', keyless: true}", "E-MAN-003", ["artifacts[0].gateway.endpoint"]),
    (ENTRY % "gateway: {endpoint: 'https://', keyless: true}", "E-MAN-003", ["artifacts[0].gateway.endpoint"]),
    (ENTRY % "gateway: ", "E-MAN-003", ["artifacts[0].gateway.endpoint"]),
    (ENTRY % "gateway: {}", "E-MAN-003", ["artifacts[0].gateway.endpoint"]),
    (ENTRY % "gateway: {endpoint: 'https://h', keyless: 'yes'}", "E-MAN-002", ["artifacts[0].gateway.keyless"]),
    (ENTRY % "runtime: driver, gateway: {endpoint: 'https://h', keyless: true}", "E-MAN-003", ["artifacts[0].gateway"]),
]


@pytest.mark.parametrize("text,code,words", ARTIFACTS, ids=[f"{number:02}" for number in range(len(ARTIFACTS))])
def test_manifest_5_an_entry_is_refused_for(lab, text, code, words):
    refused(lab, f"{HEAD}{text}\n", code, words, ["p-word"])


@pytest.mark.parametrize("text", [
    ENTRY % "runtime: tool, local_source: true, prompt_payload: true",
    "artifacts: [{name: x, source: ' ', version: '1'}]".replace("name: x", "name: ana/x"),
    ENTRY % "capabilities: {peer_fetch: {allow: [h]}, plan: {submit: true}}",
    ENTRY % "gateway: {endpoint: ' https://h/v1/ ', api_key: ' ${KEY} '}",
    ENTRY % "gateway: {endpoint: 'http://localhost:8080', keyless: true}",
    ENTRY % "gateway: {endpoint: 'http://[::1]/v1', keyless: true}",
    ENTRY % "gateway: {endpoint: 'http://127.9.9.9', api_key: literal}",
    "artifacts: [{name: x/Delegate, version: '1'}]".replace("Delegate", "delegate"),
])
def test_manifest_5_an_entry_is_taken(lab, text):
    explain(lab, f"{HEAD}{text}\n").ok()


def test_manifest_07_a_source_ignores_its_version_with_a_word(lab):
    result = explain(lab, HEAD + "artifacts: [{name: x, source: ./x.md, version: '7', runtime: skill}]\n").ok()
    assert any("warning: " in line and "version" in line and "x" in line for line in result.stderr.splitlines()), str(result)


def test_manifest_08_a_source_that_is_not_there(lab):
    project = lab.agent(tools=[{"name": "x", "source": "./nowhere", "runtime": "skill"}], steps=[{"text": "done"}])
    assert "nowhere" in project.run("--task", "t").failed("E-IO-001").stderr
    (project / "nowhere").mkdir()
    assert "skill.md" in project.run("--task", "t").failed("E-IO-001").stderr
    project.write("nowhere/SKILL.MD", "# A skill\n")
    project.run("--task", "t").ok()


def test_manifest_09_one_tool_name_twice_reads_no_store(lab):
    project = lab.project("p", {"name": "p", "version": "1", "artifacts": [
        {"name": "murmur/t", "version": "1.0.0"}, {"name": "ana/t", "version": "1.0.0"}]})
    result = project.run("--task", "x")
    # `run` looks first whether everything declared is there; under --explain-scope nothing is looked for.
    assert result.code == 1 and ("E-CAP-020" in result.stderr or "E-RUN-008" in result.stderr)
    refused(lab, (project / "murmur.yaml").read_text(), "E-CAP-020", ["murmur/t", "ana/t", "t"])
    assert not (lab.murmur_home / "artifacts").exists()


@pytest.mark.parametrize("name", ["share-file", "fetch-peer-file", "delegate-task", "submit-plan", "switch-driver", "call-member",
                                  "end-without-answer", "pull-artifact", "remove-artifact", "session-status", "background-command"])
def test_manifest_10_each_reserved_tool_name(lab, name):
    refused(lab, HEAD + f"artifacts: [{{name: x/{name}, version: '1'}}]\n", "E-CAP-013", [name])


def test_manifest_12_a_config_is_measured_as_json(lab):
    def config(size):
        return HEAD + f"artifacts: [{{name: ana/x, version: '1', config: {{k: {'y' * (size - 8)}}}}}]\n"
    explain(lab, config(65536)).ok()
    refused(lab, config(65537), "E-CAP-010", ["ana/x", "65537", "65536"])
    refused(lab, config(70000), "E-CAP-010", ["70000", "65536"], ["yyy"])


# --- capabilities (6) ------------------------------------------------------------------------------------------------------


CAPABILITIES = [
    ("task_io: {read: true}", "capabilities.task_io"),
    ("filesystem: {records: true}", "capabilities.filesystem.records"),
    ("shell: {}", "capabilities.shell.allow"),
    ("shell: {allow: []}", "capabilities.shell.allow"),
    ("shell: {allow: [/bin/sh]}", "capabilities.shell.allow[0]"),
    ("shell: {allow: [ok, a b]}", "capabilities.shell.allow[1]"),
    ("shell: {allow: ['']}", "capabilities.shell.allow[0]"),
    ("shell: {allow: ['..']}", "capabilities.shell.allow[0]"),
    ("shell: {allow: [\"a\\tb\"]}", "capabilities.shell.allow[0]"),
    ("shell: {allow: [sh], interpreter_runtime: [{binary: py, dirs: [{path: /x, list_dir: true}]}]}", "interpreter_runtime[0].binary"),
    ("shell: {allow: [sh], interpreter_runtime: [{binary: sh, dirs: []}]}", "interpreter_runtime[0].dirs"),
    ("shell: {allow: [sh], interpreter_runtime: [{binary: sh, dirs: [{path: x, list_dir: true}]}]}", "interpreter_runtime[0].dirs[0].path"),
    ("shell: {allow: [sh], interpreter_runtime: [{binary: sh, dirs: [{path: /x}]}]}", "dirs[0].list_dir"),
    ("shell: {allow: [sh], staged_runtime: [{binary: py, source_path: /x, pin: p}]}", "staged_runtime[0].binary"),
    ("shell: {allow: [sh], staged_runtime: [{binary: sh, source_path: x, pin: p}]}", "staged_runtime[0].source_path"),
    ("shell: {allow: [sh], staged_runtime: [{binary: sh, source_path: /x, pin: ' '}]}", "staged_runtime[0].pin"),
    ("shell: {allow: [sh], interpreter_runtime: [{binary: sh, dirs: [{path: /x, list_dir: true}]}], "
     "staged_runtime: [{binary: sh, source_path: /x, pin: p}]}", "staged_runtime[0].binary"),
    ("limits: {memory_bytes: 0}", "capabilities.limits.memory_bytes"),
    ("limits: {table_elements: 0}", "capabilities.limits.table_elements"),
    ("limits: {instances: 0}", "capabilities.limits.instances"),
    ("limits: {deadline_seconds: 0}", "capabilities.limits.deadline_seconds"),
    *((f"resources: {{{key}: 0}}", f"capabilities.resources.{key}") for key in (
        "max_processes", "max_open_files", "max_file_size_bytes", "cpu_seconds", "memory_bytes", "cgroup_memory_bytes",
        "cgroup_pids_max", "cgroup_cpu_percent", "cgroup_io_bytes_per_sec", "workdir_max_bytes", "free_disk_bytes")),
    ("containment: paranoid", "capabilities.containment"),
    ("spawn: {allow: [kid]}", "capabilities.spawn.allow[0]"),
    ("spawn: {allow: [a/kid, b/kid]}", "capabilities.spawn.allow[1]"),
    ("spawn: {allow: [a/kid], workdir_snapshot: [b/other]}", "capabilities.spawn.workdir_snapshot[0]"),
    ("peer_fetch: {}", "capabilities.peer_fetch.allow"),
    ("peer_fetch: {allow: []}", "capabilities.peer_fetch.allow"),
    ("peer_fetch: {allow: ['https://h/p']}", "capabilities.peer_fetch.allow[0]"),
    ("plan: {}", "capabilities.plan.submit"),
    ("install: {}", "capabilities.install"),
    ("install: {skill: [], tool: []}", "capabilities.install"),
    ("install: {skill: ['a/x', '*x']}", "capabilities.install.skill[1]"),
    ("install: {tool: ['a/x*y']}", "capabilities.install.tool[0]"),
    ("install: {tool: ['x']}", "capabilities.install.tool[0]"),
    ("install: {tool: ['*'], from: []}", "capabilities.install.from"),
    ("install: {tool: ['*'], from: [sources]}", "capabilities.install.from"),
    ("install: {tool: ['*'], from: [stores, stores]}", "capabilities.install.from"),
    ("install: {tool: ['*'], from: [stores, Sources]}", "capabilities.install.from"),
    ("conversation: {}", "capabilities.conversation.read"),
]


@pytest.mark.parametrize("block,field", CAPABILITIES, ids=[f"{number:02}" for number in range(len(CAPABILITIES))])
def test_manifest_6_a_capability_is_refused_naming_its_field(lab, block, field):
    refused(lab, f"{HEAD}capabilities: {{{block}}}\n", "E-MAN-003", [field])


def test_manifest_19_an_entry_is_shown_escaped(lab):
    refused(lab, HEAD + "capabilities: {shell: {allow: [\"a\\nb\"]}}\n", "E-MAN-003", ["capabilities.shell.allow[0]", "a\\nb"], ["a\nb"])


def test_manifest_6_what_is_granted_is_reported_as_written(lab):
    seen = grants(lab, HEAD + """capabilities:
  network: {allow: [docs.example.com, "https://h:8443"], unix_sockets: true}
  peer_fetch: {allow: [peer.example]}
  filesystem: {scope: " sub/../data ", workdir_exec: true, read_only: [" tests ", "", docs]}
  shell: {allow: [git], strip_env: ["SECRET_*"], baseline_env: [EDITOR]}
  spawn: {allow: [local/kid]}
  env: {allow: [LANG]}
  plan: {submit: true}
  install: {skill: ["ana/*"], tool: [ana/t], from: [sources, stores]}
""")
    assert seen["network_allow"] == ["docs.example.com", "https://h:8443"] and seen["unix_sockets"] is True
    assert seen["peer_fetch_allow"] == ["peer.example"]
    assert (seen["filesystem_scope"], seen["workdir_exec"], seen["read_only_paths"]) == ("sub/../data", True, ["tests", "docs"])
    assert (seen["shell_allow"], seen["spawn_allow"], seen["env_allow"], seen["plan_submit"]) == (["git"], ["local/kid"], ["LANG"], True)
    assert (seen["install_skill"], seen["install_tool"], seen["install_from"]) == (["ana/*"], ["ana/t"], ["stores", "sources"])


# --- inference, context, trace, door, lifecycle, exports, control (7 to 13) --------------------------------------------------


DRIVER = "artifacts: [{name: ana/d, version: '1', runtime: driver, gateway: {endpoint: 'https://h', api_key: '${KEY}'}}, {name: ana/t, version: '1'}, {name: ana/s, version: '1', runtime: skill}]\n"
PROCESS = "artifacts: [{name: ana/d, version: '1', runtime: driver}, {name: ana/s, version: '1', runtime: skill}]\n"


def http(more):
    return HEAD + DRIVER + "inference: {model: m, driver: {artifact: ana/d}" + (", " + more if more else "") + "}\n"


INFERENCE = [
    (http("transport: pipe"), "E-MAN-003", ["inference.transport"]),
    (http("endpoint: x"), "E-MAN-003", ["inference.endpoint", "gateway.endpoint"]),
    (http("api_key: "), "E-MAN-003", ["inference.api_key", "gateway.api_key"]),
    (http("max_task_reopens: 1"), "E-MAN-003", ["inference.max_task_reopens", "lifecycle.max_task_reopens"]),
    (http("max_turns: 0"), "E-MAN-003", ["inference.max_turns"]),
    (http("max_tokens: 0"), "E-MAN-003", ["inference.max_tokens"]),
    (http("max_session_tokens: 0"), "E-MAN-003", ["inference.max_session_tokens"]),
    (http("tool_refresh: never"), "E-MAN-003", ["inference.tool_refresh"]),
    (http("system_prompt: x, system_prompt_file: y"), "E-MAN-003", ["inference.system_prompt"]),
    (http("system_prompt_artifact: ana/t"), "E-MAN-003", ["inference.system_prompt_artifact"]),
    (http("system_prompt_artifact: bob/s"), "E-MAN-003", ["inference.system_prompt_artifact", "bob/s", "ana/s"]),
    (http("compaction: {threshold: 0.0}"), "E-MAN-003", ["inference.compaction.threshold"]),
    (http("compaction: {threshold: 1.5}"), "E-MAN-003", ["inference.compaction.threshold"]),
    (http("compaction: {threshold: .nan}"), "E-MAN-003", ["inference.compaction.threshold"]),
    (http("compaction: {system_prompt: a, system_prompt_file: b}"), "E-MAN-003", ["inference.compaction.system_prompt"]),
    (http("compaction: {max_tokens: 0}"), "E-MAN-003", ["inference.compaction.max_tokens"]),
    (http("retry: {max_retries: 21}"), "E-MAN-003", ["inference.retry.max_retries"]),
    (http("retry: {initial_delay_ms: 0}"), "E-MAN-003", ["inference.retry.initial_delay_ms"]),
    (http("retry: {max_delay_ms: 500}"), "E-MAN-003", ["inference.retry.max_delay_ms"]),
    (http("retry: {initial_delay_ms: 60001}"), "E-MAN-003", ["inference.retry.initial_delay_ms"]),
    (http("alternates: [{name: Quick, model: x, driver: {artifact: ana/d}}]") + "control: {settings: [inference.driver]}\n", "E-MAN-003",
     ["inference.alternates[0].name"]),
    (http("alternates: [{name: primary, model: x, driver: {artifact: ana/d}}]") + "control: {settings: [inference.driver]}\n", "E-MAN-003",
     ["inference.alternates[0].name"]),
    (http("alternates: [{name: q, model: m, driver: {artifact: ana/d}}]") + "control: {settings: [inference.driver]}\n", "E-MAN-003",
     ["inference.alternates[0]"]),
    (http("alternates: [{name: q, model: x, driver: {artifact: ana/d}}]"), "E-MAN-003", ["inference.driver"]),
    (HEAD + DRIVER + "inference: {driver: {artifact: ana/d}}\n", "E-MAN-003", ["inference.model"]),
    (HEAD + DRIVER + "inference: {model: m}\n", "E-MAN-003", ["inference.driver.artifact"]),
    (HEAD + DRIVER + "inference: {model: m, driver: {artifact: ana/none}}\n", "E-MAN-003", ["inference.driver.artifact", "ana/none"]),
    (HEAD + DRIVER + "inference: {model: m, driver: {artifact: bob/d}}\n", "E-MAN-003", ["bob/d", "ana/d"]),
    (HEAD + DRIVER + "inference: {model: m, driver: {artifact: ana/d, config: [1]}}\n", None, ["inference.driver.config"]),
    (HEAD + "artifacts: [{name: ana/d, version: '1', runtime: driver}]\ninference: {model: m, driver: {artifact: ana/d}}\n", "E-MAN-003",
     ["artifacts[0].gateway"]),
    (HEAD + PROCESS + "inference: {transport: process}\n", "E-MAN-003", ["inference.driver.artifact", "command"]),
]
INFERENCE += [(HEAD + PROCESS + f"inference: {{transport: process, driver: {{artifact: ana/d}}, {more}}}\n", "E-MAN-003", [f"inference.{key}"])
              for key, more in [("max_tokens", "max_tokens: 5"), ("retry", "retry: {}"), ("alternates", "alternates: []"),
                                ("tool_refresh", "tool_refresh: immediate"), ("compaction.max_tokens", "compaction: {max_tokens: 1}"),
                                ("compaction.driver_config", "compaction: {driver_config: {a: 1}}")]]


@pytest.mark.parametrize("text,code,words", INFERENCE, ids=[f"{number:02}" for number in range(len(INFERENCE))])
def test_manifest_7_inference_is_refused_for(lab, text, code, words):
    if code:
        refused(lab, text, code, words)
        return
    result = explain(lab, text)
    assert result.code == 1 and re.search(r"error\[E-MAN-00[23]\]", result.stderr)
    for word in words:
        assert word in result.stderr


def test_manifest_18_process_transport_takes_no_install_grant(lab):
    refused(lab, HEAD + PROCESS + "inference: {transport: process, driver: {artifact: ana/d}}\ncapabilities: {install: {skill: ['*']}}\n",
            "E-MAN-003", ["capabilities.install"])


@pytest.mark.parametrize("entry,field", [("capabilities: {}", "capabilities"), ("config: {a: 1}", "config"),
                                         ("gateway: {endpoint: 'https://h', keyless: true}", "gateway")])
def test_manifest_18_a_process_driver_is_granted_nothing(lab, entry, field):
    refused(lab, HEAD + f"artifacts: [{{name: ana/d, version: '1', runtime: driver, {entry}}}]\n"
            "inference: {transport: process, driver: {artifact: ana/d}}\n", "E-MAN-003", [f"artifacts[0].{field}"])


@pytest.mark.parametrize("more", ["", "max_task_reopens: , retry: , alternates: , tool_refresh: ", "transport: ' http '",
                                  "system_prompt: ' '", "system_prompt_artifact: ana/s", "compaction: {threshold: 1.0}",
                                  "retry: {max_retries: 0, initial_delay_ms: 60000, max_delay_ms: 60000}"])
def test_manifest_7_inference_is_taken(lab, more):
    explain(lab, http(more)).ok()


BLOCKS = [
    ("context: {record: maybe}", "context.record"), ("context: {max_tokens: 0}", "context.max_tokens"),
    ("context: {seed_budget: 1.5}", "context.seed_budget"), ("context: {seed_overflow_margin: -0.1}", "context.seed_overflow_margin"),
    ("context: {seed_budget: .nan}", "context.seed_budget"),
    ("context: {retain: }", "context.retain"), ("context: {retain: {}}", "context.retain"), ("context: {retain: [1]}", "context.retain"),
    ("context: {retain: {max_messages: 0}}", "context.retain.max_messages"), ("context: {retain: {max_age: 0}}", "context.retain.max_age"),
    ("context: {retain: {max_agee: 1d}}", "context.retain"),
    ("trace: {capture: all}", "trace.capture"), ("trace: {retain: {}}", "trace.retain"),
    ("trace: {retain: {max_age: 5 minutes}}", "trace.retain.max_age"), ("trace: {retain: {max_agee: 1d}}", "trace.retain"),
    ("trace: {retain: {max_sessions: 0}}", "trace.retain.max_sessions"), ("trace: {retain: {max_age: 1w}}", "trace.retain.max_age"),
    ("network: {authentication: {}}", "network.authentication.scheme"), ("network: {authentication: {scheme: basic}}", "network.authentication.scheme"),
    ("network: {authentication: {scheme: bearer, credentials: {Ui: {scopes: [GetTask]}}}}", "network.authentication.credentials"),
    ("network: {authentication: {scheme: bearer, credentials: {operator: {scopes: [GetTask]}}}}", "operator"),
    ("network: {authentication: {scheme: bearer, credentials: {ui: {scopes: []}}}}", "network.authentication.credentials.ui.scopes"),
    ("network: {authentication: {scheme: bearer, credentials: {ui: {scopes: [Nope]}}}}", "network.authentication.credentials.ui.scopes"),
    ("network: {authentication: {scheme: bearer, credentials: {ui: {scopes: [GetTask, GetTask]}}}}", "network.authentication.credentials.ui.scopes"),
    ("network: {authentication: {scheme: bearer}}\ncapabilities: {spawn: {allow: [a/b]}}", "network.authentication"),
    ("lifecycle: {task_acceptance: queue, queue_depth: 0}", "lifecycle.queue_depth"),
    ("lifecycle: {keep_working: {limit: 1}}", "lifecycle.keep_working.message"), ("lifecycle: {keep_working: {message: ' ', limit: 1}}", "lifecycle.keep_working.message"),
    ("lifecycle: {keep_working: {message: x}}", "lifecycle.keep_working.limit"), ("lifecycle: {keep_working: {message: x, limit: 0}}", "lifecycle.keep_working.limit"),
    ("lifecycle: {done_check: {command: make, limit: 1}}", "lifecycle.done_check.command"),
    ("capabilities: {shell: {allow: [make]}}\nlifecycle: {done_check: {command: make}}", "lifecycle.done_check.limit"),
    ("capabilities: {shell: {allow: [make]}}\nlifecycle: {done_check: {command: ' ', limit: 1}}", "lifecycle.done_check.command"),
    ("capabilities: {shell: {allow: [make]}}\nlifecycle: {done_check: {command: makefile, limit: 1}}", "lifecycle.done_check.command"),
    ("capabilities: {shell: {allow: [make]}}\nlifecycle: {done_check: {command: make, limit: 1, timeout_secs: 0}}", "lifecycle.done_check.timeout_secs"),
    ("exports: {files: {mode: read-only}}", "exports.files.root"), ("exports: {files: {root: /x, mode: read-only}}", "exports.files.root"),
    ("exports: {files: {root: a/../b, mode: read-only}}", "exports.files.root"), ("exports: {files: {root: out}}", "exports.files.mode"),
    ("exports: {files: {root: out, mode: rw}}", "exports.files.mode"), ("exports: {files: {root: out, mode: read-only, max_bytes: 0}}", "exports.files.max_bytes"),
    ("exports: {files: {root: out, mode: read-only, max_bytes: 1kb}}", "exports.files.max_bytes"),
    ("exports: {peer_files: {}}", "exports.peer_files.root"), ("exports: {peer_files: {root: s, max_ttl: 0}}", "exports.peer_files.max_ttl"),
    ("exports: {peer_tasks: {}}", "exports.peer_tasks.accept"),
    ("control: {settings: [inference.max_tokens]}", "control"),
]


@pytest.mark.parametrize("text,field", BLOCKS, ids=[f"{number:02}" for number in range(len(BLOCKS))])
def test_manifest_9_to_13_a_block_is_refused_naming_its_field(lab, text, field):
    refused(lab, f"{HEAD}{text}\n", "E-MAN-003", [field])


@pytest.mark.parametrize("old,new", [("message/send", "SendMessage"), ("message/stream", "SendStreamingMessage"), ("tasks/get", "GetTask"),
                                     ("tasks/cancel", "CancelTask"), ("agent/getAuthenticatedExtendedCard", "GetExtendedAgentCard"),
                                     ("stream/watch", "murmur.WatchSession"), ("session/stop", "murmur.StopSession")])
def test_manifest_11_a_retired_scope_names_its_successor(lab, old, new):
    refused(lab, HEAD + f"network: {{authentication: {{scheme: bearer, credentials: {{ui: {{scopes: [{old}]}}}}}}}}\n", "E-MAN-003",
            [old, new, "hint: "])


CONTROL = [
    ("control: {settings: [inference.model]}", "control.settings"), ("control: {agent_settings: [inference.max_tokens]}", "control.agent_settings"),
    ("control: {settings: [inference.driver]}", "control.settings"), ("control: {settings: [inference.max_tokens, inference.max_tokens]}", "control.settings"),
    ("control: {secrets: [lower]}", "control.secrets[0]"), ("control: {secrets: [NOBODY]}", "control.secrets[0]"),
    ("control: {secrets: [KEY]}", "control.secrets[0]"),
]


@pytest.mark.parametrize("text,field", CONTROL, ids=[f"{number:02}" for number in range(len(CONTROL))])
def test_manifest_13_2_control_is_refused_for(lab, text, field):
    refused(lab, http("") + text + "\n", "E-MAN-003", [field])


# --- stage, flags and combination (17, 18) ---------------------------------------------------------------------------------


def test_manifest_26_a_credential_name_is_refused_whether_or_not_it_is_set(lab):
    text = HEAD + "capabilities: {env: {allow: [FOO_API_KEY, AWS_X, MINE]}, shell: {allow: [sh], strip_env: ['MI*']}}\n"
    for env in ({}, {"FOO_API_KEY": "value-of-it"}):
        project = lab.project("p", text)
        result = project.run("--explain-scope", env=env).failed("E-CAP-016")
        for word in ("FOO_API_KEY", "*_API_KEY", "AWS_X", "AWS_*", "MINE", "MI*"):
            assert word in result.stderr, word
        assert "value-of-it" not in result.stderr


def test_manifest_27_a_credential_shaped_name_is_warned_of_once(lab):
    text = HEAD + "capabilities: {env: {allow: [DB_PASSWORD, DB_PASSWORD, KEYBOARD_LAYOUT, MY_KEY]}}\n"
    result = explain(lab, text).ok()
    lines = [line for line in result.stderr.splitlines() if "W-SEC-024" in line]
    assert len(lines) == 2 and "DB_PASSWORD" in lines[0] and "MY_KEY" in lines[1]
    assert lines[0].startswith("[capsule-runtime] warning[W-SEC-024]: ")
    sleeping = explain(lab, text, "--lifecycle-after-task", "sleep")
    assert len(sleeping.stderr) > len(result.stderr)


def test_manifest_21_a_staged_runtime_below_sealed(lab):
    project = lab.script_capsule(own_component("script-task"), capabilities={
        "containment": "advisory", "shell": {"allow": ["sh"], "staged_runtime": [{"binary": "sh", "source_path": "/opt/x", "pin": "1"}]}})
    assert "sh" in project.run("--task", "x").failed("E-CAP-004").stderr
    assert not (project / "workdir").exists()


def test_manifest_22_a_path_in_a_network_entry(lab):
    for entry in ("https://h/p", "ftp://h", "", "https://h?q", "h:70000", "::1", "u@h", "*.0.0.1", "a b"):
        project = lab.script_capsule(own_component("script-task"), capabilities={"network": {"allow": [entry]}})
        result = project.run("--task", "x").failed("E-CAP-001")
        assert "network.allow" in result.stderr and (entry in result.stderr)
        assert not (project / "workdir").exists()
        project.run("--explain-scope").ok()


def test_manifest_25_a_protected_path_outside(lab):
    project = lab.script_capsule(own_component("script-task"), capabilities={"filesystem": {"read_only": ["../x"]}, "shell": {"allow": ["cat"]}})
    project.run("--explain-scope").ok()
    assert "../x" in project.run("--task", "x").failed("E-CAP-012").stderr
    assert not (project / "workdir").exists()


def test_manifest_28_the_strongest_floor_counts(lab):
    lab.murmur_home.mkdir(mode=0o700)
    (lab.murmur_home / "config.yaml").write_text("containment: sealed\n")
    seen = grants(lab, HEAD + "capabilities: {containment: advisory}\n", "--containment", "scoped")
    assert seen["declared_containment"] == "sealed"
    assert seen["floor_met"] == (seen["achieved_containment"] == "sealed") and ("shortfall_reason" in seen) == (not seen["floor_met"])


def test_manifest_29_workdir_exec_caps_at_advisory(lab):
    project = lab.script_capsule(own_component("script-task"), capabilities={"filesystem": {"workdir_exec": True}, "shell": {"allow": ["cat"]}})
    result = project.run("--task", "x").ok()
    assert result.stderr.count("warning[W-SEC-011]") == 1
    seen = project.run("--explain-scope", "--json").ok().json
    assert (seen["achieved_containment"], seen["workdir_exec"], seen["floor_met"]) == ("advisory", True, True)
    assert "workdir_exec" in project.run("--task", "x", "--containment", "scoped").failed("E-CAP-003").stderr


def test_manifest_31_a_sleeping_capsule_says_how_long_its_handles_live(lab):
    project = lab.agent(steps=[{"text": "done"}], exports={"peer_files": {"root": "share"}})
    result = project.run("--task", "x", "--lifecycle-after-task", "sleep").failed("E-CAP-008")
    assert "max_ttl" in result.stderr
    project = lab.agent("short", steps=[{"text": "done"}], exports={"peer_files": {"root": "share", "max_ttl": "901s"}})
    assert "901" in project.run("--task", "x", "--lifecycle-after-task", "sleep").failed("E-CAP-008").stderr


def test_manifest_32_a_queue_needs_room_with_the_flag_too(lab):
    project = lab.agent(steps=[{"text": "done"}], lifecycle={"queue_depth": 0})
    project.run("--explain-scope").ok()
    result = project.run("--lifecycle-task-acceptance", "queue", "--lifecycle-after-task", "exit").failed("E-MAN-003")
    assert "queue_depth" in result.stderr


def test_manifest_33_retain_never_means_delete_nothing_by_mistake(lab):
    for block in ("{}", "{max_age: 5 minutes}", "{max_agee: 1d}"):
        refused(lab, HEAD + f"trace: {{retain: {block}}}\n", "E-MAN-003", ["trace.retain"])
    refused(lab, HEAD + "trace: {retain: {max_agee: 1d}}\n", "E-MAN-003", ["max_agee", "max_sessions", "max_age"])


def test_manifest_34_the_env_file_never_overrides(lab):
    project = lab.script_capsule(own_component("probe"), capabilities={"env": {"allow": ["A", "B", "C", "D", "E"]}})
    project.write(".env", "# note\n\nA=1\nA=2\nB = \"two words\" \nC='x'\nD=\nE=\"\n")
    (project / "work").mkdir()
    run = ["--task", "env A\nenv B\nenv C\nenv E", "--workdir", project / "work"]
    def values(**env):
        project.run(*run, env=env).ok()
        return (project / "work/out/result.txt").read_text()
    text = values()
    assert "1" in text.splitlines()[0] and "two words" in text and "x" in text
    assert "9" in values(A="9").splitlines()[0]
    project.write(".env", "A=1\nno equals sign\n")
    assert re.search(r"\.env.*2", project.run(*run).failed("E-IO-003").stderr)
    project.write(".env", "=x\n")
    assert "1" in project.run(*run).failed("E-IO-003").stderr
    project.run(*run, "--no-env-file").ok()


def test_manifest_35_a_record_store_is_one_segment_when_there_is_a_record(lab):
    agent = {"steps": [{"text": "done"}]}
    result = lab.agent("one", context={"record_store": "a/b"}, **agent).run("--task", "x").failed("E-CAP-011")
    assert "a/b" in result.stderr
    lab.agent("two", context={"record_store": "a/b", "record": "off"}, **agent).run("--task", "x").ok()


def test_manifest_39_the_report_is_what_the_session_records(lab):
    project = lab.agent(steps=[{"text": "done"}], tools=[lab.publish("echo", own_component("echo"))],
                        capabilities={"env": {"allow": ["LANG"]}, "network": {"allow": ["docs.example.com"]}})
    before = sorted(os.listdir(lab.murmur_home))
    told = project.run("--explain-scope", "--json").ok()
    assert len(told.stdout.splitlines()) == 1
    assert sorted(os.listdir(lab.murmur_home)) == before and not (project / "murmur.lock").exists()
    project.run("--task", "x").ok()
    told = project.run("--explain-scope", "--json").ok().json
    recorded = lab.session(project.run("--task", "x").ok()).trace.one("session_start")["effective_grants"]
    for key in ("io_max",):
        told.pop(key), recorded.pop(key)
    session_paths = re.compile(r"ses_[0-9a-f]{32}")
    assert json.loads(session_paths.sub("<session-id>", json.dumps(recorded))) == told
    assert list(recorded) == list(told)
