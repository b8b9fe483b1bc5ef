# SPDX-License-Identifier: Apache-2.0
#
# Relatives of the reports about schemas, certificates, delays, unset fields, full devices and commands without arguments: the
# same fault in another place or form. A number is that of the report.

import http.server
import json
import socket
import ssl
import subprocess
import threading

import pytest
import yaml

from tests.integration.test_std_relatives import Desk
from tests.integration.test_std_reports import CHAT_OK
from tests.integration.test_std_reports import Desk as Provided
from tests.integration.test_std_reports import narrowed
from tests.support.door_client import Door
from tests.support.fixtures import own_component
from tests.support.model_server import Reply
from tests.support.provider_forms import PROVIDERS

# --- 13: schemas that a provider that checks refuses -------------------------------------------------------------------

A_TEXT = {"a": {"type": "string"}}
TEXT_A = {"type": "object", "properties": A_TEXT}


def offered(lab, model, form, schema, model_name="some-model"):
    """The schema that the provider is shown of a tool that was published with this one."""
    tool = lab.publish("odd", own_component("echo"), "tool", **({} if schema is None else {"input_schema": schema}))
    desk = Desk(lab, model, form, model_name=model_name)
    manifest = desk.project / "murmur.yaml"
    manifest.write_text(yaml.safe_dump(yaml.safe_load(manifest.read_text()) | {"artifacts": [
        *yaml.safe_load(manifest.read_text())["artifacts"], {"name": tool.split("@")[0], "version": "0.1.0"}]}, sort_keys=False))
    desk.ends()
    shown = next(tool for tool in model.requests[0].json["tools"] if "odd" in (tool.get("name"), tool.get("function", {}).get("name")))
    return shown.get("input_schema") or shown.get("parameters") or shown["function"]["parameters"]


@pytest.mark.parametrize("form", PROVIDERS, ids=lambda form: form.name)
@pytest.mark.parametrize("schema, asked", [
    (None, {"type": "object", "properties": {}}), ({}, {"type": "object", "properties": {}}),
    ({"type": "object", "properties": None}, {"type": "object", "properties": {}}),
    ({"type": "object", "properties": []}, {"type": "object", "properties": {}}),
    ({"type": ["object", "null"], "properties": A_TEXT}, TEXT_A), ({"properties": A_TEXT}, TEXT_A),
    ({"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}, TEXT_A),
    ({"type": "object", "properties": {"a": {"type": "any"}, "b": {"type": ""}, "c": {"type": None}}},
     {"type": "object", "properties": {"a": {}, "b": {}, "c": {}}}),
    ({"type": "object", "properties": {"a": True, "b": False}}, {"type": "object", "properties": {"a": {}}}),
    ({"type": "object", "properties": {"a": {"type": "string", "enum": []}}}, TEXT_A),
    ({"type": "object", "properties": {"a": {"type": "string", "required": True}}, "required": None}, TEXT_A),
    ({"type": "object", "properties": {"a": {"type": "string", "description": None, "pattern": None, "minLength": "1"}}}, TEXT_A),
    ({"type": "object", "properties": {"a": {"anyOf": [], "type": "string"}}}, TEXT_A),
    ({"type": "object", "properties": {"a": {"$ref": "#/definitions/gone"}, "b": {"$ref": "https://example.org/s.json"}}},
     {"type": "object", "properties": {"a": {}, "b": {}}}),
    ({"type": "object", "properties": {name: {"type": "string"} for name in ("required", "properties", "type", "$ref", "enum")}},
     {"type": "object", "properties": {name: {"type": "string"} for name in ("required", "properties", "type", "$ref", "enum")}})],
    ids=lambda value: json.dumps(value)[:60])
def test_report_13_schemas_that_one_word_spoils(lab, model, form, schema, asked):
    if form.name == "anthropic":  # which takes no name with a dollar
        asked = json.loads(json.dumps(asked).replace('"$ref"', json.dumps(narrowed("$ref"))))
    assert offered(lab, model, form, schema) == asked


def test_report_13_gemini_knows_no_member_that_is_not_there(lab, model):
    schema = {"type": "object", "properties": {"o": {**TEXT_A, "required": ["a", "gone"]}, "p": {**TEXT_A, "required": ["gone"]}}}

    assert offered(lab, model, next(form for form in PROVIDERS if form.name == "openai"), schema, model_name="gemini-3-flash")["properties"] == {
        "o": {**TEXT_A, "required": ["a"]}, "p": TEXT_A}


# --- 15: a handshake that fails says why -------------------------------------------------------------------------------


class Listener:
    """A TLS server of one certificate; or one that speaks something else."""

    def __init__(self, directory, names="DNS:localhost", is_tls=True):
        key, self.certificate = directory / "k.pem", directory / "c.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", self.certificate,
                        "-subj", "/CN=localhost", "-addext", f"subjectAltName={names}"], check=True, capture_output=True)

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(200)
                self.send_header("content-length", str(len(CHAT_OK)))
                self.end_headers()
                self.wfile.write(CHAT_OK)

            def log_message(self, *_args):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *_arguments: None
        if is_tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate, key)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(5)


