# SPDX-License-Identifier: Apache-2.0
#
# Hooks: what they are told, what they may answer, and what happens when they fail.

import json
import time

import pytest

from tests.support.fixtures import own_component
from tests.support.hooks import Hook
from tests.support.lab import SLOWER
from tests.support.model_server import answer, call
from tests.support.packages import skill_package


def echo_tool(lab):
    return lab.publish("echo", own_component("echo"), input_schema={"type": "object"})


def ask_shell(name, command):
    return {"tool_calls": [{"name": name, "input": {"command": command}}]}


# --- observation -----------------------------------------------------------------------------------------------------


def test_hooks_an_unbound_hook_is_told_of_every_event_of_a_session_in_order(lab):
    hook = Hook(lab)
    project = lab.agent(tools=[echo_tool(lab), hook.entry], steps=[
        {"tool_calls": [{"name": "echo", "input": {"n": 1}}]}, {"text": "done"}])

    session = lab.session(project.run("--task", "do X").ok())

    events = hook.events(session)
    assert [event["event"] for event in events][1:] == [
        "on-session-start", "on-task-start", "on-inference", "on-tool-call", "on-inference", "on-task-end",
        "on-session-end"]
    start, task, first, tool, last, end, over = events[1:]
    assert (start["capsule_name"], start["session_id"], start["model"]) == ("agent", session.id, "scripted")
    assert (task["source"], task["input_bytes"]) == ("task_md", 4)
    assert (first["turn"], first["decision"], first["tool_name"]) == (0, "tool_call", "echo")
    assert json.loads(first["prompt"])[0]["role"] == "user" and isinstance(json.loads(first["tools"]), list)
    assert (tool["tool_name"], json.loads(tool["input"]), tool["status"]) == ("echo", {"n": 1}, "ok")
    assert (last["turn"], last["decision"]) == (1, "end_turn")
    assert end["exit_status"] == "ok"
    assert (over["total_turns"], over["total_tool_calls"], over["exit_status"]) == (2, 1, "ok")
    assert hook.log(session) == "" and "hook_dispatch_error" not in session.trace.types


def test_hooks_are_not_offered_to_the_model(lab):
    hook = Hook(lab)
    project = lab.agent(tools=[hook.entry], steps=[{"text": "done"}])

    assert lab.session(project.run("--task", "X").ok()).trace.one("session_start")["tools_declared"] == ["session-status"]


def test_containment_25_a_hook_without_grants_has_no_directory_and_no_reads(lab):
    hook = Hook(lab, capabilities={}, on={"on-task-end": {"read": True}})
    project = lab.agent(tools=[hook.entry], steps=[{"text": "done"}])

    session = lab.session(project.run("--task", "X").ok())

    assert not (session.records / "hooks").exists()
    assert not list(session.records.rglob("events.log"))
    assert not list(project.directory.rglob("events.log"))


def test_containment_25_what_was_not_granted_answers_so(lab):
    hook = Hook(lab, on={"on-task-end": {"read": True}})
    project = lab.agent(tools=[hook.entry], steps=[{"text": "done"}])

    end, = hook.seen(lab.session(project.run("--task", "X").ok()), "on-task-end")

    assert (end["input_error"], end["output_error"], end["conversation_error"]) == ("not-granted",) * 3
    assert end["tokens"] == 2


def test_hooks_read_task_and_conversation_when_granted(lab):
    reads = {"read": True}
    hook = Hook(lab, on={"on-task-start": reads, "on-inference": reads, "on-task-end": reads, "on-session-end": reads},
                capabilities={"filesystem": {"records": True}, "task_io": {"read": True},
                              "conversation": {"read": True}})
    project = lab.agent(tools=[echo_tool(lab), hook.entry], steps=[
        {"tool_calls": [{"name": "echo", "id": "c1", "input": {}}]}, {"text": "the answer"}])

    session = lab.session(project.run("--task", "do X").ok())

    assert hook.seen(session, "on-task-start")[0]["input_error"] == "no-task"
    first = hook.seen(session, "on-inference")[0]
    assert (first["input"], first["original_bytes"], first["output_error"]) == ("do X", 4, "no-output")
    assert first["far_error"] == "out-of-range"
    end, = hook.seen(session, "on-task-end")
    assert end["output"] == "the answer"
    assert [m["role"] for m in end["conversation"]] == ["assistant", "tool", "assistant", "user"]
    assert end["conversation_total"] == 4
    envelope = json.loads(end["conversation"][1]["content"])
    assert (envelope["__murmur_tool_msg__"], envelope["tool_call_id"], envelope["is_error"]) == (True, "c1", False)
    assert hook.seen(session, "on-session-end")[0]["input_error"] == "no-task"


