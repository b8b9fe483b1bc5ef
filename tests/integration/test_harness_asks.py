# SPDX-License-Identifier: Apache-2.0
#
# What a harness asks by its own means becomes a question of the task: agents of the Agent Client Protocol, and stand-ins for
# Claude Code (its control channel) and Codex (its server mode).

import json
import sys
from textwrap import dedent

import pytest

from tests.support.acp_agent import acp_project
from tests.support.approvals import Asker, question, state
from tests.support.door_client import SLEEPER
from tests.support.lab import SLOWER
from tests.support.polling import eventually
from tests.support.terminal import Terminal

ASKS = """
new, prompt = begin()
text(json.dumps({asked}))
stop(prompt)
"""


def permission(kind="execute", **call):
    arguments = ", ".join(f"{key}={value!r}" for key, value in call.items())
    return f'permission({kind!r}{", " if arguments else ""}{arguments})'


RUN = {"rawInput": {"command": "sh -c 'ls deploy'"}}


def asking(lab, asked=permission(**RUN), approvals=None, **manifest):
    """A running ACP agent that asks once and says what it was told."""
    project = acp_project(lab, ASKS.format(asked=asked), lifecycle={**SLEEPER, **manifest.pop("lifecycle", {})},
                          approvals={"commands": ["ls"]} if approvals is None else approvals, **manifest)
    running = project.start()
    return Asker.of(lab, project.directory, None, running)


def told(asker, task):
    assert state(task) == "completed", task
    return json.loads(asker.lab.session(asker.running.session_id).result_text)


@pytest.mark.parametrize("answer, option", [("once", "o-allow_once"), ("session", "o-allow_once"), ("no", "o-reject_once"),
                                            ("never", "o-reject_once")])
def test_harness_a_permission_under_a_rule_is_a_persons_to_give(lab, answer, option):
    asker = asking(lab)
    task = asker.begin()
    asked = question(task)
    assert asked["what"] == "sh -c 'ls deploy'" and asked["rules"] == [{"kind": "commands", "rule": "ls", "unseen": False}]
    outcome = told(asker, asker.answer(task, answer))
    assert outcome == {"outcome": "selected", "optionId": option}
    line, = asker.trace.all("approval_answered")
    assert line["answer"] == answer and line["is_allowed"] == (option == "o-allow_once")
    asker.end()


def test_harness_what_no_rule_of_approvals_covers_is_the_manifests(lab):
    asker = asking(lab, permission(rawInput={"command": "sh -c true"}))
    assert told(asker, asker.begin()) == {"outcome": "selected", "optionId": "o-allow_once"}
    asker.end()


def test_harness_what_the_manifest_forbids_is_not_asked_about(lab):
    asker = asking(lab, permission(rawInput={"command": "curl x; ls"}))
    assert told(asker, asker.begin()) == {"outcome": "selected", "optionId": "o-reject_once"}
    asker.end()


def test_harness_what_no_rule_speaks_of_is_asked_where_somebody_wants_to_be(lab):
    asker = asking(lab, "[" + permission("switch_mode") + ", " + permission("switch_mode", toolCallId="c-2") + "]")
    task = asker.begin()
    assert question(task)["rules"] == [{"kind": "harness", "rule": "switch_mode", "unseen": False}]
    outcomes = told(asker, asker.answer(task, "session"))  # the second is not asked about
    assert [outcome["optionId"] for outcome in outcomes] == ["o-allow_once"] * 2
    assert len(asker.trace.all("approval_requested")) == 1 and len(asker.trace.all("approval_applied")) == 1
    asker.end()


@pytest.mark.parametrize("kind, call, asks", [
    ("edit", {"locations": [{"path": "deploy/a.txt"}]}, True), ("edit", {"locations": [{"path": "elsewhere/a.txt"}]}, False),
    ("delete", {"rawInput": {"path": "deploy"}}, True), ("read", {"locations": [{"path": "deploy/a.txt"}]}, False),
    ("execute", {"rawInput": {"command": "sh -c 'echo x > deploy/a.txt'"}}, True)])
