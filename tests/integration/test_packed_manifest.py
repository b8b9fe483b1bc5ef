# SPDX-License-Identifier: Apache-2.0
#
# The artifact's own manifest, as build, publish and launch read it: spec/artifacts.md 3 and 4, spec/manifest.md 14, row by row.

import os
import re
import zipfile

import pytest
import yaml

from tests.support.fixtures import own_component
from tests.support.packages import CORE_MODULE, component, native_package, skill_package, zip_of

BASE = {"name": "name: x\n", "version": 'version: "0.1.0"\n', "runtime": "runtime: tool\n", "files": "requires_files: [tool.wasm]\n"}


def text(more="", **changed):
    return "".join({**BASE, **changed}.values()) + more


def build(lab, manifest, files=None, *arguments):
    project = lab.project("p", files={"tool.wasm": component(), **(files or {})})
    (project / "murmur.yaml").write_bytes(manifest if isinstance(manifest, bytes) else manifest.encode())
    return project, project.mur("build", *arguments)


def refused(lab, manifest, code, *words, files=None):
    project, result = build(lab, manifest, files)
    result.failed(code)
    for word in words:
        assert word in result.stderr, f"{word!r} is missing\n{result}"
    assert result.stdout == "" and not list(project.directory.glob("*.mur.zip"))


@pytest.mark.parametrize("manifest,code,words", [
    (text(name=""), "E-MAN-001", ["'name'"]), (text(name="name:\n"), "E-MAN-001", ["'name'"]),
    (text(version=""), "E-MAN-001", ["'version'"]), (text(runtime=""), "E-MAN-001", ["'runtime'"]),
    (text(name="name: [x]\n"), "E-MAN-003", ["name"]), (text(version="version: 1.10\n"), "E-MAN-003", ["version"]),
    (text(version="version: 1\n"), "E-MAN-003", ["version"]), (text(runtime="runtime: 1\n"), "E-MAN-003", ["runtime"]),
    (text("registry: {}\n"), "E-MAN-003", ["registry"]), (text("registry:\n", name=""), "E-MAN-003", ["registry"]),
    (text("execution: python\n"), "E-MAN-003", ["execution", "wasm", "native", "static"]),
    (text("implementation: 1\n"), "E-MAN-003", ["implementation"]), (text(files="requires_files: tool.wasm\n"), "E-MAN-003", ["requires_files"]),
    (text(files="requires_files: [1]\n"), "E-MAN-003", ["requires_files"]), (text("inference_auth: {}\n"), "E-BLD-004", ["inference_auth", "upstream_auth"]),
    (text("upstream: some\n"), "E-MAN-003", ["upstream"]), ("name: [\n", "E-MAN-002", ["murmur.yaml:"]), ("- x\n", "E-MAN-002", ["murmur.yaml:"]),
    (text(name='name: "ana/x"\n'), "E-BLD-001", ["ana/x", "hint: "]), (text(name="name: X\n"), "E-BLD-001", ["'X'"]),
    (text(name="name: -x\n"), "E-BLD-001", ["-x"]), (text(name="name: " + "x" * 101 + "\n"), "E-BLD-001", ["100"]),
    (text(name="name: a_b\n"), "E-BLD-001", ["'_'"]), (text(version='version: ".."\n'), "E-IO-003", [".."]),
    (text(version='version: "a/b"\n'), "E-IO-003", ["a/b"]),
], ids=[f"{number:02}" for number in range(25)])
def test_artifacts_a_packed_manifest_is_refused_for(lab, manifest, code, words):
    refused(lab, manifest, code, *words)


