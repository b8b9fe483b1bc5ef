# SPDX-License-Identifier: Apache-2.0
#
# `mur doctor`: its blocks and their order, the variables a launch needs, limits, and what it only warns of.

import os
import re

from tests.support.fixtures import own_component
from tests.support.lab import BUILD
from tests.support.packages import component, elf, native_package, sha256, skill_package, tool_package
from tests.support.polling import tree_of

STEPS = [{"text": "hi"}]
KID = BUILD / "guests/script-task.wasm"


def kid(lab, name, env=(), spawn=()):
    return lab.publish(name, KID, "capsule", capabilities={"env": {"allow": list(env)}, "spawn": {"allow": list(spawn)}})


def test_cli_24_doctor_prints_its_blocks_in_order_and_leaves_nothing(lab):
    project = lab.agent(steps=STEPS, control={"secrets": ["LAB_KEY"]}, tools=[
        {"name": "std/fetch", "version": "0.1.0", "runtime": "tool",
         "gateway": {"endpoint": "http://127.0.0.1:9", "api_key": "${LAB_KEY}"}}])
    before = tree_of(lab.directory)
    result = project.mur("doctor").ok()
    headings = [line.split(" (")[0] for line in result.stdout.splitlines() if line[:1].isupper()]
    assert [heading for heading in headings if not heading.startswith("Checking ")][:13] == [
        "AppArmor / user namespaces", "Landlock", "Murmur home", "Filesystem preopens", "Read-only paths",
        "Install grant", "Memory bound", "Control secrets", "WIT level", "Model limits:", "Runtime directory",
        "Records directory", "Temporary folder"]
    assert tree_of(lab.directory) == before


def test_cli_24_doctor_says_what_explain_scope_says(lab):
    project = lab.agent(steps=STEPS, tools=[
        {"name": "std/files", "version": "0.1.0", "runtime": "tool", "capabilities": {"filesystem": {"scope": "data"}}}],
        capabilities={"filesystem": {"read_only": ["kept"]}})
    report = project.mur("doctor").ok().stdout
    scope = project.run("--explain-scope").ok().stdout
    for line in ("std/files (tool): one subtree of the accessible workdir — capabilities.filesystem.scope: data",
                 "  read_only enforcement: every tool and command", "  install skill: <none>"):
        assert line in report and line in scope
    for block in ("Runtime directory", "Records directory", "Temporary folder"):
        text = scope[scope.index(block):]
        assert text[:text.index("\n\n")] in report


def test_cli_24_doctor_shows_the_limits_of_the_model(lab):
    result = lab.agent(steps=STEPS).mur("doctor").ok()
    assert ("  ✓  primary (std/driver-scripted@0.1.0, model scripted): output cap 1024 (manifest), "
            "context window 200000 (driver), input ceiling none (none), "
            "input budget 198976 (context_window_less_output_cap)\n") in result.stdout


def test_cli_24_doctor_fails_a_model_without_an_output_cap(lab):
    project = lab.agent(steps=STEPS, inference={"model": "unheard-of", "max_tokens": None})
    result = project.mur("doctor").failed()
    assert "  ✗  primary (std/driver-scripted@0.1.0, model unheard-of): no output cap" in result.stdout
    assert "Fix: set inference.max_tokens in murmur.yaml\n" in result.stdout


def test_cli_24_doctor_fails_a_cap_that_fills_the_window(lab):
    project = lab.agent(steps=STEPS, context={"max_tokens": 1000})
    assert "E-RUN-055" in project.mur("doctor").failed().stdout


def test_cli_24_doctor_measures_the_memory_bound(lab):
    project = lab.agent(steps=STEPS, capabilities={"resources": {"cgroup_memory_bytes": 268435456}})
    text = project.mur("doctor").ok().stdout
    block = text[text.index("Memory bound\n"):].split("\n\n")[0].splitlines()
    assert block[1] == "  cgroup_memory_bytes: 268435456"
    assert block[2].startswith(("  memory.max 268435456", "  not applied: "))


def test_containment_26_doctor_only_warns_of_an_artifact_scope_outside(lab):
    project = lab.agent(steps=STEPS, tools=[
        {"name": "std/files", "version": "0.1.0", "runtime": "tool", "capabilities": {"filesystem": {"scope": "../x"}}}])
    result = project.mur("doctor").ok()
    assert "[mur doctor] warning[E-CAP-002]: " in result.stderr
    project.run("--explain-scope").failed("E-CAP-002")


def test_cli_24_doctor_warns_of_a_credential_the_filter_takes(lab):
    project = lab.agent(steps=STEPS, capabilities={"env": {"allow": ["ANTHROPIC_API_KEY"]}})
    assert "[mur doctor] warning[E-CAP-016]: " in project.mur("doctor").ok().stderr


# --- variables ---


