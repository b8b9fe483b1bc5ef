# SPDX-License-Identifier: Apache-2.0
#
# Real coding agents as harnesses: Claude Code and Codex, from npm, inside the walls, against a scripted provider. The key
# is the provider's alone.

import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import threading
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import yaml

from tests.support.agent_provider import AgentProvider
from tests.support.approvals import Asker, question
from tests.support.door_client import SLEEPER, Door
from tests.support.formation import BEARER, SERVES, Team
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
ASKING = replace(CODEX, config={**CODEX.config, "approval_policy": "on-request"})  # runs as its app server
MODES = pytest.mark.parametrize("agent", [CLAUDE, CODEX, ASKING], ids=["claude-code", "codex", "codex-asking"])
CLASSES = pytest.mark.parametrize("containment", ["scoped", "sealed"])
# Every program in both classes; Codex as its app server, which differs in what it says and not in its walls, in one of them.
PLACES = pytest.mark.parametrize("agent, containment", [
    (CLAUDE, "scoped"), (CLAUDE, "sealed"), (CODEX, "scoped"), (CODEX, "sealed"), (ASKING, "sealed")],
    ids=["claude-code-scoped", "claude-code-sealed", "codex-scoped", "codex-sealed", "codex-asking-sealed"])


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
        return self.project.run("--task", task, *args, env=self.env, timeout=120, **more)

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


OWN_TOOLS = {
    "claude-code": lambda work: [{"tool": "Write", "input": {"file_path": f"{work}/story.txt", "content": "one\ntwo\n"}},
                                 {"tool": "Edit", "input": {"file_path": f"{work}/story.txt", "old_string": "two", "new_string": "three"}}],
    "codex": lambda work: [CODEX.shell("apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: story.txt\n+one\n+two\n*** End Patch\nEOF"),
                           CODEX.shell("apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: story.txt\n@@\n one\n-two\n+three\n*** End Patch\nEOF")]}


@AGENTS
@CLASSES
def test_agents_three_turns_edit_a_file_with_their_own_tools(lab, agent, containment):
    work = lab.directory / "story"
    work.mkdir()
    with AgentProvider(*OWN_TOOLS[agent.name](work), {"text": "edited"}) as provider:
        session = lab.session(Driven(lab, agent, provider, containment).run("write", "--workdir", work).ok())
    assert session.result_text == "edited" and (work / "story.txt").read_text() == "one\nthree\n"
    assert len(session.trace.all("inference")) == 3 and len(session.trace.all("tool_call")) == 2


def memory_holds(pid, text):
    """The text is in what the process has in memory: what a core of it would hold."""
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            span, mode = line.split()[:2]
            start, end = (int(part, 16) for part in span.split("-"))
            if not mode.startswith("rw") or end - start > 1 << 30:
                continue
            try:
                memory.seek(start)
                if text.encode() in memory.read(end - start):
                    return True
            except (OSError, ValueError, OverflowError):
                continue
    return False


def below(pid):
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [*children, *(found for child in children for found in below(child))]


@AGENTS
@CLASSES
def test_agents_no_memory_of_a_harness_holds_the_key(lab, agent, containment):
    held = threading.Event()
    with AgentProvider({"text": "done", "wait": held}) as provider:
        driven = Driven(lab, agent, provider, containment)
        running = driven.start("--task", "go")
        eventually(lambda: provider.requests, 60 * SLOWER, "it asked")
        assert provider.keys == {KEY if agent is CLAUDE else f"Bearer {KEY}"}
        programs = [pid for pid in below(running.pid) if agent.name.split("-")[0] in Path(f"/proc/{pid}/cmdline").read_text()]
        assert programs and not [pid for pid in programs if memory_holds(pid, KEY)]
        placeholders = [pid for pid in programs if memory_holds(pid, "murmur-")]
        cores = [Path(f"/proc/{pid}/limits").read_text() for pid in programs]
        held.set()
        running.result(60 * SLOWER).ok()
    assert placeholders, "the look itself finds what is there"
    assert all(re.search(r"Max core file size +0 +0 ", limits) for limits in cores), "none leaves a core behind"


