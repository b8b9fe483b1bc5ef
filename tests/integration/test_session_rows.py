# SPDX-License-Identifier: Apache-2.0
#
# The tables of a session, row by row: what is retried, how tasks and lifecycles end, what the record keeps.

import json
import os
import stat
import time

import pytest

from tests.support.door_client import Door, message
from tests.support.fixtures import own_component
from tests.support.lab import SLOWER
from tests.support.model_server import Reply, answer, fault
from tests.support.polling import eventually

FAST = {"max_retries": 2, "initial_delay_ms": 1, "max_delay_ms": 50}


def asking(lab, model, **how):
    driver = lab.publish("driver-anthropic", own_component("driver-anthropic"), "driver",
                         upstream_auth={"header": "x-api-key", "value": "{key}"})
    how["inference"] = {"retry": FAST, **how.pop("inference", {})}
    return lab.agent(driver=driver, gateway={"endpoint": model.url, "keyless": True}, **how)


# --- retries (5.7) -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
def test_session_5_7_statuses_that_are_tried_again(lab, model, status):
    model.script(fault(status), answer("done"))

    session = lab.session(asking(lab, model).run("--task", "go").ok())

    line = session.trace.one("inference_retry")
    assert (line["reason"], line["provider_status"], line["attempt"], line["max_retries"]) == ("status", status, 1, 2)
    assert line["charged_tokens"] == 0 and "retry_after_ms" not in line
    assert session.trace.one("inference")["attempts"] == 2 and session.result_text == "done"


@pytest.mark.parametrize("status", [400, 403, 404, 413, 422, 501, 505])
def test_session_5_7_statuses_that_are_not(lab, model, status):
    model.script(fault(status))

    result = asking(lab, model).run("--task", "go").failed("E-RUN-040")

    trace = lab.session(result).trace
    assert "inference_retry" not in trace.types and len(model.requests) == 1
    line = trace.one("inference")
    assert (line["error_code"], line["provider_status"]) == ("driver_error", status)
    assert "attempts" not in line and "retry_stopped" not in line
    assert trace.one("task_failed")["cause"] == "driver_error"
    assert lab.session(result).result_text.startswith("error: ")


def test_session_5_7_a_reset_before_the_answer_is_a_connection_that_is_tried_again(lab, model):
    model.script(Reply(reset_after_bytes=0), answer("done"))

    trace = lab.session(asking(lab, model).run("--task", "go").ok()).trace

    line = trace.one("inference_retry")
    assert line["reason"] == "connection" and "provider_status" not in line


def test_session_5_7_a_wait_longer_than_allowed_stops_the_retries(lab, model):
    model.script(fault(429, headers={"retry-after": "60"}))

    result = asking(lab, model).run("--task", "go").failed("E-RUN-040")

    trace = lab.session(result).trace
    assert trace.one("inference")["retry_stopped"] == "retry_after" and "inference_retry" not in trace.types


def test_session_5_7_the_milliseconds_of_a_provider_go_before_its_seconds(lab, model):
    model.script(fault(429, headers={"retry-after-ms": "20", "retry-after": "60"}), answer("done"))

    line = lab.session(asking(lab, model).run("--task", "go").ok()).trace.one("inference_retry")

    assert (line["delay_ms"], line["retry_after_ms"]) == (20, 20)


def test_session_5_7_a_wait_past_the_deadline_is_not_begun(lab, model):
    model.script(fault(429, headers={"retry-after": "30"}))
    project = asking(lab, model, inference={"retry": {"max_retries": 3, "initial_delay_ms": 1, "max_delay_ms": 60000}})

    result = project.run("--task", "go", "--deadline", "20")

    assert result.code == 1
    assert lab.session(result).trace.one("inference")["retry_stopped"] == "deadline"


def test_session_5_7_retries_that_run_out(lab, model):
    model.script(fault(500), fault(500), fault(503))

    session = lab.session(asking(lab, model).run("--task", "go").failed("E-RUN-040"))

    line = session.trace.one("inference")
    assert (line["attempts"], line["retry_stopped"], line["provider_status"]) == (3, "max_retries", 503)
    assert "(3 attempts; retry stopped: max_retries)" in session.result_text
    assert [retry["attempt"] for retry in session.trace.all("inference_retry")] == [1, 2]
    assert session.trace.types.index("inference_retry") < session.trace.types.index("inference")