def test_hooks_a_scope_is_a_folder_of_the_work_folder(lab):
    hook = Hook(lab, capabilities={"filesystem": {"scope": "notes"}})
    project = lab.agent(tools=[hook.entry], steps=[{"text": "done"}])

    project.run("--task", "X").ok()

    assert "on-session-end" in (project.session_directories[0] / "notes/events.log").read_text()


def test_session_15_an_answer_the_event_does_not_honour_is_traced_and_refuses_nothing(lab):
    hook = Hook(lab, on={"on-inference": {"answer": "deny", "text": "no"}})
    project = lab.agent(tools=[hook.entry], steps=[{"text": "done"}])

    session = lab.session(project.run("--task", "X").ok())

    line = session.trace.one("hook_dispatch_error")
    assert (line["hook_name"], line["event"], line["arm"]) == ("watch", "on-inference", "deny")
    assert session.result_text == "done"
    assert "deny" in hook.log(session)


@pytest.mark.parametrize("kind", ["error", "trap"])
def test_hooks_a_failing_observer_ends_nothing_and_is_only_logged(lab, kind):
    hook = Hook(lab, on={"on-inference": {"answer": kind, "text": "it broke"}})
    project = lab.agent(tools=[hook.entry], steps=[{"text": "done"}])

    session = lab.session(project.run("--task", "X").ok())

    assert "hook_dispatch_error" not in session.trace.types
    assert hook.log(session).startswith("on-inference: ")
    assert ("it broke" in hook.log(session)) == (kind == "error")


def test_hooks_an_async_hook_is_told_in_order_and_drained_before_the_session_ends(lab):
    hook = Hook(lab, execution_mode="async", on={"on-task-end": {"answer": "reopen-task", "text": "again"},
                                                 "on-inference": {"answer": "error", "text": "it broke"}})
    project = lab.agent(tools=[hook.entry], steps=[{"text": "done"}])

    session = lab.session(project.run("--task", "X").ok())

    assert [event["event"] for event in hook.events(session)] == [
        "on-session-start", "on-task-start", "on-inference", "on-task-end", "on-session-end"]
    assert "task_reopened" not in session.trace.types
    line = session.trace.one("hook_dispatch_error")
    assert (line["event"], line["arm"]) == ("on-inference", "error")
    assert session.trace.types[-1] == "session_end"


def test_manifest_24_a_hooks_deadline_is_its_entrys_first(lab):
    hook = Hook(lab, on={"on-inference": {"spin": True}},
                capabilities={"filesystem": {"records": True}, "limits": {"deadline_seconds": 1}})
    project = lab.agent(tools=[hook.entry], steps=[{"text": "done"}])

    session = lab.session(project.run("--task", "X", timeout=40).ok())

    assert session.result_text == "done"
    assert "capabilities.limits.deadline_seconds" in hook.log(session)


# --- what staging and the launch refuse ------------------------------------------------------------------------------


@pytest.mark.parametrize("contract, word", [
    ({"execution_mode": "async", "commit_policy": "deny", "binding": "on-shell"}, "async"),
    ({"execution_mode": "async", "binding": "on-stage"}, "on-stage"),
    ({"commit_policy": "deny"}, "deny"),
    ({"binding": "on-inference", "commit_policy": "reopen-task"}, "reopen-task"),
    ({"binding": "on-nothing"}, "on-nothing"),
])
def test_manifest_36_a_contract_that_cannot_hold_is_refused_before_anything_exists(lab, contract, word):
    hook = Hook(lab, name="odd", **contract)
    project = lab.agent(tools=[hook.entry], steps=[{"text": "done"}])

    shown = project.run("--task", "X").failed("E-IO-003")

    assert "odd@0.1.0" in shown.stderr and word in shown.stderr
    assert not (project / "murmur.lock").exists() and not project.session_directories


