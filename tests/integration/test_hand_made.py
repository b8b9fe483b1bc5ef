# SPDX-License-Identifier: Apache-2.0
#
# Components made by hand to cost whoever loads, links or runs them: each costs one clear error or nothing, in bounded time and memory.

import subprocess

import pytest

from tests.integration.test_bounded_memory import Measured
from tests.support.commands import call
from tests.support.hand_made import COMPONENTS
from tests.support.lab import IS_SANITIZED, ROOT, SLOWER

# Fine components, only odd ones.
HARMLESS = {"a record of 9000 fields", "10000 resource types", "5000 functions", "a function of 50000 locals",
            "a function too long for the compiler to like", "200 nested blocks in 200 functions"}
WORDS = {
    "nested components": "murmur:capsule/run", "nested types": "nesting is too deep", "types that double": "exceeds the limit",
    "1000 instances of a module": "exceeds limit", "100 memories of the largest size": "capabilities.limits.memory_bytes",
    "one memory of the largest size": "capabilities.limits.memory_bytes",
    "100 tables of the largest size": "capabilities.limits.table_elements",
    "a memory of 64-bit addresses": "capabilities.limits.memory_bytes", "a start without an end": "deadline",
    "a start that traps": "unreachable", "recursion without an end": "call stack exhausted",
    "recursion with large frames": "call stack exhausted", "tail recursion without an end": "deadline",
    "handles without an end": "handle limit exceeded",
}
MEMORY_KB = 600 << 10


def test_security_each_hand_made_component_has_its_expectation():
    assert HARMLESS | set(WORDS) == set(COMPONENTS)


@pytest.fixture(scope="session")
def wasm_tools():
    done = subprocess.run([ROOT / "scripts/bootstrap", "--print", "tools"], capture_output=True, text=True, check=True)
    return f"{done.stdout.strip()}/wasm-tools"


def made(path, source, wasm_tools):
    if isinstance(source, bytes):
        path.write_bytes(source)
    else:
        path.with_suffix(".wat").write_text(source)
        subprocess.run([wasm_tools, "parse", path.with_suffix(".wat"), "-o", path], check=True)
    return path


@pytest.mark.parametrize("name", sorted(COMPONENTS))
def test_security_a_hand_made_component_costs_one_clear_error(lab, wasm_tools, name):
    component = made(lab.directory / "made.wasm", COMPONENTS[name], wasm_tools)
    project = lab.script_capsule(component, capabilities={"limits": {"deadline_seconds": 3}})
    process = subprocess.Popen([lab.mur_path, "run"], cwd=project.directory, env=lab.environment(), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, errors = process.communicate(timeout=120 * SLOWER)
    finally:
        process.kill()
    lines = [line for line in errors.splitlines() if line.startswith("error[")]
    if name in HARMLESS:
        assert process.returncode == 0 and not lines, (out, errors)
        return
    assert process.returncode == 1 and len(lines) == 1, (process.returncode, out, errors)
    assert lines[0].startswith("error[E-RUN-001]") and WORDS[name] in lines[0], lines
    assert len(errors) < 2000, errors


@pytest.mark.skipif(IS_SANITIZED, reason="the sanitizers' own memory is a multiple")
@pytest.mark.parametrize("name", ["nested components", "100 memories of the largest size", "handles without an end", "recursion with large frames"])
def test_security_a_hand_made_component_costs_bounded_memory(lab, wasm_tools, name):
    component = made(lab.directory / "made.wasm", COMPONENTS[name], wasm_tools)
    project = lab.script_capsule(component, capabilities={"limits": {"deadline_seconds": 3}})
    seen = Measured(lab, project, "run")
    assert seen.code == 1 and seen.peak_kib < MEMORY_KB, (seen.code, seen.peak_kib)


@pytest.mark.parametrize("name, is_compiled", [("a start without an end", True), ("recursion without an end", True),
                                               ("one memory of the largest size", True), ("types that double", False)])
def test_security_a_hand_made_tool_costs_its_own_call_or_the_launch(lab, wasm_tools, name, is_compiled):
    """As a tool of an agent: the call fails in one error and the task goes on; what does not compile stops the launch."""
    component = made(lab.directory / "made.wasm", COMPONENTS[name], wasm_tools)
    tool = lab.publish("made", component, input_schema={"type": "object"})
    project = lab.agent(tools=[tool], steps=[call("made", x=1), {"text": "still here"}], capabilities={"limits": {"deadline_seconds": 3}})
    result = project.run("--task", "go", timeout=120)
    if is_compiled:
        session = lab.session(result.ok())
        assert session.result_text == "still here"
        assert session.trace.one("tool_call")["status"] == "error" and session.trace.one("tool_call")["error"]
    else:
        assert result.code == 1 and result.stderr.count("error[") == 1 and "made" in result.stderr, str(result)
