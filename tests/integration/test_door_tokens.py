# SPDX-License-Identifier: Apache-2.0
#
# An authenticated door of a real session: where its tokens go, what each of them may do, and what is refused how.

import http.client
import json
import os
import re
import resource
import signal
import socket
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from tests.support.commands import command_agent
from tests.support.door_client import SLEEPER, STREAM, Door
from tests.support.lab import SLOWER
from tests.support.polling import eventually

AUTHENTICATION = {"scheme": "bearer", "credentials": {
    "reader": {"scopes": ["GetTask", "ListTasks"]},
    "alpha": {"scopes": ["SendMessage", "GetTask", "ListTasks", "CancelTask", "SubscribeToTask"]}}}


def authenticated(lab, steps=None, name="agent"):
    return lab.agent(name=name, steps=steps or [{"text": "the answer"}], lifecycle=SLEEPER,
                     network={"authentication": AUTHENTICATION})


@pytest.fixture
def door(lab):
    running = authenticated(lab).start()
    running.url  # waits for the readiness line
    yield running
    running.signal()
    running.result(20).ok()


def token(lab, running, name="operator"):
    return lab.mur("token", running.session_id, "--credential", name).ok().stdout.rstrip("\n")


def post(running, method, params=None, authorization=(), version="1.0"):
    """One call with these Authorization lines; (status, headers, body)."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {} if params is None else params}).encode()
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(running.url).netloc, timeout=30)
    connection.putrequest("POST", "/")
    for name, value in (("content-type", "application/json"), ("A2A-Version", version), ("content-length", str(len(body))),
                        *(("Authorization", line) for line in authorization)):
        connection.putheader(name, value)
    connection.endheaders(body)
    with connection.getresponse() as reply:
        answer = reply.status, reply.headers, reply.read()
    connection.close()
    return answer


def call(running, bearer, method, params=None):
    status, _, body = post(running, method, params, [f"Bearer {bearer}"])
    assert status == 200, body
    return json.loads(body)


def message(**more):
    return {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}], **more}}


def test_door_01_the_public_card_of_an_authenticated_door_tells_nothing_of_the_session(door):
    with urllib.request.urlopen(f"{door.url}/.well-known/agent-card.json", timeout=20) as reply:
        text = reply.read().decode()
    assert "bearer" in json.loads(text)["securitySchemes"]
    for word in ("sessionId", "tools", "planes", '"shell"', door.session_id):
        assert word not in text


def test_door_02_the_extended_card_names_the_session(lab, door):
    card = call(door, token(lab, door, "reader"), "GetExtendedAgentCard")["result"]
    assert door.session_id in json.dumps(card)


def test_door_23_a_missing_scope_is_named(lab, door):
    reader = token(lab, door, "reader")
    status, headers, body = post(door, "SendMessage", message(), [f"Bearer {reader}"])
    assert status == 403 and json.loads(body)["error"] == "insufficient_scope"
    assert 'scope="SendMessage"' in headers["www-authenticate"]
    assert reader not in body.decode()
    assert call(door, reader, "ListTasks")["result"]["totalSize"] == 0


def test_door_24_what_is_no_token_of_this_session_is_refused_alike(lab, door):
    other = authenticated(lab, name="other").start()
    foreign = token(lab, other)
    own = token(lab, door)
    other.signal()
    other.result(20).ok()
    assert post(door, "ListTasks")[0] == 401
    answers = [post(door, "ListTasks", None, [line]) for line in
               (f"Bearer {foreign}", "Basic eDp5", "Bearer garbage", f"Bearer {own}x", f"Bearer {own[:-1]}")]
    answers.append(post(door, "ListTasks", None, [f"Bearer {own}", f"Bearer {own}"]))
    assert {(status, body) for status, _, body in answers} == {(401, answers[0][2])}
    assert json.loads(answers[0][2])["error"] == "invalid_token"
    assert post(door, "ListTasks", None, [f"bEARER  {own}"])[0] == 200


def test_door_25_a_task_of_another_credential_is_as_one_that_never_was(lab, door):
    alpha, reader, operator = (token(lab, door, name) for name in ("alpha", "reader", "operator"))
    mine = call(door, operator, "SendMessage", message())["result"]["task"]["id"]
    theirs = call(door, alpha, "SendMessage", message())["result"]["task"]["id"]

    def outcome(bearer, method, task_id):
        return post(door, method, {"id": task_id}, [f"Bearer {bearer}"])[2].replace(task_id.encode(), b"<id>")

    for method in ("GetTask", "CancelTask", "SubscribeToTask"):
        assert outcome(alpha, method, mine) == outcome(alpha, method, "tsk_" + "0" * 32)
    assert call(door, alpha, "SendMessage", message(taskId=mine))["error"]["code"] == -32001
    assert [task["id"] for task in call(door, alpha, "ListTasks")["result"]["tasks"]] == [theirs]
    assert call(door, reader, "ListTasks")["result"]["totalSize"] == 0
    assert call(door, operator, "ListTasks")["result"]["totalSize"] == 2


def test_door_38_a_redirected_readiness_line_holds_no_token(lab):
    path = lab.directory / "line.json"
    with path.open("wb") as line:
        running = authenticated(lab).start("--json", stdout=line)
    record = eventually(lambda: next(iter((lab.murmur_home / "running").glob("*.json")), None)
                        if (lab.murmur_home / "running").is_dir() else None)
    eventually(lambda: path.read_text().endswith("\n"))
    assert json.loads(path.read_text())["auth"] == "bearer"
    assert "mdt1." not in path.read_text()
    printed = lab.mur("token", record.stem).ok().stdout
    assert printed.startswith("mdt1.") and printed.count("\n") == 1
    running.signal()
    running.result(20).ok()


def test_door_a_launcher_may_ask_for_the_tokens_on_its_pipe(lab):
    running = authenticated(lab).start("--json", "--readiness-tokens")
    line = json.loads(running.wait_for(r"^\{.*\}$").group(0))
    assert list(line) == sorted(line)
    assert list(line["tokens"]) == ["alpha", "operator", "reader"]
    assert token(lab, running, "alpha") == line["tokens"]["alpha"]
    running.signal()
    running.result(20).ok()


def test_door_37_the_record_alone_holds_the_tokens(lab, door):
    path = lab.murmur_home / "running" / f"{door.session_id}.json"
    assert path.stat().st_mode & 0o777 == 0o600
    record = json.loads(path.read_text())
    assert sorted(record["credentials"]) == ["alpha", "reader"]
    assert record["door_token"] == token(lab, door)
    call(door, record["door_token"], "SendMessage", message())
    told = door.stdout + door.stderr
    assert "murmur: auth bearer (mur token " + door.session_id + ")" in told
    kept = [file for file in lab.murmur_home.rglob("*") if file.is_file() and file != path]
    assert "mdt1." not in told and not any(b"mdt1." in file.read_bytes() for file in kept)


def test_cli_16_an_unknown_credential_lists_the_names_there_are(lab, door):
    refused = lab.mur("token", door.session_id, "--credential", "nope").failed("E-RUN-049")
    assert "operator, alpha, reader" in refused.stderr and refused.stdout == ""


def test_door_commands_by_session_use_the_operators_token(lab, door):
    listed = lab.mur("ps", "--json").ok()
    assert listed.json["capsules"][0]["status"] == "running"
    assert "mdt1." not in listed.stdout
    task = call(door, token(lab, door), "SendMessage", message())["result"]["task"]["id"]
    assert "nothing to cancel" in lab.mur("cancel", door.session_id, task).ok().stdout


def test_door_an_authenticated_door_needs_no_exposure_warning(lab):
    running = authenticated(lab).start("--bind", "0.0.0.0")
    running.url
    running.signal()
    assert "W-SEC-032" not in running.result(20).ok().stderr


# --- refusals are the same bytes whatever they were asked ---


def without_date(answer):
    return re.sub(rb"(?im)^date: [^\r]*\r\n", b"", answer)


def raw_request(door, lines, method="POST", path="/", body=b'{"jsonrpc":"2.0","id":1,"method":"ListTasks"}'):
    head = [f"{method} {path} HTTP/1.1", "Host: x", "Content-Type: application/json", "A2A-Version: 1.0",
            f"Content-Length: {len(body)}", *lines]
    return without_date(Door(door).raw("\r\n".join([*head, "", ""]).encode() + body))


def test_door_24_refusals_are_identical_to_the_byte(lab, door):
    own, reader = token(lab, door), token(lab, door, "reader")
    segments = own.split(".")
    last = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    trailing = own[:-1] + last[last.index(own[-1]) ^ 1]  # the same bytes to a lenient decoder
    bad = [f"Bearer {text}" for text in (
        own + "=", own + "x", own[:-1], trailing, own.upper(), own + " x", f"{own}.{segments[2]}", ".".join(segments[:2]), segments[1],
        own.replace("mdt1", "ctl1"), own.replace("mdt1", "mh1"), own.replace("mdt1", "mft1"), "mdt1..", "mdt1.e30.", "x", "")]
    bad += ["Basic eDp5", own, f"Bearer:{own}", f"Bearer{own}", "Bearer", ""]
    asked = [("POST", "/", b"{x"), ("GET", "/nothing", b""), ("OPTIONS", "/", b""), ("GET", "/resources/files/x", b""),
             ("POST", "/", b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"tsk_1"}}')]
    answers = {raw_request(door, [f"Authorization: {line}"]) for line in bad}
    answers |= {raw_request(door, [f"Authorization: Bearer {own}"] * 2)}
    answers |= {raw_request(door, ["Authorization: Bearer x"], *how) for how in asked}
    assert len(answers) == 1, answers
    answer = answers.pop()
    assert answer.startswith(b"HTTP/1.1 401 ") and b'error="invalid_token"' in answer
    none = {raw_request(door, [], *how) for how in [*asked, ("POST", "/", b"")]}
    assert len(none) == 1
    refusal = none.pop()
    assert b'www-authenticate: bearer realm="agent"\r\n' in refusal.lower() and b'"error":"unauthenticated"' in refusal
    # Method, path and version come after the token; the method table before the scope.
    assert raw_request(door, [f"Authorization: Bearer {reader}", "Connection: close"], "PUT", "/x").startswith(b"HTTP/1.1 404 ")
    call_unknown = post(door, "nope", None, [f"Bearer {reader}"])
    assert call_unknown[0] == 200 and json.loads(call_unknown[2])["error"]["code"] == -32601


def test_door_23_every_method_has_its_own_scope(lab, door):
    alpha, reader = token(lab, door, "alpha"), token(lab, door, "reader")
    granted = {reader: {"GetTask", "ListTasks"}, alpha: set(AUTHENTICATION["credentials"]["alpha"]["scopes"])}
    refused = {}
    for bearer, scopes in granted.items():
        for method in ("SendMessage", "SendStreamingMessage", "murmur.WatchSession", "GetTask", "ListTasks", "CancelTask",
                       "SubscribeToTask", "murmur.StopSession"):
            if method in scopes:
                continue
            for params in ({"id": "tsk_1"}, [], message(), {"tenant": "x"}):
                status, headers, body = post(door, method, params, [f"Bearer {bearer}"])
                assert status == 403 and json.loads(body)["error"] == "insufficient_scope"
                assert headers["www-authenticate"] == f'Bearer realm="agent", error="insufficient_scope", scope="{method}"'
                refused.setdefault((bearer, method), set()).add(body)
        assert post(door, "GetExtendedAgentCard", None, [f"Bearer {bearer}"])[0] == 200
    assert all(len(bodies) == 1 for bodies in refused.values())
    assert b"reader" in refused[(reader, "SendMessage")].pop()
    assert call(door, token(lab, door), "ListTasks")["result"]["totalSize"] == 0
    # An unserved method is unknown even to a token without scopes; a bad version wins over the scope.
    assert call(door, reader, "tasks/get")["error"]["code"] == -32601
    assert call(door, reader, "CreateTaskPushNotificationConfig")["error"]["code"] == -32003
    status, _, body = post(door, "SendMessage", message(), [f"Bearer {reader}"], version="2.0")
    assert (status, json.loads(body)["error"]["code"]) == (200, -32009)


def test_door_24_a_refused_body_is_read_no_further_than_the_drain(lab, door):
    body = b"x" * (256 << 10)
    with socket.create_connection(Door(door).address, timeout=20) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body))
        connection.sendall(body[:32768])
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
    assert received.startswith(b"HTTP/1.1 401 ") and b'"unauthenticated"' in received  # not lost to a reset


def test_door_25_hidden_tasks_are_unknown_to_the_byte_everywhere(lab, door):
    alpha, operator = token(lab, door, "alpha"), token(lab, door)
    hidden = call(door, operator, "SendMessage", message())["result"]["task"]["id"]
    unknown = "tsk_" + "0" * 32

    def outcome(method, params):
        return [post(door, method, json.loads(json.dumps(params).replace("<id>", task)), [f"Bearer {alpha}"])[2].replace(task.encode(), b"<id>")
                for task in (hidden, unknown)]

    for method, params in (("GetTask", {"id": "<id>"}), ("CancelTask", {"id": "<id>"}), ("SubscribeToTask", {"id": "<id>"}),
                           ("SendMessage", message(taskId="<id>")), ("SendMessage", message(taskId="<id>", contextId="x"))):
        of_hidden, of_unknown = outcome(method, params)
        assert of_hidden == of_unknown, method
    mine = call(door, alpha, "SendMessage", message(referenceTaskIds=[hidden]))["result"]["task"]
    texts = [path.read_text() for path in lab.murmur_home.rglob("runtime/task.md")] or [""]
    assert not any(f"{hidden}: completed" in text for text in texts)
    assert call(door, operator, "GetTask", {"id": mine["id"]})["result"]["id"] == mine["id"]
    assert call(door, operator, "GetTask", {"id": hidden})["result"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert call(door, alpha, "ListTasks")["result"]["totalSize"] == 1


def test_door_02_cards_of_an_authenticated_door(lab, door):
    reader = Door(door, token(lab, door, "reader"))
    public, extended = reader.get().json, reader.result("GetExtendedAgentCard")
    assert public["capabilities"]["extendedAgentCard"] is True
    assert list(public["securitySchemes"]["bearer"]["httpAuthSecurityScheme"]) == ["description", "scheme"]
    assert public["securityRequirements"] == [{"schemes": {"bearer": {"list": []}}}]
    assert public["skills"][0]["securityRequirements"] == [
        {"schemes": {"bearer": {"list": [method]}}} for method in ("SendMessage", "SendStreamingMessage")]
    assert public["capabilities"]["extensions"][0]["params"]["methods"][-1] == "GetExtendedAgentCard"
    capsule = extended["capabilities"]["extensions"].pop(1)
    assert capsule["params"]["sessionId"] == door.session_id and extended == public


# --- where a token never is ---


def test_door_38_a_token_is_in_no_file_no_process_and_no_output(lab):
    project = command_agent(lab, ["env; cat /proc/self/environ /proc/self/cmdline", "sleep 60"], shell=("bash", "env", "cat", "sleep"),
                            lifecycle={**SLEEPER, "shell_grace_secs": 1}, network={"authentication": AUTHENTICATION})
    running = project.start("--workdir", project / "work", "-v")
    running.url
    record = lab.murmur_home / "running" / f"{running.session_id}.json"
    held = json.loads(record.read_text())
    door = Door(running, held["door_token"])
    with door.stream("murmur.WatchSession") as watch:
        assert door.send(f"my token is none of {len(held)}")["status"]["state"] == "TASK_STATE_COMPLETED"
        watch.until(lambda w: "COMPLETED" in w.states)
        told = watch.raw
    lab.mur("cancel", "@1", "tsk_unknown").failed("E-IO-003")
    post(running, "SendMessage", message(), [f"Bearer {held['credentials']['reader']}"])
    tokens = [held["door_token"], *held["credentials"].values()]
    parts = [part.encode() for value in tokens for part in (value, value.split(".")[2])]
    seen = {"stdout": running.stdout.encode(), "stderr": running.stderr.encode(), "stream": told}
    for path in [*lab.murmur_home.rglob("*"), *project.directory.rglob("*")]:
        if path.is_file() and not path.is_symlink() and path != record:
            seen[str(path)] = path.read_bytes()
    for pid in [running.pid, *(pid for pid, _ in lab.processes())]:
        for name in ("cmdline", "environ", "comm"):
            try:
                seen[f"/proc/{pid}/{name}"] = Path(f"/proc/{pid}/{name}").read_bytes()
            except OSError:
                pass
    assert [where for where, content in seen.items() for part in parts if part in content] == []
    running.signal()
    running.result(20)


def test_door_38_a_crash_leaves_no_core(lab):
    project = lab.agent(steps=[{"text": "x"}], lifecycle=SLEEPER, network={"authentication": AUTHENTICATION})
    process = subprocess.Popen(
        [lab.mur_path, "run", "--json"], cwd=project.directory, env=lab.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2))
    assert process.stdout.readline().startswith(b"{")
    process.send_signal(signal.SIGABRT)
    _, status = os.waitpid(process.pid, 0)
    process.returncode = -os.WTERMSIG(status)
    process.stdout.close()
    assert os.WTERMSIG(status) == signal.SIGABRT and not os.WCOREDUMP(status)
    assert not [path for path in project.directory.rglob("core*") if path.is_file()]
    lab.mur("ps").ok()  # takes the record away


def test_door_24_a_watch_with_the_operators_token_follows_every_task(lab, door):
    alpha = token(lab, door, "alpha")
    operator = Door(door, token(lab, door))
    with operator.stream("murmur.WatchSession") as watch:
        call(door, alpha, "SendMessage", message())
        watch.until(lambda w: "COMPLETED" in w.states)
        assert watch.reply.headers["A2A-Extensions"].endswith(STREAM)
    eventually(lambda: operator.get().status == 200, 5 * SLOWER)


def test_door_01_doctor_tells_the_posture_of_a_door(lab):
    public = lab.agent(name="public", steps=[{"text": "x"}])
    assert "\ndoor: public (no network.authentication)\n" in "\n" + lab.mur("doctor", cwd=public.directory).stdout
    closed = lab.agent(name="closed", steps=[{"text": "x"}], network={"authentication": {"scheme": "bearer", "credentials": {
        "dash": {"scopes": ["GetTask", "murmur.WatchSession"]}}}})
    told = lab.mur("doctor", "--bind", "0.0.0.0", cwd=closed.directory).stdout
    assert "\ndoor: bearer — operator, dash (GetTask, murmur.WatchSession)\n" in "\n" + told and "W-SEC-032" not in told


def test_door_18_the_readiness_line_of_a_closed_door(lab):
    running = authenticated(lab).start("--json")
    text = running.wait_for(r"^\{.*\}$").group(0)
    line = json.loads(text)
    assert list(line) == ["auth", "name", "pid", "records_dir", "session_id", "url", "version", "workdir"]
    assert line["auth"] == "bearer" and re.fullmatch(r"localhost:\d+", line["url"]) and line["pid"] == running.pid
    running.signal()
    assert running.result(20).ok().stdout == text + "\n"  # one line, no second ever
