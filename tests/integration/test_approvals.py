# SPDX-License-Identifier: Apache-2.0
#
# Approvals: what is asked before it is done, who answers, and that no way leads around the question.

import os
import re
import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.support.approvals import SHELLS, Asker, question, state
from tests.support.commands import call
from tests.support.delegation import Plane, delegate, turn
from tests.support.door_client import SLEEPER
from tests.support.harness import harness_project
from tests.support.mcp_client import StdioClient
from tests.support.polling import eventually
from tests.support.spawn import publish_agent
from tests.support.terminal import Terminal

TOUCH = {"commands": ["touch"]}


@pytest.fixture
def asker(lab):
    made = []

    def make(calls, approvals, start=True, **more):
        one = Asker(lab, calls, approvals, **more)
        if start:
            made.append(one.start())
        return one
    yield make
    for one in made:
        one.end()


def files(action="write", path="deploy/x", **more):
    given = {"action": action, "path": path, "content": "new", **more}
    return {"tool_calls": [{"name": "files", "input": {key: value for key, value in given.items() if value is not None}}]}


# --- each kind -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind, approvals, step", [
    ("tools", {"tools": ["files"]}, files()),
    ("tools", {"tools": ["std/files"]}, files()),
    ("tools", {"tools": ["*"]}, files()),
    ("commands", TOUCH, call("touch", "made")),
    ("commands", {"commands": ["git push"]}, call("git", "-C . push origin main")),
    ("paths", {"paths": ["deploy"]}, files()),
    ("paths", {"paths": ["deploy"]}, "mkdir -p deploy"),
])
def test_approvals_of_each_kind_ask_first_and_run_nothing_meanwhile(asker, kind, approvals, step):
    one = asker([step], approvals)
    task = one.begin()
    asked = question(task)
    assert asked["kind"] == "approval" and asked["rules"][0]["kind"] == kind and asked["rules"][0]["unseen"] is False
    assert asked["answers"] == ["once", "session", "no", "never"]
    assert approvals[kind][0] in task["status"]["message"]["parts"][0]["text"]
    assert not (one.work / "deploy").exists() and not (one.work / "made").exists()
    assert one.trace.types.count("approval_requested") == 1 and "tool_call" not in one.trace.types
    task = one.answer(task, "no")
    assert state(task) == "completed"
    assert not (one.work / "deploy").exists() and not (one.work / "made").exists()
    assert "was not approved: the answer was no. Nothing ran." in one.results[0]
    assert one.trace.one("approval_answered")["answer"] == "no"
    assert one.trace.one("approval_answered")["by"] is None  # a public door knows nobody


def test_approvals_leave_alone_what_no_rule_names(asker):
    one = asker(["cat /dev/null | cat; mkdir other", files(path="elsewhere.txt"), files("read", "deploy/x")],
                {"commands": ["git push", "touch"], "paths": ["deploy"], "tools": ["delegate-task"]})
    assert state(one.begin()) == "completed"
    assert "approval_requested" not in one.trace.types


# --- each answer -----------------------------------------------------------------------------------------------------


def test_approvals_once_runs_it_and_asks_again(asker):
    one = asker(["touch a", "touch b"], TOUCH)
    task = one.answer(one.begin(), "once")
    assert (one.work / "a").exists() and not (one.work / "b").exists()
    assert state(one.answer(task, "once")) == "completed"
    assert (one.work / "b").exists()
    assert [line["answer"] for line in one.trace.all("approval_answered")] == ["once", "once"]


def test_approvals_for_the_session_and_never_are_remembered(asker):
    one = asker(["touch a", "touch b", "rm a", "rm b"], {"commands": ["touch", "rm"]})
    task = one.answer(one.begin(), "session")
    assert (one.work / "b").exists()
    assert state(one.answer(task, "never")) == "completed"
    assert (one.work / "a").exists() and (one.work / "b").exists()
    applied = one.trace.all("approval_applied")
    assert [line["answer"] for line in applied] == ["session", "never"]
    asked = one.trace.all("approval_requested")
    assert [line["question_id"] for line in applied] == [line["question_id"] for line in asked] and len(asked) == 2
    assert state(one.begin()) == "completed" and len(one.trace.all("approval_requested")) == 2


