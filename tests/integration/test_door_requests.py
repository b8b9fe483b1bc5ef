# SPDX-License-Identifier: Apache-2.0
#
# One request at the door, row by row of spec/door.md 2 to 5, 7, 8.5 and 19: what is asked how, and what is answered. All of it
# on one public door whose queue is held full of nothing, so that no row waits for a model.

import json
import socket

import pytest

from tests.support.door_client import DOOR, SLEEPER, STREAM, Door, at_once, message
from tests.support.lab import Lab
from tests.support.polling import eventually

UNKNOWN = "tsk_" + "0" * 32
PUSH_METHODS = ["CreateTaskPushNotificationConfig", "GetTaskPushNotificationConfig", "ListTaskPushNotificationConfigs",
                "DeleteTaskPushNotificationConfig"]
RETIRED_METHODS = ["message/send", "message/stream", "tasks/get", "tasks/cancel", "stream/watch", "session/stop",
                   "agent/getAuthenticatedExtendedCard", "sendMessage", "SendMessage ", "murmur.watchSession", "", "x"]
SERVED = ["SendMessage", "SendStreamingMessage", "murmur.WatchSession", "GetTask", "ListTasks", "CancelTask", "SubscribeToTask",
          "murmur.StopSession"]


@pytest.fixture(scope="module")
def door(tmp_path_factory):
    lab = Lab(tmp_path_factory.mktemp("door"))
    running = lab.agent(steps=[{"text": "the answer"}], lifecycle=SLEEPER).start()
    yield Door(running)
    running.signal()
    running.result(20).ok()
    assert lab.close() == []


@pytest.fixture(scope="module")
def refusing(tmp_path_factory):
    """A door whose capsule takes no tasks: it ends by itself once its own is done, so that one is held."""
    lab = Lab(tmp_path_factory.mktemp("none"))
    project = lab.agent(steps=[{"text": "x", "delay_ms": 600000}], lifecycle={"task_acceptance": "none"})
    running = project.start("--task", "hold")
    yield Door(running)
    running.signal()
    running.result(20)
    assert lab.close() == []


def total(door):
    return door.result("ListTasks")["totalSize"]


def info(error):
    detail, = error["data"]
    assert detail["@type"] == "type.googleapis.com/google.rpc.ErrorInfo"
    return detail


# --- envelope (4.1) ---


@pytest.mark.parametrize("body, code, echoed", [
    (b"{x", -32700, None),
    (b"", 404, None),
    (b"[{}]", -32600, None),
    (b"[]", -32600, None),
    (b'"text"', -32600, None),
    (b"null", -32600, None),
    (b'{"jsonrpc":"2.0","id":4,"method":7}', -32600, 4),
    (b'{"jsonrpc":"2.0","id":4}', -32600, 4),
    (b'{"jsonrpc":"1.0","id":4,"method":"ListTasks"}', -32600, 4),
    (b'{"jsonrpc":2.0,"id":"a","method":"ListTasks"}', -32600, "a"),
    (b'{"id":"a","method":"ListTasks"}', -32600, "a"),
    (b'{"jsonrpc":"2.0","method":"ListTasks"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":null,"method":"ListTasks"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":1.0,"method":"ListTasks"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ListTasks"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":1e2,"method":"ListTasks"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":true,"method":"ListTasks"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":{"a":1},"method":"ListTasks"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":[1],"method":"ListTasks"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":18446744073709551616,"method":"ListTasks"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":-9223372036854775809,"method":"ListTasks"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":[]}', -32602, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":null}', -32602, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":"x"}', -32602, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":"nope","params":[]}', -32601, 1),
])
def test_door_05_what_is_no_request_is_refused_with_the_id_it_had(door, body, code, echoed):
    if code == 404:
        assert door.request("POST", "/", [*door.headers(), ("content-length", "0")]).status == 404
        return
    answer = door.post(body)
    assert answer.status == 200 and answer.headers["content-type"] == "application/json"
    assert list(answer.json) == ["jsonrpc", "id", "error"]
    assert answer.json["id"] == echoed
    error = answer.json["error"]
    assert error["code"] == code and "data" not in error
    texts = {-32700: "Invalid JSON payload", -32600: "Request payload validation error", -32601: "Method not found"}
    assert error["message"] == texts.get(code, error["message"])