def test_artifacts_37_doctor_names_variables_and_who_needs_them_never_a_value(lab):
    kid(lab, "kid", env=["LAB_ONE", "LAB_TWO"])
    project = lab.agent(name="sp", steps=STEPS, capabilities={
        "spawn": {"allow": ["local/kid"]}, "env": {"allow": ["LAB_ONE", "LAB_TWO", "LAB_THREE"]}})
    project.write(".env", "LAB_THREE=from-the-file\n")
    result = project.mur("doctor", env={"LAB_TWO": "the-value"}).failed()
    assert "  capsules: sp@0.1.0, local/kid@0.1.0\n" in result.stdout
    assert "    ✗  LAB_ONE   unset   — sp@0.1.0, local/kid@0.1.0\n" in result.stdout
    assert "    ✓  LAB_TWO   set     — sp@0.1.0, local/kid@0.1.0\n" in result.stdout
    assert "    ✓  LAB_THREE   set     — sp@0.1.0\n" in result.stdout
    assert "[mur doctor] error[E-CAP-014]: LAB_ONE is not set" in result.stderr
    assert "Fix: export LAB_ONE\n" in result.stdout
    assert "the-value" not in result.stdout + result.stderr and "from-the-file" not in result.stdout + result.stderr


def test_artifacts_37_a_child_that_wants_what_its_spawner_lacks_fails(lab):
    kid(lab, "kid", env=["LAB_ONE"])
    project = lab.agent(name="sp", steps=STEPS, capabilities={"spawn": {"allow": ["local/kid"]}})
    result = project.mur("doctor", env={"LAB_ONE": "x"}).failed()
    assert "error[E-CAP-015]: local/kid@0.1.0 wants LAB_ONE, which sp@0.1.0 does not hold" in result.stderr


def test_artifacts_37_capsules_that_lead_back_or_are_missing_are_named(lab):
    kid(lab, "kid", spawn=["local/friend", "local/absent"])
    kid(lab, "friend", spawn=["local/kid"])
    project = lab.agent(name="sp", steps=STEPS, capabilities={"spawn": {"allow": ["local/kid", "local/friend"]}})
    result = project.mur("doctor").ok()
    assert result.stdout.count("  cycle: ") == 1
    assert "warning[W-REG-002]: cannot look into local/absent: it is not installed" in result.stderr


def test_artifacts_37_doctor_is_silent_without_delegation_and_unset_references(lab):
    gateway = {"endpoint": "http://127.0.0.1:9", "api_key": "${LAB_KEY}"}
    project = lab.agent(driver="std/driver-anthropic@0.1.0", gateway=gateway, capabilities={"env": {"allow": ["LAB_ONE"]}})
    assert "Environment requirements" not in project.mur("doctor", env={"LAB_KEY": "k"}).stdout
    unset = project.mur("doctor").failed()
    assert "    ✗  LAB_KEY   unset   — agent@0.1.0\n" in unset.stdout
    lab.mur("config", "set", "-g", "credentials.LAB_KEY", "hidden").ok()
    answered = project.mur("doctor")
    assert "Environment requirements" not in answered.stdout
    assert "W-SEC-027" not in answered.stderr and "hidden" not in answered.stdout + answered.stderr


def test_artifacts_doctor_names_what_a_session_pulled(lab):
    project = lab.agent(steps=STEPS)
    project.run("--task", "x").ok()
    lock = project / "murmur.lock"
    lock.write_text(lock.read_text() + "- name: ana/pulled\n  resolved_version: 1.0.0\n  sha256:\n"
                    f"    any: {'0' * 64}\n  origin: runtime\n  session: ses_abc\n")
    assert "  ·  ana/pulled@1.0.0   pulled by ses_abc; a run does not stage it\n" in project.mur("doctor").ok().stdout


def test_artifacts_doctor_names_leftovers_of_the_old_layout(lab):
    old = lab.murmur_home / "artifacts/tool-x/1.0.0"
    old.mkdir(parents=True)
    (old / "tool-x-1.0.0.mur.zip").write_bytes(b"old")
    result = lab.agent(steps=STEPS).mur("doctor").ok()
    assert "Artifact stores\n" in result.stdout and f"    {old.parent}\n" in result.stdout


# --- the artifact blocks (artifacts.md 10) -----------------------------------------------------------------------------------


def put(lab, name, package):
    path = lab.directory / f"{name}.mur.zip"
    path.write_bytes(package)
    lab.mur("publish", path).ok()
    return lab.murmur_home / f"artifacts/local/{name}/0.1.0/{name}-0.1.0.mur.zip"


def declares(lab, *entries):
    return lab.project("p", {"name": "p", "version": "1", "artifacts": [
        entry if isinstance(entry, dict) else {"name": f"local/{entry}", "version": "0.1.0"} for entry in entries]})


