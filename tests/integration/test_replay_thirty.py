# SPDX-License-Identifier: Apache-2.0
#
# Thirty recorded sessions of every kind replay as the same, and thirty mutations are each found at the right turn, part and
# cause.

import signal
import threading

import pytest

from tests.integration.test_hooks import FULL as BROAD, LITTLE, agent_with_window, summarizer
from tests.integration.test_replay_harness import recorded as harness_recorded
from tests.integration.test_replay_rerun import PROBE, Pieces, do, probing, tape
from tests.support.approvals import Asker
from tests.support.commands import call as shell_call
from tests.support.delegation import Plane, delegate, reads, turn
from tests.support.door_client import SLEEPER, Door
from tests.support.fixtures import own_component
from tests.support.formation import BEARER, CALLS, SERVES, Team
from tests.support.hooks import Hook
from tests.support.model_server import answer, call, fault
from tests.support.polling import eventually
from tests.support.replays import FULL, edit_manifest, put_blob, replay
from tests.support.spawn import publish_agent

from http.server import ThreadingHTTPServer


DENY = {"name": "std/hook-deny", "version": "0.1.0", "runtime": "hook",
        "config": {"rules": [{"tool": "tool-probe", "input": {"do": "say one*"}, "reason": "by hand"}]}}


def tool(lab, name="tool-probe"):
    return lab.publish(name, own_component("tool-probe"), **PROBE)


def ran(lab, project, *arguments, **how):
    (project / "work").mkdir(exist_ok=True)
    result = project.run("--task", "go", "--workdir", project / "work", *arguments, **how)
    return project, lab.session(result)


def scripted(*steps, **more):
    return lambda lab: ran(lab, probing(lab, list(steps), **more))


def hooked(on, *steps, **more):
    def record(lab):
        project = probing(lab, list(steps), context={"max_tokens": 50000}, **more)
        hook = Hook(lab, "watch", on=on)
        edit_manifest(project, lambda m: m["artifacts"].append(hook.entry))
        return ran(lab, project)
    return record


def provided(*replies, retry=None):
    def record(lab):
        model = lab.model_server()
        project = lab.agent(driver="std/driver-anthropic@0.1.0", gateway={"endpoint": model.url, "api_key": "sk-x"},
                            inference={"model": "claude-test", **({"retry": retry} if retry else {})}, trace=FULL,
                            context={"max_tokens": 100000}, tools=[tool(lab)])
        model.script(*replies)
        project, session = ran(lab, project)
        model.close()
        return project, session
    return record


def commanded(*steps, shell=("bash", "cat", "date", "sleep"), **more):
    def record(lab):
        project = lab.agent(steps=[*steps, {"text": "done"}], trace=FULL, capabilities={"shell": {"allow": list(shell)}}, **more)
        return ran(lab, project)
    return record


def served(record):
    """A session that sleeps, whatever is done to it from its door, and is stopped."""
    def run(lab):
        project = probing(lab, [do("say hello"), do("ask who?")] if record is replied else [do("say hello")],
                          lifecycle={**SLEEPER, "conversation": "threaded"})
        (project / "work").mkdir()
        running = project.start("--workdir", project / "work")
        record(Door(running))
        running.signal(signal.SIGTERM)
        running.result(30)
        return project, lab.session(running)
    return run


def replied(door):
    task = door.send("go")
    door.send("me", taskId=task["id"])
    door.wait_for(task["id"], "COMPLETED")


def twice(door):
    for text in ("one", "two"):
        task = door.send(text, contextId="ctx-a")
        door.wait_for(task["id"], "COMPLETED")


def cancelled(lab):
    model = lab.model_server()
    project = lab.agent(driver="std/driver-anthropic@0.1.0", gateway={"endpoint": model.url, "api_key": "sk-x"},
                        inference={"model": "claude-test"}, trace=FULL, lifecycle=SLEEPER)
    (project / "work").mkdir()
    gate = threading.Event()
    model.script(answer("late", hold=gate))
    running = project.start("--workdir", project / "work")
    door = Door(running)
    task = door.send_at_once("go")["id"]
    eventually(lambda: model.requests, 60)
    door.call("CancelTask", {"id": task})
    eventually(lambda: lab.session(running).trace.all("task_end"), 60)
    running.signal(signal.SIGTERM)
    running.result(30)
    gate.set()
    return project, lab.session(running)


def delegated(lab):
    publish_agent(lab, "child-agent", [{"text": "hello from the child"}])
    with Plane(lab, "local/child-agent") as plane:
        project = plane.parent(turn(delegate("child-agent")), {"text": "waiting"}, reads(), trace=FULL)
        running = plane.start(project)
        running.result(90)
    return project, lab.session(running)