@pytest.mark.parametrize("text", ["0", "-1", "18446744073709551615", "-9223372036854775808", '"x"', '""', r'"é\n"', '"id"'])
def test_door_05_ids_come_back_as_sent(door, text):
    body = f'{{"method":"ListTasks","other":{{"id":9}},"id":{text},"jsonrpc":"2.0","params":{{"pageSize":1}}}}'
    answer = door.post(body.encode())
    assert answer.body.startswith(f'{{"jsonrpc":"2.0","id":{text},"result":'.encode()), answer.body


def test_door_05_bytes_that_are_no_utf8_are_replaced(door):
    assert door.post(b'{"jsonrpc":"2.0","id":"\xff","method":"ListTasks"}').json["id"] == "\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("escape", [r"\ud83d", r"\udc00x", r"\ud800\ud800"])
def test_report_01_half_a_pair_from_a_client_is_replaced_too(door, escape):
    """A client that cuts its text between two halves writes one."""
    message = '{"messageId":"1","role":"ROLE_USER","parts":[{"text":"cut %s"}]}' % escape
    answer = door.post(('{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":%s}}' % message).encode()).json
    assert "result" in answer, answer
    assert door.post(('{"jsonrpc":"2.0","id":"%s","method":"ListTasks"}' % escape).encode()).json["id"].startswith("\N{REPLACEMENT CHARACTER}")


def test_door_05_params_may_be_left_out_and_other_members_are_ignored(door):
    assert "result" in door.post({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "more": [1]}).json


# --- version (4.2) ---


@pytest.mark.parametrize("lines, said", [
    ([], ""), ([""], ""), (["1"], "1"), (["1.1"], "1.1"), (["1.0x"], "1.0x"), (["1.0."], "1.0."), (["0.3"], "0.3"),
    (["1.0", "1.0"], "1.0, 1.0"), (["1.0, 1.0"], "1.0, 1.0")])
@pytest.mark.parametrize("method", [*SERVED, "GetExtendedAgentCard", "nope", PUSH_METHODS[0]])
def test_door_03_only_version_1_0_is_spoken(door, method, lines, said):
    before = total(door)
    body = {"jsonrpc": "2.0", "id": "v", "method": method, "params": message()}
    answer = door.post(body, [("content-type", "application/json"), *(("A2A-Version", line) for line in lines)])
    assert answer.status == 200 and answer.headers["content-type"] == "application/json"
    assert answer.headers["A2A-Extensions"] is None
    error = answer.json["error"]
    assert error["code"] == -32009
    assert info(error)["metadata"] == {"requestedVersion": said, "supportedVersions": "1.0"}
    assert info(error)["reason"] == "VERSION_NOT_SUPPORTED" and info(error)["domain"] == "a2a-protocol.org"
    assert total(door) == before


@pytest.mark.parametrize("name, value", [("A2A-Version", " 1.0 "), ("A2A-Version", "1.0.1"), ("a2a-version", "1.0"),
                                         ("A2A-VERSION", "1.0.12")])
def test_door_04_versions_that_are_served(door, name, value):
    body = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}
    assert "result" in door.post(body, [("content-type", "application/json"), (name, value)]).json


# --- methods (7) ---


@pytest.mark.parametrize("method", RETIRED_METHODS)
def test_door_06_methods_of_old_do_not_exist(door, method):
    assert door.error(method) == {"code": -32601, "message": "Method not found"}


@pytest.mark.parametrize("method", PUSH_METHODS)
def test_door_07_push_configuration_is_never_served(door, method):
    error = door.error(method)
    assert error["code"] == -32003 and info(error)["reason"] == "PUSH_NOTIFICATION_NOT_SUPPORTED"
    assert info(error)["metadata"] == {}
    assert door.post({"jsonrpc": "2.0", "id": 1, "method": method, "params": []}).json["error"]["code"] == -32003