@pytest.mark.parametrize("word, is_allowed", [("Yes.", True), ("y", True), ("always", True), ("once", True), ("No!", False), ("n", False),
                                              ("never", False)])
def test_approvals_take_a_word_for_an_answer(lab, asker, word, is_allowed):
    one = asker(["touch a"], TOUCH)
    task = one.begin()
    lab.mur("answer", "@1", word).ok()
    assert state(one.settled(task["id"])) == "completed"
    assert (one.work / "a").exists() == is_allowed


def test_approvals_take_no_other_text_for_an_answer(lab, asker):
    one = asker(["touch a"], TOUCH)
    task = one.begin()
    result = lab.mur("answer", "@1", "yes, but only the second").failed("E-IO-003")
    assert "the answer is one of: once, session, no, never" in result.stderr
    assert state(one.settled(task["id"])) == "input_required" and not (one.work / "a").exists()
    one.answer(task, "no")


# --- time ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("default, is_allowed", [(None, False), ("refuse", False), ("allow", True)])
def test_approvals_that_nobody_answers_are_refused_in_time(asker, default, is_allowed):
    one = asker(["touch a"], {**TOUCH, "timeout_secs": 1, **({"on_timeout": default} if default else {})})
    task = one.begin()
    eventually(lambda: one.door.result("GetTask", {"id": task["id"]})["status"]["state"] == "TASK_STATE_COMPLETED", within_s=30)
    assert (one.work / "a").exists() == is_allowed
    line = one.trace.one("approval_answered")
    assert (line["answer"], line["is_allowed"], line["by"]) == ("timeout", is_allowed, None) and line["waited_ms"] >= 1000


def test_approvals_of_a_cancelled_task_are_refused(asker):
    one = asker(["touch a"], TOUCH)
    task = one.begin()
    one.door.result("CancelTask", {"id": task["id"]})
    eventually(lambda: "approval_answered" in one.trace.types)
    assert one.trace.one("approval_answered")["answer"] == "canceled" and not (one.work / "a").exists()
    assert one.trace.one("task_canceled")["phase"] == "input"


# --- the process dies ------------------------------------------------------------------------------------------------


def test_approvals_are_kept_when_the_process_dies_and_asked_again(lab, asker):
    one = asker(["touch a"], TOUCH, start=False, lifecycle={"conversation": "threaded"}).start("--context", "talk")
    task = one.begin()
    old = question(task)
    os.kill(one.running.pid, signal.SIGKILL)
    one.running.result(30)
    session = one.running.session_id
    assert not (one.work / "a").exists()
    line = one.trace.one("approval_requested")
    assert line["question_id"] == old["question_id"] and "approval_answered" not in one.trace.types
    shown = one.project.mur("trace", "show", session, "--workdir", one.work).ok().stdout
    assert "was open when the session ended" in shown
    one.start("--context", "talk")
    task = one.begin()
    assert question(task)["question_id"] != old["question_id"]
    stale = {"message": {"messageId": "late", "role": "ROLE_USER", "taskId": task["id"],
                         "parts": [{"data": {"question_id": old["question_id"], "answer": "once"}}]}}
    refusal = one.door.error("SendMessage", stale)
    assert refusal["code"] == -32602 and "is not the question that is open" in refusal["message"]
    assert state(one.answer(task, "once")) == "completed" and (one.work / "a").exists()
    one.end()


# --- who answers -----------------------------------------------------------------------------------------------------


def test_approvals_first_answer_wins_and_the_second_is_told(asker):
    one = asker(["touch a", "sleep 1"], TOUCH, shell=[*SHELLS, "sleep"])
    task = one.begin()
    sent = {"message": {"role": "ROLE_USER", "taskId": task["id"]}}
    data = {"question_id": question(task)["question_id"], "answer": "no"}
    one.answer(task, "once")
    refusal = one.door.error("SendMessage", {"message": {**sent["message"], "messageId": "two", "parts": [{"data": data}]}})
    assert "its question was answered already: once, by a caller" in refusal["message"]
    assert (one.work / "a").exists()


