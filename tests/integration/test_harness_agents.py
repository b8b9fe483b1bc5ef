# SPDX-License-Identifier: Apache-2.0
#
# The drivers of coding agents with programs that stand in for them: what they print that nobody foresaw, and what a person is
# told when a program cannot work.

import json
import sys

import pytest


CLAUDE_END = {"type": "result", "subtype": "success", "is_error": False, "result": "the end"}
CODEX_END = [{"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": "the end"}},
             {"type": "turn.completed", "usage": {"input_tokens": 1, "cached_input_tokens": 0, "output_tokens": 1}}]
ENDS = {"claude-code": [CLAUDE_END], "codex": CODEX_END}
NAMES = {"claude-code": "claude", "codex": "codex"}
DRIVERS = pytest.mark.parametrize("driver", ["claude-code", "codex"])
EVERY = pytest.mark.parametrize("driver", ["claude-code", "codex", "acp"])
PRINTS = """#!{python}
import sys
if "--version" in sys.argv:
    print("0.0.1 (stand-in)")
    sys.exit(0)
sys.stdin.read()
out = sys.stdout.buffer
{body}
out.flush()
"""


def project(lab, driver, program=None, mode=0o755, **inference):
    path = lab.directory / "stand-in"
    if program is not None:
        path.write_text(program)
        path.chmod(mode)
    name = f"std/driver-{driver}"
    return lab.project("agent", {
        "name": "agent", "version": "0.1.0", "artifacts": [{"name": name, "version": "0.1.0", "runtime": "driver"}],
        "inference": {"transport": "process", "command": str(path), "driver": {"artifact": name}, **inference}})


def printing(lab, driver, body):
    return project(lab, driver, PRINTS.format(python=sys.executable, body=body))


def lines(*messages):
    return "".join(json.dumps(message) + "\n" for message in messages)


@DRIVERS
@pytest.mark.parametrize("odd", [
    b"just words\n", b"{\"type\":\"brand_new\",\"x\":[1,{}]}\n", b"{\"type\":\"item.completed\"}\n", b"{half a line\n", b"[]\n", b"null\n",
    b"\n\n", b"{\"type\":17}\n", b"\xff\xfe\x00 no text\n", b"{\"type\":\"\xff\"}\n", b"{\"type\":\"assistant\",\"message\":null}\n",
    b"{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"tool_use\"}]}}\n",
    b"{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\"}]}}\n",
    b"{\"type\":\"item.started\",\"item\":{\"type\":\"command_execution\"}}\n", b"[" * 2000 + b"\n", b"\x02{\"id\":1}\n"])
def test_harness_odd_lines_are_passed_over_and_the_end_is_found(lab, driver, odd):
    body = f"out.write({odd!r})\nout.write({lines(*ENDS[driver]).encode()!r})"
    session = lab.session(printing(lab, driver, body).run("--task", "go").ok())
    assert session.result_text == "the end"


@DRIVERS
def test_harness_a_line_of_20_mib_is_read(lab, driver):
    body = f"out.write(b'{{\"type\":\"new\",\"x\":\"' + b'a' * (20 << 20) + b'\"}}\\n')\nout.write({lines(*ENDS[driver]).encode()!r})"
    session = lab.session(printing(lab, driver, body).run("--task", "go", timeout=120).ok())
    assert session.result_text == "the end"
    assert all(len(note["text"]) < 10_000 for note in session.trace.all("harness_note"))


@DRIVERS
def test_harness_a_line_that_never_ends_is_named(lab, driver):
    failed = printing(lab, driver, "out.write(b'a' * (33 << 20))\nout.flush()\nimport time; time.sleep(60)").run("--task", "go",
                                                                                                           timeout=120)
    assert failed.code == 1 and "32 MiB" in failed.stderr


@DRIVERS
def test_harness_a_last_line_without_its_end_counts(lab, driver):
    text = lines(*ENDS[driver])[:-1]
    assert lab.session(printing(lab, driver, f"out.write({text.encode()!r})").run("--task", "go").ok()).result_text == "the end"


@EVERY
@pytest.mark.parametrize("script, words", [
    ("#!/bin/sh\nexit 7\n", []), ("#!/bin/sh\necho not json; exit 0\n", []),
    ("#!/bin/sh\necho 'it cannot go on' >&2; exit 1\n", ["it cannot go on"]),
    ("#!/bin/sh\necho 'Please run /login first' >&2; exit 1\n", ["/login", "sign the harness in"]),
    ("#!/bin/sh\necho 'Error: stdin is not a terminal' >&2; exit 1\n", ["stdin is not a terminal"]),
    ("#!/bin/sh\necho \"error: unknown option '--output-format'\" >&2; exit 2\n", ["unknown option"]),
    ("#!/bin/sh\nkill -9 $$\n", [])], ids=["exits", "no-json", "stderr", "login", "terminal", "too-old", "killed"])