def test_session_5_7_a_cancel_ends_the_wait_at_once(lab, model):
    model.script(fault(429, headers={"retry-after": "30"}), answer("late"))
    project = asking(lab, model, inference={"retry": {"max_retries": 3, "initial_delay_ms": 1, "max_delay_ms": 60000}})
    running = project.start("--task", "go")
    eventually(lambda: lab.session(running).trace.all("inference_retry"), 20 * SLOWER, "it waits")
    began = time.monotonic()
    running.signal()
    running.result()

    assert time.monotonic() - began < 10 * SLOWER and len(model.requests) == 1
    assert lab.session(running).trace.one("task_canceled")["phase"] == "inference"


# --- lifecycles (4.4) ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("acceptance, after", [("none", "exit"), ("none", "sleep")])
def test_session_4_4_a_door_that_takes_nothing(lab, acceptance, after):
    project = lab.agent(steps=[{"text": "done", "delay_ms": 700}], lifecycle={"task_acceptance": acceptance, "after_task": after})
    running = project.start("--task", "go")
    error = Door(running).post({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message()})
    assert "error" in error.json
    running.result().ok()
    session = lab.session(running)
    assert len(session.trace.all("task_start")) == 1 and session.result_text == "done"


def test_session_4_4_a_single_session_ends_after_one_task_of_the_door(lab):
    running = lab.agent(steps=[{"text": "done"}]).start(env={"MURMUR_A2A_TIMEOUT_SECS": "20"})
    assert Door(running).send()["status"]["state"] == "TASK_STATE_COMPLETED"
    running.result().ok()
    start, = lab.session(running).trace.all("task_start")
    assert (start["source"], start["origin"], start["lane"], start["trust"]) == ("a2a", "event", "bg", "untrusted")


def test_session_4_4_queue_and_exit_ends_with_the_first_task(lab):
    lifecycle = {"task_acceptance": "queue", "after_task": "exit", "queue_depth": 4}
    running = lab.agent(steps=[{"text": "done"}], lifecycle=lifecycle).start(env={"MURMUR_A2A_TIMEOUT_SECS": "20"})
    Door(running).send()
    running.result().ok()
    assert len(lab.session(running).trace.all("task_start")) == 1


def test_session_4_4_lanes_go_before_one_another_and_each_is_a_queue(lab):
    lifecycle = {"task_acceptance": "queue", "after_task": "sleep", "queue_depth": 8}
    running = lab.agent(steps=[{"text": "done", "delay_ms": 800}], lifecycle=lifecycle,
                        exports={"peer_tasks": {"accept": True}}).start("--task", "own")
    door = Door(running)
    sent = []
    for origin in ("event", "peer", "event", "peer"):
        body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage",
                "params": {**message(), "configuration": {"returnImmediately": True}}}
        reply = door.post(body, door.headers([("x-murmur-task-origin", origin)]))
        sent.append((origin, reply.json["result"]["task"]["id"]))
    eventually(lambda: len(lab.session(running).trace.all("task_end")) == 5, 40 * SLOWER, "all five tasks")
    running.signal()
    running.result()

    started = [line["task_id"] for line in lab.session(running).trace.all("task_start")][1:]
    assert started == [task for wanted in ("peer", "event") for origin, task in sent if origin == wanted]


def test_session_4_4_a_failed_task_of_a_sleeping_queue_does_not_decide_the_launch(lab):
    lifecycle = {"task_acceptance": "queue", "after_task": "sleep", "queue_depth": 4}
    running = lab.agent(steps=[{"error": "no luck"}], lifecycle=lifecycle).start()
    assert Door(running).send()["status"]["state"] == "TASK_STATE_FAILED"
    running.signal()
    result = running.result()

    assert (result.code, result.status) == (0, "ok")
    assert lab.session(running).trace.one("session_end")["exit_status"] == "ok"


def test_session_4_4_a_failed_task_of_a_single_session_decides_it(lab):
    running = lab.agent(steps=[{"error": "no luck"}]).start(env={"MURMUR_A2A_TIMEOUT_SECS": "20"})
    Door(running).send()
    result = running.result().failed("E-RUN-040")

    assert result.status == "failed" and lab.session(running).trace.one("session_end")["exit_status"] == "failed"


# --- the record (11.1, 11.2) ----------------------------------------------------------------------------------------------


def conversations(lab):
    root = lab.murmur_home / "conversations"
    return sorted(path.relative_to(root) for path in root.rglob("conversation.jsonl")) if root.is_dir() else []


def test_session_11_1_a_record_is_named_by_its_store_and_context_and_private(lab):
    lab.agent(steps=[{"text": "x"}], context={"record_store": "shared"}).run("--task", "go", "--context", "c1").ok()

    assert [str(path) for path in conversations(lab)] == ["shared/c1/conversation.jsonl"]
    path = lab.murmur_home / "conversations/shared/c1/conversation.jsonl"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["role"] for line in lines] == ["user", "assistant"] and all(line["id"].startswith("msg_") for line in lines)