def test_approvals_do_not_take_an_old_answer_again(asker):
    one = asker(["touch a", "touch b"], TOUCH)
    first = one.begin()
    task = one.answer(first, "once", message_id="once-and-no-more")
    replayed = {"messageId": "once-and-no-more", "role": "ROLE_USER", "taskId": task["id"]}
    for parts in ([{"data": {"question_id": question(first)["question_id"], "answer": "once"}}], [{"text": "once"}], [{"text": "yes"}]):
        refusal = one.door.error("SendMessage", {"message": {**replayed, "parts": parts}})
        assert refusal["code"] == -32602
    assert not (one.work / "b").exists()
    one.answer(task, "no")


def test_approvals_record_which_credential_answered(lab, asker):
    one = asker(["touch a"], TOUCH, network={"authentication": {"scheme": "bearer", "credentials": {"reviewer": {"scopes": ["SendMessage", "GetTask"]}}}},
                start=False)
    one.start()
    token = lab.mur("token", "--credential", "reviewer").ok().stdout.strip()
    one.door.token = token
    task = one.begin()
    assert state(one.answer(task, "once")) == "completed"
    assert one.trace.one("approval_answered")["by"] == "reviewer"
    one.end()


# --- order -----------------------------------------------------------------------------------------------------------


def test_approvals_come_after_a_hook_that_refuses(asker):
    one = asker(["touch a"], TOUCH, tools=({"name": "std/hook-deny", "version": "0.1.0", "runtime": "hook",
                                            "config": {"rules": [{"script": "*touch*", "reason": "no scripts"}]}},))
    assert state(one.begin()) == "completed"
    assert "call_denied" in one.trace.types and "approval_requested" not in one.trace.types


def test_approvals_of_calls_side_by_side_with_one_refused(asker):
    step = {"tool_calls": [{"name": "touch", "input": {"command": name}} for name in ("a", "b", "c")]}
    one = asker([step], TOUCH)
    task = one.begin()
    for answer in ("once", "no", "once"):
        task = one.answer(task, answer)
    assert state(task) == "completed"
    assert sorted(path.name for path in one.work.iterdir() if len(path.name) == 1) == ["a", "c"]


# --- ways around -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", [
    "sh -c 'touch a'", "bash -c \"touch a\"", "command touch a", "exec touch a", "(touch a)", "true && touch a", "x=touch; $x a",
    "t\"ou\"ch a", "$(echo touch) a", "echo `touch a`", "echo \"$(touch a)\"", "eval 'touch a'", "/usr/bin/touch a", "/usr/bin/tou?h a",
    "sh <<'END'\ntouch a\nEND", "echo touch a | sh", "f() { touch a; }; f", "PATH=/usr/bin touch a", "ln -s /usr/bin/touch t; ./t a",
    "{ touch a; }", "if true; then touch a; fi", "for f in a; do touch $f; done", "printf 'touch a' > s; sh s", ". ./s", "touch\\\n a",
    "alias q=touch\nq a", "sh -c 'eval \"$0 a\"' touch", "cat <<END\n$(touch a)\nEND", "env touch a", "xargs touch <<< a", "$'touch' a",
    "{touch,a}", "trap 'touch a' EXIT", "cd . && touch a", "case x in x) touch a;; esac", "git -c alias.t='!touch a' t",
    "env -i X=1 touch a", "find . -exec touch a \\;", "timeout 9 touch a", "nice touch a", "setsid touch a", "touch${IFS}a",
    "echo dG91Y2ggYQ== | base64 -d | sh", "true & touch a", "true\ntouch a", "echo `# x`; touch a", "echo `echo \\`touch a\\``",
    "echo ${x:-'}'} ; touch a ; : ''", "echo a\r#; touch a", "cat <<E\n\tE\necho '\nE\ntouch a # '", "bash -c 'for x do touch $x; done' a a",
    "echo x &>b touch a", "split --filter='touch a' x", "for PATH in .; do cat; done", "sort --co=./t x", "unset PATH; cat",
])
def test_approvals_of_a_command_hold_for_every_spelling(asker, script):
    one = asker([script], TOUCH)
    task = one.begin()
    assert question(task)["rules"][0]["rule"] == "touch"
    assert not (one.work / "a").exists()
    one.answer(task, "no")
    assert not (one.work / "a").exists()


@pytest.mark.parametrize("command", ["-c alias.p=push p", "p", "--exec-path=. push", "--config-env=a=b p"])
def test_approvals_of_a_word_hold_for_its_aliases(asker, command):
    one = asker([call("git", command)], {"commands": ["git push"]})
    assert question(one.begin())["rules"][0]["rule"] == "git push"