def test_door_02_a_public_door_has_no_extended_card(door):
    error = door.error("GetExtendedAgentCard")
    assert error["code"] == -32004 and info(error)["reason"] == "UNSUPPORTED_OPERATION"


@pytest.mark.parametrize("method, code", [("SendMessage", -32601), ("SendStreamingMessage", -32004), ("SubscribeToTask", -32004)])
def test_door_a_capsule_that_takes_no_tasks_serves_no_method_that_makes_them(refusing, method, code):
    assert refusing.error(method, message())["code"] == code
    card = refusing.get().json
    assert card["skills"] == [] and card["capabilities"]["streaming"] is False
    methods = card["capabilities"]["extensions"][0]["params"]["methods"]
    assert methods == ["murmur.WatchSession", "GetTask", "ListTasks", "CancelTask", "murmur.StopSession"]
    assert refusing.result("ListTasks")["totalSize"] == 1


@pytest.mark.parametrize("method", SERVED)
def test_door_a_tenant_is_refused_by_every_method(door, method):
    before = total(door)
    for tenant in ("acme", None, 1):
        assert door.error(method, {**message(), "id": UNKNOWN, "tenant": tenant})["code"] == -32602
    assert total(door) == before


def test_door_an_empty_tenant_is_none(door):
    assert "result" in door.call("ListTasks", {"tenant": ""})


@pytest.mark.parametrize("method", ["GetTask", "CancelTask", "SubscribeToTask"])
def test_door_25_an_unknown_task_is_not_found(door, method):
    error = door.error(method, {"id": UNKNOWN})
    assert error["code"] == -32001 and error["message"] == "Task not found"
    assert info(error)["metadata"] == {"taskId": UNKNOWN} and info(error)["reason"] == "TASK_NOT_FOUND"
    for bad in ({}, {"id": None}, {"id": 7}, {"id": [UNKNOWN]}):
        assert door.error(method, bad)["code"] == -32602, bad
    assert door.error(method, {"id": ""})["code"] == (-32001 if method == "CancelTask" else -32602)


@pytest.mark.parametrize("params", [
    {"contextId": 1}, {"contextId": None}, {"status": "working"}, {"status": "TASK_STATE_NONE"}, {"status": None},
    {"pageSize": 0}, {"pageSize": -1}, {"pageSize": 1.0}, {"pageSize": "1"}, {"pageSize": None}, {"pageToken": 1},
    {"pageToken": "!"}, {"pageToken": "bm9wZQ"}, {"pageToken": "MTp0c2tfMQ=="}, {"statusTimestampAfter": "yesterday"},
    {"statusTimestampAfter": "2026-01-01"}, {"statusTimestampAfter": 1}, {"includeArtifacts": "yes"},
    {"includeArtifacts": None}])
def test_door_listing_refuses_what_it_does_not_understand_by_name(door, params):
    error = door.error("ListTasks", params)
    assert error["code"] == -32602 and next(iter(params)) in error["message"]


def test_door_listing_filters_and_pages(door):
    ids = [door.send(contextId=f"list-{number % 2}")["id"] for number in range(4)]
    page = door.result("ListTasks", {"contextId": "list-1"})
    assert [task["id"] for task in page["tasks"]] == [ids[3], ids[1]]
    assert sorted(page) == ["nextPageToken", "pageSize", "tasks", "totalSize"]
    assert (page["nextPageToken"], page["pageSize"], page["totalSize"]) == ("", 50, 2)
    assert all("artifacts" not in task for task in page["tasks"])
    assert door.result("ListTasks", {"pageSize": 1000})["pageSize"] == 100
    first = door.result("ListTasks", {"pageSize": 3, "includeArtifacts": True, "pageToken": "", "contextId": ""})
    assert [task["id"] for task in first["tasks"]] == [ids[3], ids[2], ids[1]]
    assert first["tasks"][0]["artifacts"][0]["name"] == "response"
    second = door.result("ListTasks", {"pageToken": first["nextPageToken"]})
    assert second["tasks"][0]["id"] == ids[0] and second["totalSize"] == first["totalSize"]
    assert door.result("ListTasks", {"status": "TASK_STATE_AUTH_REQUIRED"})["totalSize"] == 0
    assert door.result("ListTasks", {"status": "TASK_STATE_WORKING"})["totalSize"] == 0
    assert door.result("ListTasks", {"status": "TASK_STATE_UNSPECIFIED"})["totalSize"] == first["totalSize"]
    at = door.task(ids[3])["status"]["timestamp"]
    assert ids[3] in [task["id"] for task in door.result("ListTasks", {"statusTimestampAfter": at})["tasks"]]
    assert door.result("ListTasks", {"statusTimestampAfter": "2999-01-01T00:00:00+05:30"})["totalSize"] == 0
    assert door.result("ListTasks", {"statusTimestampAfter": None})["totalSize"] == first["totalSize"]