@pytest.mark.parametrize("models,words", [
    ("{m: {max_output_tokens: 1, context_window: 1}}", ["models", "driver"]),
    ("!driver [m]", ["models"]), ("!driver {'': {max_output_tokens: 1, context_window: 1}}", ["models"]),
    ("!driver {m: {context_window: 1}}", ["models.m.max_output_tokens"]), ("!driver {m: {max_output_tokens: 1}}", ["models.m.context_window"]),
    ("!driver {m: {max_output_tokens: 0, context_window: 1}}", ["models.m.max_output_tokens"]),
    ("!driver {m: {max_output_tokens: 4294967296, context_window: 1}}", ["models.m.max_output_tokens"]),
    ("!driver {m: {max_output_tokens: 1, context_window: 1, max_input_tokens: 2}}", ["models.m.max_input_tokens"]),
    ("!driver {m: {max_output_tokens: 1, context_window: 1, more: 2}}", ["models.m.more"]),
    ("!driver {m: 1}", ["models.m"]),
])
def test_artifacts_09_a_models_table_is_refused_at_build_and_in_a_store(lab, models, words):
    is_driver = models.startswith("!driver ")
    manifest = text(f"models: {models.removeprefix('!driver ')}\n", runtime=f"runtime: {'driver' if is_driver else 'tool'}\n")
    refused(lab, manifest, "E-BLD-005", *words)
    path = lab.directory / "x.mur.zip"
    path.write_bytes(zip_of({"murmur.yaml": manifest, "tool.wasm": component()}))
    result = lab.mur("publish", path).failed("E-REG-011")
    for word in words:
        assert word in result.stderr
    assert not (lab.murmur_home / "artifacts").exists()


@pytest.mark.parametrize("files,code,words", [
    ("[/etc/hostname]", "E-BLD-002", ["/etc/hostname"]), ("['\\etc']", "E-BLD-002", ["etc"]), ("['C:x']", "E-BLD-002", ["C:x"]),
    ("[a/../../x]", "E-BLD-002", [".."]), ("['a\\..\\x']", "E-BLD-002", [".."]), ("[link.wasm]", "E-BLD-002", ["link.wasm"]),
    ("[murmur-build.json]", "E-BLD-002", ["murmur-build.json"]), ("[tool.wasm, absent]", "E-IO-003", ["absent"]), ("[tool.wasm, dir]", "E-IO-003", ["dir"]),
    ("[]", "E-BLD-003", ["capsule.wasm"]), ("[sub/tool.wasm]", "E-BLD-003", ["capsule.wasm"]), ("[tool.WASM]", "E-BLD-003", ["capsule.wasm"]),
    ("[b.wasm, tool.wasm]", "E-BLD-003", ["b.wasm, tool.wasm"]),
])
def test_artifacts_05_06_what_may_not_be_packed(lab, files, code, words):
    project = lab.project("p", files={"murmur-build.json": "{}", "sub/tool.wasm": "", "tool.WASM": "", "b.wasm": component(), "dir/x": ""})
    os.symlink("tool.wasm", project / "link.wasm")
    refused(lab, text(files=f"requires_files: {files}\n"), code, *words)


@pytest.mark.parametrize("more,names", [
    ("runtime: skill\n", ["murmur.yaml", "skill.md", "murmur-build.json"]),
    ("runtime: skill\nrequires_files: []\n", ["murmur.yaml", "murmur-build.json"]),
    ("runtime: capsule\nexecution: STATIC\n", ["murmur.yaml", "murmur-build.json"]),
    ("runtime: tool\nimplementation: native\nrequires_files: [bin/x]\n", ["murmur.yaml", "bin/x", "murmur-build.json"]),
    ("runtime: wasm\nrequires_files: [tool.wasm, sub/data.txt]\n", ["murmur.yaml", "tool.wasm", "sub/data.txt", "murmur-build.json"]),
    ("runtime: tool\nrequires_files: [core.wasm]\n", ["murmur.yaml", "core.wasm", "murmur-build.json"]),
    ("runtime: tool\nrequires_files: ['sub\\data.txt', tool.wasm]\n", None),
])
def test_artifacts_01_02_what_is_packed_and_in_which_order(lab, more, names):
    project, result = build(lab, f'name: x\nversion: "0.1.0"\n{more}', {
        "skill.md": "# x\n", "bin/x": "#!/bin/sh\n", "sub/data.txt": "d", "core.wasm": CORE_MODULE, ".hidden": "", "README.md": "",
        "sub\\data.txt": "b"})
    result.ok()
    assert result.stdout == "Built artifact: ./x-0.1.0.mur.zip (WIT level 1)\n"
    with zipfile.ZipFile(project / "x-0.1.0.mur.zip") as archive:
        assert archive.namelist() == (names or ["murmur.yaml", "sub/data.txt", "tool.wasm", "murmur-build.json"])
        assert archive.read("murmur-build.json") == b'{"built_at_level":1}\n'
        assert archive.read("murmur.yaml") == (project / "murmur.yaml").read_bytes()