@pytest.mark.parametrize("script", [
    "echo x > deploy/a", "cat x >> ./deploy/a", "cp x deploy", "touch deploy/a", "rm -r deploy", "rm -rf .", "cd deploy; touch a",
    "d=deploy; touch $d/a", "touch dep*/a", "touch link/a", "cat x > hard", "tee deploy/a", "mv deploy other", "ln -f x deploy/a",
    "sh -c 'touch deploy/a'", "cp x /../..$PWD/deploy/a", "git init deploy", "mkdir s; ln -s ../deploy s/l; echo x > s/l/a",
    "for i in 1 2; do echo x > a; cd deploy; done",
])
def test_approvals_of_a_path_hold_for_every_way_to_write(asker, script):
    one = asker([script], {"paths": ["deploy"]}, shell=[*SHELLS, "mv"], start=False)
    (one.work / "deploy").mkdir()
    (one.work / "deploy/kept").write_text("kept")
    (one.work / "link").symlink_to("deploy")
    os.link(one.work / "deploy/kept", one.work / "hard")
    (one.work / "x").write_text("x")
    one.start()
    task = one.begin()
    assert question(task)["rules"][0]["rule"] == "deploy"
    one.answer(task, "no")
    assert [path.name for path in (one.work / "deploy").iterdir()] == ["kept"] and (one.work / "hard").read_text() == "kept"
    one.end()


@pytest.mark.parametrize("step", [files("edit", "deploy/kept", old="kept", new="x"), files(path="link/a"), files(path="hard"),
                                  files(path="x/../deploy/a")])
def test_approvals_of_a_path_hold_for_tools(asker, step):
    one = asker([step], {"paths": ["deploy"]}, start=False)
    for name in ("deploy", "x"):
        (one.work / name).mkdir()
    (one.work / "deploy/kept").write_text("kept")
    (one.work / "link").symlink_to("deploy")
    os.link(one.work / "deploy/kept", one.work / "hard")
    one.start()
    assert question(one.begin())["rules"][0]["rule"] == "deploy"
    one.end()


def test_approvals_hold_for_the_steps_of_a_plan_before_any_begins(asker):
    plan = {"id": "p1", "steps": [{"id": "one", "shell": "mkdir made"}, {"id": "two", "shell": "touch a", "on_error": "skip"},
                                  {"id": "three", "shell": "touch b"}]}
    one = asker([{"tool_calls": [{"name": "submit-plan", "input": {"plan": plan}}]}], TOUCH, capabilities={"plan": {"submit": True}})
    task = one.begin()
    assert not (one.work / "made").exists()
    task = one.answer(task, "no")
    assert not (one.work / "made").exists()
    task = one.answer(task, "once")
    assert state(task) == "completed"
    assert (one.work / "made").exists() and (one.work / "b").exists() and not (one.work / "a").exists()


@pytest.mark.parametrize("answer", ["once", "no"])
def test_approvals_hold_for_the_calls_of_a_harness(lab, answer):
    body = 'started()\nkeep("seen", use("files", action="write", path="made", content="x"))\nsay("turn-end", text="done")\n'
    project = harness_project(lab, body, tools=["std/files@0.1.0"], approvals={"tools": ["files"]}, lifecycle=SLEEPER)
    (project / "work").mkdir()
    one = Asker.of(lab, project, project / "work", project.start("--workdir", project / "work"))
    task = one.begin()
    assert question(task)["tool"] == "files" and not (one.work / "made").exists()
    assert state(one.answer(task, answer)) == "completed"
    assert (one.work / "made").exists() == (answer == "once")
    one.end()


def test_approvals_hold_for_mcp_clients_who_cannot_be_asked(lab):
    agent = Asker(lab, [], {"tools": ["files"]}, exports={"mcp": {"tools": ["files"]}}).project
    client = StdioClient(lab, agent.directory)
    result = client.call("files", {"action": "write", "path": "a", "content": "x"})
    assert result["isError"] and "there is nobody here who could be asked" in result["content"][0]["text"]
    client.close()


# --- where people are ------------------------------------------------------------------------------------------------