REACHES = """
import socket, sys
for family, kind, address in ((socket.AF_INET6, socket.SOCK_STREAM, ("::1", {port})), (socket.AF_INET, socket.SOCK_STREAM, ("93.184.215.14", 80)),
                              (socket.AF_INET6, socket.SOCK_STREAM, ("2606:2800:21f::", 80))):
    try:
        socket.socket(family, kind).connect(address)
        print("REACHED", address)
    except OSError as error:
        print("kept", error.errno)
for target in ("127.0.0.1", "8.8.8.8", "::1"):
    try:
        one = socket.socket(socket.AF_INET6 if ":" in target else socket.AF_INET, socket.SOCK_DGRAM)
        one.settimeout(1)
        one.sendto(b"x", (target, {udp}))
        one.recv(1)
        print("REACHED udp", target)
    except OSError:
        print("kept udp")
try:
    print("REACHED", socket.getaddrinfo("example.com", 80))
except OSError:
    print("kept name")
"""


@AGENTS
@CLASSES
def test_agents_no_other_host_is_reached_by_any_way(lab, agent, containment):
    work = lab.directory / "reach"
    work.mkdir()
    with AgentProvider() as provider, AgentProvider() as other, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        (work / "reach.py").write_text(REACHES.format(port=other.port, udp=udp.getsockname()[1]))
        provider.steps = [agent.shell("python3 reach.py"), {"text": "done"}]
        Driven(lab, agent, provider, containment).run("look", "--workdir", work).ok()
        assert other.requests == []
        udp.setblocking(False)
        with pytest.raises(BlockingIOError):
            udp.recv(1)
    assert provider.results[0].count("kept") >= 7 and "REACHED" not in provider.results[0], provider.results[0]


def test_agents_claude_codes_own_read_tool_stays_inside(lab):
    secret = lab.home / "secret.txt"
    secret.write_text("kept private")
    with AgentProvider({"tool": "Read", "input": {"file_path": str(secret)}}, {"text": "done"}) as provider:
        Driven(lab, CLAUDE, provider).run("read it").ok()
    assert "kept private" not in provider.results[0]


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


@PLACES
def test_agents_a_tool_of_the_capsule_is_called_through_the_bridge(lab, agent, containment):
    called = {"action": "write", "path": "by-bridge.txt", "content": "x"}
    step = {"tool": "mcp__murmur__files", "input": called} if agent is CLAUDE else {"tool": "files", "namespace": "mcp__murmur", "input": called}
    with AgentProvider(step, {"text": "done"}) as provider:
        driven = Driven(lab, agent, provider, containment)
        driven.run("use it").ok()
    assert [path.read_text() for path in driven.project.directory.rglob("by-bridge.txt")] == ["x"]


@PLACES
def test_agents_a_conversation_goes_on_by_its_own_session(lab, agent, containment):
    with AgentProvider({"text": "one"}, {"text": "two"}) as provider:
        driven = Driven(lab, agent, provider, containment)
        work = driven.project.directory / "work"  # conversations of some programs belong to a folder
        work.mkdir()
        first = lab.session(driven.run("remember blue", "--workdir", work).ok())
        second = lab.session(driven.run("what was it?", "--resume", "--workdir", work).ok())
    assert second.result_text == "two" and second.trace.one("harness_start")["session_mode"] == "resume"
    assert first.trace.one("harness_session")["harness_session_id"] == second.trace.one("harness_session")["harness_session_id"]
    assert "remember blue" in str(provider.requests[-1][2])


def is_canceled(lab, driven, provider, held):
    """A task in the middle of its model's answer is cancelled, and its program is gone."""
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


HELD = {"lifecycle": {"conversation": "threaded", **SLEEPER}}


