# SPDX-License-Identifier: Apache-2.0
#
# What a launch warns of and refuses by code (spec/containment.md 2.2, 6, 12.5, 16): each code with the facts its text owes,
# the order of refusals, and what --explain-scope and doctor say of the same manifest.

import os
import re
import shutil
import subprocess

import pytest

from tests.support.commands import call, command_agent, native_tool
from tests.support.fixtures import own_component
from tests.support.hosts import needs, with_apparmor, without_cgroups, without_landlock, without_namespaces, without_walls
from tests.support.polling import tree_of

STEPS = [{"text": "done"}]
SYSTEM_PATH = "/usr/bin:/bin"


def warnings(result, code):
    return [line for line in result.stderr.splitlines() if f"warning[{code}]" in line]


def entry(name="std/files", **more):
    return {"name": name, "version": "0.1.0", "runtime": "tool", **more}


# --- warnings of staging -------------------------------------------------------------------------------------------------


def test_w_sec_006_and_008_name_what_an_entry_cannot_have(lab):
    hook = lab.publish("quiet-hook", own_component("hook-observer"), "hook")
    inert = {"shell": {"allow": ["cat"]}, "spawn": {"allow": ["local/kid"]}, "env": {"allow": ["LAB_NAME"]},
             "limits": {"memory_bytes": 1 << 24}}
    project = lab.agent(steps=STEPS, tools=[
        entry(capabilities=inert), {"name": hook.split("@")[0], "version": "0.1.0", "runtime": "hook", "capabilities": inert}])

    result = project.run("--task", "x").ok()

    tool, = warnings(result, "W-SEC-008")
    of_hook, = warnings(result, "W-SEC-006")
    for key in ("capabilities.shell", "capabilities.spawn", "capabilities.env", "capabilities.limits"):
        assert key in tool and key in of_hook
    assert "files" in tool and "quiet-hook" in of_hook
    assert not re.search(r"W-SEC-00[68]", project.run("--explain-scope").ok().stderr)


def test_w_sec_008_and_015_of_an_entry_whose_payload_is_native(lab):
    tool = native_tool(lab, "plain", "#!/bin/sh\necho ok\n").split("@")[0]
    project = lab.agent(steps=STEPS, tools=[
        {"name": tool, "version": "0.1.0", "runtime": "tool", "capabilities": {"filesystem": {"scope": "sub"}},
         "config": {"key": "value"}}])

    result = project.run("--task", "x").ok()

    assert len(warnings(result, "W-SEC-008")) == 1 and "plain" in warnings(result, "W-SEC-008")[0]
    assert len(warnings(result, "W-SEC-015")) == 1 and "plain" in warnings(result, "W-SEC-015")[0]


def test_w_sec_009_once_for_each_interpreter_runtime(lab):
    grants = [{"binary": name, "dirs": [{"path": "/opt", "list_dir": True}]} for name in ("bash", "cat")]
    project = lab.agent(steps=STEPS, capabilities={"shell": {"allow": ["bash", "cat"], "interpreter_runtime": grants}})

    result = project.run("--task", "x").ok()

    assert [re.search(r"ties (\w+)", line).group(1) for line in warnings(result, "W-SEC-009")] == ["bash", "cat"]
    assert warnings(project.run("--explain-scope").ok(), "W-SEC-009") == []


def test_w_sec_014_and_016_of_blocks_of_the_capsule_as_a_whole(lab):
    project = lab.agent(steps=STEPS, capabilities={"state": {"store": "s"}, "conversation": {"read": True}})
    result = project.run("--task", "x").ok()
    assert len(warnings(result, "W-SEC-014")) == 1 and len(warnings(result, "W-SEC-016")) == 1


def test_w_sec_033_is_kept_in_the_log_of_the_launch(lab):
    project = lab.agent(steps=STEPS)
    result = project.run("--task", "x", "--workdir", lab.home).ok()
    line, = warnings(result, "W-SEC-033")
    assert str(lab.murmur_home) in line
    assert line.split(" (mur explain")[0] in (lab.session(result).records / "logs/bootstrap.log").read_text()
    script = lab.script_capsule(own_component("probe"))
    assert len(warnings(script.run("--task", "say hi", "--workdir", lab.home).ok(), "W-SEC-033")) == 1


# --- the host ------------------------------------------------------------------------------------------------------------