def test_artifacts_doctor_lists_what_is_installed_and_at_which_level(lab):
    put(lab, "derived", tool_package("derived"))
    put(lab, "misfit", tool_package("misfit", wasm=component(["murmur:tool/run@0.9.0"], ["murmur:text/chunks@0.1.0"])))
    put(lab, "words", skill_package("words"))
    lab.publish("built", own_component("echo"))
    result = declares(lab).mur("doctor").ok()
    lines = result.stdout.splitlines()
    for line in ("    local/built@0.1.0   global   built at 1   fits level 1", "    local/words@0.1.0   global   built at 1 (derived)   fits level 1",
                 "    local/derived@0.1.0   global   built at 1 (derived)   fits level 1"):
        assert line in lines, result.stdout
    at = lines.index("    local/misfit@0.1.0   global   built at none   does not fit level 1")
    assert lines[at + 1].startswith("      ⚠ ") and "murmur:tool/run@0.9.0" in lines[at + 1]
    assert lines[at + 2].startswith("      ⚠ ") and "murmur:text/chunks@0.1.0" in lines[at + 2]
    assert "W-REG-003" in lines[at + 3] and "[mur doctor] warning[W-REG-003]: local/misfit@0.1.0" in result.stderr
    # What is only installed is a warning.
    assert lines[-1] == "0 checks passed, 0 errors found, 1 warning."


def test_artifacts_doctor_judges_every_declared_entry(lab):
    host = "linux-aarch64" if os.uname().machine == "aarch64" else "linux-x86_64"
    put(lab, "ok", tool_package("ok"))
    put(lab, "misfit", tool_package("misfit", wasm=component(["murmur:tool/run@0.9.0"])))
    put(lab, "foreign", native_package("foreign", program=elf(0xB7 if host == "linux-x86_64" else 0x3E)))
    put(lab, "nat", native_package("nat"))
    changed = put(lab, "changed", tool_package("changed"))
    was = sha256(changed.read_bytes())
    changed.write_bytes(changed.read_bytes() + b"x")
    project = declares(lab, "ok", "misfit", "foreign", "nat", "changed", "missing", {"name": "s", "source": "s.md", "runtime": "skill"},
                       {"name": "t", "source": "t.md", "runtime": "skill"})
    project.write("s.md", "# S\n")
    result = project.mur("doctor").failed(exit_status=1)
    text = result.stdout
    assert f"Checking {project / 'murmur.yaml'} for {host}...\n" in text
    assert "  ✓  local/ok@0.1.0   platform-independent\n" in text
    assert re.search(r"  ✗  local/misfit@0\.1\.0   platform-independent   — .*murmur:tool/run@0\.9\.0", text)
    assert re.search(rf"  ✗  local/foreign@0\.1\.0   {host}   — E-RUN-021: .*linux-", text)
    assert f"  ✓  local/nat@0.1.0   {host}\n" in text
    found = text[text.index("  ✗  local/changed@0.1.0   platform-independent   — hash mismatch\n"):].splitlines()
    assert was in found[1] and sha256(changed.read_bytes()) in found[2] and "disk:" in found[2]
    assert f"  ✗  local/missing@0.1.0   {host}   — missing\n" in text and "Fix: mur install local/missing@0.1.0\n" in text
    assert "  ✓  s@local   local source\n" in text and "  ✗  t@local   local source   — " in text
    assert "  - local/nat@0.1.0: runs under " in text
    assert "4 checks passed, 5 errors found" in text or "3 checks passed, 5 errors found" in text


def test_artifacts_doctor_compares_with_the_lock(lab):
    stored = put(lab, "x", tool_package("x"))
    project = declares(lab, "x")
    project.mur("install").ok()
    stored = project / ".murmur/artifacts/local/x/0.1.0/x-0.1.0.mur.zip"
    lock = (project / "murmur.lock").read_text()
    digest = sha256(stored.read_bytes())
    project.write("murmur.lock", lock.replace(digest, "0" * 64))
    lines = project.mur("doctor").failed(exit_status=1).stdout.splitlines()
    at = lines.index("  ✗  local/x@0.1.0   platform-independent   — hash mismatch")
    assert lines[at + 1].split() == ["lock:", "0" * 64] and lines[at + 2].split() == ["disk:", digest]
    project.write("murmur.lock", lock)
    project.write_manifest({"name": "p", "version": "1", "artifacts": [{"name": "local/x", "version": "0.2.0"}]})
    result = project.mur("doctor").ok()
    assert "  ⚠  local/x@0.2.0   platform-independent   — murmur.lock pins 0.1.0" in result.stdout
    assert "Fix: mur install local/x@0.2.0" in result.stdout
    project.write("murmur.lock", "lock_version: 2\n")
    refused = project.mur("doctor").failed("E-RUN-003")
    assert "Checking" not in refused.stdout


def test_artifacts_doctor_warns_of_a_native_payload_without_a_tag(lab):
    directory = lab.murmur_home / "artifacts/local/n/0.1.0"
    directory.mkdir(parents=True)
    package = native_package("n")
    (directory / "n-0.1.0.mur.zip").write_bytes(package)
    (directory / "n-0.1.0.sha256").write_text(sha256(package))
    result = declares(lab, "n").mur("doctor").ok()
    assert "  ⚠  local/n@0.1.0   linux-" in result.stdout and "W-REG-001" in result.stdout
    assert "[mur doctor] warning[W-REG-001]: local/n@0.1.0" in result.stderr
