# SPDX-License-Identifier: Apache-2.0
#
# Tasks of real sessions as their clients see them: busy, queued, asked for input, cancelled, streamed and left behind when the
# session ends (spec/door.md 6 to 9, 16, 20).

import json
import os
import re
import signal
import socket
import time

import pytest

from tests.support.commands import answers, call, command_agent
from tests.support.door_client import DOOR, SLEEPER, STREAM, Door, at_once, message
from tests.support.fixtures import own_component
from tests.support.lab import SLOWER
from tests.support.model_server import answer
from tests.support.polling import eventually, pid_exists

HOLD = [{"text": "late", "delay_ms": 600000}]
UNKNOWN = "tsk_" + "0" * 32


def serving(lab, steps=None, lifecycle=None, **more):
    running = lab.agent(steps=steps or [{"text": "the answer"}], lifecycle={**SLEEPER, **(lifecycle or {})}, **more).start()
    return running, Door(running)


def ended(running):
    running.signal()
    return running.result(20)


def held_provider(lab, model, **more):
    """A capsule whose provider holds every answer until it is told to go on: (running, door, go on)."""
    import threading
    gate = threading.Event()
    model.script(repeat=answer("late", hold=gate))
    running, door = serving(lab, driver="std/driver-anthropic@0.1.0", gateway={"endpoint": model.url, "api_key": "sk-x"}, **more)
    return running, door, gate.set


def probe(lab):
    return lab.publish("tool-probe", own_component("tool-probe"), "tool", description="probe",
                       input_schema={"type": "object", "properties": {"do": {"type": "string"}}})


def doing(lines):
    return {"tool_calls": [{"name": "tool-probe", "input": {"do": lines}}]}


# --- busy and the queue (9.1, 6.4) ---


def test_door_11_no_room_is_a_rejected_task_with_the_text_callers_know(lab):
    running, door = serving(lab, HOLD, {"queue_depth": 1})
    first = door.send_at_once()
    door.wait_for(first["id"], "WORKING")
    second = door.send_at_once()
    with door.stream("murmur.WatchSession") as watch:
        watch.until(lambda w: w.ids)
        before = watch.ids[-1]
        for params in (at_once(message()), message()):
            task = door.result("SendMessage", params)["task"]
            assert task["status"]["state"] == "TASK_STATE_REJECTED"
            assert task["status"]["message"]["parts"] == [{"text": "task rejected: capsule is busy", "mediaType": "text/plain"}]
            assert task["status"]["message"]["messageId"] == f"msg_{task['id']}_status" and "artifacts" not in task
            assert door.error("GetTask", {"id": task["id"]})["code"] == -32001
        assert door.result("ListTasks")["totalSize"] == 2
        door.result("CancelTask", {"id": first["id"]})
        watch.until(lambda w: "CANCELED" in w.states)
        assert watch.ids[-1] <= before + 3  # nothing of the rejected ones took a number
    door.result("CancelTask", {"id": second["id"]})
    ended(running)
    assert "task_rejected" not in lab.session(running).trace.types


def test_door_12_busy_on_a_stream_is_one_event_without_an_id(lab):
    running, door = serving(lab, HOLD, {"queue_depth": 1})
    door.wait_for(door.send_at_once()["id"], "WORKING")
    door.send_at_once()
    events = door.stream("SendStreamingMessage", message()).end()
    assert [(event.id, list(event.result)) for event in events] == [(None, ["task"])]
    assert events[0].result["task"]["status"]["state"] == "TASK_STATE_REJECTED"
    ended(running)


def test_door_single_takes_one_task_and_ends(lab):
    running, door = serving(lab, [{"text": "one", "delay_ms": 500}], {"task_acceptance": "single"})
    task = door.send_at_once()
    assert door.result("SendMessage", message())["task"]["status"]["state"] == "TASK_STATE_REJECTED"
    assert running.result(20).ok().session_id
    assert lab.session(running).trace.one("task_end")["task_id"] == task["id"]


# --- held and streamed sends (7.1, 8) ---


