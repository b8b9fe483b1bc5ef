# SPDX-License-Identifier: Apache-2.0
#
# call-member and end-without-answer in real formations: answers, busy members, failures, cancels and what is recorded
# (C8 of spec/spawn.md, 14 of spec/door.md).

import json
import re
import threading
import time

import pytest

from tests.integration.test_formations import post
from tests.support.commands import TOOL_FILES, schemas
from tests.support.formation import BEARER, CALLS, SERVES, Channel, Key, Team, first_line
from tests.support.lab import SLOWER
from tests.support.model_server import Reply
from tests.support.polling import eventually

SLEEPER = {"task_acceptance": "queue", "after_task": "sleep", "queue_depth": 4}


def call(member="coder", task="write it", **more):
    return {"name": "call-member", "input": {"member": member, "task": task}, **more}


def team_of(lab, lead_steps, coder_steps=({"text": "the code"},), lead=None, coder=None):
    team = Team(lab, "lead", "coder", reachability=[{"from": "lead", "to": ["coder"]}])
    team.member("lead", lead_steps, **BEARER, **{**CALLS, **(lead or {})})
    team.member("coder", coder_steps, **BEARER, **{**SERVES, **(coder or {})})
    return team


def texts(team, file="request.json"):
    """What the model of the entry was sent last: (role, text) of each message."""
    found = json.loads((team.project / file).read_text())["messages"]
    return [(m["role"], "".join(block["text"] for block in m["content"] if block["type"] == "text"), m.get("is_error"))
            for m in found]


def tool_results(team):
    return [(is_error, text) for role, text, is_error in texts(team) if role == "tool"]


def body(text):
    return json.loads(text.split("\n", 1)[1].split("\n</untrusted-content>", 1)[0])


def test_spawn_C8_a_call_is_answered_in_the_same_task(lab):
    team = team_of(lab, [{"tool_calls": [call()]}, {"text": "I wait"}, {"text": "got: {{task}}", "save_request": "request.json"}])
    team.run("--task", "go").ok()
    lead, coder = (team.sessions()[name] for name in ("lead", "coder"))
    (is_error, text), = tool_results(team)
    assert not is_error and text.startswith("<untrusted-content source=tool:call-member>")
    answer = body(text)
    assert list(answer) == ["call_id", "member", "status", "task_id"]
    assert (answer["member"], answer["status"]) == ("coder", "started") and re.fullmatch(r"mcl_[0-9a-f]{32}", answer["call_id"])
    assert "End your turn" in text.rsplit("</untrusted-content>", 1)[1]
    round_text = [text for role, text, _ in texts(team) if role == "user"][-1]
    assert re.fullmatch(f"\\[call-member\\] {answer['call_id']} coder completed\n"
                        "<untrusted-content source=member:coder>\nthe code\n</untrusted-content> [0-9]{8}", round_text)
    start, end, continued = lead.one("member_call_start"), lead.one("member_call"), lead.one("task_continued")
    assert list(start)[5:] == ["task_id", "call_id", "member", "member_task_id"]
    assert list(end)[5:] == ["task_id", "call_id", "member", "member_task_id", "status", "duration_ms", "output", "truncated",
                             "delivered"]
    assert (end["status"], end["output"], end["truncated"], end["delivered"]) == ("completed", "the code", False, True)
    assert end["member_task_id"] == start["member_task_id"] == answer["task_id"] == coder.one("task_start")["task_id"]
    assert list(continued)[5:] == ["task_id", "continuation_number", "member_calls", "delegations", "waited_ms", "turns_remaining"]
    assert continued["member_calls"] == [answer["call_id"]] and continued["delegations"] == []
    assert lead.types.index("member_call_start") < lead.types.index("member_call") < lead.types.index("task_continued")
    received = coder.one("a2a_task_received")
    assert received["caller_member"] == "lead" and received["message_id"] == f"msg_{answer['call_id']}"
    task = coder.one("task_start")
    assert (task["origin"], task["trust"], task["lane"]) == ("peer", "trusted", "peer")
    assert {"call-member", "end-without-answer"} <= set(lead.one("session_start")["tools_declared"])
    assert "call-member" not in coder.one("session_start")["tools_declared"]
    for trace in (lead, coder):
        assert "mft1." not in trace.path.read_text()
    port = re.search(r"http://localhost:(\d+)", (team.project / "request.json").read_text())
    assert port is None


