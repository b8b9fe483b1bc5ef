# SPDX-License-Identifier: Apache-2.0
#
# The control plane of a real session and `mur control`: settings, secrets, and every way to be refused.

import http.client
import json
import os
import pty
import socket
import stat
import subprocess
import threading
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.integration.test_driver_choices import alternate
from tests.support.fixtures import own_component
from tests.support.model_server import answer

SLEEPER = {"task_acceptance": "queue", "after_task": "sleep", "queue_depth": 4}
SECRET = "the-only-key-9f3a"


def controlled(lab, name="agent", steps=None, settings=("inference.max_tokens",), **manifest):
    return lab.agent(name=name, steps=steps or [{"text": "the answer", "save_request": "request.json"}], lifecycle=SLEEPER,
                     control={"settings": list(settings)}, **manifest)


def two_drivers(lab, provider, secrets=("OTHER_KEY",), settings=("inference.driver", "inference.max_tokens")):
    """The scripted driver first, then one whose provider's key only a controller supplies."""
    lab.publish("driver-other", own_component("driver-anthropic"), "driver",
                upstream_auth={"header": "x-api-key", "value": "{key}"},
                models={"model-b": {"max_output_tokens": 700, "context_window": 9000}})
    entry = {"name": "local/driver-other", "version": "0.1.0", "runtime": "driver",
             "gateway": {"endpoint": provider.url, "api_key": "${OTHER_KEY}"}}
    return lab.agent(steps=None, tools=[entry], lifecycle=SLEEPER,
                     control={"settings": list(settings), "secrets": list(secrets)}, inference={
                         "driver": {"artifact": "std/driver-scripted", "config": {"steps": [{"text": "scripted"}]}},
                         "alternates": [alternate("other", "model-b", "local/driver-other")]})


def token_path(lab, running):
    return lab.murmur_home / "running" / f"{running.session_id}.control"


def ask(lab, running, method, path, body=None, headers=(), token=None, address=None):
    """(status, headers, body as JSON or None); the session's own control token unless another is given."""
    running.url
    token = token_path(lab, running).read_text() if token is None else token
    connection = http.client.HTTPConnection(address or urllib.parse.urlsplit(running.url).netloc, timeout=30)
    connection.putrequest(method, path, skip_accept_encoding=True)
    if token:
        connection.putheader("Authorization", f"Bearer {token}")
    for name, value in headers:
        connection.putheader(name, value)
    if body is not None:
        connection.putheader("content-length", str(len(body)))
    connection.endheaders(body)
    with connection.getresponse() as reply:
        text = reply.read()
        found = reply.status, reply.headers, json.loads(text) if text else None
    connection.close()
    return found


def put_setting(lab, running, name, value, **how):
    return ask(lab, running, "PUT", f"/control/settings/{name}", json.dumps({"value": value}).encode(),
               [("content-type", "application/json")], **how)


def send(running, text="go"):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {
        "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]}}}).encode()
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(running.url).netloc, timeout=60)
    connection.request("POST", "/", body, {"content-type": "application/json", "A2A-Version": "1.0"})
    task = json.loads(connection.getresponse().read())["result"]["task"]
    connection.close()
    return task


def end(running):
    running.signal()
    running.result(20).ok()


@pytest.fixture
def running(lab):
    started = controlled(lab).start()
    started.url
    yield started
    end(started)


def test_door_without_something_to_control_there_is_no_surface(lab):
    for control in ({}, {"agent_settings": ["inference.driver"]}):
        inference = {"alternates": [alternate()]} if control else {}
        started = lab.agent(steps=[{"text": "x"}], lifecycle=SLEEPER, control=control, inference={
            "driver": {"artifact": "std/driver-scripted", "config": {"steps": [{"text": "x"}]}}, **inference}).start()
        started.url
        assert not token_path(lab, started).exists()
        status, _, body = ask(lab, started, "GET", "/control", token="x")
        assert (status, list(body)) == (404, ["error"])
        assert lab.mur("control", "show").failed("E-RUN-042")
        assert "control_refused" not in lab.session(started).trace.types
        end(started)