def test_artifacts_the_output_goes_where_it_is_told(lab):
    project, _ = build(lab, text())
    (project / "out").mkdir()
    assert project.mur("build", "-o", "out").ok().stdout == "Built artifact: out/x-0.1.0.mur.zip (WIT level 1)\n"
    assert project.mur("build", "--output=new/deep/y.mur.zip").ok().stdout == "Built artifact: new/deep/y.mur.zip (WIT level 1)\n"
    project.mur("build", "-o", "y.zip").failed("E-IO-003")
    assert lab.mur("build", "p").ok().stdout == "Built artifact: p/x-0.1.0.mur.zip (WIT level 1)\n"
    assert lab.mur("build", project.directory).ok().stdout == f"Built artifact: {project.directory}/x-0.1.0.mur.zip (WIT level 1)\n"
    assert (project / "out/x-0.1.0.mur.zip").read_bytes() == (project / "new/deep/y.mur.zip").read_bytes()
    assert sorted(path.name for path in project.directory.glob(".*")) == []


def test_artifacts_an_output_named_as_a_file_is_left_out_of_itself(lab):
    project, _ = build(lab, text(files="requires_files: [tool.wasm]\n"))
    project.write_manifest(text(files="requires_files: [tool.wasm, x-0.1.0.mur.zip]\n"))
    project.mur("build").ok()
    with zipfile.ZipFile(project / "x-0.1.0.mur.zip") as archive:
        assert archive.namelist() == ["murmur.yaml", "tool.wasm", "murmur-build.json"]


def test_artifacts_04_a_component_of_another_level_is_said_in_the_parentheses(lab):
    _, result = build(lab, text(), {"tool.wasm": component(["murmur:tool/run@0.2.0"])})
    assert re.fullmatch(r"Built artifact: \./x-0\.1\.0\.mur\.zip \([^)]+\)\n", result.ok().stdout)
    assert "WIT level 1)" not in result.stdout


LITERALS = "api_key: sk-1\nnested: {client_token: longer-than-eight, list: [{my_secret: another-long-one}]}\nPassword: short\n" \
           "db_password: ${DB}\nother_token: ${NAME}\ntoken_count: 12345678901\n"


def test_manifest_14_literal_secrets_are_named_and_never_shown(lab):
    _, result = build(lab, text(LITERALS))
    result.ok()
    lines = result.stderr.splitlines()
    warned = [re.findall(r"'([^']*)'", line)[0] for line in lines if "warning[W-SEC-004]" in line]
    assert warned == ["api_key", "nested.client_token", "nested.list.0.my_secret"]
    assert len([line for line in lines if line.startswith("  → ")]) == 3 * 3
    for value in ("sk-1", "longer-than-eight", "another-long-one", "short"):
        assert value not in result.stderr