def test_spawn_C8_what_may_not_be_called_is_refused_and_nothing_is_sent(lab):
    team = team_of(lab, [{"tool_calls": [call("other"), call("lead"), call(), call()]}, {"text": "x"},
                         {"text": "done", "save_request": "request.json"}], [{"text": "slow", "delay_ms": 500}])
    team.run("--task", "go").ok()
    results = tool_results(team)
    assert [is_error for is_error, _ in results] == [True, True, False, True]
    assert "coder" in results[0][1] and "still out" in results[3][1]
    assert len(team.sessions()["coder"].all("task_start")) == 1


def test_spawn_C8_the_callers_own_allow_list_must_reach_the_real_door(lab):
    team = team_of(lab, [{"tool_calls": [call()]}, {"text": "done", "save_request": "request.json"}],
                   lead={"capabilities": {"network": {"allow": ["elsewhere.example"]}}})
    team.run("--task", "go").ok()
    (is_error, text), = tool_results(team)
    assert is_error and "capabilities.network.allow" in text and "localhost:" not in text
    assert "task_start" not in team.sessions()["coder"].types


def hand_made(lab, replies, steps, bound=None, **lead):
    """The entry alone, with the test as launcher and as the callee's door."""
    model = lab.model_server()
    seen = []

    def answer(request):
        asked = json.loads(request.body)
        seen.append((request, asked))
        return rpc(asked, replies(asked, len(seen)))

    model.script(repeat=answer)
    key = Key()
    lifecycle = {**SLEEPER, **({"delegation_deadline_secs": bound} if bound else {})}
    manifest = {"capabilities": {"network": {"allow": ["localhost"]}}, **lead}
    project = lab.agent(name="lead", steps=steps, lifecycle=lifecycle, **BEARER, **manifest)
    channel = Channel(first_line(key, "lead", ["coder"]))
    channel.tell(json.dumps({"addresses": [{"name": "coder", "url": model.url.replace("127.0.0.1", "localhost")}]}))
    work = lab.directory / "work"
    work.mkdir()
    running = channel.start(project, "--task", "go", "--workdir", work)
    running.project = project
    return running, channel, seen, work


def rpc(asked, reply):
    if isinstance(reply, Reply):
        return reply
    member = "error" if "code" in reply else "result"
    return Reply(body=json.dumps({"jsonrpc": "2.0", "id": asked["id"], member: reply}).encode(), content_type="application/json")


def task(state="TASK_STATE_SUBMITTED", text=None, response=None, metadata=None):
    found = {"id": "tsk_theirs", "contextId": "ctx_theirs", "status": {"state": f"TASK_STATE_{state}" if "_" not in state else state}}
    if text is not None:
        found["status"]["message"] = {"parts": [{"text": text}]}
    if response is not None:
        found["artifacts"] = [{"name": "response", "artifactId": "response", "parts": [{"text": response}]}]
    if metadata:
        found["metadata"] = {"murmur": metadata}
    return found


BUSY = {"task": task("TASK_STATE_REJECTED", "task rejected: capsule is busy")}
ONE_CALL = [{"tool_calls": [call()]}, {"text": "wait"}, {"text": "seen {{fenced}}", "save_request": "request.json"}]


def finish(lab, running, channel):
    eventually(lambda: "task_end" in lab.session(running).trace.types, 60 * SLOWER)
    channel.cut()
    running.result(60)
    channel.close()
    return lab.session(running).trace


def messages_of(work):
    return json.loads((work / "request.json").read_text())["messages"]


def test_spawn_C8_a_busy_member_is_asked_until_it_takes_the_task(lab):
    def replies(asked, n):
        if asked["method"] == "SendMessage":
            return BUSY if n < 3 else {"task": task()}
        return task("TASK_STATE_COMPLETED", response="at last")

    running, channel, seen, work = hand_made(lab, replies, ONE_CALL)
    trace = finish(lab, running, channel)
    offers = [asked for _, asked in seen if asked["method"] == "SendMessage"]
    call_id = trace.one("member_call")["call_id"]
    assert [asked["id"] for asked in offers] == [call_id, f"{call_id}-2", f"{call_id}-3"]
    assert {asked["params"]["message"]["messageId"] for asked in offers} == {f"msg_{call_id}"}
    assert all(asked["params"]["configuration"] == {"returnImmediately": True} for asked in offers)
    busy = trace.all("member_call_busy")
    assert list(busy[0])[5:] == ["task_id", "call_id", "member", "offer", "waited_ms", "message"]
    assert [line["offer"] for line in busy] == [1, 2] and busy[1]["waited_ms"] >= 1000
    assert busy[0]["message"] == "task rejected: capsule is busy"
    assert trace.types.index("member_call_busy") < trace.types.index("member_call_start") < trace.types.index("member_call")
    assert trace.one("member_call")["output"] == "at last"
    first = next(m for m in messages_of(work) if m["role"] == "tool")
    assert '"status":"busy"' in first["content"][0]["text"] and not first["is_error"]
    for request, _ in seen:
        assert request.headers["a2a-version"] == "1.0" and request.headers["authorization"].startswith("Bearer mft1.")
        assert (request.headers["x-murmur-task-origin"], request.headers["x-murmur-task-trust"]) == ("peer", "trusted")