def test_artifacts_a_hook_that_is_none_fails_the_launch_by_name(lab):
    name, version = lab.publish("nohook", own_component("echo"), "hook").split("@")
    project = lab.agent(tools=[{"name": name, "version": version, "runtime": "hook"}], steps=[{"text": "done"}])

    shown = project.run("--task", "X").failed("E-IO-003")

    assert "nohook@0.1.0" in shown.stderr and "murmur:hook/lifecycle@0.9.0" in shown.stderr
    assert [line.name for line in lab.records] and (project / "murmur.lock").exists()
    trace = (lab.records[0] / "trace.jsonl").read_text().splitlines()
    assert [json.loads(line)["event_type"] for line in trace] == ["session_start"]


# --- the decision ----------------------------------------------------------------------------------------------------


def test_hooks_a_denied_tool_call_runs_nothing_and_is_told_to_the_model(lab):
    hook = Hook(lab, name="guard", binding="on-tool-call", commit_policy="deny",
                on={"before-tool-call": {"answer": "deny", "text": "not on Sundays"}})
    project = lab.agent(tools=[echo_tool(lab), hook.entry], steps=[
        {"tool_calls": [{"name": "echo", "input": {"n": 1}}]}, {"text": "{{last_tool}}", "save_request": "request.json"}])

    session = lab.session(project.run("--task", "X").ok())

    denied = session.trace.one("call_denied")
    assert {key: denied[key] for key in ("turn", "event", "hook_name", "target", "reason")} == {
        "turn": 0, "event": "on-tool-call", "hook_name": "guard", "target": "echo", "reason": "not on Sundays"}
    assert "tool_call" not in session.trace.types
    assert [event["event"] for event in hook.events(session)] == ["before-tool-call"]
    request, = project.directory.rglob("request.json")
    result = json.loads(request.read_text())["messages"][-1]
    assert result["is_error"] is True and "guard" in json.dumps(result) and "not on Sundays" in json.dumps(result)


@pytest.mark.parametrize("rule", [
    {"answer": "deny", "text": " "}, {"answer": "error", "text": "lost"}, {"answer": "artifact", "text": "hello"},
    {"answer": "trap"}])
def test_hooks_a_decision_that_is_no_clean_none_denies(lab, rule):
    hook = Hook(lab, name="guard", binding="on-tool-call", commit_policy="deny", on={"before-tool-call": rule})
    project = lab.agent(tools=[echo_tool(lab), hook.entry], steps=[
        {"tool_calls": [{"name": "echo", "input": {}}]}, {"text": "done"}])

    session = lab.session(project.run("--task", "X").ok())

    assert session.trace.one("call_denied")["reason"].startswith("the hook ")
    assert "tool_call" not in session.trace.types
    assert ("hook_dispatch_error" in session.trace.types) == (rule["answer"] == "artifact")


def test_hooks_a_deny_hook_that_says_none_lets_the_call_through_and_sees_it(lab):
    hook = Hook(lab, name="guard", binding="on-tool-call", commit_policy="deny")
    project = lab.agent(tools=[echo_tool(lab), hook.entry], steps=[
        {"tool_calls": [{"name": "echo", "input": {"n": 7}}, {"name": "session-status", "input": {}}]}, {"text": "done"}])

    session = lab.session(project.run("--task", "X").ok())

    assert [(event["event"], event["tool_name"]) for event in hook.events(session)] == [
        (kind, tool) for tool in ("echo", "session-status") for kind in ("before-tool-call", "on-tool-call")]
    assert "call_denied" not in session.trace.types


def test_session_13_an_on_shell_deny_hook_that_traps_stops_the_command_and_nothing_else(lab):
    hook = Hook(lab, name="guard", binding="on-shell", commit_policy="deny", on={"before-shell": {"answer": "trap"}})
    project = lab.agent(tools=[hook.entry], capabilities={"shell": {"allow": ["touch"]}},
                        steps=[ask_shell("touch", "made.txt"), {"text": "done"}])

    session = lab.session(project.run("--task", "X").ok())

    denied = session.trace.one("call_denied")
    assert (denied["event"], denied["target"]) == ("on-shell", "touch")
    assert "shell" not in session.trace.types
    assert not (project.session_directories[0] / "made.txt").exists()
    assert session.result_text == "done"