def test_harness_paths_under_a_rule_are_asked_about(lab, kind, call, asks):
    asker = asking(lab, permission(kind, **call), approvals={"paths": ["deploy"]})
    task = asker.begin()
    assert (state(task) == "input_required") == asks
    if asks:
        task = asker.answer(task, "no")
    assert told(asker, task)["optionId"] == ("o-reject_once" if asks else "o-allow_once")
    asker.end()


def test_harness_a_question_nobody_answers_in_time_is_a_no(lab):
    asker = asking(lab, approvals={"commands": ["ls"], "timeout_secs": 1})
    begun = asker.begin()["id"]

    def ended():
        task = asker.door.result("GetTask", {"id": begun})
        return task if state(task) == "completed" else None

    assert told(asker, eventually(ended, 60 * SLOWER))["optionId"] == "o-reject_once"
    asker.end()


def test_harness_a_cancel_while_it_is_asked_ends_the_task(lab):
    asker = asking(lab)
    task = asker.begin()
    asker.door.result("CancelTask", {"id": task["id"]})
    assert state(asker.settled(task["id"])) == "canceled"
    assert asker.trace.one("approval_answered")["answer"] == "canceled"
    eventually(lambda: asker.trace.all("harness_exit"), 60 * SLOWER)
    asker.end()


def test_harness_a_question_is_answered_by_the_command(lab):
    asker = asking(lab)
    task = asker.begin()
    done = lab.mur("answer", asker.running.session_id, "once", timeout=60)
    assert done.code == 0, done
    assert told(asker, asker.settled(task["id"]))["optionId"] == "o-allow_once"
    asker.end()


def test_harness_a_question_is_answered_at_the_terminal(lab):
    project = acp_project(lab, ASKS.format(asked=permission(**RUN)), approvals={"commands": ["ls"]})
    terminal = Terminal(lab, "run", "--task", "go", cwd=project.directory)
    terminal.wait_for(r"once, session, no, never> ")
    assert "ls deploy" in terminal.text
    terminal.type("once\n")
    terminal.wait_for("o-allow_once")


# --- Claude Code ---

CLAUDE = """#!{python} -u
import json, sys
if "--version" in sys.argv:
    print("2.1.197 (Claude Code)")
    sys.exit(0)
assert "--permission-prompt-tool" in sys.argv and sys.argv[sys.argv.index("--input-format") + 1] == "stream-json"

def say(message):
    sys.stdout.write(json.dumps(message) + "\\n")

def read():
    return json.loads(sys.stdin.readline())

def control(id, subtype, **request):
    say({{"type": "control_request", "request_id": id, "request": {{"subtype": subtype, **request}}}})
    answer = read()["response"]
    assert answer["subtype"] == "success" and answer["request_id"] == id, answer
    return answer["response"]

def end(result):
    say({{"type": "result", "subtype": "success", "is_error": False, "result": json.dumps(result)}})
    sys.stdin.read()

first = read()
hooks = first.get("request", {{}}).get("hooks")
if hooks:
    first = read()
assert first == {{"type": "user", "message": {{"role": "user", "content": first["message"]["content"]}}}}
{body}
"""


def standing_in(lab, driver, program, body, config=None, approvals=None):
    path = lab.directory / driver
    path.write_text(program.format(python=sys.executable, body=dedent(body)))
    path.chmod(0o755)
    name = f"std/driver-{driver}"
    project = lab.project("agent", {
        "name": "agent", "version": "0.1.0", "artifacts": [{"name": name, "version": "0.1.0", "runtime": "driver"}],
        "inference": {"transport": "process", "command": str(path),
                      "driver": {"artifact": name, **({"config": config} if config else {})}},
        "lifecycle": {**SLEEPER}, **({"approvals": approvals} if approvals else {})})
    return Asker.of(lab, project.directory, None, project.start())


def asked(task):
    """The words of a question that takes any text."""
    assert state(task) == "input_required", task
    return next(item for item in task["artifacts"] if item["name"] == "prompt")["parts"][0]["text"]


QUESTIONS = [{"question": "Which \"colour\"?", "header": "Colour", "options": [{"label": "Red"}, {"label": "Blue", "description": "cold"}]},
             {"question": "Why?", "options": []}]