def test_harness_a_program_that_cannot_work_is_one_error(lab, driver, script, words):
    failed = project(lab, driver, script).run("--task", "go", timeout=120)
    assert failed.code == 1 and failed.stderr.count("error[") == 1 and "error[E-RUN-033]" in failed.stderr, failed.stderr
    assert "hint: " in failed.stderr and all(word in failed.stderr for word in words), failed.stderr


@EVERY
@pytest.mark.parametrize("program, mode", [(None, 0), ("#!/bin/sh\n", 0o644)], ids=["missing", "not-executable"])
def test_harness_a_program_that_is_none_is_refused_at_launch(lab, driver, program, mode):
    failed = project(lab, driver, program, mode).run("--task", "go")
    assert failed.code == 1 and failed.stderr.count("error[") == 1 and "error[E-RUN-006]" in failed.stderr
    assert "stand-in" in failed.stderr and "inference.command" in failed.stderr


@EVERY
def test_harness_doctor_says_program_version_and_walls(lab, driver):
    tested = {"claude-code": "2.1.197 (Claude Code)", "codex": "codex-cli 0.171.0", "acp": "0.61.0"}[driver]
    agent = project(lab, driver, f"#!/bin/sh\necho '{tested}'\n", containment="scoped")
    shown = agent.mur("doctor").stdout
    assert f"stand-in   {tested}   tested with this driver" in shown and "confined by: scoped" in shown


def test_harness_a_program_that_says_no_version_has_its_packages(lab):
    """Some agents know no --version: one prints nothing, another complains of the option."""
    package = lab.directory / "node_modules/@some/agent"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"name": "@some/agent", "version": "0.16.2"}')
    program = package / "agent.sh"
    for says in "", "echo 'WARNING: no such option' >&2; exit 2":
        program.write_text(f"#!/bin/sh\n{says}\n")
        program.chmod(0o755)
        agent = project(lab, "acp", command=str(program), containment="scoped")
        assert f"{program}   0.16.2   tested with this driver" in agent.mur("doctor").stdout
    start = lab.session(agent.run("--task", "go")).trace.one("harness_start")
    assert start["harness_version"] == "0.16.2" and start["version_tested"] is True
    # A package.json that is none is passed over.
    (package / "package.json").write_text('{"version": ["0.16.2"]}')
    assert "says no version   not tested with this driver" in agent.mur("doctor").stdout


@DRIVERS
def test_harness_doctor_warns_of_another_version_and_of_no_walls(lab, driver):
    shown = project(lab, driver, "#!/bin/sh\necho 9.9.9\n").mur("doctor").stdout
    assert "9.9.9   not tested with this driver" in shown and "outside of every class" in shown


def test_harness_doctor_names_a_program_that_is_missing(lab):
    done = project(lab, "codex").mur("doctor")
    assert done.code == 1 and "harness" in done.stdout and "is not an executable file" in done.stdout


ASKED = """#!{python}
import json, sys
if "--version" in sys.argv:
    open("asked", "a").write("x")
    print("{version}")
    sys.exit({code})
sys.stdin.readline()
print(json.dumps({end}))
"""


def test_harness_a_program_says_its_version_once_until_it_is_another(lab):
    work = lab.directory / "work"
    work.mkdir()
    program = lab.directory / "stand-in"

    def install(version, code=0, **more):
        program.unlink(missing_ok=True)
        text = ASKED.format(python=sys.executable, version=version, code=code, end=CLAUDE_END)
        return project(lab, "claude-code", text, **{"containment": "scoped", **more})

    def asked(agent):
        (work / "asked").unlink(missing_ok=True)
        start = lab.session(agent.run("--task", "go", "--workdir", work).ok()).trace.one("harness_start")
        return (work / "asked").exists(), start["harness_version"]

    agent = install("2.1.197 (Claude Code)")
    assert [asked(agent), asked(agent)] == [(True, "2.1.197 (Claude Code)"), (False, "2.1.197 (Claude Code)")]
    kept, = (lab.murmur_home / "harness-versions").iterdir()
    whole = kept.read_bytes()
    for broken in whole[:-10], b"", whole.replace(b"stand-in", b"stand-on"), b"\n" * 9:
        kept.write_bytes(broken)
        assert asked(agent)[0], broken
        assert not asked(agent)[0]

    agent = install("2.1.198 (Claude Code)")  # as long, and at the same place
    assert [asked(agent), asked(agent)] == [(True, "2.1.198 (Claude Code)"), (False, "2.1.198 (Claude Code)")]
    # What it said when it failed, or outside of the walls where nobody knows what is behind a name, is said again.
    for version, how in ("2.1.199", {"code": 1}), ("2.1.200", {"containment": "none"}):
        agent = install(version, **how)
        assert asked(agent) == asked(agent) == (True, version)
