# SPDX-License-Identifier: Apache-2.0
#
# Real coding agents as harnesses: Claude Code and Codex, from npm, inside the walls, against a scripted provider. The key
# is the provider's alone.

import hashlib
import os
import shutil
import subprocess
import threading
from dataclasses import dataclass, replace

import pytest

from tests.support.agent_provider import AgentProvider
from tests.support.approvals import Asker, question
from tests.support.door_client import SLEEPER, Door
from tests.support.lab import SLOWER
from tests.support.npm import npm_programs
from tests.support.polling import eventually

KEY = "sk-real-key-of-the-provider"
PROGRAMS = ["bash", "sh", "cat", "id", "env", "git", "ls", "curl", "head", "sleep", "python3", "node"]


@dataclass
class Agent:
    """How one program is driven, and how its model asks for its shell."""

    name: str
    package: str
    path: str  # of the endpoint
    config: dict
    shell_tool: str

    def shell(self, command):
        return {"tool": self.shell_tool, "input": {"command" if self.name == "claude-code" else "cmd": command}}


CLAUDE = Agent("claude-code", "@anthropic-ai/claude-code@2.1.197", "", {"permission_mode": "bypassPermissions"}, "Bash")
CODEX = Agent("codex", "@openai/codex@0.171.0", "/v1", {"sandbox_mode": "danger-full-access"}, "exec_command")
AGENTS = pytest.mark.parametrize("agent", [CLAUDE, CODEX], ids=lambda agent: agent.name)
CLASSES = pytest.mark.parametrize("containment", ["scoped", "sealed"])


class Driven:
    def __init__(self, lab, agent, provider, containment="scoped", **manifest):
        self.path = npm_programs(agent.package)
        inference = {"transport": "process", "containment": containment, "model": "test-model",
                     "driver": {"artifact": f"std/driver-{agent.name}", "config": agent.config}, **manifest.pop("inference", {})}
        shell = {"shell": {"allow": PROGRAMS}}
        self.project = lab.project(agent.name, {
            "name": agent.name, "version": "0.1.0",
            "artifacts": [{"name": f"std/driver-{agent.name}", "version": "0.1.0", "runtime": "driver",
                           "gateway": {"endpoint": provider.url + agent.path, "api_key": "${PROVIDER_KEY}"}},
                          {"name": "std/files", "version": "0.1.0", "runtime": "tool"}],
            "inference": inference, "capabilities": shell, "lifecycle": {"conversation": "threaded"}, **manifest})
        self.env = {"PROVIDER_KEY": KEY, "PATH": f"{self.path}:{os.environ['PATH']}"}

    def run(self, task, *args, **more):
        return self.project.run("--task", task, *args, env=self.env, timeout=120 * SLOWER, **more)

    def start(self, *args):
        return self.project.start(*args, env=self.env)


def nowhere(lab, text):
    """The text is in no file of the home."""
    return not [path for path in lab.home.rglob("*") if path.is_file() and not path.is_symlink() and text.encode() in path.read_bytes()]


@AGENTS
@CLASSES
def test_agents_a_task_runs_inside_with_no_key_of_its_own(lab, agent, containment):
    steps = [agent.shell("echo made > made.txt; env; cat /proc/self/environ | head -c 100000; cat /etc/shadow; ls -a $HOME"), {"text": "All done."}]
    with AgentProvider(*steps) as provider:
        driven = Driven(lab, agent, provider, containment)
        session = lab.session(driven.run("do it").ok())

    assert session.result_text == "All done."
    assert provider.keys == {KEY if agent is CLAUDE else f"Bearer {KEY}"}
    said = provider.results[0]
    assert KEY not in said and "root:" not in said and nowhere(lab, KEY)
    made = [path for path in driven.project.directory.rglob("made.txt")]
    assert len(made) == 1 and made[0].read_text() == "made\n"
    trace = session.trace
    assert trace.one("harness_start")["version_tested"] is True and trace.one("harness_exit")["cause"] == "terminal"
    call = trace.all("tool_call")[0]
    assert "made.txt" in str(call["input"]) and trace.one("task_end")["tool_calls"] == 1
    assert trace.one("session_start")["containment_achieved"] == containment
    used = trace.all("inference")
    assert sum(line.get("output_tokens", 0) for line in used) == 18