@pytest.mark.parametrize("said, meant", [("2", "Blue"), ("blue", "Blue"), (" 2 ", "Blue"), ("green \"x\"\n", "green \"x\"\n"), ("7", "7")])
def test_harness_claude_code_has_its_questions_answered_in_its_form(lab, said, meant):
    asker = standing_in(lab, "claude-code", CLAUDE, f"""
        end(control("r1", "can_use_tool", tool_name="AskUserQuestion", tool_use_id="t1", input={{"questions": {QUESTIONS!r}, "answers": 1}}))
    """)
    task = asker.begin()
    words = asked(task)
    assert 'Which "colour"?' in words and "1. Red" in words and "2. Blue" in words
    task = asker.say(task, said)
    assert "Why?" in asked(task)
    answer = told(asker, asker.say(task, "because"))
    assert answer["behavior"] == "allow" and answer["updatedInput"]["questions"] == QUESTIONS
    given = answer["updatedInput"]["answers"]
    assert given["Why?"] == "because" and given['Which "colour"?'].strip() == meant.strip()
    assert "because" in str(asker.trace.all("harness_note"))
    asker.end()


def test_harness_claude_code_is_told_why_not(lab):
    asker = standing_in(lab, "claude-code", CLAUDE, """
        end(control("r1", "can_use_tool", tool_name="Bash", tool_use_id="t1", input={"command": "touch a"}))
    """)
    task = asker.begin()
    assert question(task)["what"] == "touch a" and question(task)["rules"] == [{"kind": "harness", "rule": "Bash", "unseen": False}]
    answer = told(asker, asker.answer(task, "no"))
    assert answer["behavior"] == "deny" and "the answer was no" in answer["message"]
    asker.end()


@pytest.mark.parametrize("request_, allowed", [
    ('"can_use_tool", tool_name="mcp__murmur__files", input={"a": 1}', True), ('"something_new"', False), ('"can_use_tool"', False),
    ('"can_use_tool", tool_name=7, input=[]', False), ('"hook_callback", callback_id="x"', False)])
def test_harness_claude_code_is_never_left_without_an_answer(lab, request_, allowed):
    asker = standing_in(lab, "claude-code", CLAUDE, f"end(control('r1', {request_}))")
    assert (told(asker, asker.begin())["behavior"] == "allow") == allowed
    asker.end()


def test_harness_claude_code_tells_each_call_where_the_manifest_has_approvals(lab):
    asker = standing_in(lab, "claude-code", CLAUDE, """
        def use(id, tool, **fields):
            before = control("h" + id, "hook_callback", callback_id=hooks["PreToolUse"][0]["hookCallbackIds"][0], tool_use_id=id,
                             input={"tool_name": tool, "tool_input": fields, "tool_use_id": id})
            if before:
                return before["hookSpecificOutput"]
            return control("c" + id, "can_use_tool", tool_name=tool, tool_use_id=id, input=fields)["behavior"]
        end([use("1", "Bash", command="git push"), use("2", "Bash", command="git push"), use("3", "mcp__murmur__files", path="deploy/x"),
             use("4", "Write", file_path="deploy/x", content="y"), control("c5", "can_use_tool", tool_name="Bash", input={"command": "id"})])
    """, approvals={"commands": ["git push"], "paths": ["deploy"]})
    task = asker.begin()
    assert question(task)["what"] == "git push"
    task = asker.answer(task, "once")  # asked once, although its own mode asks as well
    task = asker.answer(task, "no")
    assert "deploy/x" in question(task)["what"] and question(task)["rules"][0]["kind"] == "paths"
    task = asker.answer(task, "no")
    assert question(task)["rules"] == [{"kind": "harness", "rule": "Bash", "unseen": False}]
    first, second, third, fourth, fifth = told(asker, asker.answer(task, "once"))
    assert (first, third, fifth["behavior"]) == ("allow", "allow", "allow")
    for refused in (second, fourth):
        assert refused["permissionDecision"] == "deny" and "the answer was no" in refused["permissionDecisionReason"]
    asker.end()


# --- Codex ---