def test_w_sec_013_is_said_once_in_a_tree_of_sessions(lab):
    project = command_agent(lab, ["true"])
    quiet = lab.agent(steps=STEPS, name="without-commands")
    with_apparmor(lab, is_restricting=False)

    result = project.run("--task", "go", "--workdir", project / "work").ok()

    assert len(warnings(result, "W-SEC-013")) == 1
    assert lab.session(result).trace.one("session_start")["userns_grant"] == "restriction_disabled_host_wide"
    for value, count in (("1", 0), ("0", 1), ("yes", 1)):
        again = project.run("--task", "go", "--workdir", project / "work", env={"MURMUR_HOST_WARNINGS_REPORTED": value}).ok()
        assert len(warnings(again, "W-SEC-013")) == count
    assert warnings(quiet.run("--task", "x").ok(), "W-SEC-013") == []
    doctor = project.mur("doctor").ok()
    assert len(warnings(doctor, "W-SEC-013")) == 1 and "[mur doctor] warning[W-SEC-013]" in doctor.stderr
    assert "  userns grant: restriction_disabled_host_wide\n" in doctor.stdout


def test_containment_06_a_host_that_withholds_namespaces_says_which_profile_to_install(lab):
    project = lab.agent(steps=STEPS, capabilities={"containment": "sealed"})
    with_apparmor(lab, is_restricting=True)
    path = lab.mur_path
    path.write_text(path.read_text().replace("&& exec", "&& echo 0 > /proc/sys/user/max_user_namespaces && exec"))

    report = project.run("--explain-scope", "--json").ok().json

    # Here the refusal is the kernel's own limit (ENOSPC), which no profile lifts.
    assert report["userns_grant"] == "withheld" and "user.max_user_namespaces" in report["shortfall_reason"]
    assert "mur-sealed" not in report["shortfall_reason"] and "withheld" in report["shortfall_reason"]


def test_containment_16_doctor_names_each_attempt_and_what_it_met(lab):
    project = lab.agent(steps=STEPS)
    plain = project.mur("doctor").ok().stdout
    for line in ("network namespace: created (", "mount namespace: created (", "sealed root: created ("):
        assert f"  {line}" in plain or "refused — " in plain
    assert re.search(r"^  this binary:  /.*mur$", plain, re.MULTILINE)
    assert re.search(r"^  /etc/apparmor\.d/mur-sealed: (not installed|matches|does NOT match|unreadable|installed)", plain,
                     re.MULTILINE)
    assert re.search(r"^Landlock\n  kernel ABI: (\d+|none \(.*\))\n  ruleset ABI: (\d \(.*\)|n/a \(.*\))$", plain, re.MULTILINE)
    without_namespaces(lab)
    told = project.mur("doctor").ok().stdout
    assert "  network namespace: refused — unshare(CLONE_NEWUSER|CLONE_NEWNET) failed with ENOSPC\n" in told
    assert "  mount namespace: not attempted (" in told and "  sealed root: not attempted (" in told


def test_containment_16_doctor_on_a_kernel_without_landlock(lab):
    project = lab.agent(steps=STEPS)
    without_landlock(lab)
    told = project.mur("doctor").ok().stdout
    assert "  kernel ABI: none (" in told and "  ruleset ABI: n/a (" in told


def test_containment_16_doctor_measures_the_memory_bound(lab):
    project = lab.agent(steps=STEPS, capabilities={"resources": {"cgroup_memory_bytes": 1 << 28}})
    told = project.mur("doctor").ok().stdout
    block = told[told.index("Memory bound\n"):].split("\n\n")[0]
    assert f"  cgroup_memory_bytes: {1 << 28}\n" in block
    assert f"  memory.max {1 << 28}" in block and "  memory.swap.max " in block
    without_cgroups(lab)
    assert "  not applied: no control group" in project.mur("doctor").ok().stdout


def test_containment_16_doctor_warns_of_what_a_launch_refuses_for_the_host(lab):
    needs(lab, "sealed")
    folder = lab.directory / "programs"
    folder.mkdir()
    (folder / "lost").write_text("#!/usr/bin/env some-interpreter\n")
    (folder / "lost").chmod(0o755)
    project = lab.agent(steps=STEPS, capabilities={"containment": "sealed", "shell": {"allow": ["lost"]}})
    result = project.mur("doctor", env={"PATH": f"{folder}:{SYSTEM_PATH}"}).ok()
    assert "[mur doctor] warning[E-CAP-006]: " in result.stderr and "some-interpreter" in result.stderr
    without_walls(lab)
    result = project.mur("doctor").ok()
    assert "[mur doctor] warning[E-CAP-005]: " in result.stderr and "[mur doctor] warning[E-CAP-003]: " in result.stderr


# --- compilers in a sealed root --------------------------------------------------------------------------------------------