def test_door_13_the_events_of_a_task_in_order(lab):
    steps = [{"text": "Look.", "tool_calls": [{"name": "tool-probe", "input": {"do": "say hi"}}]}, {"text": "the answer"}]
    running, door = serving(lab, steps, tools=[probe(lab)])
    plain = door.stream("SendStreamingMessage", message(), extended=False).end()
    assert list(plain[0].result) == ["task"] and plain[0].id is None
    assert plain[0].result["task"]["status"]["state"] == "TASK_STATE_SUBMITTED"
    assert [event.text for event in plain[1:] if event.state] == ["inference turn 1", "inference turn 2", "task completed"]
    assert not any(b"metadata" in line for line in [json.dumps(event.result).encode() for event in plain])
    assert [list(event.result)[0] for event in plain[-2:]] == ["artifactUpdate", "statusUpdate"]
    assert plain[-1].id == plain[-2].id + 1
    update = plain[-2].result["artifactUpdate"]
    assert update["lastChunk"] is True and update["artifact"] == {
        "artifactId": "response", "name": "response", "parts": [{"text": "the answer", "mediaType": "text/plain"}]}
    task = door.task(plain[0].result["task"]["id"])
    assert plain[-1].update["status"] == task["status"] and task["artifacts"] == [update["artifact"]]

    rich = door.stream("SendStreamingMessage", message()).end()
    names = [event.frame["frame"] for event in rich if event.frame]
    assert names.count("artifact") == 1 and "text" in names
    artifact = next(event for event in rich if event.frame and event.frame["frame"] == "artifact")
    assert list(artifact.frame) == ["frame", "toolName", "content", "fenceSource", "toolCallId", "isError", "durationMs", "exitCode",
                                    "truncated"]
    assert artifact.frame["toolName"] == "tool-probe" and artifact.frame["fenceSource"] == "tool:tool-probe"
    assert artifact.frame["content"].startswith("<untrusted-content source=tool:tool-probe>")
    assert artifact.update["status"].keys() == {"state", "timestamp"}
    numbers = [event.id for event in rich if event.id is not None]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    ended(running).ok()


def test_door_14_a_watch_numbers_the_events_of_all_tasks(lab):
    running, door = serving(lab)
    with door.stream("murmur.WatchSession") as watch:
        watch.until(lambda w: w.frames("connection-ack"))
        tasks = {door.send()["id"] for _ in range(2)}
        watch.until(lambda w: w.states.count("COMPLETED") == 2)
        assert {event.update["taskId"] for event in watch.events if event.state} == tasks
        assert watch.ids == list(range(1, len(watch.ids) + 1)) and not watch.is_over
    ended(running).ok()


def test_door_16_more_than_the_buffer_holds_is_a_gap(lab):
    count = 600
    running, door = serving(lab, [doing("\n".join(f"emit {n}" for n in range(count))), {"text": "done"}],
                            tools=[probe(lab)])
    task = door.send()
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    with door.stream("murmur.WatchSession") as watch:
        watch.until(lambda w: len(w.ids) == 512)
        gap, = watch.frames("gap")
        assert gap == {"frame": "gap", "firstAvailableId": watch.ids[0]}
        assert watch.events.index(next(e for e in watch.events if e.frame == gap)) == 1  # after the ack
        assert watch.ids == list(range(watch.ids[0], watch.ids[0] + 512)) and watch.ids[0] > 1
    ended(running).ok()


def test_door_a_subscriber_sees_the_rest_and_the_end(lab, model):
    running, door, go_on = held_provider(lab, model)
    task = door.send_at_once()
    door.wait_for(task["id"], "WORKING")
    stream = door.stream("SubscribeToTask", {"id": task["id"]}, extended=False)
    stream.until(lambda s: s.events)
    assert stream.events[0].result["task"]["status"]["state"] == "TASK_STATE_WORKING" and stream.events[0].id is None
    other = door.send_at_once()
    go_on()
    events = stream.end()
    assert events[-1].state == "COMPLETED" and {event.update["taskId"] for event in events if event.update} == {task["id"]}
    door.wait_for(other["id"], "COMPLETED")
    replayed = door.stream("SendStreamingMessage", message(), cursor=0).end()
    assert replayed[-1].state == "COMPLETED"  # a cursor brings nothing of other tasks
    ended(running).ok()


def test_door_the_text_a_message_becomes(lab):
    running, door = serving(lab, [{"text": "earlier answer", "save_request": "request.json"}])
    first = door.send()
    parts = [{"text": "look at"}, {"data": {"k": 1, "a": "```"}, "mediaType": "application/json", "filename": "a b.json"}]
    door.result("SendMessage", message(parts=parts, referenceTaskIds=[first["id"], UNKNOWN, first["id"]]))
    received = json.loads(eventually(lambda: next(lab.directory.rglob("workdir/*/request.json"), None)).read_text())
    text = "".join(part["text"] for part in received["messages"][-1]["content"])
    assert text.replace("\\u0060", "`").find(
        "look at\n````data media-type=application/json filename=a_b.json\n{\n  \"a\": \"```\",\n  \"k\": 1\n}\n````\n\n"
        f"Referenced tasks:\n- {first['id']}: completed\n```response\nearlier answer\n```\n"
        f"- {UNKNOWN}: not a task this capsule holds") >= 0, text
    assert "<untrusted-content source=task:event>" in text
    ended(running).ok()