def refused_by(lab, model, url, **env):
    session = Provided(lab, model, "openai", gateway={"endpoint": url, "keyless": True}, retries=0).fails(env=env)
    return session.result_text


@pytest.mark.parametrize("how, told", [
    ("other name", "its certificate is for another name"), ("address", "its certificate is for another name"),
    ("plain", "it does not speak TLS: is it an http:// address?")])
def test_report_15_what_is_wrong_with_a_certificate_is_said(lab, model, tmp_path, how, told):
    with Listener(tmp_path, "DNS:other.example" if how == "other name" else "DNS:localhost", how != "plain") as listener:
        host = "127.0.0.1" if how == "address" else "localhost"
        text = refused_by(lab, model, f"https://{host}:{listener.port}", SSL_CERT_FILE=str(listener.certificate))

    assert f"{host}:{listener.port}: {told}" in text and "SSL_CERT_FILE" not in text


@pytest.mark.parametrize("content", [None, "", "hello\n", "folder"])
def test_report_15_authorities_that_cannot_be_read_are_named(lab, model, tmp_path, content):
    authorities = tmp_path / "ca.pem"
    if content == "folder":
        authorities.mkdir()
    elif content is not None:
        authorities.write_text(content)
    with Listener(tmp_path) as listener:
        text = refused_by(lab, model, f"https://localhost:{listener.port}", SSL_CERT_FILE=str(authorities))

    assert "the file that SSL_CERT_FILE names cannot be read, or holds no certificates" in text


def test_newcomer_B21_the_host_that_cannot_be_reached_is_named(lab, model):
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    assert f"connection refused (127.0.0.1:{port})" in refused_by(lab, model, f"http://127.0.0.1:{port}/v1")
    assert "(nowhere.invalid: the name does not resolve)" in refused_by(lab, model, "https://nowhere.invalid/v1")


# --- 29: when to come back ---------------------------------------------------------------------------------------------


def hurried(lab, model, value, name="retry-after"):
    task = Provided(lab, model, "openai")
    manifest = task.project / "murmur.yaml"
    manifest.write_text(manifest.read_text().replace("initial_delay_ms: 1\n", "initial_delay_ms: 40\n")
                        .replace("max_delay_ms: 5\n", "max_delay_ms: 2500\n"))
    task.script(Reply(status=429, body=b"{}", headers={name: value}))
    return task


@pytest.mark.parametrize("name, value", [
    *(("retry-after", value) for value in ("NaN", "inf", "0x10", "2, 0", "", "+1", "-5", "1,5", "PT2S", "2 seconds", "1m30s",
                                           "-99999999999999999999", "Thu, 19 Nov 2020 01:27:07 GMT", '"2"', "2;q=1", "000")),
    *(("retry-after-ms", value) for value in ("NaN", "-1", "1e3", "0.0001", "2s", ""))])
def test_report_29_a_delay_that_says_nothing_is_our_own(lab, model, name, value):
    assert 20 <= hurried(lab, model, value, name).ends().trace.one("inference_retry")["delay_ms"] <= 40


@pytest.mark.parametrize("name, value, delay", [
    ("retry-after", " 1 ", 1000), ("retry-after", "0.5", 500), ("retry-after", "1s", 1000), ("Retry-After", "01", 1000),
    ("retry-after-ms", "150", 150), ("Retry-After-Ms", "150.5", 151)])
def test_report_29_a_longer_delay_is_kept(lab, model, name, value, delay):
    assert hurried(lab, model, value, name).ends().trace.one("inference_retry")["delay_ms"] == delay


@pytest.mark.parametrize("value", ["99999999999999999999999", "9223372036854775807", "3600", "Fri, 31 Dec 9999 23:59:59 GMT",
                                   "2999-01-01T00:00:00Z"])