def test_hooks_on_shell_sees_the_command_before_and_after_it_ran(lab):
    hook = Hook(lab, name="guard", binding="on-shell", commit_policy="deny")
    project = lab.agent(tools=[hook.entry], capabilities={"shell": {"allow": ["sh", "printf"]}}, steps=[
        ask_shell("sh", "echo out; echo err >&2; exit 3"), ask_shell("printf", "%s 'a b'"), {"text": "done"}])

    session = lab.session(project.run("--task", "X").ok())

    before, after, split, _ = hook.events(session)
    assert before["event"] == "before-shell" and before["script"] == "echo out; echo err >&2; exit 3"
    assert before["argv"] == ["sh", "-c", before["script"]] and before["binary"].startswith("/")
    assert (after["event"], after["exit_code"], after["stdout"], after["stderr"]) == ("on-shell", 3, "out\n", "err\n")
    assert split["argv"] == ["printf", "%s", "a b"] and "script" not in split


def test_hooks_on_stage_may_describe_a_command(lab):
    manifest = "name: touch\nversion: 0.0.0\nruntime: tool\ndescription: Makes an empty file.\n"
    hook = Hook(lab, name="describe", binding="on-stage", commit_policy="write-manifests",
                on={"on-stage": {"answer": "write-manifests", "manifests": [
                    {"name": "touch", "content": manifest}, {"name": "../evil", "content": manifest}]}})
    project = lab.agent(tools=[hook.entry], capabilities={"shell": {"allow": ["touch"]}},
                        steps=[{"text": "done", "save_request": "request.json"}])

    session = lab.session(project.run("--task", "X").ok())

    request, = project.directory.rglob("request.json")
    tools = {tool["name"]: tool for tool in json.loads(request.read_text())["tools"]}
    assert tools["touch"]["description"] == "Makes an empty file."
    assert "../evil" in hook.log(session)
    assert hook.seen(session, "on-stage")[0]["shell_allow"] == ["touch"]


# --- reopening -------------------------------------------------------------------------------------------------------