@pytest.mark.parametrize("name", ["a/b", "..", ".hidden", "/abs"])
def test_session_11_1_names_that_are_no_segment(lab, name):
    project = lab.agent(steps=[{"text": "x"}])
    project.run("--task", "go", "--context", name).failed("E-CAP-011")
    lab.agent(name="other", steps=[{"text": "x"}], context={"record_store": name}).run("--task", "go").failed("E-CAP-011")
    assert lab.records == [] and conversations(lab) == []


def test_session_11_2_a_stateless_run_records_and_does_not_load(lab, model):
    model.script(answer("one"), answer("two"))
    project = asking(lab, model)
    for _ in range(2):
        project.run("--task", "go", "--context", "c1").ok()

    assert [len(request.json["messages"]) for request in model.requests] == [1, 1]
    assert len((lab.murmur_home / "conversations/agent/c1/conversation.jsonl").read_text().splitlines()) == 4


def test_session_11_1_malformed_lines_of_a_record_are_said_once_and_survived(lab, model):
    model.script(answer("one"), answer("two"))
    project = asking(lab, model, lifecycle={"conversation": "threaded"})
    project.run("--task", "go", "--context", "c1").ok()
    path = lab.murmur_home / "conversations/agent/c1/conversation.jsonl"
    path.write_text("not json\n[]\n" + path.read_text())

    result = project.run("--task", "again", "--context", "c1").ok()

    assert len(model.requests[1].json["messages"]) == 3
    assert result.stderr.count("2 lines that are no messages") == 1, result.stderr


# --- what is written where (3.1) ------------------------------------------------------------------------------------------


def test_session_3_1_modes_are_private_whatever_the_umask(lab):
    project = lab.agent(steps=[{"tool_calls": [{"name": "sh", "input": {"command": (
        'for p in "$MURMUR_RUNTIME_DIR" "$MURMUR_RECORDS_DIR/home" "$MURMUR_RECORDS_DIR/tmp" "$MURMUR_RUNTIME_DIR/tools"; '
        'do stat -c %a "$p"; done')}}]}, {"text": "{{result}}"}], capabilities={"shell": {"allow": ["sh", "stat"]}})
    before = os.umask(0o002)
    try:
        session = lab.session(project.run("--task", "go").ok())
    finally:
        os.umask(before)

    assert "\n700\n700\n700\n775\n" in session.result_text, session.result_text
    for below in ("", "sessions", "records", "conversations", "running"):
        path = lab.murmur_home / below
        if path.exists():
            assert stat.S_IMODE(path.stat().st_mode) == 0o700, below
    group = session.records
    while group != lab.murmur_home:
        assert stat.S_IMODE(group.stat().st_mode) == 0o700, group
        group = group.parent
    assert stat.S_IMODE((session.records / "trace.jsonl").stat().st_mode) == 0o664


def test_session_3_1_a_script_leaves_only_home_and_tmp(lab):
    session = lab.session(lab.script_capsule(own_component("script-task")).run("--task", "go").ok())
    assert sorted(path.name for path in session.records.iterdir()) == ["home", "tmp"]


def test_session_3_1_an_http_session_logs_the_tools_it_offers(lab):
    session = lab.session(lab.agent(steps=[{"text": "x"}]).run("--task", "go").ok())
    log = (session.records / "logs/bootstrap.log").read_text()
    assert log.startswith("Installed tools (JSON):\n[")
    assert json.loads(log.split("\n", 1)[1].split("\n\n")[0])[0]["name"] == "session-status"


# --- exit codes (15.3) ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps, inference, code, status, diagnostic", [
    ([{"text": "x"}], {}, 0, "ok", None),
    ([{"tool_calls": [{"name": "session-status", "input": {}}]}], {"max_turns": 1}, 1, "max_turns_reached", "E-RUN-040"),
    ([{"text": "x"}], {"max_session_tokens": 1}, 1, "spend_ceiling_reached", "E-RUN-040"),
    ([{"error": "no"}], {}, 1, "failed", "E-RUN-040")])
def test_session_15_3_the_status_the_exit_and_the_trace_agree(lab, steps, inference, code, status, diagnostic):
    result = lab.agent(steps=steps, inference=inference).run("--task", "go")

    assert (result.code, result.status) == (code, status)
    assert (f"error[{diagnostic}]" in result.stderr) == (diagnostic is not None)
    trace = lab.session(result).trace
    assert trace.one("session_end")["exit_status"] == trace.one("task_end")["exit_status"] == status
    assert diagnostic is None or status in result.stderr