# --- messages (5.1) ---


def sent(**members):
    base = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}
    base.update(members)
    return {"message": {key: value for key, value in base.items() if value is not ...}}


@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage"])
@pytest.mark.parametrize("params, code", [
    ({}, -32602), ({"message": []}, -32602), ({"message": None}, -32602),
    (sent(messageId=...), -32602), (sent(messageId=""), -32602), (sent(messageId=1), -32602),
    (sent(role=...), -32602), (sent(role="user"), -32602), (sent(role="ROLE_AGENT"), -32602),
    (sent(parts=...), -32602), (sent(parts=[]), -32602), (sent(parts={}), -32602), (sent(parts=["x"]), -32602),
    (sent(parts=[{}]), -32602), (sent(parts=[{"text": "x", "data": 1}]), -32602), (sent(parts=[{"text": "x", "raw": None}]), -32602),
    (sent(parts=[{"text": 1}, {"text": "a", "url": "b"}]), -32602),
    (sent(parts=[{"text": 1}]), -32602), (sent(parts=[{"text": None}]), -32602), (sent(parts=[{"raw": 1}]), -32602),
    (sent(parts=[{"text": "x", "mediaType": None}]), -32602), (sent(parts=[{"text": "x", "filename": 1}]), -32602),
    (sent(taskId=1), -32602), (sent(taskId=None), -32602), (sent(contextId=1), -32602), (sent(contextId=None), -32602),
    (sent(referenceTaskIds="x"), -32602), (sent(referenceTaskIds=None), -32602), (sent(referenceTaskIds=[""]), -32602),
    (sent(referenceTaskIds=[1]), -32602), (sent(referenceTaskIds=[f"tsk_{n}" for n in range(17)]), -32602),
    (sent(metadata={DOOR: 1}), -32602), (sent(metadata={DOOR: None}), -32602), (sent(metadata={DOOR: {"forgetSession": 1}}), -32602),
    (sent(metadata={DOOR: {"forgetSession": True}}, taskId=UNKNOWN), -32602),
    (sent(metadata={DOOR: {"forgetSession": True}}), -32602),
    ({**sent(), "configuration": {"returnImmediately": 1}}, -32602),
    (sent(parts=[{"text": "x"}, {"raw": "aGk="}]), -32005), (sent(parts=[{"url": "http://x"}]), -32005),
    ({**sent(), "configuration": {"taskPushNotificationConfig": {}}}, -32003),
    ({**sent(parts=[{"raw": "aGk="}]), "configuration": {"returnImmediately": 1}}, -32602),
    ({**sent(parts=[{"raw": "aGk="}]), "configuration": {"taskPushNotificationConfig": 1}}, -32005),
    ({**sent(metadata={DOOR: {"forgetSession": True}}), "configuration": {"taskPushNotificationConfig": 1}}, -32003),
    (sent(taskId=UNKNOWN), -32001),
])
def test_door_07_a_message_is_read_in_order_and_nothing_starts_of_a_bad_one(door, method, params, code):
    before = total(door)
    error = door.error(method, params)
    assert error["code"] == code, error
    assert total(door) == before