# --- input (9.2) ---


def asking(lab, prompt="which one?", lifecycle=None):
    return serving(lab, [doing(f"ask {prompt}"), {"text": "thanks", "save_request": "request.json"}], lifecycle, tools=[probe(lab)])


def test_door_18_a_task_that_asks_is_answered_once(lab):
    running, door = asking(lab)
    with door.stream("murmur.WatchSession") as watch:
        task = door.send()  # a held send answers when input is needed
        assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED" and "message" not in task["status"]
        assert task["artifacts"] == [{"artifactId": "prompt", "name": "prompt",
                                      "parts": [{"text": "which one?", "mediaType": "text/plain"}]}]
        subscription = door.stream("SubscribeToTask", {"id": task["id"]})
        subscription.until(lambda s: s.events)
        error = door.error("SendMessage", message(taskId=task["id"], contextId="another"))
        assert error["code"] == -32602 and "another" in error["message"] and task["contextId"] in error["message"]
        resumed = door.send_at_once("this one", taskId=task["id"], contextId=task["contextId"])
        assert (resumed["id"], resumed["status"]["state"]) == (task["id"], "TASK_STATE_WORKING")
        second = door.error("SendMessage", message("that one", taskId=task["id"]))
        assert second["code"] == -32004
        assert door.wait_for(task["id"], "COMPLETED")["artifacts"][0]["parts"][0]["text"] == "thanks"
        watch.until(lambda w: "COMPLETED" in w.states)
        said = [(event.state, event.text) for event in watch.events if event.state]
        assert said == [("WORKING", "inference turn 1"), ("INPUT_REQUIRED", "which one?"), ("WORKING", "resumed"),
                        ("WORKING", "inference turn 2"), ("COMPLETED", "task completed")]
        assert subscription.end()[-1].state == "COMPLETED"  # input-required did not end it
    assert lab.session(running).trace.types.count("task_start") == 1
    ended(running).ok()


def test_door_18_a_streaming_send_ends_where_input_is_needed_but_not_on_replay(lab):
    running, door = asking(lab)
    events = door.stream("SendStreamingMessage", message()).end()
    assert events[-1].state == "INPUT_REQUIRED"
    task_id = events[0].result["task"]["id"]
    again = door.stream("SendStreamingMessage", message("it", taskId=task_id), cursor=0).end()
    assert again[0].result["task"]["status"]["state"] == "TASK_STATE_WORKING"
    assert [event.state for event in again if event.state][-1] == "COMPLETED"
    assert "INPUT_REQUIRED" in [event.state for event in again if event.state]
    ended(running).ok()


def test_door_19_an_input_that_never_comes_is_one_failure(lab):
    running, door = asking(lab, lifecycle={"input_timeout_secs": 1})
    with door.stream("murmur.WatchSession") as watch:
        task_id = door.send()["id"]
        watch.until(lambda w: "FAILED" in w.states)
        task = door.task(task_id)
        assert task["status"]["message"]["parts"][0]["text"] == "input-timeout" and "artifacts" not in task
        assert watch.states.count("FAILED") == 1
        assert watch.states.count("WORKING") == 1  # going back to work is not streamed
        assert door.error("SendMessage", message(taskId=task_id))["code"] == -32004
    ended(running)
    assert lab.session(running).trace.one("task_failed")["cause"] == "input_timeout"


def test_session_38_a_cancel_ends_a_wait_for_input(lab):
    running, door = asking(lab)
    task_id = door.send()["id"]
    assert door.result("CancelTask", {"id": task_id})["status"]["state"] == "TASK_STATE_CANCELED"
    eventually(lambda: door.task(task_id)["status"].get("message"), 10 * SLOWER)
    assert door.task(task_id)["status"]["message"]["parts"][0]["text"] == "task canceled"
    ended(running)
    trace = lab.session(running).trace
    assert trace.one("task_canceled")["phase"] == "input" and trace.one("task_end")["exit_status"] == "canceled"