def test_door_the_token_file_is_private_and_goes_with_the_session(lab):
    started = controlled(lab).start()
    started.url
    path = token_path(lab, started)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    token = path.read_text()
    assert token.startswith("ctl1.") and token.count(".") == 2 and "\n" not in token
    end(started)
    assert not path.exists()
    for record in lab.records[0].rglob("*"):
        assert not record.is_file() or token not in record.read_bytes().decode(errors="replace")
    assert token not in started.stdout + started.stderr


def test_door_an_unwritable_token_refuses_the_launch(lab):
    project = controlled(lab)
    directory = lab.murmur_home / "running"
    directory.parent.mkdir(exist_ok=True)
    directory.write_text("a file where the folder belongs")
    project.run().failed("E-RUN-041")


def test_door_settings_are_shown_and_changed(lab, running):
    status, headers, shown = ask(lab, running, "GET", "/control?x")
    assert status == 200 and headers["content-type"] == "application/json"
    assert shown == {"session_id": running.session_id, "secrets": [],
                     "settings": [{"name": "inference.max_tokens", "value": 1024}]}
    status, _, changed = put_setting(lab, running, "inference.max_tokens", 64)
    assert (status, changed) == (200, {"name": "inference.max_tokens", "previous": 1024, "value": 64,
                                       "applies_from": "next_inference_call"})
    send(running)
    work = lab.directory / "agent/workdir" / running.session_id
    assert json.loads((work / "request.json").read_text())["max_tokens"] == 64
    trace = lab.session(running).trace
    change, applied = trace.one("control_change"), trace.one("control_applied")
    assert list(change)[5:] == ["principal", "token_id", "kind", "name", "action", "previous", "value", "applies_from"]
    assert (change["principal"], change["kind"], change["action"], change["previous"], change["value"]) == (
        "controller", "setting", "set", 1024, 64)
    assert len(change["token_id"]) == 16
    assert (applied["name"], applied["value"], applied["change_id"]) == ("inference.max_tokens", 64, change["event_id"])
    assert trace.types.index("control_applied") < trace.types.index("inference")
    assert trace.one("session_start")["control"] == {"settings": ["inference.max_tokens"], "secrets": []}


def test_door_32_the_order_of_refusals(lab, running):
    path = "/control/settings/inference.max_tokens"
    JSON = [("content-type", "application/json")]
    for bad in ("", "x", "mdt1.a.b", token_path(lab, running).read_text() + "x"):
        status, headers, body = ask(lab, running, "PUT", "/control/nothing", b"x", token=bad)
        assert (status, list(body)) == (401, ["error"]) and headers["www-authenticate"] == 'Bearer realm="murmur-control"'
    own = token_path(lab, running).read_text()
    assert ask(lab, running, "GET", "/control", headers=[("Authorization", f"Bearer {own}")])[0] == 401  # two lines
    for unknown in ("/control/", "/control/settings", "/control/x", "/control/secrets/"):
        assert ask(lab, running, "POST", unknown)[0] == 404
    assert ask(lab, running, "POST", "/control/settings/inference.driver")[0] == 404
    assert ask(lab, running, "POST", "/control/secrets/KEY")[0] == 404
    for method, where, allow in (("PUT", "/control", "GET"), ("DELETE", path, "PUT"), ("GET", path, "PUT")):
        status, headers, _ = ask(lab, running, method, where)
        assert (status, headers["allow"]) == (405, allow)
    assert ask(lab, running, "PUT", path)[0] == 422
    assert ask(lab, running, "PUT", path, b"")[0] == 422
    assert ask(lab, running, "PUT", path, b'{"value":5}')[0] == 415
    for bad in (b"{", b"[]", b"{}", b'{"value":0}', b'{"value":"5"}', b'{"value":1.5}', b'{"value":4294967296}', b"5",
                b'{"value":null}'):
        assert ask(lab, running, "PUT", path, bad, JSON)[0] == 422, bad
    assert put_setting(lab, running, "inference.max_tokens", 4294967295)[0] == 422  # no input would fit
    refused = lab.session(running).trace.all("control_refused")
    assert {line["principal"] for line in refused} == {"controller"}
    assert [line["reason"] for line in refused] == [
        *["unauthenticated"] * 5, *["unknown_path"] * 4, "undeclared_setting", "undeclared_secret",
        *["method_not_allowed"] * 3, *["missing_body"] * 2, "unsupported_media_type", *["invalid_value"] * 9, "no_input_budget"]
    assert not any({"name", "kind", "token_id"} & set(line) for line in refused[:5])
    assert (refused[9]["kind"], refused[9]["name"]) == ("setting", "inference.driver")
    assert all(len(line["token_id"]) == 16 for line in refused[5:])