def approved(lab):
    one = Asker(lab, ["touch a", "touch b", "touch c"], {"commands": ["touch"]}, trace=FULL).start()
    task = one.answer(one.begin(), "no")
    one.answer(task, "session")
    one.end()
    return one.project, lab.session(one.running)


def planned(lab):
    steps = [{"id": "a", "command": "echo one"}, {"id": "b", "command": "echo two", "depends_on": ["a"]}]
    project = lab.agent(steps=[{"tool_calls": [{"name": "submit-plan", "input": {"plan": {"id": "p1", "steps": steps}}}]}, {"text": "done"}],
                        trace=FULL, capabilities={"plan": {"submit": True}, "shell": {"allow": ["sh", "echo"]}})
    return ran(lab, project)


def compacted(lab):
    model = lab.model_server()
    model.script(call("tool-probe", {"do": "say a"}, usage=BROAD), answer("in short", usage=LITTLE), answer("done", usage=LITTLE))
    hook = summarizer(lab, [{"role": "user", "content": "so far: {{asked}}"}], ask="sum it up")
    project = agent_with_window(lab, model, [hook], tools=[tool(lab)], trace=FULL)
    project, session = ran(lab, project)
    assert "compaction" in session.trace.types
    model.close()
    return project, session


def member(lab):
    asked = {"name": "call-member", "input": {"member": "coder", "task": "write it"}}
    team = Team(lab, "lead", "coder", reachability=[{"from": "lead", "to": ["coder"]}])
    team.member("lead", [{"tool_calls": [asked]}, {"text": "I wait"}, {"text": "done"}], **BEARER, **CALLS, trace=FULL)
    team.member("coder", [{"text": "the code"}], **BEARER, **SERVES, trace=FULL)
    team.run("--task", "go").ok()
    return team.project, str(team.sessions()["lead"].path)


def refused(lab):
    project = probing(lab, [do("say one a"), do("say b")])
    edit_manifest(project, lambda m: m["artifacts"].append(DENY))
    return ran(lab, project)


def fetched(lab):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pieces)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    host = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        return ran(lab, probing(lab, [do(f"fetch {host}/a", f"post {host}/b text")], capabilities={"network": {"allow": [host]}}))
    finally:
        server.shutdown()
        server.server_close()


def timed_out(lab):
    project, session = ran(lab, probing(lab, [do("say hello"), {"text": "late", "delay_ms": 60000}]), "--deadline", "5")
    assert session.trace.one("session_end")["exit_status"] == "deadline_reached"
    return project, session


def of_a_harness(lab):
    project, session = harness_recorded(lab)
    assert session.trace.all("harness_start") and session.trace.all("tool_call")
    return project, session


SESSIONS = {
    "an answer": scripted(),
    "one call": scripted(do("say a")),
    "six calls": scripted(*[do(f"say {n}") for n in range(6)]),
    "two calls in a turn": scripted({"tool_calls": do("say a")["tool_calls"] + do("say b")["tool_calls"]}),
    "a tool that fails": scripted(do("fail on purpose")),
    "a tool that traps": scripted(do("trap")),
    "a tool that is not there": scripted({"tool_calls": [{"name": "nothing", "input": {}}]}),
    "files": scripted(do("mkdir d", "write d/x 1"), do("append d/x 2", "read d/x"), do("rename d/x d/y", "list d"), do("remove d/y")),
    "clock and random numbers": scripted(do("time", "random 32", "time")),
    "sleep": scripted(do("sleep 50", "time")),
    "variables and folder": scripted(do("env", "order .")),
    "fetched": fetched,
    "refused fetch": scripted(do("fetch http://nowhere.example/")),
    "long result": scripted(do("big 100000")),
    "continuations": scripted({**do("say a"), "continuation": True}, {**do("say b"), "continuation": True}),
    "max turns": scripted(*[do("say again")] * 6, inference={"max_turns": 3}),
    "a seed": hooked({"on-task-start": {"answer": "seed-context", "clock": True,
                                        "messages": [{"role": "user", "content": "It is {{asked}}."}]}}, do("say a")),
    "a reopened task": hooked({"on-task-end": {"answer": "reopen-task", "text": "Once more.", "times": 1}}, do("say a")),
    "a denied call": refused,
    "a hook that looks on": hooked({"on-inference": {"answer": "none"}}, do("say a")),
    "an answer of a provider": provided(call("tool-probe", {"do": "say a"}), answer("done")),
    "retries": provided(fault(500), fault(529), answer("at last"), retry={"initial_delay_ms": 10}),
    "an end without an answer": provided(*[fault(400)]),
    "a command": commanded(shell_call("bash", "echo one > a; cat a")),
    "a command that fails": commanded(shell_call("bash", "exit 3")),
    "a command in the background": commanded(shell_call("bash", "sleep 20"), lifecycle={"shell_grace_secs": 1}),
    "a plan": planned,
    "a delegation": delegated,
    "a reply": served(replied),
    "two tasks": served(twice),
    "a cancelled task": cancelled,
    "a deadline": timed_out,
    "a harness": of_a_harness,
    "approvals": approved,
    "compaction": compacted,
    "a member call": member,
}
SERVED_ONLY = {"a harness"}  # its program is not started