# --- cancel (7.5, 7.7, 9.3) ---


def test_door_20_a_cancel_during_inference_is_final_and_nothing_more_is_asked(lab, model):
    running, door, go_on = held_provider(lab, model)
    task_id = door.send_at_once()["id"]
    eventually(lambda: model.requests, 10 * SLOWER)
    started = time.monotonic()
    task = door.result("CancelTask", {"id": task_id})
    assert time.monotonic() - started < 2 * SLOWER
    assert task["status"]["state"] == "TASK_STATE_CANCELED" and "artifacts" not in task
    error = door.error("CancelTask", {"id": task_id})
    assert error["code"] == -32002 and error["data"][0]["metadata"] == {"taskId": task_id, "state": "TASK_STATE_CANCELED"}
    eventually(lambda: door.task(task_id)["status"].get("message"), 10 * SLOWER)
    go_on()
    assert door.send()["status"]["state"] == "TASK_STATE_COMPLETED"
    assert len(model.requests) == 2 and door.state(task_id) == "CANCELED"
    session = lab.session(running)
    ended(running)
    assert session.trace.one("task_canceled")["phase"] == "inference"
    assert (session.records / f"out/result.txt").read_text() == "late"


def test_door_21_a_cancelled_queued_task_leaves_one_line_and_its_place(lab):
    running, door = serving(lab, HOLD, {"queue_depth": 2})
    active, queued, third = door.send_at_once(), door.send_at_once(), door.send_at_once()
    door.wait_for(active["id"], "WORKING")
    with door.stream("murmur.WatchSession") as watch:
        task = door.result("CancelTask", {"id": queued["id"]})
        assert task["status"]["state"] == "TASK_STATE_CANCELED"
        fourth = door.send_at_once()  # the place is free at once
        assert fourth["status"]["state"] == "TASK_STATE_SUBMITTED"
        door.result("CancelTask", {"id": active["id"]})
        door.wait_for(third["id"], "WORKING")
        watch.until(lambda w: w.states.count("CANCELED") == 2)
        canceled = [(event.update["taskId"], event.text) for event in watch.events if event.state == "CANCELED"]
        # the queued one's status comes when the loop comes to it, after the running task's
        assert canceled == [(active["id"], "task canceled"), (queued["id"], "task canceled before it started")]
    door.result("murmur.StopSession")
    ended(running)
    trace = lab.session(running).trace
    of_queued = [event["event_type"] for event in trace.events if event.get("task_id") == queued["id"]]
    assert of_queued == ["a2a_task_received", "task_canceled"]
    assert [e["phase"] for e in trace.all("task_canceled") if e["task_id"] == queued["id"]] == ["queued"]
    assert third["id"] in [event["task_id"] for event in trace.all("task_start")]


def test_door_22_stopping_twice_tells_the_tasks_once_and_ends_nothing(lab):
    running, door = serving(lab, HOLD)
    tasks = sorted(door.send_at_once()["id"] for _ in range(3))
    assert door.result("murmur.StopSession") == {"session_id": running.session_id, "canceled": tasks, "residue": []}
    assert door.result("murmur.StopSession") == {"session_id": running.session_id, "canceled": [], "residue": []}
    assert door.get().status == 200 and pid_exists(running.pid)
    assert (lab.murmur_home / "running" / f"{running.session_id}.json").exists()
    eventually(lambda: all(door.task(task)["status"].get("message") for task in tasks), 10 * SLOWER)
    assert ended(running).ok()


def sleep_of_our_own(seconds):
    """A command line no other test has."""
    return f"sleep {seconds}.{os.getpid()}"


def is_running(command):
    """True once a process runs exactly these words."""
    def lines():
        for entry in os.listdir("/proc"):
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as line:
                    yield line.read()
            except OSError:
                continue
    return command.replace(" ", "\0").encode() + b"\0" in lines()


def residue_of(task):
    artifact, = task["artifacts"]
    assert artifact["artifactId"] == artifact["name"] == "residue"
    return [part["data"] for part in artifact["parts"]]