def test_approvals_are_asked_at_the_terminal_of_run(asker):
    one = asker(["touch a", "touch b"], TOUCH, start=False, lifecycle={"after_task": "exit", "task_acceptance": "single"})
    terminal = Terminal(one.lab, "run", "--workdir", one.work, "--task", "go", cwd=one.project.directory)
    terminal.wait_for(r"once, session, no, never> ")
    assert "touch asks before it is called" not in terminal.text and "touch a" in terminal.text
    assert not (one.work / "a").exists()
    terminal.type("perhaps\n")
    terminal.wait_for(r"the answer is one of: once, session, no, never")
    terminal.type("once\n")
    eventually(lambda: (one.work / "a").exists())
    eventually(lambda: terminal.text.count("once, session, no, never> ") == 3)
    terminal.type("n\n")
    assert terminal.end() == 0
    assert not (one.work / "b").exists()
    (record,) = one.lab.records
    answers = one.lab.session(record.name).trace.all("approval_answered")
    assert [(line["answer"], line["by"]) for line in answers] == [("once", "terminal"), ("no", "terminal")]


def test_approvals_answered_elsewhere_leave_the_terminal_of_run(asker):
    one = asker(["touch a"], TOUCH, start=False, lifecycle={"after_task": "exit", "task_acceptance": "single"})
    terminal = Terminal(one.lab, "run", "--workdir", one.work, "--task", "go", cwd=one.project.directory)
    terminal.wait_for(r"once, session, no, never> ")
    one.lab.mur("answer", "@1", "once").ok()
    assert terminal.end() == 0 and (one.work / "a").exists()


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_approvals_are_asked_in_chat(asker, columns):
    one = asker(["touch a", "touch b"], TOUCH, start=False)
    chat = Terminal(one.lab, "chat", one.project.directory, "--workdir", one.work, columns=columns)
    chat.wait_for(r"^> ")
    chat.type("go\n")
    chat.wait_for(r"once, session, no, never> ")
    chat.type("hm\n")
    chat.wait_for(r"the answer is one of")
    chat.type("yes\n")
    eventually(lambda: (one.work / "a").exists())
    eventually(lambda: chat.text.count("never> ") == 3)
    chat.type("never\n")
    chat.wait_for(r"^  done$")
    chat.type("/quit\n")
    assert chat.end() == 0 and not (one.work / "b").exists()


# --- delegations -----------------------------------------------------------------------------------------------------


GRANTS = {"shell": {"allow": ["sh", "touch"]}}


def publish_toucher(lab, name="toucher", **manifest):
    publish_agent(lab, name, [call("touch", "a"), {"text": "touched"}], capabilities=GRANTS, **manifest)


def delegating(lab, plane, *calls, approvals=None, **more):
    """A running parent that sleeps; as an Asker."""
    capabilities = {**GRANTS, **more.pop("capabilities", {})}
    project = plane.parent(*calls, capabilities=capabilities, **({"approvals": approvals} if approvals else {}),
                           lifecycle=SLEEPER, **more)
    one = Asker.of(lab, project, project / "work", project.start("--workdir", project / "work", env=plane.environment))
    return one


def toucher_made_it(lab):
    return any(path.name == "a" for record in lab.records for path in record.rglob("a"))


@pytest.mark.parametrize("who", ["child", "parent"])
def test_approvals_of_a_child_reach_the_person_at_the_top(lab, who):
    rules = {"commands": ["touch"]}
    publish_toucher(lab, **({"approvals": rules} if who == "child" else {}))
    with Plane(lab, "local/toucher") as plane:
        one = delegating(lab, plane, turn(delegate("toucher")), {"text": "waiting"}, {"text": "all done"},
                         approvals=rules if who == "parent" else None)
        task = one.begin()
        asked = question(task)
        assert asked["capsule"] == "toucher" and asked["tool"] == "touch" and "toucher asks: touch asks" in str(task)
        assert not toucher_made_it(lab)
        task = one.answer(task, "once")
        assert state(task) == "completed" and toucher_made_it(lab)
        line = one.trace.one("approval_answered")
        assert line["answer"] == "once" and line["delegation_id"].startswith("dlg_")
        one.end()