def test_door_32_a_body_that_is_too_large_is_not_waited_for(lab, running):
    host, port = urllib.parse.urlsplit(running.url).hostname, urllib.parse.urlsplit(running.url).port
    token = token_path(lab, running).read_text()
    with socket.create_connection((host, port), timeout=10) as connection:
        connection.sendall(f"PUT /control/settings/inference.max_tokens HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
                           "content-type: application/json\r\ncontent-length: 1025\r\n\r\n".encode())
        assert connection.recv(4096).startswith(b"HTTP/1.1 413 ")
    assert lab.session(running).trace.one("control_refused")["reason"] == "body_too_large"


def test_door_a_body_cut_short_is_a_refusal(lab, running):
    host, port = urllib.parse.urlsplit(running.url).hostname, urllib.parse.urlsplit(running.url).port
    token = token_path(lab, running).read_text()
    with socket.create_connection((host, port), timeout=10) as connection:
        connection.sendall(f"PUT /control/settings/inference.max_tokens HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
                           "content-type: application/json\r\ncontent-length: 20\r\n\r\n{\"val".encode())
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(4096).startswith(b"HTTP/1.1 400 ")
    line = lab.session(running).trace.one("control_refused")
    assert (line["status"], line["reason"], line["name"]) == (400, "truncated_body", "inference.max_tokens")


def test_door_a_door_token_is_not_accepted_here_nor_this_one_there(lab):
    started = controlled(lab, network={"authentication": {"scheme": "bearer"}}).start()
    door_token = lab.mur("token", started.session_id).ok().stdout.strip()
    assert put_setting(lab, started, "inference.max_tokens", 5, token=door_token)[0] == 401
    control_token = token_path(lab, started).read_text()
    assert ask(lab, started, "GET", "/resources/files", token=control_token)[0] == 401
    assert ask(lab, started, "GET", "/control", headers=[("x-murmur-task-origin", "peer")])[0] == 200
    end(started)


def test_door_a_switch_needs_a_declared_choice_with_a_credential(lab):
    provider = lab.model_server().script(repeat=answer("from the other"))
    started = two_drivers(lab, provider).start(env={"OTHER_KEY": "from-the-environment"})
    shown = ask(lab, started, "GET", "/control")[2]
    assert shown["secrets"] == [{"name": "OTHER_KEY", "set": False}]
    assert shown["settings"][0] == {"name": "inference.driver", "value": "primary", "choices": [
        {"name": "primary", "driver": "std/driver-scripted", "model": "scripted", "available": True},
        {"name": "other", "driver": "local/driver-other", "model": "model-b", "available": False}]}
    status, _, body = put_setting(lab, started, "inference.driver", "nobody")
    assert status == 422 and "primary, other" in body["error"]
    assert put_setting(lab, started, "inference.driver", 7)[0] == 422
    assert put_setting(lab, started, "inference.driver", "other")[0] == 409
    assert put_setting(lab, started, "inference.max_tokens", 9000)[0] == 422
    path = "/control/secrets/OTHER_KEY"
    assert ask(lab, started, "PUT", path, SECRET.encode())[2] == {"name": "OTHER_KEY", "set": True, "replaced": False}
    assert ask(lab, started, "PUT", path, SECRET.encode())[2] == {"name": "OTHER_KEY", "set": True, "replaced": True}
    assert put_setting(lab, started, "inference.driver", "other")[2] == {
        "name": "inference.driver", "previous": "primary", "value": "other", "applies_from": "next_inference_call"}
    assert send(started)["artifacts"][0]["parts"][0]["text"] == "from the other"
    assert {request.headers["x-api-key"] for request in provider.requests} == {SECRET}
    assert ask(lab, started, "DELETE", path)[0] == 409
    assert put_setting(lab, started, "inference.driver", "primary")[0] == 200
    for _ in range(2):
        assert ask(lab, started, "DELETE", path)[::2] == (200, {"name": "OTHER_KEY", "set": False})
    assert send(started)["artifacts"][0]["parts"][0]["text"] == "scripted"
    trace = lab.session(started).trace
    assert [line["reason"] for line in trace.all("control_refused")] == [
        "undeclared_driver", "invalid_value", "credential_unresolvable", "no_input_budget", "in_use"]
    secrets = [line for line in trace.all("control_change") if line["kind"] == "secret"]
    assert [(line["action"], line.get("replaced")) for line in secrets] == [
        ("set", False), ("set", True), ("forget", None), ("forget", None)]
    assert "value" not in secrets[0] and "previous" not in secrets[0]
    end(started)