@pytest.mark.parametrize("reply, status, said", [
    ({"task": task("TASK_STATE_REJECTED", "task rejected: the session is closing")}, "rejected", "the session is closing"),
    ({"code": -32001, "message": "Task not found"}, "failed", "Task not found"),
    ({"message": {}}, "failed", "without a task"),
])
def test_spawn_C8_a_call_that_ends_in_this_turn_is_a_failed_result(lab, reply, status, said):
    running, channel, seen, work = hand_made(lab, lambda *_: reply, [
        {"tool_calls": [call()]}, {"text": "over", "save_request": "request.json"}])
    trace = finish(lab, running, channel)
    found = next(m for m in messages_of(work) if m["role"] == "tool")
    answer = body(found["content"][0]["text"])
    assert found["is_error"] and list(answer) == ["call_id", "member", "output", "status"]
    assert answer["status"] == status and said in answer["output"]
    end = trace.one("member_call")
    assert (end["status"], end["delivered"]) == (status, True) and "member_task_id" not in end
    assert "member_call_start" not in trace.types and "task_continued" not in trace.types
    assert len(seen) == 1


@pytest.mark.parametrize("ending, status, output", [
    (task("TASK_STATE_FAILED", "task failed (x): y"), "failed", "task failed (x): y"),
    (task("TASK_STATE_CANCELED", "task canceled"), "canceled", "task canceled"),
    (task("TASK_STATE_FAILED", "no idea", metadata={"noAnswer": True}), "no_answer", "no idea"),
    (task("TASK_STATE_FAILED", "z", metadata={"noAnswer": "true"}), "failed", "z"),
    (task("TASK_STATE_COMPLETED", response="x" * 100_000), "completed", None),
])
def test_spawn_C8_every_ending_of_a_call(lab, ending, status, output):
    def replies(asked, _n):
        return {"task": task()} if asked["method"] == "SendMessage" else ending

    running, channel, _, work = hand_made(lab, replies, ONE_CALL)
    trace = finish(lab, running, channel)
    end = trace.one("member_call")
    assert end["status"] == status and end["delivered"] is True
    if output is None:
        assert end["truncated"] is True and end["output"] == "x" * 65_536 + " […]"
    else:
        assert (end["output"], end["truncated"]) == (output, False)
    assert f"coder {status}\n" in messages_of(work)[-1]["content"][0]["text"]


def test_spawn_C8_who_did_not_answer_below_is_told_on(lab):
    entries = [{"member": f"m{i}", "status": "failed"} for i in range(12)]

    def replies(asked, _n):
        if asked["method"] == "SendMessage":
            return {"task": task()}
        return task("TASK_STATE_COMPLETED", response="half", metadata={"noAnswerBelow": [{"bad": 1}, *entries]})

    running, channel, _, work = hand_made(lab, replies, ONE_CALL)
    eventually(lambda: "task_end" in lab.session(running).trace.types, 60)
    operator = lab.mur("token", running.session_id).ok().stdout.strip()
    own = post(running.url, "ListTasks", {"includeArtifacts": False}, operator)[2]["result"]["tasks"][0]
    trace = finish(lab, running, channel)
    assert trace.one("member_call")["no_answer_below"] == entries[:8]
    assert own["metadata"]["murmur"]["noAnswerBelow"] == entries[:8]
    text = messages_of(work)[-1]["content"][0]["text"]
    assert text.index("m0 (failed)") < text.index("</untrusted-content>")


def test_spawn_C8_a_door_that_stops_answering_is_unreachable(lab):
    def replies(asked, _n):
        return {"task": task()} if asked["method"] == "SendMessage" else Reply(status=500, body=b"broken")

    running, channel, seen, _ = hand_made(lab, replies, ONE_CALL)
    trace = finish(lab, running, channel)
    assert trace.one("member_call")["status"] == "unreachable"
    assert [asked["method"] for _, asked in seen] == ["SendMessage", "GetTask", "GetTask"]