@pytest.mark.parametrize("files,code,word", [
    ("[murmur.yaml, tool.wasm]", "W-BLD-001", "murmur.yaml"), ("[capsule.wasm, ./capsule.wasm]", "W-BLD-001", "capsule.wasm"),
    ("[capsule.wasm, tool.wasm]", "W-BLD-002", "tool.wasm"), ("[tool.wasm, src/lib.rs, Cargo.lock, a/target/x]", "W-BLD-003", "src/lib.rs, Cargo.lock, a/target/x"),
])
def test_artifacts_07_each_lint_has_hints_and_a_link(lab, files, code, word):
    _, result = build(lab, text(files=f"requires_files: {files}\n"), {
        "capsule.wasm": component(), "src/lib.rs": "", "Cargo.lock": "", "a/target/x": ""})
    lines = result.ok().stderr.splitlines()
    assert lines[0].startswith(f"warning[{code}]: ") and word in lines[0], str(result)
    assert len(lines) >= 3 and all(line.startswith("  → ") for line in lines[1:])
    assert code.lower() in lines[-1].lower()


def test_artifacts_a_skill_s_inputs_are_no_lint(lab):
    project = lab.project("p", 'name: x\nversion: "1"\nruntime: skill\nrequires_files: [skill.md, Cargo.toml]\n', {"skill.md": "", "Cargo.toml": ""})
    assert project.mur("build").ok().stderr == ""


# --- mur build --skill -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder,name", [
    ("Notes.v2", "notes_v2"), ("My  Skill!!", "my_skill"), ("__x__", "x"), ("été", "t"), ("plain-name", "plain-name"), ("???", "skill"),
])
def test_artifacts_a_skill_s_name_is_inferred_from_its_folder(lab, folder, name):
    skill = lab.project(folder, files={"SkIlL.md": "# x\n"})
    out = lab.project("out")
    result = out.mur("build", "--skill", skill.directory)
    if "_" in name:
        # An underscore stands for what the rule of names does not take.
        assert name in result.failed("E-BLD-001").stderr
    else:
        assert result.ok().stdout == f"Built artifact: {out.directory}/{name}-0.1.0.mur.zip (WIT level 1)\n"


def test_artifacts_a_skill_is_a_folder_or_a_zip_and_has_its_text(lab):
    project = lab.project("skill-x", files={"README.md": ""})
    assert "SKILL.md" in project.mur("build", "--skill").failed("E-IO-001").stderr
    project.mur("build", "--skill", "./absent").failed("E-IO-001")
    project.write("SKILL.md", "# x\n")
    project.write("murmur-build.json", "{}")
    project.mur("build", "--skill").failed("E-BLD-002")
    (project / "murmur-build.json").unlink()
    project.write("sub/deep.md", "not taken")
    project.mur("build", "--skill", "--summary", "Say: it", "--version", "1.2.3").ok()
    with zipfile.ZipFile(project / "skill-x-1.2.3.mur.zip") as archive:
        assert archive.namelist() == ["murmur.yaml", "skill.md", "README.md", "murmur-build.json"]
        assert 'version: "1.2.3"' in archive.read("murmur.yaml").decode()
    project.mur("build", "--skill", "named", ".").ok()
    assert (project / "named-0.1.0.mur.zip").is_file()
    project.mur("build", "--skill", "Bad Name", ".").failed("E-BLD-001")


# --- publish ---------------------------------------------------------------------------------------------------------------


def test_artifacts_12_publish_takes_what_build_wrote_and_never_twice(lab):
    project, _ = build(lab, text())
    assert project.mur("publish").ok().stdout == "Published local/x@0.1.0\n"
    again = project.mur("publish").failed("E-REG-003")
    assert "local/x@0.1.0" in again.stderr and again.stdout == ""
    (project / "x-0.1.0.mur.zip").unlink()
    assert "x-0.1.0.mur.zip" in project.mur("publish").failed("E-IO-001").stderr
    lab.mur("publish", cwd=lab.project("empty").directory).failed("E-IO-001")


@pytest.mark.parametrize("version", ["latest", "Stable", "EDGE"])
def test_artifacts_a_moving_version_builds_and_is_not_published(lab, version):
    project, result = build(lab, text(version=f"version: {version}\n"))
    result.ok()
    assert version in project.mur("publish").failed("E-REG-004").stderr