def test_door_33_a_secret_comes_from_this_machine_alone_and_goes_nowhere(lab):
    provider = lab.model_server()
    provider.script(repeat=answer("x"))
    started = two_drivers(lab, provider).start("--bind", "0.0.0.0")
    started.url
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            own = probe.getsockname()[0]
        except OSError:
            own = "127.0.0.1"
    if own.startswith("127."):
        end(started)
        pytest.skip("this host has no address but loopback")
    far = f"{own}:{urllib.parse.urlsplit(started.url).port}"
    path = "/control/secrets/OTHER_KEY"
    assert ask(lab, started, "PUT", path, SECRET.encode(), address=far)[0] == 403
    assert ask(lab, started, "DELETE", path, address=far)[0] == 403
    assert put_setting(lab, started, "inference.max_tokens", 5, address=far)[0] == 200
    assert ask(lab, started, "PUT", path, b"x" * 8193)[0] == 413
    for bad in (b"two\nlines", b"caf\xc3\xa9", b"\x7f"):
        assert ask(lab, started, "PUT", path, bad)[0] == 422
    assert ask(lab, started, "PUT", path, SECRET.encode())[0] == 200
    put_setting(lab, started, "inference.driver", "other")
    send(started, f"say {SECRET}")
    refused = [line["reason"] for line in lab.session(started).trace.all("control_refused")]
    assert refused == ["not_loopback", "not_loopback", "body_too_large", *["invalid_value"] * 3]
    end(started)
    for file in (lab.murmur_home / "records").rglob("*"):
        if file.is_file() and file.name != "result.txt":
            assert SECRET not in file.read_bytes().decode(errors="replace"), file
    assert SECRET not in started.stdout + started.stderr


# --- mur control -----------------------------------------------------------------------------------------------------


def test_cli_control_shows_and_sets(lab):
    provider = lab.model_server()
    started = two_drivers(lab, provider).start()
    started.url
    assert lab.mur("control", "show").ok().stdout == (
        f"session:  {started.session_id}\nsettings:\n  inference.driver       primary\n"
        "      primary   model scripted  driver std/driver-scripted  available\n"
        "      other     model model-b  driver local/driver-other  unavailable\n"
        "  inference.max_tokens   1024\nsecrets:\n  OTHER_KEY              not set\n")
    assert lab.mur("control", "set", "inference.max_tokens", "64").ok().stdout == (
        "setting:  inference.max_tokens\nprevious: 1024\nvalue:    64\napplies:  next inference call\n")
    assert lab.mur("control", "show", "@1", "--json").ok().json["settings"][1]["value"] == 64
    refused = lab.mur("control", "set", "inference.driver", "nobody", started.session_id).failed("E-RUN-042")
    assert "422" in refused.stderr and "primary, other" in refused.stderr
    assert "404" in lab.mur("control", "set", "no such/setting?x", "1").failed("E-RUN-042").stderr
    assert "409" in lab.mur("control", "set", "inference.driver", "other").failed("E-RUN-042").stderr
    lab.mur("control", "secret", "OTHER_KEY", stdin=SECRET + "\n").ok()
    assert lab.mur("control", "set", "inference.driver", "other").ok().stdout == (
        "setting:  inference.driver\nprevious: primary\nvalue:    other\napplies:  next inference call\n")
    assert "in_use" not in lab.mur("control", "forget", "OTHER_KEY").failed("E-RUN-042").stdout
    end(started)
    lab.mur("control", "show").failed("E-RUN-022")


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_cli_17_one_line_end_is_taken_from_a_secret(lab, ending):
    provider = lab.model_server().script(repeat=answer("x"))
    started = two_drivers(lab, provider).start()
    started.url
    assert lab.mur("control", "secret", "OTHER_KEY", stdin=SECRET + ending).ok().stdout == (
        "secret: OTHER_KEY\nset:    yes (new)\n")
    assert lab.mur("control", "secret", "OTHER_KEY", stdin=SECRET + ending).ok().stdout == (
        "secret: OTHER_KEY\nset:    yes (replaced)\n")
    lab.mur("control", "set", "inference.driver", "other").ok()
    send(started)
    assert {request.headers["x-api-key"] for request in provider.requests} == {SECRET}
    lab.mur("control", "set", "inference.driver", "primary").ok()
    assert lab.mur("control", "forget", "OTHER_KEY").ok().stdout == "secret: OTHER_KEY\nset:    no\n"
    lab.mur("control", "secret", "OTHER_KEY", stdin="\n").failed("E-RUN-042")
    refused = lab.mur("control", "secret", "OTHER_KEY", stdin=SECRET + "\n\n").failed("E-RUN-042")
    assert SECRET not in refused.stdout + refused.stderr
    end(started)