def test_door_22_a_cancel_names_the_commands_it_leaves_running(lab):
    behind, before = sleep_of_our_own(71), sleep_of_our_own(72)
    project = command_agent(lab, [behind, before], shell=("bash", "sleep"),
                            lifecycle={**SLEEPER, "shell_grace_secs": 1})
    running = project.start("--workdir", project / "work")
    door = Door(running)
    before_ms = time.time() * 1000
    task_id = door.send_at_once()["id"]
    trace = lambda: lab.session(running).trace  # noqa: E731
    first = eventually(lambda: trace().all("shell_detached"), 20 * SLOWER)[0]["work_id"]
    eventually(lambda: is_running(before), 20 * SLOWER)
    items = residue_of(door.result("CancelTask", {"id": task_id}))
    assert [item["command"] for item in items if item["work_id"] == first] == [behind]
    assert sorted(item["command"] for item in items) == [behind, before]
    assert [item["work_id"] for item in items] == sorted(item["work_id"] for item in items)
    for item in items:
        assert list(sorted(item)) == ["binary", "command", "kind", "started_at_ms", "work_id"]
        assert item["kind"] == "detached_shell" and item["binary"] == "bash"
        assert before_ms - 1000 <= item["started_at_ms"] <= time.time() * 1000
    # the one in the foreground really went on, under the id that was told
    told = {item["work_id"] for item in items}
    eventually(lambda: {event["work_id"] for event in trace().all("shell_detached")} == told, 10 * SLOWER)
    eventually(lambda: door.task(task_id)["status"].get("message"), 10 * SLOWER)
    running_commands = door.task(task_id)["metadata"]["murmur"]["runningCommands"]
    assert {entry["workId"] for entry in running_commands} == told
    assert all(sorted(entry) == ["binary", "command", "runningMs", "workId"] for entry in running_commands)
    assert sorted(trace().one("task_canceled")["detached_work_ids"]) == sorted(told)
    assert {item["work_id"] for item in door.result("murmur.StopSession")["residue"]} == told
    stopped = lab.mur("stop", running.session_id).ok().stdout
    assert "residue: 2 left running" in stopped and stopped.count("  detached shell  sleep 7") == 2
    running.result(20)


def test_door_22_cancel_and_stop_print_what_is_left(lab):
    project = command_agent(lab, [sleep_of_our_own(73)], shell=("bash", "sleep"), lifecycle={**SLEEPER, "shell_grace_secs": 600})
    running = project.start("--workdir", project / "work")
    door = Door(running)
    task_id = door.send_at_once()["id"]
    eventually(lambda: is_running(sleep_of_our_own(73)), 20 * SLOWER)
    printed = lab.mur("cancel", running.session_id, task_id).ok().stdout
    assert re.fullmatch(rf"task:    {task_id}\nstate:   canceled\nrunning: wrk_[0-9a-f]{{32}}  detached shell  {sleep_of_our_own(73)}\n", printed)
    ended(running)


def test_door_completed_tasks_name_the_commands_they_left_running(lab):
    long = "sleep 74 # " + "x" * 300
    project = command_agent(lab, [long], shell=("bash", "sleep"), lifecycle={**SLEEPER, "shell_grace_secs": 1})
    running = project.start("--workdir", project / "work")
    task = Door(running).send()
    entry, = task["metadata"]["murmur"]["runningCommands"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert entry["command"] == long[:200] + "…" and entry["runningMs"] >= 900
    ended(running).ok()


# --- closing (20) ---


def test_door_closing_answers_held_sends_and_says_what_became_of_each_task(lab):
    running, door = serving(lab, HOLD)
    active = door.send_at_once()
    door.wait_for(active["id"], "WORKING")
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message()}).encode()
    with socket.create_connection(door.address, timeout=30) as held, door.stream("murmur.WatchSession") as watch:
        held.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\n"
                     b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        eventually(lambda: door.result("ListTasks")["totalSize"] == 2)
        watch.until(lambda w: w.frames("connection-ack"))
        running.signal()
        received = b""
        while chunk := held.recv(65536):
            received += chunk
        events = watch.end()
    assert b"TASK_STATE_CANCELED" in received
    assert [event.text for event in events if event.state == "CANCELED"] == ["task canceled", "task canceled before it started"]
    assert not any(event.frame and event.frame["frame"] == "capsule-closed" for event in events)
    result = running.result(20).failed("E-RUN-040")
    assert result.status == "canceled"
    trace = lab.session(running).trace
    assert trace.one("session_end")["exit_status"] == "canceled"
    assert [event["phase"] for event in trace.all("task_canceled")] == ["inference", "queued"]
    with pytest.raises(OSError):
        socket.create_connection(door.address, timeout=5)