def test_artifacts_a_native_package_is_published_for_this_host_or_the_one_named(lab):
    project = lab.project("p")
    project.write("n.mur.zip", native_package("n"))
    lines = project.mur("publish", "n.mur.zip").ok().stdout.splitlines()
    assert re.fullmatch(r"Platform: linux-(x86_64|aarch64) \(auto-detected\)", lines[0]) and lines[1] == "Published local/n@0.1.0"
    assert project.mur("publish", "n.mur.zip", "--platform", "darwin-aarch64").ok().stdout == "Published local/n@0.1.0\n"
    names = sorted(path.name for path in (lab.murmur_home / "artifacts/local/n/0.1.0").glob("*.mur.zip"))
    assert names[0] == "n-0.1.0-darwin-aarch64.mur.zip" and len(names) == 2


# --- the launch ------------------------------------------------------------------------------------------------------------


def test_manifest_14_2_a_gateway_needs_an_artifact_that_says_how_a_key_is_shown(lab):
    gateway = {"endpoint": "http://127.0.0.1:1", "keyless": True}
    for number, auth in enumerate([None, {"header": "Host", "value": "{key}"}, {"header": "x y", "value": "{key}"}, {"header": "x-key", "value": "none"},
                                   {"header": "x-key", "value": "{key}{key}"}, {"header": "x-key", "value": "{key}\n"}, {"header": "x-key"}]):
        name = lab.publish(f"echo-{number}", own_component("echo"), **({"upstream_auth": auth} if auth else {})).rsplit("@", 1)[0]
        project = lab.agent(f"p{number}", tools=[{"name": name, "version": "0.1.0", "gateway": gateway}], steps=[{"text": "done"}])
        assert name in project.run("--task", "x").failed("E-RUN-025").stderr, auth
        assert lab.records == []
    lab.publish("echo-old", own_component("echo"))
    retired = zip_of({"murmur.yaml": 'name: old\nversion: "1"\nruntime: tool\ninference_auth: {header: x, value: "{key}"}\n',
                      "tool.wasm": own_component("echo").read_bytes()})
    path = lab.directory / "old.mur.zip"
    path.write_bytes(retired)
    lab.mur("publish", path).ok()
    project = lab.agent("old", tools=[{"name": "local/old", "version": "1", "gateway": gateway}], steps=[{"text": "done"}])
    assert "upstream_auth" in project.run("--task", "x").failed("E-RUN-025").stderr


def test_manifest_5_4_a_native_tool_has_no_gateway_and_its_blocks_only_warn(lab):
    path = lab.directory / "n.mur.zip"
    path.write_bytes(native_package("n"))
    lab.mur("publish", path).ok()
    entry = {"name": "local/n", "version": "0.1.0"}
    project = lab.agent("gate", tools=[{**entry, "gateway": {"endpoint": "http://127.0.0.1:1", "keyless": True}}], steps=[{"text": "done"}])
    assert "local/n" in project.run("--task", "x").failed("E-CAP-017").stderr
    project = lab.agent("warn", tools=[{**entry, "config": {"a": 1}, "capabilities": {"network": {"allow": []}}}], steps=[{"text": "done"}])
    result = project.run("--task", "x").ok()
    assert result.stderr.count("warning[W-SEC-008]") == 1 and result.stderr.count("warning[W-SEC-015]") == 1