def test_door_07_a_file_part_is_named(door):
    error = door.error("SendMessage", sent(parts=[{"text": "x"}, {"url": "http://x", "mediaType": "image/png"}]))
    assert info(error)["metadata"] == {"partIndex": "1", "mediaType": "image/png"}
    assert info(door.error("SendMessage", sent(parts=[{"raw": "aGk="}])))["metadata"] == {"partIndex": "0"}


@pytest.mark.parametrize("params", [
    sent(referenceTaskIds=[UNKNOWN] * 20), sent(referenceTaskIds=[f"tsk_{n}" for n in range(16)]), sent(taskId=""),
    sent(metadata="text"), sent(metadata={"other": 1}), sent(extensions=7, more=1), {**sent(), "configuration": "text"},
    {**sent(), "configuration": {"returnImmediately": None, "historyLength": -1, "taskPushNotificationConfig": None}},
    sent(parts=[{"data": None}]), sent(metadata={DOOR: {"forgetSession": False}})])
def test_door_08_what_a_message_may_hold(door, params):
    assert door.result("SendMessage", params)["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


def test_door_a_context_is_taken_as_sent(door):
    assert door.send(contextId="mine")["contextId"] == "mine"
    assert door.send(contextId="")["contextId"].startswith("ctx_")
    assert door.send()["contextId"].startswith("ctx_")


def test_door_a_context_no_folder_can_be_named_for_loses_nothing_of_the_session(lab):
    running = lab.agent(steps=[{"text": "the answer"}], lifecycle=SLEEPER).start()
    door = Door(running)
    for context in ("../../etc", "a/b", ".", "two\nlines", "x" * 10000):
        sent = door.send(contextId=context)
        assert sent["contextId"] == context
        assert sent["status"]["state"] == "TASK_STATE_COMPLETED"
    running.signal()
    ended = running.result(20).ok()
    assert "context '../../etc' is not recorded: the context id is no name a folder can have" in ended.stderr
    assert "x" * 65 not in ended.stderr


# --- extensions (4.3) ---


def test_door_13_extensions_are_echoed_on_results_that_used_them_alone(door):
    def echoed(method, params, asked=(), token=None):
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return door.post(body, [*door.headers(), *(("A2A-Extensions", line) for line in asked)]).headers["A2A-Extensions"]

    used = sent(metadata={DOOR: {}})
    assert echoed("SendMessage", sent()) is None
    assert echoed("SendMessage", used) == DOOR
    assert echoed("SendMessage", used, [STREAM]) == DOOR
    assert echoed("SendMessage", {**used, "tenant": "x"}) is None
    assert echoed("murmur.StopSession", {}) == DOOR
    assert echoed("GetTask", {"id": UNKNOWN}, [STREAM]) is None
    assert echoed("SendStreamingMessage", sent()) is None
    assert echoed("SendStreamingMessage", sent(), ["urn:x , " + STREAM]) == STREAM
    assert echoed("SendStreamingMessage", sent(), ["urn:x", STREAM]) == STREAM
    assert echoed("SendStreamingMessage", sent(), [STREAM.upper(), STREAM + "x", ""]) is None
    assert echoed("SendStreamingMessage", used, [STREAM]) == f"{DOOR}, {STREAM}"
    with door.stream("murmur.WatchSession", extended=False) as watch:
        assert watch.reply.headers["A2A-Extensions"] == f"{DOOR}, {STREAM}"


# --- what is no JSON-RPC (2, 19) ---


@pytest.mark.parametrize("request_line, lines", [
    ("GET /", []), ("POST /x", ["content-type: application/json"]), ("POST /?a=1", ["content-type: application/json"]),
    ("POST /", ["content-type: text/plain"]), ("POST /", []), ("PUT /", ["content-type: application/json"]),
    ("OPTIONS /", ["origin: http://evil"]), ("OPTIONS /.well-known/agent-card.json", []),
    ("HEAD /.well-known/agent-card.jsonx", []), ("POST /.well-known/agent-card.json", ["content-type: application/json"]),
    ("GET /.well-known/agent-card.jsonx?x", []), ("GET /.well-known/agent-card.json/", []),
    ("GET /resources", []), ("GET /controls", [])])
def test_door_whatever_no_step_takes_is_an_empty_404(door, request_line, lines):
    body = b'{"jsonrpc":"2.0","id":1,"method":"ListTasks"}' if not request_line.startswith(("GET", "HEAD")) else b""
    head = [f"{request_line} HTTP/1.1", "Host: x", "Connection: close", "A2A-Version: 1.0", *lines]
    answer = door.raw("\r\n".join([*head, f"content-length: {len(body)}", "", ""]).encode() + body)
    assert answer.startswith(b"HTTP/1.1 404 "), answer
    assert answer.endswith(b"\r\n\r\n") and b"content-length: 0\r\n" in answer.lower()
    assert b"access-control" not in answer.lower()


@pytest.mark.parametrize("path", ["/control", "/control/x", "/control?x"])
def test_door_without_a_control_surface_its_paths_say_so(door, path):
    reply = door.raw(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    head, body = reply.split(b"\r\n\r\n", 1)
    assert head.startswith(b"HTTP/1.1 404 ") and list(json.loads(body)) == ["error"]


@pytest.mark.parametrize("content_type", ["application/json", "APPLICATION/JSON; charset=utf-8", "application/json;x"])
def test_door_any_json_content_type_is_taken(door, content_type):
    answer = door.post({"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}, [("Content-Type", content_type), ("A2A-Version", "1.0")])
    assert "result" in answer.json


def test_door_40_a_body_in_chunks_and_an_expectation_are_served(door):
    body = b'{"jsonrpc":"2.0","id":1,"method":"ListTasks"}'
    head = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\n"
    chunked = head + b"Transfer-Encoding: chunked\r\n\r\n" + b"5\r\n" + body[:5] + b"\r\n%x\r\n" % (len(body) - 5) + body[5:] + b"\r\n0\r\n\r\n"
    assert b'"result"' in door.raw(chunked)
    with socket.create_connection(door.address, timeout=20) as connection:
        connection.sendall(head + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
        assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
        connection.sendall(body)
        assert b'"result"' in connection.recv(65536)


@pytest.mark.parametrize("lines, status", [
    (["Content-Length: 45"], 200), (["Content-Length: 45", "Content-Length: 45"], 400), (["Content-Length: 45", "Content-Length: 5"], 400),
    (["Content-Length: 5", "Content-Length: 45"], 400), (["Content-Length: 45", "Transfer-Encoding: chunked"], 400),
    (["Content-Length: x"], 400), (["Content-Length: -1"], 400), (["Content-Length: 45, 45"], 400),
    (["Content-Length : 45"], 400), (["Content-Length\t: 45"], 400), (["Transfer-Encoding : chunked", "Content-Length: 45"], 400)])
def test_door_where_a_body_ends_is_never_a_guess(door, lines, status):
    before = total(door)
    hidden = b'POST / HTTP/1.1\r\nHost: x\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}'
    head = ["POST / HTTP/1.1", "Host: x", "Connection: close", "A2A-Version: 1.0", "Content-Type: application/json", *lines]
    answer = door.raw("\r\n".join([*head, "", ""]).encode() + b'{"jsonrpc":"2.0","id":1,"method":"ListTasks"}' + hidden)
    assert answer.startswith(b"HTTP/1.1 %d " % status) and answer.count(b"HTTP/1.1 200 ") == (status == 200)
    assert total(door) == before


def test_door_a_client_that_sends_no_more_is_answered_all_the_same(door):
    one = b'{"jsonrpc":"2.0","id":1,"method":"ListTasks"}'
    request = b"POST / HTTP/1.1\r\nHost: x\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
        len(one), one)
    chunked = request.replace(b"Content-Length: %d\r\n\r\n" % len(one), b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(one)) + b"\r\n0\r\n\r\n"
    card = b"GET /.well-known/agent-card.json HTTP/1.1\r\nHost: x\r\n\r\n"
    for requests in ([request], [card], [chunked], [request] * 3, [request, card, chunked, request]):
        with socket.create_connection(door.address, timeout=10) as connection:
            connection.sendall(b"".join(requests))
            connection.shutdown(socket.SHUT_WR)
            received = b""
            while chunk := connection.recv(65536):
                received += chunk
        assert received.count(b"HTTP/1.1 200 ") == len(requests), received


def test_door_a_body_that_never_comes_whole_starts_nothing(door):
    before = total(door)
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": at_once(message())}).encode()
    head = b"POST / HTTP/1.1\r\nHost: x\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    with socket.create_connection(door.address, timeout=20) as connection:
        connection.sendall(head % (len(body) + 1) + body)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100) == b""
    assert total(door) == before


# --- cursors (8.5) ---


def test_door_15_cursors_of_a_watch(door):
    door.send()
    with door.stream("murmur.WatchSession") as watch:
        watch.until(lambda w: w.states.count("COMPLETED") == total(door))
        last = watch.ids[-1]
        assert watch.ids == list(range(watch.ids[0], last + 1))
    for cursor, first, has_gap in ((str(last - 2), last - 1, False), (f" {last - 1} ", last, False), ("x", 1, False), ("-1", 1, False),
                                   ("3.0", 1, False), ("18446744073709551616", 1, False), ("99999999", 1, True),
                                   ("18446744073709551615", 1, True), (str(last + 1), 1, True), ("0", 1, False)):
        with door.stream("murmur.WatchSession", cursor=cursor) as watch:
            watch.until(lambda w: w.ids and w.ids[-1] == last)
            assert watch.ids == list(range(first, last + 1)), cursor
            assert [gap["firstAvailableId"] for gap in watch.frames("gap")] == ([1] if has_gap else []), cursor
    with door.stream("murmur.WatchSession", cursor=last) as watch:
        watch.until(lambda w: w.frames("connection-ack"))
        door.send()
        watch.until(lambda w: w.ids)
        assert watch.ids[0] == last + 1 and watch.frames("gap") == []


def test_door_a_stream_of_an_ended_or_unknown_task_is_one_json_answer(door):
    task = door.send()
    body = {"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": task["id"]}}
    answer = door.post(body)
    assert answer.headers["content-type"] == "application/json"
    assert answer.json["error"]["code"] == -32004
    assert info(answer.json["error"])["metadata"] == {"taskId": task["id"], "state": "TASK_STATE_COMPLETED"}
    for method in ("SendMessage", "SendStreamingMessage"):
        error = door.error(method, message(taskId=task["id"]))
        assert error["code"] == -32004 and info(error)["metadata"]["state"] == "TASK_STATE_COMPLETED"
    error = door.error("CancelTask", {"id": task["id"]})
    assert error["code"] == -32002 and info(error)["reason"] == "TASK_NOT_CANCELABLE"
    assert info(error)["metadata"] == {"taskId": task["id"], "state": "TASK_STATE_COMPLETED"}


def test_door_the_head_and_body_of_a_stream(door):
    body = json.dumps({"jsonrpc": "2.0", "id": "s", "method": "SendStreamingMessage", "params": message()}).encode()
    received = door.raw(b"POST / HTTP/1.1\r\nHost: x\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\n"
                        b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    head, _, rest = received.partition(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    assert lines[0] == "http/1.1 200 ok"
    assert {"content-type: text/event-stream", "cache-control: no-cache"} <= set(lines)
    assert not any(line.startswith(("content-length", "transfer-encoding")) for line in lines)
    assert b"\r" not in rest and b"event:" not in rest
    events = rest.decode().removesuffix("\n\n").split("\n\n")
    assert events[0].startswith('data: {"jsonrpc":"2.0","id":"s","result":{"task":')
    for event in events[1:]:
        number, data = event.split("\n")
        assert number.startswith("id: ") and data.startswith('data: {"jsonrpc":"2.0","id":"s","result":{')
        assert "metadata" not in data
    eventually(lambda: door.get().status == 200)