@PLACES
def test_agents_a_cancel_ends_a_turn_and_leaves_nothing(lab, agent, containment):
    held = threading.Event()
    with AgentProvider({"text": "too late", "wait": held}) as provider:
        is_canceled(lab, Driven(lab, agent, provider, containment, **HELD), provider, held)


def refusal(status, **headers):
    return {"status": status, "message": "scripted refusal", "headers": headers}


def is_refused(lab, agent, containment, status, word):
    with AgentProvider(*[refusal(status)] * 20) as provider:
        failed = Driven(lab, agent, provider, containment).run("go")
    assert failed.code == 1 and "error[E-RUN-033]" in failed.stderr
    assert lab.session(failed).trace.one("harness_failed")["kind"] == word
    assert lab.session(failed).trace.one("session_start")["containment_achieved"] == containment


@PLACES
def test_agents_a_provider_that_refuses_the_key_is_the_tasks_failure(lab, agent, containment):
    is_refused(lab, agent, containment, 401, "auth")


@MODES
def test_agents_a_providers_refusal_is_the_tasks_failure(lab, agent):
    is_refused(lab, agent, "scoped", 400, "harness-error")


@PLACES
def test_agents_a_spent_budget_stops_it_in_the_providers_words(lab, agent, containment):
    steps = [agent.shell("true")] * 30
    with AgentProvider(*steps) as provider:
        failed = Driven(lab, agent, provider, containment, inference={"max_session_tokens": 60}).run("go on and on")
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


@PLACES
def test_agents_a_provider_that_fails_now_and_then_is_asked_again(lab, agent, containment):
    """A limit, an overload and a stream that breaks off, in the three turns of one task."""
    steps = [refusal(429, **{"retry-after": "1"}), agent.shell("echo one > made.txt"), refusal(529), agent.shell("echo two >> made.txt"),
             {"text": "cut off", "cut": True}, {"text": "after all"}, {"text": "after all"}]
    with AgentProvider(*steps) as provider:
        driven = Driven(lab, agent, provider, containment)
        session = lab.session(driven.run("go").ok())
        assert len(provider.requests) >= 6
    assert session.result_text == "after all"
    assert [path.read_text() for path in driven.project.directory.rglob("made.txt")] == ["one\ntwo\n"]


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
@CLASSES
def test_agents_rules_of_approvals_cover_their_own_tools(lab, agent, containment):
    """The mode that asks nothing is no way around: what falls under a rule is asked about, all else is not."""
    steps = [agent.shell("ls > seen.txt"), agent.shell("git init -q ."), agent.shell("git init -q --bare other"), {"text": "done"}]
    with AgentProvider(*steps) as provider:
        driven = Driven(lab, agent, provider, containment, lifecycle={**SLEEPER}, approvals={"commands": ["git init"]})
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

WIDE = {"shell": {"allow": [*PROGRAMS, "npm", "cargo", "rustc", "cc", "ld"]}, "filesystem": {"workdir_exec": "walled"}}


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
    with AgentProvider(agent.shell(command), {"text": "done"}) as provider:
        Driven(lab, agent, provider, capabilities=WIDE).run("work", "--workdir", work).ok()
    assert said in provider.results[0], provider.results[0]


@AGENTS
def test_agents_everyday_programs_work_in_its_shell_at_sealed_too(lab, agent):
    jobs = [EVERYDAY[job] for job in EVERYDAY if shutil.which({"pytest": "python3"}.get(job, job))]
    work = lab.directory / "everyday"
    fill(work)
    with AgentProvider(*[agent.shell(command) for command, _ in jobs], {"text": "done"}) as provider:
        Driven(lab, agent, provider, "sealed", capabilities=WIDE).run("work", "--workdir", work).ok()
    for (command, said), result in zip(jobs, provider.results, strict=True):
        assert said in result, f"{command}: {result}"


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