@pytest.mark.parametrize("name", SESSIONS)
def test_replay_thirty_sessions_replay_as_the_same(lab, name):
    project, session = SESSIONS[name](lab)

    for how in ("recorded",) if name in SERVED_ONLY else ("recorded", "rerun"):
        report = replay(project, "--workdir", project / "work", "--tools", how, expect="same", session=session)
        assert report["first"] is None and report["live_calls"] == 0 and report["network_attempts"] == 0, how


# --- mutations -------------------------------------------------------------------------------------------------------


def base(lab):
    project = probing(lab, [do("say one"), do("read notes", "time"), do("say three")], capabilities={"env": {"allow": ["PLACE"]}},
                      inference={"system_prompt": "Be exact."}, context={"max_tokens": 50000})
    hook = Hook(lab, "watch", on={"on-task-start": {"answer": "seed-context",
                                                    "messages": [{"role": "user", "content": "Known before."}]}})
    edit_manifest(project, lambda m: m["artifacts"].append(hook.entry))
    (project / "work").mkdir()
    (project / "work/notes").write_text("as it was")
    return ran(lab, project, env={"PLACE": "berlin"})


def manifest(change):
    return lambda lab, project, session: edit_manifest(project, change)


def prompt(text):
    return manifest(lambda m: m["inference"].update(system_prompt=text))


def inference(**members):
    return manifest(lambda m: m["inference"].update(members))


def seed(text):
    return manifest(lambda m: m["artifacts"][-1]["config"]["on"]["on-task-start"]["messages"][0].update(content=text))


def no_hook(lab, project, session):
    edit_manifest(project, lambda m: m["artifacts"].pop())


def no_tool(lab, project, session):
    edit_manifest(project, lambda m: m["artifacts"].pop(1))


def another_tool(lab, project, session):
    lab.publish("second", own_component("echo"), description="another", input_schema={"type": "object"})
    edit_manifest(project, lambda m: m["artifacts"].insert(2, {"name": "local/second", "version": "0.1.0", "runtime": "tool"}))


def republished(**how):
    def mutate(lab, project, session):
        import shutil
        wasm = own_component("tool-probe").read_bytes()
        if "old" in how:
            assert how["old"] in wasm
            wasm = wasm.replace(how.pop("old"), how.pop("new"))
        shutil.rmtree(lab.directory / "packages/tool-probe-0.1.0")
        shutil.rmtree(lab.murmur_home / "artifacts/local/tool-probe/0.1.0")
        path = lab.directory / "tool-probe.wasm"
        path.write_bytes(wasm)
        lab.publish("tool-probe", path, **{**PROBE, **how})
    return mutate


def other_code(old, new):
    return lambda lab, project, session: republished(old=old, new=new)(lab, project, session)


def other_driver(lab, project, session):
    edit_manifest(project, lambda m: m["inference"]["driver"]["config"].update(extra=True))


def denied(lab, project, session):
    edit_manifest(project, lambda m: m["artifacts"].append(DENY))


def record_lines(change):
    """Rewrites the record's calls: what the session was given is another."""
    def mutate(lab, project, session):
        import json
        path = session.records / "trace.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        change([line for line in lines if line["event_type"] == "tool_call"])
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return mutate


def swap(calls):
    calls[0]["input"], calls[2]["input"] = calls[2]["input"], calls[0]["input"]


def tape_lines(change):
    """Rewrites the tape, which is one of a session that was killed then."""
    def mutate(lab, project, session):
        path = session.records / "replay.jsonl"
        path.write_text("".join(change(line) for line in path.read_text().splitlines(keepends=True) if '"kind":"end"' not in line))
    return mutate


def other_notes(lab, project, session):
    tree = next(line for line in tape(session) if line["kind"] == "tree")
    listing = (session.records / "blobs" / tree["sha256"]).read_text()
    import hashlib
    old = hashlib.sha256(b"as it was").hexdigest()
    changed = put_blob(session, listing.replace(old, put_blob(session, b"as it is!")).encode())
    tape_lines(lambda line: line.replace(tree["sha256"], changed))(lab, project, session)