def test_w_sec_012_names_a_helper_that_lies_where_the_capsule_may_write(lab):
    needs(lab, "sealed")
    if not shutil.which("gcc", path=SYSTEM_PATH):
        pytest.skip("no gcc in the system's folders")
    folder = lab.directory / "programs"
    folder.mkdir()
    grants = [{"binary": "cc", "dirs": [{"path": "/bin", "list_dir": False}]}]
    lacking = lab.agent(steps=STEPS, capabilities={"containment": "sealed", "shell": {
        "allow": ["cc"], "interpreter_runtime": grants}})
    helper = lacking / "work/cc1"
    helper.parent.mkdir()
    shutil.copy("/bin/true", helper)
    (folder / "cc").write_text(f"#!/bin/sh\n[ \"$1\" = -print-prog-name=cc1 ] && echo {helper} || echo as\n")
    (folder / "cc").chmod(0o755)

    result = lacking.run("--task", "x", "--workdir", lacking / "work", env={"PATH": f"{folder}:{SYSTEM_PATH}"}).ok()

    told = warnings(result, "W-SEC-012")
    assert len(told) == 1 and f"cc1 ({helper}), started by cc" in told[0], told
    assert f"cc1 ({helper})" in (lab.session(result).records / "logs/bootstrap.log").read_text()


@pytest.mark.parametrize("containment", ["scoped", "sealed"])
def test_w_sec_012_a_compiler_brings_its_helpers(lab, containment):
    needs(lab, containment)
    if not shutil.which("gcc", path=SYSTEM_PATH):
        pytest.skip("no gcc in the system's folders")
    project = lab.agent(steps=STEPS, capabilities={"containment": containment, "shell": {"allow": ["gcc"]}})
    result = project.run("--task", "x", env={"PATH": SYSTEM_PATH}).ok()
    assert warnings(result, "W-SEC-012") == []
    parts = lab.session(result).trace.one("session_start")["effective_grants"]["program_parts"]
    assert any(line.startswith("gcc: with the parts of gcc; starts ") for line in parts)


def test_w_sec_029_once_for_drivers_that_tell_nothing(lab):
    needs(lab, "sealed")
    folder = lab.directory / "programs"
    folder.mkdir()
    for name, text in (("cc", "#!/bin/sh\nkill -SEGV $$\n"), ("c++", "#!/bin/no-such-shell\n")):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    grants = [{"binary": name, "dirs": [{"path": "/bin", "list_dir": False}]} for name in ("cc", "c++")]
    project = lab.agent(steps=STEPS, capabilities={"containment": "sealed", "shell": {
        "allow": ["cc", "c++"], "interpreter_runtime": grants}})

    line, = warnings(project.run("--task", "x", env={"PATH": f"{folder}:{SYSTEM_PATH}"}).ok(), "W-SEC-029")

    for driver in ("cc", "c++"):
        assert all(f"{helper} of {driver}" in line for helper in ("cc1", "cc1plus", "as", "ld", "collect2"))


def test_containment_08_no_question_to_an_interpreter_with_a_staged_runtime(lab):
    needs(lab, "sealed")
    python = shutil.which("python3", path=SYSTEM_PATH)
    if not python:
        pytest.skip("no python3 in the system's folders")
    shell = {"allow": ["python3"], "staged_runtime": [{"binary": "python3", "source_path": "/opt", "pin": "1"}]}
    project = lab.agent(steps=STEPS, capabilities={"containment": "sealed", "shell": shell})
    report = project.run("--explain-scope", "--json", env={"PATH": SYSTEM_PATH}).ok().json
    assert report["derived_interpreter_runtime"] == [] and len(report["staged_runtime_grants"]) == 1


# --- refusals ------------------------------------------------------------------------------------------------------------

FAULTS = [
    ("E-CAP-016", {"env": {"allow": ["GITHUB_TOKEN"]}}, ["'GITHUB_TOKEN' (credential backstop pattern 'GITHUB_TOKEN')"]),
    ("E-CAP-001", {"network": {"allow": ["https://h/v1"]}}, ["https://h/v1"]),
    ("E-CAP-002", {"filesystem": {"scope": "../x"}}, ["'../x'"]),
    ("E-CAP-003", {"filesystem": {"workdir_exec": True}, "containment": "scoped"},
     ["declared containment class 'scoped'", "is not achievable on this host", "(achieved: 'advisory')", "workdir_exec"]),
    ("E-CAP-004", {"shell": {"staged_runtime": [{"binary": "bash", "source_path": "/opt", "pin": "1"}]}}, ["bash", "'advisory'"]),
    ("E-CAP-005", {"shell": {"allow": ["bash"]}}, ["unshare(CLONE_NEWUSER|CLONE_NEWNET)", "ENOSPC", "max_user_namespaces", "host:"]),
    ("E-CAP-012", {"filesystem": {"read_only": ["../y"]}}, ["'../y'"]),
]


def merged(faults):
    needs_shell = any("shell" in fault for _, fault, _ in faults)
    block = {"shell": {"allow": ["bash"]}} if needs_shell else {}
    for _, fault, _ in faults:
        for key, value in fault.items():
            block[key] = {**block.get(key, {}), **value} if isinstance(value, dict) else value
    return block