@AGENTS
def test_agents_what_is_outside_cannot_be_read_or_reached(lab, agent):
    secret = lab.home / "secret.txt"
    secret.write_text("kept private")
    steps = [agent.shell(f"cat {secret}; curl -s -m 5 http://127.0.0.1:{{port}}/ ; curl -s -m 5 http://example.com; echo over")]
    with AgentProvider() as provider, AgentProvider() as other:
        steps[0]["input"] = {key: value.replace("{port}", str(other.port)) for key, value in steps[0]["input"].items()}
        provider.steps = [*steps, {"text": "done"}]
        Driven(lab, agent, provider).run("look around").ok()
        assert other.requests == []
    assert "over" in provider.results[0] and "kept private" not in provider.results[0]


@AGENTS
def test_agents_a_tool_of_the_capsule_is_called_through_the_bridge(lab, agent):
    called = {"action": "write", "path": "by-bridge.txt", "content": "x"}
    step = {"tool": "mcp__murmur__files", "input": called} if agent is CLAUDE else {"tool": "files", "namespace": "mcp__murmur", "input": called}
    with AgentProvider(step, {"text": "done"}) as provider:
        driven = Driven(lab, agent, provider)
        driven.run("use it").ok()
    assert [path.read_text() for path in driven.project.directory.rglob("by-bridge.txt")] == ["x"]


@AGENTS
def test_agents_a_conversation_goes_on_by_its_own_session(lab, agent):
    with AgentProvider({"text": "one"}, {"text": "two"}) as provider:
        driven = Driven(lab, agent, provider)
        work = driven.project.directory / "work"  # conversations of some programs belong to a folder
        work.mkdir()
        first = lab.session(driven.run("remember blue", "--workdir", work).ok())
        second = lab.session(driven.run("what was it?", "--resume", "--workdir", work).ok())
    assert second.result_text == "two" and second.trace.one("harness_start")["session_mode"] == "resume"
    assert first.trace.one("harness_session")["harness_session_id"] == second.trace.one("harness_session")["harness_session_id"]
    assert "remember blue" in str(provider.requests[-1][2])


@AGENTS
def test_agents_a_cancel_ends_a_turn_and_leaves_nothing(lab, agent):
    held = threading.Event()
    with AgentProvider({"text": "too late", "wait": held}) as provider:
        driven = Driven(lab, agent, provider, lifecycle={"conversation": "threaded", **SLEEPER})
        running = driven.start()
        door = Door(running)
        task = door.send_at_once("go")
        eventually(lambda: provider.requests, 60 * SLOWER, "it asked")
        door.result("CancelTask", {"id": task["id"]})
        line = eventually(lambda: lab.session(running).trace.all("harness_exit"), 60 * SLOWER, "it is gone")[0]
        assert door.state(task["id"]) == "CANCELED" and line["cause"] == "canceled"
        held.set()
        running.signal()
        running.result()


@AGENTS
@pytest.mark.parametrize("status, word", [(401, "auth"), (400, "harness-error")])
def test_agents_a_providers_refusal_is_the_tasks_failure(lab, agent, status, word):
    with AgentProvider(*[{"status": status, "message": "scripted refusal"}] * 20) as provider:
        failed = Driven(lab, agent, provider).run("go")
    assert failed.code == 1 and "error[E-RUN-033]" in failed.stderr
    assert lab.session(failed).trace.one("harness_failed")["kind"] == word


@AGENTS
def test_agents_a_spent_budget_stops_it_in_the_providers_words(lab, agent):
    steps = [agent.shell("true")] * 30
    with AgentProvider(*steps) as provider:
        failed = Driven(lab, agent, provider, inference={"max_session_tokens": 60}).run("go on and on")
    assert failed.code != 0 and len(provider.requests) < 20


@AGENTS
def test_agents_nothing_is_left_after_the_runtime_is_killed(lab, agent):
    with AgentProvider(agent.shell("sleep 301 & sleep 302")) as provider:
        driven = Driven(lab, agent, provider)
        running = driven.start("--task", "go")

        def sleepers():
            return subprocess.run(["pgrep", "-f", "sleep 30[12]"], capture_output=True, text=True).stdout.split()

        eventually(sleepers, 60 * SLOWER, "the command runs")
        running.kill()
        running.result()
        eventually(lambda: not sleepers(), 10 * SLOWER, "everything is gone")