def test_manifest_5_2_inert_blocks_are_named_once_each(lab):
    tool = lab.publish("echo", own_component("echo")).rsplit("@", 1)[0]
    hook = lab.publish("observer", own_component("hook-observer"), "hook").rsplit("@", 1)[0]
    inert = {"shell": {"allow": ["sh"]}, "spawn": {"allow": ["a/b"]}, "env": {"allow": ["X"]}, "limits": {"memory_bytes": 1 << 28},
             "resources": {"cpu_seconds": 1}, "containment": "scoped", "plan": {"submit": True}}
    project = lab.agent(tools=[{"name": tool, "version": "0.1.0", "capabilities": inert},
                               {"name": hook, "version": "0.1.0", "runtime": "hook", "capabilities": inert}], steps=[{"text": "done"}])
    lines = project.run("--task", "x").ok().stderr.splitlines()
    tools = [line for line in lines if "W-SEC-008" in line]
    hooks = [line for line in lines if "W-SEC-006" in line]
    assert len(tools) == len(hooks) == 1 and "echo" in tools[0] and "observer" in hooks[0]
    order = ["shell", "spawn", "env", "limits", "resources", "containment"]
    for line in (tools[0], hooks[0]):
        places = [line.index(word) for word in order]
        assert places == sorted(places) and "plan" not in line
    assert "capabilities.limits.memory_bytes" in hooks[0] and "capabilities.limits" in tools[0]


def test_manifest_19_capsule_wide_state_conversation_and_interpreters_are_remarked_on(lab):
    project = lab.agent(steps=[{"text": "done"}], capabilities={
        "state": {"store": "s"}, "conversation": {"read": True},
        "shell": {"allow": ["sh"], "interpreter_runtime": [{"binary": "sh", "dirs": [{"path": "/usr/lib", "list_dir": False}]}]}})
    result = project.run("--task", "x")
    for code in ("W-SEC-014", "W-SEC-016", "W-SEC-009"):
        assert result.stderr.count(f"warning[{code}]") == 1, code
    assert not (lab.murmur_home / "state").exists()


def test_artifacts_a_skill_that_is_no_text_answers_an_error(lab):
    path = lab.directory / "sk.mur.zip"
    path.write_bytes(skill_package("sk", text=b"\xff\xfe"))
    lab.mur("publish", path).ok()
    project = lab.agent(tools=[{"name": "local/sk", "version": "0.1.0", "runtime": "skill"}],
                        steps=[{"tool_calls": [{"name": "sk", "input": {}}]}, {"text": "done"}])
    session = lab.session(project.run("--task", "x").ok())
    assert session.trace.one("skill_call")["status"] == "error"


def test_artifacts_an_unknown_import_is_named(lab):
    name = lab.publish("missing", own_component("missing-import")).rsplit("@", 1)[0]
    project = lab.agent(tools=[{"name": name, "version": "0.1.0"}], steps=[{"tool_calls": [{"name": "missing", "input": {}}]}, {"text": "done"}])
    line = lab.session(project.run("--task", "x").ok()).trace.one("tool_call")
    assert line["status"] == "error" and "import" in line["error"], line


def test_session_a_folder_without_a_component_says_what_was_expected(lab):
    project = lab.project("p", {"name": "p", "version": "1"})
    assert "capsule.wasm" in project.run("--task", "x").failed("E-RUN-004").stderr
    project.write("a.wasm", component())
    project.write("b.wasm", component())
    assert "a.wasm, b.wasm" in project.run("--task", "x").failed("E-IO-003").stderr


def test_artifacts_a_capsule_by_name_is_refused_for(lab):
    path = lab.directory / "cap.mur.zip"
    path.write_bytes(zip_of({"murmur.yaml": 'name: cap\nversion: "1"\nruntime: capsule\n', "capsule.wasm": own_component("echo").read_bytes()}))
    lab.mur("publish", path).ok()
    by_name = ["run", "--capsule", "local/cap", "--capsule-version", "1"]
    assert "murmur:capsule/run@0.1.0" in lab.mur(*by_name).failed("E-RUN-001").stderr
    wrong = lab.mur(*by_name, "--capsule-sha256", "0" * 64).failed("E-RUN-047")
    assert "0" * 64 in wrong.stderr
    assert "local/none" in lab.mur("run", "--capsule", "local/none", "--capsule-version", "1").failed("E-RUN-008").stderr
    lab.mur("run", "--capsule", "cap", "--capsule-version", "1").failed("E-REG-007")
    lab.mur("run", "--capsule", "local/cap").failed("E-RUN-001")  # the newest that is installed
    lab.mur("run", "--capsule", "local/none").failed(exit_status=2)
    lab.mur("run", "--capsule-version", "1").failed(exit_status=2)