def test_report_29_a_delay_beyond_ours_is_an_end_that_says_so(lab, model, value):
    session = hurried(lab, model, value).fails()

    assert "it asks to be left alone for" in session.result_text and "inference.retry.max_delay_ms allows 2 s" in session.result_text
    assert len(model.requests) == 1


def test_report_29_a_delay_below_a_second_is_no_zero_seconds(lab, model):
    task = hurried(lab, model, "0.7")
    manifest = task.project / "murmur.yaml"
    manifest.write_text(manifest.read_text().replace("max_delay_ms: 2500\n", "max_delay_ms: 400\n"))
    assert "it asks to be left alone for 700 ms; inference.retry.max_delay_ms allows 400 ms" in task.fails().result_text


# --- 34: clients that write what is not set ----------------------------------------------------------------------------


@pytest.fixture
def door(lab):
    running = lab.agent(steps=[{"text": "hi"}], lifecycle={"task_acceptance": "queue", "after_task": "sleep",
                                                           "conversation": "threaded"}).start()
    running.wait_for("^session: ")
    return Door(running)


@pytest.mark.parametrize("of_message, of_params", [
    ({"contextId": "", "taskId": ""}, {}), ({"metadata": {}, "extensions": [], "referenceTaskIds": []}, {}),
    ({"parts": [{"text": "hi", "mediaType": "", "filename": "", "metadata": {}}]}, {}), ({}, {"tenant": ""}), ({}, {"configuration": None}),
    ({}, {"configuration": {"acceptedOutputModes": [], "historyLength": 0, "returnImmediately": None,
                            "taskPushNotificationConfig": None}})], ids=json.dumps)
def test_report_34_what_is_written_and_not_set_is_read_as_absent(door, of_message, of_params):
    params = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}], **of_message}, **of_params}

    task = door.result("SendMessage", params)["task"]

    assert task["contextId"].startswith("ctx_") and task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert door.result("ListTasks", {"contextId": "", "pageToken": "", "tenant": ""})["totalSize"] == 1


@pytest.mark.parametrize("of_message", [
    {"contextId": 5}, {"taskId": {}}, {"referenceTaskIds": "t"}, {"parts": [{"text": "a", "raw": "b"}]}, {"parts": [{"text": "", "url": ""}]},
    {"parts": [{"text": "a", "data": None}]}, {"role": ""}, {"messageId": ""}, {"messageId": None}], ids=json.dumps)
def test_report_34_what_is_set_wrongly_is_refused_still(door, of_message):
    params = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}], **of_message}}

    assert door.error("SendMessage", params)["code"] == -32602


# --- 36: a full device -------------------------------------------------------------------------------------------------


def test_report_36_every_command_that_tells_something_says_that_it_could_not(lab):
    project = lab.agent(steps=[{"text": "hi"}], tools=["std/files@0.1.0"])
    project.run("--task", "x").ok()
    for arguments in ("--version", "--help", "run --help", "version", "list", "ls", "list --all", "explain", "explain E-IO-001", "doctor",
                      "trace show", "trace list", "trace list --json", "trace steps", "trace report", "conversation list", "ps",
                      "ps --json", "run --explain-scope", "run --explain-scope --json", "completions bash", "new agent other"):
        with open("/dev/full", "w") as full:
            result = project.mur(*arguments.split(), stdout=full).failed("E-IO-003")
        assert "standard output: No space left on device" in result.stderr, arguments


# --- commands without arguments ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("input_, told", [
    ({}, None), ({"command": None}, None), ({"command": ""}, None), ({"command": "  "}, None), ({"args": []}, None),
    ({"command": "-u"}, None), ({"command": "-u", "why": "to know"}, None),
    ({"args": ["-u"]}, 'is text, or is left out, not "args"'), ({"cmd": "-u"}, 'not "cmd"'), ({"command": ["-u"]}, "is text, or is left out"),
    ({"command": 5}, "is text, or is left out")], ids=json.dumps)
def test_report_a_command_without_arguments_runs_and_no_word_of_a_call_is_lost(lab, input_, told):
    project = lab.agent(steps=[{"tool_calls": [{"name": "date", "input": input_}]}, {"text": "{{result}}"}],
                        capabilities={"shell": {"allow": ["date"]}})

    session = lab.session(project.run("--task", "x").ok())

    error = session.trace.one("tool_call").get("error")
    assert (told in error) if told else error is None and "20" in session.result_text