def test_approvals_of_a_grandchild_reach_the_person_at_the_top(lab):
    publish_toucher(lab)
    with Plane(lab, "local/toucher") as plane:
        publish_agent(lab, "middle", [turn(delegate("toucher")), {"text": "waiting"}, {"text": "done"}],
                      capabilities={**GRANTS, "spawn": {"allow": ["local/toucher"]}})
        plane.children.append("local/middle")
        one = delegating(lab, plane, turn(delegate("middle")), {"text": "waiting"}, {"text": "all done"}, approvals={"commands": ["touch"]})
        task = one.begin()
        assert "middle asks: toucher asks: touch asks" in str(task)
        assert state(one.answer(task, "no")) == "completed" and not toucher_made_it(lab)
        one.end()


def test_approvals_of_a_delegated_capsule_and_of_a_step_of_a_plan(lab):
    publish_toucher(lab)
    with Plane(lab, "local/toucher") as plane:
        plan = {"id": "p1", "steps": [{"id": "one", "capsule": "toucher@0.1.0", "input": "go"}]}
        one = delegating(lab, plane, turn(delegate("toucher")), turn({"name": "submit-plan", "input": {"plan": plan}}), {"text": "done"},
                         approvals={"capsules": ["local/toucher"], "commands": ["touch"]}, capabilities={"plan": {"submit": True}})
        task = one.begin()
        assert question(task)["rules"][0] == {"kind": "capsules", "rule": "local/toucher", "unseen": False}
        assert plane.launches == []
        task = one.answer(task, "no")
        assert question(task)["rules"][0]["kind"] == "capsules"
        task = one.answer(task, "once")
        assert question(task)["rules"][0]["kind"] == "commands"
        assert state(one.answer(task, "once")) == "completed" and toucher_made_it(lab)
        assert len(plane.launches) == 1
        one.end()


# --- what is said of them --------------------------------------------------------------------------------------------


def test_approvals_are_printed_by_explain_scope_and_recorded(asker):
    rules = {"tools": ["files"], "commands": ["git push"], "paths": ["deploy"], "timeout_secs": 60}
    one = asker([], rules)
    shown = one.project.run("--explain-scope").ok().stdout
    for line in ("tools: files", "commands: git push", "paths: deploy", "a question waits 60 s, then the answer is no"):
        assert line in shown
    one.begin()
    grants = one.trace.one("session_start")["effective_grants"]
    assert grants["approvals"] == {**rules, "on_timeout": "refuse"}


@pytest.mark.parametrize("approvals, said", [
    ({"comands": ["x"]}, "approvals.comands: unknown key"), ({}, "no rule says what is asked about"),
    ({"commands": ["git 'push"]}, "a quote is not closed"), ({"tools": [" "]}, "a blank entry names nothing"),
    ({"tools": ["x"], "timeout_secs": 0}, "approvals.timeout_secs"), ({"tools": ["x"], "on_timeout": "maybe"}, "approvals.on_timeout"),
])
def test_approvals_that_say_nothing_are_refused(lab, approvals, said):
    agent = lab.agent(steps=[], approvals=approvals)
    assert said in agent.run("--task", "x").failed().stderr


def test_approvals_that_can_ask_about_nothing_are_warned_of(lab):
    rules = {"commands": ["gti push"], "hosts": ["a.example"], "capsules": ["acme/x"], "tools": ["files"]}
    result = lab.agent(steps=[{"text": "done"}], approvals=rules).run("--task", "x").ok()
    for entry in ("approvals.commands: gti push", "approvals.hosts: a.example", "approvals.capsules: acme/x"):
        assert f"W-SEC-035]: {entry} asks about nothing" in result.stderr


@pytest.mark.parametrize("approvals, code", [({"paths": ["../x"]}, "E-CAP-012"), ({"hosts": ["https://a.example/b"]}, "E-CAP-001")])
def test_approvals_of_places_that_are_none_are_refused(lab, approvals, code):
    lab.agent(steps=[], approvals=approvals).run("--task", "x").failed(code)


# --- hosts -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def web():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"the page")

    def log_message(self, *_):
        pass