MUTATIONS = {
    "first byte of the prompt": (prompt("Xe exact."), "recorded", 0, "system", "prompt"),
    "last byte of the prompt": (prompt("Be exact!"), "recorded", 0, "system", "prompt"),
    "a longer prompt": (prompt("Be exact. Always."), "recorded", 0, "system", "prompt"),
    "no prompt": (manifest(lambda m: m["inference"].pop("system_prompt")), "recorded", 0, "system", "prompt"),
    "max tokens": (inference(max_tokens=1025), "recorded", 0, "request", "manifest"),
    "another model": (inference(model="scripted-2"), "recorded", 0, "request", "manifest"),
    "configuration of the driver": (other_driver, "recorded", 0, "request", "manifest"),
    "a byte of a seed": (seed("Known beforE."), "recorded", 0, "message", "manifest"),
    "a longer seed": (seed("Known before. And more."), "recorded", 0, "message", "manifest"),
    "a hook less": (no_hook, "recorded", 0, "message", "watch"),
    "a hook that denies": (denied, "recorded", 1, "message", "hook std/hook-deny was not there then"),
    "a tool less": (no_tool, "recorded", 0, "system", "artifact local/tool-probe"),
    "a tool more": (another_tool, "recorded", 0, "system", "artifact local/second"),
    "a description": (republished(description="other"), "recorded", 0, "tools", "artifact local/tool-probe: digest"),
    "a byte of a schema": (republished(input_schema={"type": "object", "properties": {"dO": {"type": "string"}}}), "recorded", 0,
                           "tools", "artifact local/tool-probe: digest"),
    "a required property": (republished(input_schema={**PROBE["input_schema"], "required": ["do"]}), "recorded", 0, "tools",
                            "artifact local/tool-probe: digest"),
    "a word of a tool's code": (other_code(b"time: %lld", b"tIme: %lld"), "rerun", 1, "tool_result", "artifact local/tool-probe: digest"),
    "a format of a tool's code": (other_code(b".%09ld %lld", b",%09ld %lld"), "rerun", 1, "tool_result",
                                  "artifact local/tool-probe: digest"),
    "the first result": (record_lines(lambda calls: calls[0].update(output=calls[0]["output"].replace("one", "ONE"))), "recorded", 1,
                         "message", "result of turn 0 call 0"),
    "the last result": (record_lines(lambda calls: calls[2].update(output=calls[2]["output"].replace("three", "tree"))), "recorded", 3,
                        "message", "result of turn 2 call 0"),
    "an empty result": (record_lines(lambda calls: calls[1].update(output="")), "recorded", 2, "message", "result of turn 1 call 0"),
    "a status": (record_lines(lambda calls: calls[0].update(status="error")), "recorded", 1, "message", "result of turn 0 call 0"),
    "an input": (record_lines(lambda calls: calls[1]["input"].update(do="other")), "recorded", 1, "tool_input", "answer of turn 1"),
    "a name": (record_lines(lambda calls: calls[1].update(tool_name="other")), "recorded", 1, "call", "answer of turn 1"),
    "the order of calls": (record_lines(swap), "recorded", 0, "tool_input", "answer of turn 0"),
    "a result that is compared": (record_lines(lambda calls: calls[0].update(output=calls[0]["output"].replace("one", "on"))), "rerun", 0,
                                  "tool_result", ""),
    "a file it began with": (other_notes, "rerun", 1, "tool_result", ""),
    "a clock": (tape_lines(lambda line: line if '"kind":"guest"' not in line or '"0/1/' not in line
                           else line.replace('"clock":"77', '"clock":"77ff')), "rerun", 1, "tool_result", ""),
    "a prompt of the command line": (None, "recorded", 0, "system", "prompt"),
    "another manifest": (None, "recorded", 0, "system", "prompt"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_replay_thirty_mutations_are_found_where_they_are(lab, name):
    mutate, how, at, part, cause = MUTATIONS[name]
    project, session = base(lab)
    arguments = []
    if name == "a prompt of the command line":
        arguments = ["--with-system-prompt", "Be quick."]
    elif name == "another manifest":
        (project / "other.yaml").write_text((project / "murmur.yaml").read_text().replace("Be exact.", "Be brief."))
        arguments = ["--with-manifest", project / "other.yaml"]
    else:
        mutate(lab, project, session)

    report = replay(project, "--workdir", project / "work", "--tools", how, *arguments, session=session)

    first = report["first"]
    assert report["verdict"] == "diverged" and (first["turn"], first["part"]) == (at, part), first
    assert cause in first["cause"], first