def test_manifest_7_a_prompt_file_that_cannot_be_read(lab):
    project = lab.agent(steps=[{"text": "done"}], inference={"system_prompt_file": "absent.md"})
    assert "absent.md" in project.run("--task", "x").failed("E-RUN-009").stderr
    project.run("--explain-scope").ok()


def test_manifest_7_1_a_model_without_limits(lab):
    driver = lab.publish("drv", own_component("driver-scripted"), "driver", upstream_auth={"header": "x-api-key", "value": "{key}"},
                         models={"known": {"max_output_tokens": 100, "context_window": 1000}})
    gateway = {"endpoint": "http://127.0.0.1:1", "keyless": True}
    project = lab.agent("none", driver=driver, gateway=gateway, steps=[{"text": "x"}], inference={"model": "other", "max_tokens": None})
    manifest = yaml.safe_load((project / "murmur.yaml").read_text())
    del manifest["inference"]["max_tokens"]
    project.write_manifest(manifest)
    result = project.run("--task", "x").failed("E-RUN-052")
    assert "other" in result.stderr and "local/drv" in result.stderr
    assert "hint: set inference.max_tokens" in result.stderr and "the driver lists: known" in result.stderr
    result = lab.agent("warned", driver=driver, gateway=gateway, steps=[{"text": "x"}], inference={"model": "other"}).run("--task", "x")
    assert result.stderr.count("warning[W-RUN-009]") == 1 and "other" in result.stderr
    full = lab.agent("full", driver=driver, gateway=gateway, steps=[{"text": "x"}], inference={"model": "known", "max_tokens": 1000})
    full.run("--task", "x").failed("E-RUN-055")


def test_session_a_tool_whose_schema_is_malformed_is_called_and_warned_of_once(lab):
    for number, schema in enumerate(["no json", {"type": "object", "required": "a"}, {"type": "object", "required": [1]}, 7]):
        name = lab.publish(f"echo-{number}", own_component("echo"), input_schema=schema).rsplit("@", 1)[0]
        call = {"tool_calls": [{"name": f"echo-{number}", "input": {}}]}
        project = lab.agent(f"m{number}", tools=[{"name": name, "version": "0.1.0"}], steps=[call, call, {"text": "done"}])
        result = project.run("--task", "x").ok()
        assert result.stderr.count("warning[W-RUN-004]") == 1 and f"echo-{number}" in result.stderr, schema
        assert [line["status"] for line in lab.session(result).trace.all("tool_call")] == ["ok", "ok"]


def test_manifest_7_2_a_compaction_cap_above_what_the_driver_lists(lab):
    driver = lab.publish("drv", own_component("driver-scripted"), "driver", upstream_auth={"header": "x-api-key", "value": "{key}"},
                         models={"known": {"max_output_tokens": 100, "context_window": 1000}})
    gateway = {"endpoint": "http://127.0.0.1:1", "keyless": True}
    project = lab.agent("cap", driver=driver, gateway=gateway, steps=[{"text": "x"}],
                        inference={"model": "known", "max_tokens": 50, "compaction": {"max_tokens": 101}})
    result = project.run("--task", "x").failed("E-RUN-054")
    assert "101" in result.stderr and "100" in result.stderr and "known" in result.stderr
    full = lab.agent("full", driver=driver, gateway=gateway, steps=[{"text": "x"}], context={"max_tokens": 60},
                     inference={"model": "known", "max_tokens": 50, "compaction": {"max_tokens": 60}})
    assert "60" in full.run("--task", "x").failed("E-RUN-055").stderr