def test_door_tasks_still_queued_when_a_session_ends_by_itself_are_rejected(lab):
    running, door = serving(lab, [{"text": "one", "delay_ms": 1500}], {"after_task": "exit"})
    with door.stream("murmur.WatchSession") as watch:
        first, second = door.send_at_once(), door.send_at_once()
        events = watch.end()
    running.result(20).ok()
    rejected = [event for event in events if event.state == "REJECTED"]
    assert [(event.update["taskId"], event.text) for event in rejected] == [
        (second["id"], "task rejected: the session ended before this task started")]
    trace = lab.session(running).trace
    assert trace.one("task_rejected")["task_id"] == second["id"] and trace.one("task_rejected")["cause"] == "session_ended"
    assert [event["task_id"] for event in trace.all("task_start")] == [first["id"]]


# --- provenance (11) and what is recorded ---


def test_door_26_peers_are_refused_alike_and_completions_are_not(lab):
    running, door = serving(lab)
    rpc = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message()}).encode()
    refused = set()
    for value in ("peer", "PEER"):
        for method, path, body in (("POST", "/", rpc), ("POST", "/", b"{x"), ("GET", "/nothing", b""), ("PUT", "/", b"x"),
                                   ("GET", "/resources/files/x", b"")):
            answered = door.request(method, path, [*door.headers(), ("X-Murmur-Task-Origin", value)], body)
            refused.add((answered.status, answered.body, answered.headers["www-authenticate"]))
    assert len(refused) == 1
    status, body, challenge = refused.pop()
    assert status == 403 and json.loads(body)["error"] == "peer_not_accepted" and challenge is None
    assert list(json.loads(body)) == ["error", "message"]
    assert door.request("GET", "/.well-known/agent-card.json", [("x-murmur-task-origin", "peer")]).status == 200
    completion = door.post(rpc, [*door.headers(), ("x-murmur-task-origin", "completion")])
    assert completion.status == 200 and completion.json["error"]["code"] == -31001
    assert running.session_id not in completion.body.decode()
    assert door.result("ListTasks")["totalSize"] == 0
    ended(running).ok()


def test_door_a_caller_claims_nothing_but_peer_and_completion(lab):
    running, door = serving(lab)
    rpc = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message()}
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    for origin in ("user", "schedule", "system", "x"):
        door.post(rpc, [*door.headers(), ("x-murmur-task-origin", origin), ("x-murmur-task-trust", "trusted"), ("traceparent", parent)])
    trace = lab.session(running).trace
    starts = trace.all("task_start")
    assert {(start["origin"], start["trust"], start["lane"]) for start in starts} == {("event", "untrusted", "bg")} and len(starts) == 4
    assert {event["traceparent_from_caller"] for event in trace.all("a2a_task_received")} == {parent}
    ended(running).ok()


# --- the threads (1) ---


def test_door_34_a_guest_that_spins_delays_nobody(lab):
    running, door = serving(lab, [doing("spin"), {"text": "never"}], tools=[probe(lab)])
    task_id = door.send_at_once()["id"]
    eventually(lambda: "inference" in lab.session(running).trace.types, 20 * SLOWER)

    def took(work):
        started = time.monotonic()
        work()
        return time.monotonic() - started

    def watched():
        with door.stream("murmur.WatchSession") as watch:
            watch.until(lambda w: w.frames("connection-ack"), 2)

    for _ in range(3):
        for work in (door.get, lambda: door.task(task_id), door.send_at_once, watched, lambda: door.get("/resources/files/x"),
                     lambda: door.result("ListTasks")):
            assert took(work) < 2 * SLOWER, work
    assert lab.mur("ps", "--json").ok().json["capsules"][0]["status"] == "running"
    door.result("murmur.StopSession")
    ended(running)


def test_door_20_a_signal_that_comes_as_the_session_ends_does_not_change_its_ending(lab):
    """SIGTERM at every moment of the last steps: whatever it meets, the exit says how the session ended."""
    for number in range(25):
        running = lab.agent(name=f"a{number}", steps=[{"text": "done"}], lifecycle={"task_acceptance": "single"}).start("--task", "x")
        trace = eventually(lambda: next(iter(lab.murmur_home.rglob(f"{running.session_id}/trace.jsonl")), None), 20 * SLOWER)
        eventually(lambda: '"session_end"' in trace.read_text(), 20 * SLOWER, every_s=0.0005)
        time.sleep(number * 0.0002)
        try:
            os.kill(running.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
        result = running.result(20)
        assert result.code == 0 and result.status == "ok", result
        assert not list((lab.murmur_home / "running").iterdir())