@pytest.mark.parametrize("first, status", [({"task": task()}, "timed_out"), (BUSY, "rejected")])
def test_spawn_C8_a_call_is_bounded(lab, first, status):
    def replies(asked, _n):
        return first if asked["method"] == "SendMessage" else task("TASK_STATE_WORKING")

    running, channel, seen, _ = hand_made(lab, replies, ONE_CALL, bound=2)
    trace = finish(lab, running, channel)
    end = trace.one("member_call")
    assert end["status"] == status and 1900 <= end["duration_ms"] < 6000 * SLOWER
    assert "CancelTask" not in {asked["method"] for _, asked in seen}


def test_spawn_C8_the_end_of_the_task_abandons_its_calls(lab):
    def replies(asked, _n):
        return {"task": task()} if asked["method"] == "SendMessage" else task("TASK_STATE_WORKING")

    running, channel, seen, _ = hand_made(lab, replies, ONE_CALL)
    operator = lab.mur("token", running.session_id).ok().stdout.strip()
    eventually(lambda: any(asked["method"] == "GetTask" for _, asked in seen))
    own = post(running.url, "ListTasks", {}, operator)[2]["result"]["tasks"][0]
    assert own["status"]["state"] == "TASK_STATE_WORKING"
    eventually(lambda: (lab.session(running).records / "out/result.txt").exists())
    asked_so_far = len(seen)
    eventually(lambda: len(seen) > asked_so_far + 1)
    post(running.url, "CancelTask", {"id": own["id"]}, operator)
    trace = finish(lab, running, channel)
    end = trace.one("member_call")
    assert (end["status"], end["delivered"]) == ("abandoned", False)
    assert trace.one("task_canceled")["phase"] == "member_call"
    assert "CancelTask" not in {asked["method"] for _, asked in seen}


def test_spawn_C8_an_offer_taken_after_the_task_ended_is_cancelled(lab):
    released = threading.Event()

    def replies(asked, _n):
        if asked["method"] == "SendMessage":
            released.wait(20)
            return {"task": task()}
        return task("TASK_STATE_CANCELED") if asked["method"] == "CancelTask" else task("TASK_STATE_WORKING")

    running, channel, seen, _ = hand_made(lab, replies, ONE_CALL)
    operator = lab.mur("token", running.session_id).ok().stdout.strip()
    eventually(lambda: seen)
    own = post(running.url, "ListTasks", {}, operator)[2]["result"]["tasks"][0]["id"]
    post(running.url, "CancelTask", {"id": own}, operator)
    time.sleep(0.2)
    released.set()
    trace = finish(lab, running, channel)
    assert [asked["method"] for _, asked in seen] == ["SendMessage", "CancelTask"]
    assert seen[1][1]["params"] == {"id": "tsk_theirs"}
    end = trace.one("member_call")
    assert (end["status"], end["delivered"]) == ("abandoned", False) and "member_call_start" not in trace.types
    assert trace.one("task_canceled")["phase"] == "member_call"


def test_spawn_C8_an_address_that_never_comes(lab):
    key = Key()
    project = lab.agent(name="lead", steps=[{"tool_calls": [call()]}, {"text": "over", "save_request": "request.json"}],
                        lifecycle=SLEEPER, **BEARER, **CALLS)
    channel = Channel(first_line(key, "lead", ["coder"]))
    work = lab.directory / "work"
    work.mkdir()
    running = channel.start(project, "--task", "go", "--workdir", work)
    trace = finish(lab, running, channel)
    found = next(m for m in messages_of(work) if m["role"] == "tool")
    assert found["is_error"] and "address" in found["content"][0]["text"]
    assert "member_call" not in trace.types
    assert 9_500 < trace.one("tool_call")["duration_ms"] < 30_000


# --- end-without-answer ----------------------------------------------------------------------------------------------


def chain(lab, middle_steps, last_steps=({"text": "leaf"},)):
    team = Team(lab, "lead", "middle", "leaf",
                reachability=[{"from": "lead", "to": ["middle"]}, {"from": "middle", "to": ["leaf"]}])
    team.member("lead", [{"tool_calls": [call("middle")]}, {"text": "wait"}, {"text": "end", "save_request": "request.json"}],
                **BEARER, **CALLS)
    team.member("middle", middle_steps, **BEARER, **SERVES, **CALLS)
    team.member("leaf", last_steps, **BEARER, **SERVES)
    return team


def decline(reason="I do not know"):
    return {"name": "end-without-answer", "input": {"reason": reason}}