OPENCODE = {"model": "test/test-model", "autoupdate": False, "share": "disabled", "provider": {"test": {
    "npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "{gateway_url}", "apiKey": "{gateway_key}"}, "models": {"test-model": {}}}}}
CODEX_ACP = ['model_provider="one"', 'model="test-model"', 'sandbox_mode="danger-full-access"', 'model_providers.one.name="one"',
             'model_providers.one.base_url="{gateway_url}"', 'model_providers.one.env_key="OPENAI_API_KEY"',
             'model_providers.one.wire_api="responses"']


@dataclass
class AcpAgent(Agent):
    program: str
    shown: tuple  # how its provider is shown the key

    def shell(self, command):
        return {"tool": self.shell_tool, "input": {"cmd" if self.program == "codex-acp" else "command": command, "description": "x"}}


def acp_agent(package, program, path, shell_tool, shown, **config):
    return AcpAgent("acp", package, path, config, shell_tool, program, shown)


ACP = [
    acp_agent("@zed-industries/claude-code-acp@0.16.2", "claude-code-acp", "", "Bash", ("x-api-key", KEY),
              gateway_env={"ANTHROPIC_BASE_URL": "url", "ANTHROPIC_API_KEY": "key"}),
    acp_agent("@google/gemini-cli@0.61.0", "gemini", "", "run_shell_command", ("x-goog-api-key", KEY),
              args=["--experimental-acp", "-m", "gemini-2.5-flash"], auth_method="gemini-api-key",
              gateway_env={"GOOGLE_GEMINI_BASE_URL": "url", "GEMINI_API_KEY": "key"}),
    acp_agent("opencode-ai@1.18.33", "opencode", "/v1", "bash", ("authorization", f"Bearer {KEY}"),
              args=["acp"], env={"OPENCODE_CONFIG_CONTENT": json.dumps(OPENCODE)}),
    acp_agent("@zed-industries/codex-acp@0.16.0", "codex-acp", "/v1", "exec_command", ("authorization", f"Bearer {KEY}"),
              args=[word for setting in CODEX_ACP for word in ("-c", setting)], gateway_env={"OPENAI_API_KEY": "key"})]
ACP_AGENTS = pytest.mark.parametrize("agent", ACP, ids=lambda agent: agent.program)


def those(*programs):
    return pytest.mark.parametrize("agent", [agent for agent in ACP if agent.program in programs], ids=lambda agent: agent.program)


def acp(lab, agent, provider, containment="scoped", **more):
    inference = {"command": str(npm_programs(agent.package) / agent.program), **more.pop("inference", {})}
    return Driven(lab, agent, provider, containment, inference=inference, **more)


@ACP_AGENTS
@CLASSES
def test_agents_a_real_acp_agent_does_a_task_inside(lab, agent, containment):
    with AgentProvider(agent.shell("echo made > made.txt; cat /etc/shadow"), {"text": "All done."}) as provider:
        driven = acp(lab, agent, provider, containment)
        session = lab.session(driven.run("do it").ok())
    assert "All done." in session.result_text and nowhere(lab, KEY)
    assert provider.shown == {agent.shown}
    start = session.trace.one("harness_start")
    assert start["harness"] == "acp" and start["version_tested"] is True and session.trace.one("session_start")["containment_achieved"] == containment
    assert len(session.trace.all("tool_call")) == 1 and "root:" not in str(provider.results)
    assert [path.read_text() for path in driven.project.directory.rglob("made.txt")] == ["made\n"]


@ACP_AGENTS
def test_agents_a_budget_stops_an_acp_agent(lab, agent):
    with AgentProvider(*[agent.shell("true")] * 30) as provider:
        failed = acp(lab, agent, provider, inference={"max_session_tokens": 60}).run("go on and on")
    assert failed.code != 0 and len(provider.requests) < 20


BRIDGED = {"opencode": "murmur_files", "gemini": "mcp_murmur_files"}  # how they call the capsule's tool


@those(*BRIDGED)
def test_agents_an_acp_agent_calls_a_tool_of_the_capsule(lab, agent):
    step = {"tool": BRIDGED[agent.program], "input": {"action": "write", "path": "by-bridge.txt", "content": "x"}}
    with AgentProvider(step, {"text": "done"}) as provider:
        driven = acp(lab, agent, provider)
        session = lab.session(driven.run("use it").ok())
    assert [path.read_text() for path in driven.project.directory.rglob("by-bridge.txt")] == ["x"]
    assert "files" in [line["tool_name"].rpartition("__")[2] for line in session.trace.all("tool_call")]
    start = session.trace.one("harness_start")
    assert start["version_tested"] is True and start["harness_version"] in agent.package
    # What it used is its provider's own word, whether it reports any or none. A title that opencode asks for beside its turn
    # may still be under way when that ends.
    assert session.trace.one("task_end")["output_tokens"] in (9 * len(provider.requests), 9 * (len(provider.requests) - 1))


def member(lab, driven, name, **manifest):
    """A harness of `driven` in the lab's store."""
    folder = lab.directory / "packages" / name
    folder.mkdir(parents=True)
    text = yaml.safe_load((driven.project.directory / "murmur.yaml").read_text())
    (folder / "murmur.yaml").write_text(yaml.safe_dump(
        {**text, "name": name, "runtime": "capsule", "execution": "static", **manifest}, sort_keys=False))
    for command in ("build", "."), ("publish",):
        lab.mur(*command, cwd=folder).ok()


def test_agents_claude_code_and_codex_are_members_of_one_formation(lab):
    asks = {"tool": "mcp__murmur__call-member", "input": {"member": "coder", "task": "Write made.txt"}}
    with AgentProvider(asks, {"text": "it is asked"}, {"text": "all is written"}) as of_lead, \
            AgentProvider(CODEX.shell("echo made > made.txt"), {"text": "it is written"}) as of_coder:
        lead, coder = Driven(lab, CLAUDE, of_lead), Driven(lab, CODEX, of_coder)
        member(lab, lead, "lead", capabilities={"shell": {"allow": PROGRAMS}, "network": {"allow": ["localhost"]}}, **BEARER)
        member(lab, coder, "coder", **SERVES, **BEARER)
        team = Team(lab, "lead", "coder", reachability=[{"from": "lead", "to": ["coder"]}])
        path = f"{lead.path}:{coder.path}:{os.environ['PATH']}"
        team.run("--task", "go", env={"PROVIDER_KEY": KEY, "PATH": path}, timeout=180).ok()
    traces = team.sessions()
    assert traces["lead"].all("harness_start")[0]["harness"] == "claude-code" and traces["coder"].one("harness_start")["harness"] == "codex"
    assert [change["path"] for change in traces["coder"].one("harness_changes")["files"]] == ["made.txt"]
    assert "it is written" in str(of_lead.requests[-1][2]) and nowhere(lab, KEY)


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


def replayed(lab, project, address, *arguments, home=None):
    """`mur replay` of a real agent's record, where neither the agent nor a key is."""
    env = {"PATH": "/usr/bin:/bin", "PROVIDER_KEY": "", **({"HOME": str(home)} if home else {})}
    result = lab.mur("replay", address, "--json", *arguments, cwd=project, env=env, timeout=120)
    report = result.json
    assert result.code == 0 and report["verdict"] == "same" and report["first"] is None, f"{report}\n{result.stderr}"
    assert report["live_calls"] == report["network_attempts"] == 0
    return report


@pytest.mark.parametrize("agent, containment", [(CLAUDE, "scoped"), (CODEX, "scoped"), (ASKING, "sealed")],
                         ids=["claude-code", "codex", "codex-asking"])
def test_agents_a_recorded_session_replays_as_the_same_and_on_another_machine(lab, agent, containment):
    bridged = {"action": "write", "path": "by-bridge.txt", "content": "x"}
    bridge = {"tool": "mcp__murmur__files", "input": bridged} if agent is CLAUDE else \
        {"tool": "files", "namespace": "mcp__murmur", "input": bridged}
    with AgentProvider(agent.shell("echo made > made.txt"), bridge, refusal(529), {"text": "All done."}) as provider:
        driven = Driven(lab, agent, provider, containment, trace={"capture": "replay"})
        work = driven.project.directory / "work"
        work.mkdir()
        session = lab.session(driven.run("do it", "--workdir", work).ok())
        asked = len(provider.requests)
        report = replayed(lab, driven.project.directory, session.id, "--workdir", work)
        bundle = lab.directory / "agent.murtrace"
        driven.project.mur("trace", "pack", session.id, "--workdir", work, "-o", bundle).ok()
        home, folder = lab.directory / "another-home", lab.directory / "another-folder"
        home.mkdir()
        folder.mkdir()
        replayed(lab, folder, bundle, home=home)
        assert len(provider.requests) == asked, "nobody was asked again"
    assert [name for turn in report["turns"] for name in turn["calls"]] == [agent.shell_tool if agent is CLAUDE else "command_execution", "files"]
    assert lab.session(report["session_id"]).result_text == session.result_text == "All done."
    assert KEY.encode() not in bundle.read_bytes() and nowhere(lab, KEY)


@those("claude-code-acp")
def test_agents_a_recorded_session_of_an_acp_agent_replays_as_the_same(lab, agent):
    with AgentProvider(agent.shell("echo made > made.txt"), {"text": "All done."}) as provider:
        driven = acp(lab, agent, provider, trace={"capture": "replay"})
        session = lab.session(driven.run("do it").ok())
        asked = len(provider.requests)
        report = replayed(lab, driven.project.directory, session.id)
        assert len(provider.requests) == asked
    assert lab.session(report["session_id"]).result_text == session.result_text


@those("gemini", "codex-acp")
def test_agents_a_cancel_ends_an_acp_agents_turn_and_leaves_nothing(lab, agent):
    held = threading.Event()
    with AgentProvider({"text": "too late", "wait": held}) as provider:
        is_canceled(lab, acp(lab, agent, provider, **HELD), provider, held)


@those("claude-code-acp", "opencode", "codex-acp")
def test_agents_an_acp_agents_conversation_goes_on(lab, agent):
    with AgentProvider({"text": "one"}, {"text": "two"}) as provider:
        driven = acp(lab, agent, provider)
        work = driven.project.directory / "work"
        work.mkdir()
        driven.run("remember blue", "--workdir", work).ok()
        second = lab.session(driven.run("what was it?", "--resume", "--workdir", work).ok())
    assert "two" in second.result_text and second.trace.one("harness_start")["session_mode"] == "resume"
    assert "remember blue" in str(provider.requests[-1][2])


@those("gemini", "codex-acp", "claude-code-acp")
def test_agents_a_provider_that_refuses_an_acp_agents_key_is_the_tasks_failure(lab, agent):
    with AgentProvider(*[refusal(401)] * 200) as provider:
        failed = acp(lab, agent, provider).run("go")
    assert failed.code == 1 and failed.stderr.count("error[") == 1 and "error[E-RUN-033]" in failed.stderr
    assert lab.session(failed).trace.one("harness_failed")["kind"] == "auth"


@those("claude-code-acp", "gemini")
def test_agents_an_acp_agents_provider_that_fails_now_and_then_is_asked_again(lab, agent):
    steps = [refusal(429, **{"retry-after": "1"}), agent.shell("echo one > made.txt"), refusal(529), {"text": "after all"}, {"text": "after all"}]
    with AgentProvider(*steps) as provider:
        driven = acp(lab, agent, provider)
        session = lab.session(driven.run("go").ok())
        assert len(provider.requests) >= 4
    assert "after all" in session.result_text
    assert [path.read_text() for path in driven.project.directory.rglob("made.txt")] == ["one\n"]