def refusal(status, **headers):
    return {"status": status, "message": "scripted refusal", "headers": headers}


@AGENTS
@pytest.mark.parametrize("step", [refusal(429, **{"retry-after": "1"}), refusal(529), {"text": "cut off", "cut": True}],
                         ids=["429", "529", "cut"])
def test_agents_a_provider_that_fails_once_is_asked_again(lab, agent, step):
    with AgentProvider(step, {"text": "after all"}, {"text": "after all"}) as provider:
        session = lab.session(Driven(lab, agent, provider).run("go").ok())
        assert len(provider.requests) >= 2
    assert session.result_text == "after all"


def begin(lab, driven):
    """A running agent with a task; its door, and the task as it asks or has ended."""
    running = driven.start()
    asker = Asker.of(lab, driven.project.directory, None, running)
    return asker, asker.begin()


QUESTION = {"questions": [{"question": "Which colour?", "header": "Colour", "multiSelect": False, "options": [
    {"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]}]}


@CLASSES
def test_agents_claude_code_asks_its_person_and_goes_on_with_the_answer(lab, containment):
    with AgentProvider({"tool": "AskUserQuestion", "input": QUESTION}, {"text": "done"}) as provider:
        asker, task = begin(lab, Driven(lab, CLAUDE, provider, containment, lifecycle={**SLEEPER}))
        assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        assert "Which colour?" in str(task) and "2. Blue" in str(task)
        task = asker.say(task, "2")
        assert task["status"]["state"] == "TASK_STATE_COMPLETED", task
        asker.end()
    assert '"Which colour?"="Blue"' in provider.results[0]


@pytest.mark.parametrize("answer, is_made", [("once", True), ("no", False)])
def test_agents_claude_code_asks_before_it_acts(lab, answer, is_made):
    agent = replace(CLAUDE, config={"permission_mode": "default"})
    with AgentProvider(agent.shell("touch made.txt"), {"text": "done"}) as provider:
        driven = Driven(lab, agent, provider, lifecycle={**SLEEPER})
        asker, task = begin(lab, driven)
        assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED" and "touch made.txt" in str(task)
        assert asker.answer(task, answer)["status"]["state"] == "TASK_STATE_COMPLETED"
        asker.end()
    assert bool(list(driven.project.directory.rglob("made.txt"))) == is_made
    assert ("was not approved" in provider.results[0]) != is_made


@AGENTS
def test_agents_rules_of_approvals_cover_their_own_tools(lab, agent):
    """The mode that asks nothing is no way around: what falls under a rule is asked about, all else is not."""
    steps = [agent.shell("ls > seen.txt"), agent.shell("git init -q ."), agent.shell("git init -q --bare other"), {"text": "done"}]
    with AgentProvider(*steps) as provider:
        driven = Driven(lab, agent, provider, lifecycle={**SLEEPER}, approvals={"commands": ["git init"]})
        asker, task = begin(lab, driven)
        assert "git init -q ." in question(task)["what"]
        assert list(driven.project.directory.rglob("seen.txt"))
        task = asker.answer(task, "once")
        assert "git init -q --bare other" in str(task)
        assert asker.answer(task, "no")["status"]["state"] == "TASK_STATE_COMPLETED"
        asker.end()
    assert list(driven.project.directory.rglob(".git")) and not list(driven.project.directory.rglob("other"))


EVERYDAY = {
    "git": ("git init -q . && git config user.email a@b && git config user.name a && git add kept.txt && git commit -qm first && "
            "git status --short && git log --format=said-%s", "said-first"),
    "python3": ("python3 -c 'import json, ssl; print(\"said-\" + str(6 * 7))'", "said-42"),
    "node": ("node -e 'console.log(\"said-\" + 6 * 7)'", "said-42"),
    "npm": ("npm test 2>&1", "said-by-npm"),
    "pytest": ("python3 -m pytest -q test_it.py 2>&1 || python3 -m unittest -q test_it 2>&1 && echo said-tested", "said-tested"),
    "cargo": ("cargo build --offline 2>&1; ./target/debug/little", "said-by-rust"),
}


def fill(work):
    work.mkdir()
    (work / "kept.txt").write_text("x")
    (work / "package.json").write_text('{"name": "a", "version": "1.0.0", "scripts": {"test": "node -e \\"console.log(\'said-by-\' + \'npm\')\\""}}')
    (work / "test_it.py").write_text("import unittest\n\n\nclass It(unittest.TestCase):\n    def test_it(self):\n        pass\n")
    (work / "src").mkdir()
    (work / "Cargo.toml").write_text('[package]\nname = "little"\nversion = "0.1.0"\nedition = "2021"\n')
    (work / "src/main.rs").write_text('fn main() { println!("said-by-rust"); }')


@AGENTS
@pytest.mark.parametrize("job", EVERYDAY)
def test_agents_everyday_programs_work_in_its_shell(lab, agent, job):
    program = {"python3": "python3", "pytest": "python3"}.get(job, job)
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")
    command, said = EVERYDAY[job]
    work = lab.directory / "everyday"
    fill(work)
    grants = {"shell": {"allow": [*PROGRAMS, "npm", "cargo", "rustc", "cc", "ld"]}, "filesystem": {"workdir_exec": "walled"}}
    with AgentProvider(agent.shell(command), {"text": "done"}) as provider:
        Driven(lab, agent, provider, capabilities=grants).run("work", "--workdir", work).ok()
    assert said in provider.results[0], provider.results[0]


@AGENTS
def test_agents_files_it_changed_and_commands_it_ran_are_on_record(lab, agent):
    work = lab.directory / "folder"
    work.mkdir()
    (work / "old.txt").write_text("old")
    (work / "gone.txt").write_text("gone")
    with AgentProvider(agent.shell("echo new > new.txt; echo more >> old.txt; rm gone.txt"), {"text": "done"}) as provider:
        session = lab.session(Driven(lab, agent, provider).run("work", "--workdir", work).ok())
    trace = session.trace
    call = trace.one("tool_call")
    assert call["by"] == "harness" and "new.txt" in " ".join(call["argv"])
    changed = {item["path"]: item for item in trace.one("harness_changes")["files"]}
    assert {path: item["change"] for path, item in changed.items()} == {"new.txt": "created", "old.txt": "modified", "gone.txt": "deleted"}
    assert changed["old.txt"]["before"] == hashlib.sha256(b"old").hexdigest()
    assert changed["old.txt"]["after"] == hashlib.sha256(b"oldmore\n").hexdigest() and changed["gone.txt"]["after"] is None
    assert not [line for line in trace.all("harness_warning") if line["code"] == "W-RUN-010"]


ACP = Agent("acp", "@zed-industries/claude-code-acp@0.16.2", "",
            {"gateway_env": {"ANTHROPIC_BASE_URL": "url", "ANTHROPIC_API_KEY": "key"}}, "Bash")


def acp(lab, provider, **more):
    inference = {"command": str(npm_programs(ACP.package) / "claude-code-acp"), **more.pop("inference", {})}
    return Driven(lab, ACP, provider, inference=inference, **more)


def test_agents_a_real_acp_agent_does_a_task_inside(lab):
    steps = [{"tool": "Bash", "input": {"command": "echo made > made.txt; cat /etc/shadow"}}, {"text": "All done."}]
    with AgentProvider(*steps) as provider:
        driven = acp(lab, provider)
        session = lab.session(driven.run("do it").ok())
    assert session.result_text.endswith("All done.") and nowhere(lab, KEY)
    assert provider.shown == {("x-api-key", KEY)}
    assert session.trace.one("harness_start")["harness"] == "acp"
    assert len(session.trace.all("tool_call")) == 1 and "root:" not in str(provider.results)


@pytest.mark.parametrize("script, code", [
    ("#!/bin/sh\nexit 7\n", "E-RUN-033"), ("#!/bin/sh\necho not json; exit 0\n", "E-RUN-033"),
    ("#!/bin/sh\necho 'Please run /login' >&2; exit 1\n", "E-RUN-033")])
def test_agents_a_program_that_cannot_work_is_one_error(lab, script, code, tmp_path):
    program = tmp_path / "claude"
    program.write_text(script)
    program.chmod(0o755)
    with AgentProvider() as provider:
        driven = Driven(lab, CLAUDE, provider, "none", inference={"command": str(program)})
        failed = driven.run("go")
    assert failed.code == 1 and failed.stderr.count("error[") == 1 and f"error[{code}]" in failed.stderr