def test_door_17_a_hook_reopens_a_task_once_and_it_continues(lab):
    hook = Hook(lab, name="check", binding="on-task-end", commit_policy="reopen-task",
                on={"on-task-end": {"answer": "reopen-task", "text": "say more", "times": 1}})
    project = lab.agent(tools=[hook.entry], steps=[{"text": "first"}, {"text": "second", "save_request": "request.json"}])

    session = lab.session(project.run("--task", "do X").ok())

    reopened = session.trace.one("task_reopened")
    assert (reopened["hook_name"], reopened["reason"], reopened["reopen_number"], reopened["attempt_context"],
            reopened["turns_remaining"]) == ("check", "say more", 1, "continued", None)
    assert session.result_text == "second"
    assert [line["turn"] for line in session.trace.all("inference")] == [0, 1]
    assert session.trace.one("task_end")["reopen_count"] == 1
    request, = project.directory.rglob("request.json")
    messages = json.loads(request.read_text())["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    text = messages[-1]["content"][0]["text"]
    assert "## Reopen 1" in text and "check" in text and text.endswith("say more")
    assert [event["exit_status"] for event in hook.events(session)] == ["ok", "ok"]


def test_session_27_reopening_has_a_limit_and_then_the_task_fails(lab):
    hook = Hook(lab, name="check", binding="on-task-end", commit_policy="reopen-task",
                on={"on-task-end": {"answer": "reopen-task", "text": "again"}})
    project = lab.agent(tools=[hook.entry], steps=[{"text": "one"}, {"text": "two"}])

    result = project.run("--task", "do X").failed("E-RUN-007")

    session = lab.session(result)
    assert session.result_text == "two" and result.status == "failed" and "max_task_reopens" in result.stderr
    assert session.trace.one("task_failed")["cause"] == "reopen_budget_exhausted"
    assert "max_task_reopens" in session.trace.one("task_failed")["reason"]
    assert session.trace.one("task_end")["exit_status"] == "reopen_budget_exhausted"
    assert session.trace.one("session_end")["exit_status"] == "failed"
    assert len(session.trace.all("task_reopened")) == 1


# --- hooks that run beside the session -------------------------------------------------------------------------------

CALLS = 1100
QUEUE = 1024


def many_calls(lab, hook):
    """More calls in one turn than a queue holds, each of which is an event."""
    calls = [{"name": "nothing-here", "id": f"c{n}", "input": {}} for n in range(CALLS)]
    return lab.agent(tools=[hook.entry], steps=[{"tool_calls": calls}, {"text": "done"}])


def stuck_hook(lab, secs, **entry):
    hook = Hook(lab, execution_mode="async", binding="on-tool-call", on={"on-tool-call": {"spin": True}},
                capabilities={"filesystem": {"records": True}, "limits": {"deadline_seconds": secs}})
    hook.entry.update(entry)
    return hook


def test_hooks_a_full_queue_drops_and_says_so(lab):
    hook = stuck_hook(lab, 5 * SLOWER)

    session = lab.session(many_calls(lab, hook).run("--task", "go", timeout=90).ok())

    faults = session.trace.all("hook_dispatch_error")
    dropped = [line for line in faults if line["arm"] == "queue-overflow"]
    # The hook has its first one in hand, or has not come to it yet when the queue is full.
    assert len(dropped) in (CALLS - QUEUE - 1, CALLS - QUEUE) and {line["event"] for line in dropped} == {"on-tool-call"}
    assert len(session.trace.all("tool_call")) == CALLS, "the session never waited"


def test_hooks_a_full_queue_that_blocks_holds_the_session_up(lab):
    hook = stuck_hook(lab, 2, on_overflow="block")

    session = lab.session(many_calls(lab, hook).run("--task", "go", timeout=90).ok())

    assert "queue-overflow" not in [line["arm"] for line in session.trace.all("hook_dispatch_error")]
    end, start = session.trace.one("task_end"), session.trace.one("task_start")
    assert end["timestamp"] - start["timestamp"] >= 1900


def test_hooks_what_is_not_done_15_seconds_after_the_end_is_abandoned(lab):
    hook = stuck_hook(lab, 600)
    project = lab.agent(tools=[hook.entry], steps=[{"tool_calls": [{"name": "nothing-here", "input": {}}]}, {"text": "done"}])

    begun = time.monotonic()
    session = lab.session(project.run("--task", "go", timeout=60).ok())
    took = time.monotonic() - begun

    line = session.trace.one("hook_dispatch_error")
    assert (line["event"], line["arm"]) == ("on-tool-call", "timeout")
    assert 14 <= took < 20 * SLOWER and session.trace.types[-1] == "session_end"


# --- completions a hook asks for -------------------------------------------------------------------------------------


def test_hooks_run_inference_is_one_recorded_call_of_the_sessions_driver(lab, model):
    model.script(answer("the answer"), answer("fine"))
    hook = Hook(lab, on={"on-task-end": {"ask": "judge it"}})
    driver = lab.publish("driver-messages", own_component("driver-anthropic"), "driver",
                         upstream_auth={"header": "x-api-key", "value": "{key}"})
    project = lab.agent(driver=driver, gateway={"endpoint": model.url, "keyless": True}, tools=[hook.entry])

    session = lab.session(project.run("--task", "do X").ok())

    end, = hook.seen(session, "on-task-end")
    assert (end["asked"], end["model_used"]) == ("fine", "scripted")
    asked = model.requests[1].json
    assert not asked.get("tools") and "judge it" in json.dumps(asked["messages"]) and len(asked["messages"]) == 1
    own, line = session.trace.all("inference")
    assert "origin" not in own and line["origin"] == "hook:watch"
    assert session.result_text == "the answer"
    assert session.trace.one("session_end")["total_turns"] == 1


# --- compaction ------------------------------------------------------------------------------------------------------


FULL = {"input_tokens": 5000, "output_tokens": 10}
LITTLE = {"input_tokens": 10, "output_tokens": 5}


def agent_with_window(lab, model, hooks, window=6000, tools=(), inference=None, **manifest):
    """An agent whose input budget is the window less its output cap of 1024."""
    driver = lab.publish("driver-messages", own_component("driver-anthropic"), "driver",
                         upstream_auth={"header": "x-api-key", "value": "{key}"})
    return lab.agent(driver=driver, gateway={"endpoint": model.url, "keyless": True}, inference=inference,
                     tools=[*tools, *(hook.entry for hook in hooks)],
                     **{"context": {"max_tokens": window}, **manifest})


def summarizer(lab, messages=({"role": "user", "content": "the summary"},), name="shorten", **rule):
    return Hook(lab, name=name, binding="on-compaction", commit_policy="replace-context",
                on={"on-compaction": {"answer": "replace-context", "messages": list(messages), **rule}})


def texts(request):
    return [block.get("text") for message in request.json["messages"] for block in message["content"]
            if block["type"] == "text"]


def record_of(lab):
    path, = (lab.murmur_home / "conversations").rglob("conversation.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_session_28_a_summary_replaces_the_context_but_never_the_task(lab, model):
    model.script(call("echo", {"n": 1}, usage=FULL), answer("done", usage=LITTLE))
    hook = summarizer(lab)
    project = agent_with_window(lab, model, [hook], tools=[echo_tool(lab)],
                                inference={"compaction": {"dump_summaries": True, "system_prompt": "be short"}})

    session = lab.session(project.run("--task", "do X").ok())

    told, = hook.seen(session, "on-compaction")
    assert (told["session_tokens"], told["threshold"], told["system_prompt"]) == (5010, 0.98, "be short")
    assert [message["role"] for message in told["messages"]] == ["user"]
    assert texts(model.requests[1])[:2] == ["do X", "the summary"]
    compaction = session.trace.one("compaction")
    assert (compaction["turn"], compaction["tokens_before"], compaction["tokens_before_source"]) == (0, 5010, "actual")
    assert compaction["tokens_after"] < 5010
    lines = record_of(lab)
    assert [line["role"] for line in lines] == ["user", "user", "assistant", "tool", "assistant"]
    assert lines[1]["inserted_by"] == "replace-context" and "inserted_by" not in lines[0]
    assert len({line["id"] for line in lines}) == 5
    dumped, = (session.records / "out/compaction-summaries.jsonl").read_text().splitlines()
    assert json.loads(dumped) == {"turn": 0, "tokens_before": 5010, "tokens_after": compaction["tokens_after"],
                                  "summary": "the summary"}
    assert session.result_text == "done"


def test_session_29_an_unpaired_call_in_the_replacement_keeps_the_context(lab, model):
    model.script(call("echo", {"n": 1}, usage=FULL), answer("done", usage=LITTLE))
    orphan = json.dumps([{"type": "tool_call", "id": "c9", "name": "echo", "input": {}}])
    project = agent_with_window(lab, model, [summarizer(lab, [{"role": "assistant", "content": orphan}])],
                                tools=[echo_tool(lab)])

    session = lab.session(project.run("--task", "do X").ok())

    declined = session.trace.one("compaction_declined")
    assert (declined["reason"], declined["tokens"], declined["tokens_source"]) == ("unresolved_tool_call", 5010, "actual")
    assert "compaction" not in session.trace.types
    assert texts(model.requests[1])[0] == "do X"


def test_session_compaction_without_a_replacement_is_declined(lab, model):
    model.script(answer("done", usage=FULL))
    hook = Hook(lab, name="shorten", binding="on-compaction", commit_policy="replace-context")
    project = agent_with_window(lab, model, [hook])

    session = lab.session(project.run("--task", "do X").ok())

    assert session.trace.one("compaction_declined")["reason"] == "no_hook_replacement"
    assert session.result_text == "done"


def test_session_a_failing_compaction_hook_fails_the_attempt(lab, model):
    model.script(answer("done", usage=FULL))
    hook = Hook(lab, name="broken", binding="on-compaction", commit_policy="replace-context",
                on={"on-compaction": {"answer": "error", "text": "out of ideas"}})
    project = agent_with_window(lab, model, [summarizer(lab), hook])

    session = lab.session(project.run("--task", "do X").failed())

    failed = session.trace.one("task_failed")
    assert failed["cause"] == "compaction_hook" and "broken" in failed["reason"] and "out of ideas" in failed["reason"]
    assert "compaction" not in session.trace.types


def test_session_24_a_ceiling_that_refuses_a_compaction_hooks_call_ends_the_task_as_spend(lab, model):
    model.script(call("echo", {}, usage=FULL))
    hook = Hook(lab, name="shorten", binding="on-compaction", commit_policy="replace-context",
                on={"on-compaction": {"answer": "error", "text": "could not ask", "ask": "sum it up"}})
    project = agent_with_window(lab, model, [hook], tools=[echo_tool(lab)], inference={"max_session_tokens": 6100})

    result = project.run("--task", "do X").failed("E-RUN-040")

    session = lab.session(result)
    assert result.status == "spend_ceiling_reached" and session.result_text.startswith("stopped: ")
    line = session.trace.one("spend_ceiling_reached")
    assert (line["limit"], line["ceiling"], line["used"], line["origin"]) == ("session", 6100, 5010, "hook:shorten")
    assert "task_failed" not in session.trace.types and "compaction" not in session.trace.types
    assert len(model.requests) == 1


def test_session_24_a_hook_that_lives_with_the_refusal_ends_nothing(lab, model):
    model.script(answer("done", usage={"input_tokens": 500, "output_tokens": 5}))
    hook = Hook(lab, name="asks", on={"on-task-end": {"ask": "how was it?"}})
    project = agent_with_window(lab, model, [hook], inference={"max_session_tokens": 1400})

    session = lab.session(project.run("--task", "do X").ok())

    assert session.result_text == "done" and session.trace.one("spend_ceiling_reached")["origin"] == "hook:asks"
    assert "ask_error" in hook.seen(session, "on-task-end")[0]


def test_session_5_4_after_a_compaction_the_refreshed_tools_say_so(lab, model):
    path = lab.directory / "sk.mur.zip"
    path.write_bytes(skill_package("sk", text="# How to\n"))
    lab.mur("publish", path).ok()
    model.script(call("pull-artifact", {"artifact": "local/sk"}, usage=FULL), answer("done", usage=LITTLE))
    project = agent_with_window(lab, model, [summarizer(lab)], capabilities={"install": {"skill": ["local/*"]}})

    trace = lab.session(project.run("--task", "do X").ok()).trace

    line = trace.one("tools_refreshed")
    assert (line["turn"], line["trigger"], line["added"], line["removed"]) == (1, "compaction", ["sk"], [])
    assert trace.types.index("compaction") < trace.types.index("tools_refreshed")


def test_session_a_compaction_hook_asks_with_the_compaction_model_and_cap(lab, model):
    model.script(call("echo", {}, usage=FULL), answer("in short", usage=LITTLE), answer("done", usage=LITTLE))
    hook = summarizer(lab, [{"role": "user", "content": "so far: {{asked}}"}], ask="sum it up", model="small")
    project = agent_with_window(lab, model, [hook], tools=[echo_tool(lab)],
                                inference={"compaction": {"max_tokens": 77, "model": "small"}})

    session = lab.session(project.run("--task", "do X").ok())

    asked = model.requests[1].json
    assert (asked["model"], asked["max_tokens"]) == ("small", 77)
    assert texts(model.requests[2])[:2] == ["do X", "so far: in short"]
    assert [line.get("origin") for line in session.trace.all("inference")] == [None, "hook:shorten", None]
    assert hook.seen(session, "on-compaction")[0]["model"] == "small"


def test_session_32_resume_mode_compact_needs_a_compaction_hook(lab, model):
    model.script(answer("one"))
    project = agent_with_window(lab, model, [])
    project.run("--task", "first").ok()
    before = [path.name for path in lab.records]

    project.run("--task", "second", "--resume", "--resume-mode", "compact").failed("E-RUN-018")

    assert [path.name for path in lab.records] == before


def test_session_resume_mode_compact_replaces_what_was_loaded_once(lab, model):
    model.script(answer("one"), answer("two"))
    project = agent_with_window(lab, model, [summarizer(lab)])
    project.run("--task", "first").ok()

    session = lab.session(project.run("--task", "second", "--resume", "--resume-mode", "compact").ok())

    assert texts(model.requests[1]) == ["the summary", "second"]
    assert session.trace.one("compaction")["tokens_before_source"] == "estimate"


# --- seeds -----------------------------------------------------------------------------------------------------------


WORDS = "alpha " * 15


def seeder(lab, messages, extra=None):
    rules = {"on-task-start": {"answer": "seed-context", "messages": messages}, **(extra or {})}
    return Hook(lab, name="remember", on=rules)


def test_session_a_seed_goes_before_the_task_and_after_it_in_the_record(lab, model):
    model.script(answer("done"))
    hook = seeder(lab, [{"role": "user", "content": "known before"}])
    project = agent_with_window(lab, model, [hook], window=11024)

    session = lab.session(project.run("--task", "do X").ok())

    assert texts(model.requests[0]) == ["known before", "do X"]
    seeded = session.trace.one("context_seed")
    assert (seeded["hook_name"], seeded["outcome"], seeded["budget_tokens"]) == ("remember", "seeded", 1000)
    assert seeded["tokens"] == seeded["proposed_tokens"] > 0 and "reason" not in seeded
    lines = record_of(lab)
    assert [line.get("inserted_by") for line in lines] == [None, "seed-context", None]
    assert seeded["message_ids"] == [lines[1]["id"]]
    start, = hook.seen(session, "on-task-start")
    assert (start["budget_tokens"], start["context_window"], start["prior_tokens"]) == (1000, 11024, 0)


@pytest.mark.parametrize("count, content, window, reason", [
    (1, "word " * 200, 2024, "message_over_budget"), (12, WORDS, 1524, "overflow_over_limit")])
def test_session_a_seed_beyond_its_budget_is_rejected_and_fails_nothing(lab, model, count, content, window, reason):
    model.script(answer("done"))
    project = agent_with_window(lab, model, [seeder(lab, [{"role": "user", "content": content}] * count)], window=window)

    session = lab.session(project.run("--task", "do X").ok())

    rejected = session.trace.one("context_seed")
    assert (rejected["outcome"], rejected["reason"], rejected["tokens"], rejected["message_ids"]) == \
        ("rejected", reason, 0, [])
    fault = session.trace.one("hook_dispatch_error")
    assert (fault["hook_name"], fault["event"], fault["arm"]) == ("remember", "on-task-start", "seed-rejected")
    assert texts(model.requests[0]) == ["do X"]


def test_session_a_seed_a_little_too_large_loses_its_oldest_messages(lab, model):
    model.script(answer("done"))
    hook = seeder(lab, [{"role": "user", "content": name + WORDS} for name in ("old ", "new ")])
    project = agent_with_window(lab, model, [hook], window=1524,
                                context={"max_tokens": 1524, "seed_overflow_margin": 1.0})

    session = lab.session(project.run("--task", "do X").ok())

    assert session.trace.one("context_seed")["outcome"] == "trimmed"
    assert texts(model.requests[0]) == ["new " + WORDS, "do X"]


def test_session_a_seed_too_large_is_summarised_by_compaction(lab, model):
    model.script(answer("done"))
    hook = seeder(lab, [{"role": "user", "content": name + 2 * WORDS} for name in ("old ", "mid ", "new ")],
                  {"on-compaction": {"answer": "replace-context", "messages": [{"role": "user", "content": "short"}]}})
    project = agent_with_window(lab, model, [hook], window=2224,
                                context={"max_tokens": 2224, "seed_overflow_margin": 0.0})

    session = lab.session(project.run("--task", "do X").ok())

    seeded = session.trace.one("context_seed")
    assert seeded["outcome"] == "compacted" and seeded["tokens"] <= seeded["budget_tokens"] == 120
    assert texts(model.requests[0]) == ["short", "mid " + 2 * WORDS, "new " + 2 * WORDS, "do X"]


def test_hooks_an_artifact_of_on_inference_is_a_frame_and_changes_no_answer(lab):
    hook = Hook(lab, on={"on-inference": {"answer": "artifact", "text": "a note"}})
    project = lab.agent(tools=[hook.entry], steps=[{"text": "done"}])

    session = lab.session(project.run("--task", "do X").ok())

    assert session.result_text == "done" and "hook_dispatch_error" not in session.trace.types
