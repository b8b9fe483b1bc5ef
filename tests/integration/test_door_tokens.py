# SPDX-License-Identifier: Apache-2.0
#
# An authenticated door of a real session: where its tokens go, what each of them may do, and what is refused how.

import http.client
import json
import urllib.parse
import urllib.request

import pytest

from tests.support.polling import eventually

SLEEPER = {"task_acceptance": "queue", "after_task": "sleep", "queue_depth": 4}
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


def post(running, method, params=None, authorization=()):
    """One call with these Authorization lines; (status, headers, body)."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}).encode()
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(running.url).netloc, timeout=30)
    connection.putrequest("POST", "/")
    for name, value in (("content-type", "application/json"), ("A2A-Version", "1.0"), ("content-length", str(len(body))),
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
    assert list(line["tokens"]) == ["operator", "alpha", "reader"]
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