def test_cli_17_without_a_control_block_there_is_nothing_to_change(lab):
    started = lab.agent(steps=[{"text": "x"}], lifecycle=SLEEPER).start()
    started.url
    for words in (("show",), ("set", "inference.max_tokens", "5"), ("forget", "KEY")):
        lab.mur("control", *words).failed("E-RUN-042")
    lab.mur("control", "secret", "KEY", stdin="k\r\n").failed("E-RUN-042")
    end(started)


def test_cli_a_secret_typed_at_a_terminal_is_not_echoed(lab):
    provider = lab.model_server()
    started = two_drivers(lab, provider).start()
    started.url
    parent, child = pty.openpty()
    process = subprocess.Popen([str(lab.mur_path), "control", "secret", "OTHER_KEY"], stdin=child, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=lab.environment(), start_new_session=True)
    os.close(child)
    assert process.stderr.read(len("OTHER_KEY: ")) == b"OTHER_KEY: "
    os.write(parent, SECRET.encode() + b"\n")
    out, errors = process.communicate(timeout=30)
    assert out == b"secret: OTHER_KEY\nset:    yes (new)\n" and process.returncode == 0
    os.set_blocking(parent, False)
    try:
        echoed = os.read(parent, 4096)
    except (BlockingIOError, OSError):
        echoed = b""
    os.close(parent)
    assert SECRET.encode() not in echoed + errors
    end(started)


class Impostor(BaseHTTPRequestHandler):
    """Answers with the card of a session, and what it is told to everywhere else."""

    def answer(self):
        is_card = self.path == "/.well-known/agent-card.json"
        self.rfile.read(int(self.headers.get("content-length", 0)))
        status, text = (200, self.server.card) if is_card else self.server.says
        self.send_response(status)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_PUT = answer

    def log_message(self, *_arguments):
        pass


def test_cli_control_believes_nothing_that_sits_at_a_sessions_address(lab, running):
    record = lab.murmur_home / "running" / f"{running.session_id}.json"
    original, token = record.read_text(), token_path(lab, running).read_text()
    impostor = HTTPServer(("127.0.0.1", 0), Impostor)
    with urllib.request.urlopen(running.url + "/.well-known/agent-card.json") as card:
        impostor.card = card.read()
    threading.Thread(target=impostor.serve_forever, args=(0.02,), daemon=True).start()
    record.write_text(json.dumps({**json.loads(original), "url": "127.0.0.1:%d" % impostor.server_address[1]}))
    for impostor.says in ((500, json.dumps({"error": f"bad {token}"}).encode()), (200, b"[1]"), (200, b"not json")):
        for arguments in (["show"], ["set", "inference.max_tokens", "5"]):
            refused = lab.mur("control", *arguments).failed("E-RUN-042")
            assert token not in refused.stderr
    impostor.says = 200, json.dumps({"settings": [{"name": 1, "choices": [5]}], "secrets": [5]}).encode()
    shown = lab.mur("control", "show").ok().stdout
    assert shown.startswith("session:  ?\n") and "null" not in shown
    impostor.says = 200, json.dumps({"session_id": "a\x1b[2J\x9bb", "settings": [{"name": "x", "value": "\r\n"}]}).encode()
    assert not set(lab.mur("control", "show").ok().stdout) & set("\x1b\x9b\r")
    impostor.shutdown()
    impostor.server_close()
    record.write_text(original)