CODEX = """#!{python} -u
import json, sys
if "--version" in sys.argv:
    print("codex-cli 0.171.0")
    sys.exit(0)
assert sys.argv[1] == "app-server"

def say(**message):
    sys.stdout.write(json.dumps(message) + "\\n")

def read():
    return json.loads(sys.stdin.readline())

def expect(method, **result):
    request = read()
    assert request["method"] == method, request
    if "id" in request:
        say(id=request["id"], result=result)
    return request.get("params")

def ask(method, **params):
    say(id=77, method=method, params=params)
    answer = read()
    assert answer.pop("id") == 77
    return answer

def end(result):
    say(method="item/completed", params={{"item": {{"type": "agentMessage", "id": "m", "text": json.dumps(result)}}}})
    say(method="turn/completed", params={{"turn": {{"status": "completed"}}}})
    sys.stdin.read()

expect("initialize")
expect("initialized")
started = expect("thread/start", thread={{"id": "th-1"}})
expect("turn/start", turn={{"id": "tu-1"}})
{body}
"""
ITEM = 'say(method="item/started", params={"item": {"type": "commandExecution", "id": "i1", "command": "/bin/bash -lc \'git push\'"}})\n'
APPROVAL = 'ask("item/commandExecution/requestApproval", itemId="i1", command="/bin/bash -lc \'git push\'", reason="because")'


@pytest.mark.parametrize("config, approvals", [({"approval_policy": "on-request"}, None), (None, {"commands": ["git push"]})])
@pytest.mark.parametrize("answer, decision", [("once", "accept"), ("no", "decline")])
def test_harness_codex_asks_before_it_acts(lab, config, approvals, answer, decision):
    asker = standing_in(lab, "codex", CODEX, ITEM + f"end([started['approvalPolicy'], {APPROVAL}['result']['decision']])", config, approvals)
    task = asker.begin()
    rule = {"kind": "commands", "rule": "git push"} if approvals else {"kind": "harness", "rule": "command_execution"}
    assert question(task)["rules"] == [{**rule, "unseen": False}] and "git push" in question(task)["what"]
    assert told(asker, asker.answer(task, answer)) == ["on-request" if config else "untrusted", decision]
    asker.end()


def test_harness_codex_what_no_rule_covers_is_let_pass(lab):
    asker = standing_in(lab, "codex", CODEX, ITEM + f"end({APPROVAL}['result']['decision'])", None, {"commands": ["git pull"]})
    assert told(asker, asker.begin()) == "accept"
    asker.end()


def test_harness_codex_changes_of_files_are_asked_about_by_their_paths(lab):
    asker = standing_in(lab, "codex", CODEX, """
        say(method="item/started", params={"item": {"type": "fileChange", "id": "f1", "changes": [{"path": "deploy/x"}]}})
        end(ask("item/fileChange/requestApproval", itemId="f1")["result"]["decision"])
    """, None, {"paths": ["deploy"]})
    task = asker.begin()
    assert "deploy/x" in question(task)["what"]
    assert told(asker, asker.answer(task, "never")) == "decline"
    asker.end()


def test_harness_codex_has_its_questions_answered_in_its_form(lab):
    asker = standing_in(lab, "codex", CODEX, """
        end(ask("item/tool/requestUserInput", questions=[
            {"id": "a", "question": "Colour?", "options": [{"label": "Red"}, {"label": "Blue"}]}, {"id": "b", "question": "Why?"}])["result"])
    """, {"approval_policy": "on-request"})
    task = asker.say(asker.begin(), "1")
    assert told(asker, asker.say(task, "so")) == {"answers": {"a": {"answers": ["Red"]}, "b": {"answers": ["so"]}}}
    asker.end()


@pytest.mark.parametrize("method", ["item/permissions/requestApproval", "something/new", "mcpServer/elicitation/request"])
def test_harness_codex_is_never_left_without_an_answer(lab, method):
    asker = standing_in(lab, "codex", CODEX, f"end(ask({method!r}, serverName='other'))", {"approval_policy": "untrusted"})
    answer = told(asker, asker.begin())
    assert answer.get("error") or answer["result"] == {"action": "decline"}
    asker.end()


def test_harness_codex_a_policy_that_is_none_is_refused(lab):
    asker = standing_in(lab, "codex", CODEX, "pass", {"approval_policy": "sometimes"})
    task = asker.begin()
    assert state(task) == "failed" and "approval_policy" in str(task)
    asker.end()