def test_approvals_of_a_host_keep_it_closed_to_commands(asker, web):
    port = web.rsplit(":", 1)[1]
    hidden = f"printf 'ht''tp://127.0.0.'; printf 'url = http://127.0.0.%s:{port}/\\n' 1 > c; curl -sS -m 5 -K c"
    one = asker([hidden, f"curl -sS -m 5 {web}/", hidden], {"hosts": [web]}, shell=["sh", "curl"],
                capabilities={"network": {"allow": [web]}})
    task = one.begin()
    assert question(task)["rules"][0]["kind"] == "hosts" and web in question(task)["what"]
    refused = one.trace.one("network_refused")
    assert (refused["host"], refused["port"], refused["count"]) == ("127.0.0.1", int(port), 1)
    assert refused["rule"] == "approvals.hosts: 127.0.0.1" and "approve" in refused["remedy"]
    assert state(one.answer(task, "once")) == "completed"
    assert "the page" not in one.results[0] and "the page" in one.results[1] and "the page" not in one.results[2]


@pytest.mark.parametrize("answer, pages", [("once", 1), ("session", 2)])
def test_approvals_of_a_host_keep_it_closed_to_components(asker, web, answer, pages):
    fetch = {"tool_calls": [{"name": "fetch", "input": {"url": f"{web}/"}}]}
    one = asker([fetch, fetch], {"hosts": [web], "timeout_secs": 2}, tools=("std/fetch@0.1.0",), capabilities={"network": {"allow": [web]}})
    task = one.answer(one.begin(), answer)
    eventually(lambda: one.door.result("GetTask", {"id": task["id"]})["status"]["state"] == "TASK_STATE_COMPLETED", within_s=30)
    assert ["the page" in result for result in one.results] == [True, pages == 2]


def test_approvals_are_told_of_where_only_the_answer_is_printed(lab):
    one = Asker(lab, ["touch a"], {**TOUCH, "timeout_secs": 1}, lifecycle={"after_task": "exit", "task_acceptance": "single"})
    result = one.project.mur("run", "--print", "--task", "go", "--workdir", one.work).ok()
    assert result.stdout == "done\n" and "the task asks: sh asks before it is called: touch a" in result.stderr
    assert "mur answer ses_" in result.stderr and not (one.work / "a").exists()


@pytest.mark.parametrize("options", [[], ["--json"], ["--quiet"]])
def test_approvals_into_a_pipe_are_told_of_on_one_line_of_stderr(lab, options):
    silent = Asker(lab, ["true\ntrue"], None, lifecycle={"after_task": "exit", "task_acceptance": "single"})
    one = Asker(lab, ["true\ntouch a"], {**TOUCH, "timeout_secs": 1}, name="other", lifecycle={"after_task": "exit", "task_acceptance": "single"})
    plain, result = (each.project.mur("run", *options, "--task", "go", "--workdir", each.work).ok() for each in (silent, one))
    (line,) = [line for line in result.stderr.splitlines() if "the task asks" in line]
    assert "the task asks: sh asks before it is called: true touch a" in line
    assert re.search(r"\(answer with: mur answer ses_[0-9a-f]{32} once\|session\|no\|never\)$", line)
    assert "the task asks" not in plain.stderr and not (one.work / "a").exists()
    masked = [re.sub(r"[0-9a-f]{32}|localhost:\d+|127\.0\.0\.1:\d+|asker|other", "X", each.stdout) for each in (plain, result)]
    assert masked[0] == masked[1] or options == ["--json"] and len(result.stdout.splitlines()) == 1


def test_approvals_into_a_pipe_are_answered_by_the_command_that_is_told(lab):
    one = Asker(lab, ["touch a"], TOUCH, lifecycle={"after_task": "exit", "task_acceptance": "single"})
    running = one.project.start("--task", "go", "--workdir", one.work)
    found = eventually(lambda: re.search(r"mur answer (ses_[0-9a-f]{32}) (once)\|", running.stderr), within_s=60)
    lab.mur("answer", *found.groups()).ok()
    running.result(60).ok()
    assert (one.work / "a").exists()


def test_read_only_holds_for_an_edit_of_the_bundled_tool(lab):
    one = Asker(lab, [files("edit", "tests/a", old="keep", new="changed", content=None)], None, capabilities={"filesystem": {"read_only": ["tests"]}})
    (one.work / "tests").mkdir()
    (one.work / "tests/a").write_text("keep")
    one.start()
    one.begin()
    one.end()
    assert (one.work / "tests/a").read_text() == "keep"
    assert one.trace.one("protected_path_denied")["path"] == "tests/a"