def test_spawn_C8_a_member_may_end_without_an_answer(lab):
    team = chain(lab, [{"tool_calls": [decline(" "), decline(), decline("again"), call("leaf")]}, {"text": "never asked"}])
    team.run("--task", "go").ok()
    lead, middle = (team.sessions()[name] for name in ("lead", "middle"))
    assert middle.one("task_end")["exit_status"] == "no_answer" and len(middle.all("inference")) == 1
    assert middle.one("session_end")["exit_status"] == "formation_ended"
    assert [line["status"] for line in middle.all("tool_call")] == ["error", "ok", "error", "error"]
    end = lead.one("member_call")
    assert end["status"] == "no_answer" and "I do not know" in end["output"]
    assert lead.one("task_end")["exit_status"] == "ok"
    text = [text for role, text, _ in texts(team) if role == "user"][-1]
    assert "middle no_answer\n" in text
    result = next(path for path in lab.records if path.name == middle.events[0]["session_id"]) / "out/result.txt"
    assert result.read_text() == "no answer: I do not know"


def test_spawn_C8_declining_needs_a_calling_member_and_nothing_out(lab):
    team = chain(lab, [{"tool_calls": [call("leaf"), decline()]}, {"text": "wait"}, {"text": "fine"}])
    team.run("--task", "go").ok()
    middle = team.sessions()["middle"]
    assert [line["status"] for line in middle.all("tool_call")] == ["ok", "error"]
    assert middle.one("task_end")["exit_status"] == "ok"
    assert team.sessions()["lead"].one("member_call")["output"] == "fine"


def test_spawn_C8_nobody_asked_is_nobody_to_tell(lab):
    team = team_of(lab, [{"tool_calls": [decline()]}, {"text": "answer", "save_request": "request.json"}])
    team.run("--task", "go").ok()
    (is_error, text), = tool_results(team)
    assert is_error and "no member asked" in text
    assert team.sessions()["lead"].one("task_end")["exit_status"] == "ok"


def test_spawn_C8_trust_goes_down_a_chain(lab):
    team = chain(lab, [{"tool_calls": [call("leaf")]}, {"text": "wait"}, {"text": "fine"}])
    team.run("--task", "go").ok()
    starts = {name: trace.one("task_start") for name, trace in team.sessions().items()}
    assert (starts["middle"]["trust"], starts["leaf"]["trust"]) == ("trusted", "trusted")
    assert team.sessions()["leaf"].one("a2a_task_received")["caller_member"] == "middle"


def test_session_3_1_the_file_of_call_member_has_the_schema_the_model_is_told(lab):
    grants = {"capabilities": {**CALLS["capabilities"], "shell": {"allow": ["sh", "cat"]}}}
    team = team_of(lab, [TOOL_FILES, {"text": "done", "save_request": "request.json"}], lead=grants)
    team.run("--task", "go").ok()
    told, written = schemas(json.loads((team.project / "request.json").read_text()))
    assert written["call-member"] == told["call-member"] and told["call-member"]["properties"]["member"]["enum"] == ["coder"]
    assert written["end-without-answer"] == told["end-without-answer"]


@pytest.mark.parametrize("who", ["lead", "coder"])
def test_approvals_hold_for_calls_of_members_and_for_what_a_member_does(lab, who):
    shell = {"capabilities": {"shell": {"allow": ["bash", "touch"]}}}
    touches = [{"tool_calls": [{"name": "bash", "input": {"command": "touch made"}}]}, {"text": "the code"}]
    rules = {"lead": {"approvals": {"tools": ["call-member"]}}, "coder": {"approvals": {"commands": ["touch"]}}}[who]
    team = team_of(lab, [{"tool_calls": [call()]}, {"text": "I wait"}, {"text": "got: {{task}}"}], touches,
                   lead=rules if who == "lead" else None, coder={**shell, **(rules if who == "coder" else {})})
    running = team.start("--task", "go")

    def asking():
        rows = [line.split() for line in lab.mur("top", "--once").ok().stdout.splitlines()]
        return next((row[0] for row in rows if "asks" in row and any(word.startswith((who, f"local/{who}")) for word in row)), None)
    session = eventually(asking, 30 * SLOWER, "it asks")
    assert not list(lab.directory.rglob("made")) and not list(lab.murmur_home.rglob("made"))
    lab.mur("answer", session, "once").ok()
    assert running.result(60 * SLOWER).code == 0
    assert [*lab.directory.rglob("made"), *lab.murmur_home.rglob("made")]
    answered = team.sessions()[who].one("approval_answered")
    assert answered["answer"] == "once"