def test_containment_06_refusals_come_in_their_order_with_their_facts(lab):
    """All faults at once, then one fewer each time: what is refused is always the first that is left."""
    project = lab.agent(steps=STEPS)
    without_walls(lab)
    for first in range(len(FAULTS)):
        code, _, facts = FAULTS[first]
        capabilities = merged(FAULTS[first:])
        manifest = lab.agent(name="faulty", steps=STEPS, capabilities=capabilities)
        before = tree_of(lab.directory)
        result = manifest.run("--task", "x").failed(code)
        assert result.stdout == "status:  failed\n"
        for fact in facts:
            assert fact in result.stderr, result
        assert tree_of(lab.directory) == before
    assert project.run("--task", "x").ok()


def test_containment_06_a_sealed_floor_is_refused_before_what_needs_it(lab):
    needs(lab, "sealed")
    folder = lab.directory / "programs"
    folder.mkdir()
    (folder / "lost").write_text("#!/usr/bin/env some-interpreter\n")
    (folder / "lost").chmod(0o755)
    capabilities = {"containment": "sealed", "shell": {"allow": ["lost"]}, "filesystem": {"read_only": ["/abs"]}}
    project = lab.agent(steps=STEPS, capabilities=capabilities)
    env = {"PATH": f"{folder}:{SYSTEM_PATH}"}
    assert f"lost ({folder}/lost, run by some-interpreter)" in project.run("--task", "x", env=env).failed("E-CAP-006").stderr
    assert project.run("--explain-scope", env=env).ok()
    (folder / "lost").unlink()
    assert "'/abs'" in project.run("--task", "x", env=env).failed("E-CAP-012").stderr


@pytest.mark.parametrize("code, more", [
    ("E-CAP-009", {"capabilities": {"state": {"store": ".hidden"}}}),
    ("E-CAP-010", {"config": "just text"}),
    ("E-CAP-002", {"capabilities": {"filesystem": {"scope": "a/../../b"}}}),
])
def test_containment_06_explain_scope_refuses_an_entry_as_a_run_does(lab, code, more):
    project = lab.agent(steps=STEPS, tools=[entry(**more)])
    before = tree_of(lab.directory)
    run, explained = project.run("--task", "x").failed(code), project.run("--explain-scope").failed(code)
    assert [line for line in run.stderr.splitlines() if code in line] == \
        [line for line in explained.stderr.splitlines() if code in line]
    assert tree_of(lab.directory) == before
    assert f"warning[{code}]" in project.mur("doctor").ok().stderr or code != "E-CAP-002"


@pytest.mark.parametrize("capabilities, code", [
    ({"network": {"allow": ["::1"]}}, "E-CAP-001"), ({"filesystem": {"scope": "/abs"}}, "E-CAP-002"),
    ({"filesystem": {"read_only": ["../x"]}}, "E-CAP-012")])
def test_containment_16_doctor_is_silent_about_what_only_a_launch_judges(lab, capabilities, code):
    project = lab.agent(steps=STEPS, capabilities=capabilities)
    assert code not in project.mur("doctor").ok().stderr
    project.run("--task", "x").failed(code)


def test_e_cap_017_and_018_a_key_needs_somebody_to_hold_it(lab):
    tool = native_tool(lab, "keyed", "#!/bin/sh\necho ok\n").split("@")[0]
    gateway = {"endpoint": "http://127.0.0.1:9", "api_key": "sk-never-shown"}
    project = lab.agent(steps=STEPS, tools=[{"name": tool, "version": "0.1.0", "runtime": "tool", "gateway": gateway}])
    result = project.run("--task", "x").failed("E-CAP-017")
    assert "keyed" in result.stderr and "sk-never-shown" not in result.stderr
    keyless = lab.agent(name="keyless", steps=STEPS, tools=[entry("std/fetch", gateway={"endpoint": "http://127.0.0.1:9"})])
    assert "fetch" in keyless.run("--task", "x").failed("E-CAP-018").stderr


# --- a native tool in a sealed root that cannot be composed ----------------------------------------------------------------


def test_e_run_014_of_a_native_tool_ends_the_session(lab):
    needs(lab, "sealed")
    tool = native_tool(lab, "never", "#!/bin/sh\necho ran\n")
    shell = {"allow": ["bash"], "staged_runtime": [{"binary": "bash", "source_path": str(lab.directory / "absent"), "pin": "1"}]}
    project = command_agent(lab, [call("never"), call("never")], tools=[tool], shell=(),
                            capabilities={"containment": "sealed", "shell": shell})
    result = project.run("--task", "go", "--workdir", project / "work").failed("E-RUN-014")
    assert str(lab.directory / "absent") in result.stderr
    assert len(lab.session(result).trace.all("tool_call")) == 1
