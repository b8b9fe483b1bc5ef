# SPDX-License-Identifier: Apache-2.0
#
# The tool bridge: the session's tools as a harness calls them, over MCP on 127.0.0.1.

import json
import os
from textwrap import dedent

from tests.integration.test_harness import kept, map_file, work_of
from tests.integration.test_hooks import Hook
from tests.support.fixtures import own_component
from tests.support.harness import harness_project
from tests.support.polling import eventually, marked_processes

SHELL = {"shell": {"allow": ["bash", "sleep"]}}
END = 'say("turn-end", text="done")\n'


def echo_tool(lab, **manifest):
    return lab.publish("echo", own_component("echo"), **{"input_schema": {"type": "object"}, **manifest})


def bridged(lab, body, *arguments, **how):
    """Runs a harness whose body keeps what it saw in `seen`; the session."""
    project = harness_project(lab, "started()\n" + dedent(body) + "\n" + END, **how)
    return lab.session(project.run("--task", "x", *arguments).ok())


def test_session_6_1_the_protocol_of_the_bridge(lab):
    session = bridged(lab, """
        def both(body, **how):
            status, text, headers = post(body, **how)
            return [status, text, {name.lower(): value for name, value in headers.items()}]
        keep("seen", {
            "first": both({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}),
            "unserved": both({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "1900-01-01"}}),
            "ping": both({"jsonrpc": "2.0", "id": "", "method": "ping"}), "null": both({"jsonrpc": "2.0", "id": None, "method": "ping"}),
            "default": both({"jsonrpc": "2.0", "id": "a", "method": "initialize"}),
            "notification": both({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            "unknown": both({"jsonrpc": "2.0", "id": 1, "method": "resources/list"}),
            "get": both(None, method="GET"),
            "no_token": both({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, token="wrong"),
            "bad": both(b"{nonsense"), "array": both(b"[]"), "elsewhere": both({"id": 1, "method": "initialize"}, path="/x"),
            "no_name": both({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {}}),
        })
    """)

    seen = kept(session)
    status, text, headers = seen["first"]
    answer = json.loads(text)
    assert status == 200 and answer["id"] == 7 and answer["jsonrpc"] == "2.0"
    assert answer["result"]["protocolVersion"] == "2025-06-18" and "tools" in answer["result"]["capabilities"]
    assert answer["result"]["serverInfo"]["name"] == "murmur" and headers["mcp-session-id"]
    assert json.loads(seen["default"][1])["result"]["protocolVersion"] == "2024-11-05"
    assert json.loads(seen["unserved"][1])["result"]["protocolVersion"] == "2025-11-25"
    assert json.loads(seen["ping"][1]) == {"jsonrpc": "2.0", "id": "", "result": {}} and seen["null"][0] == 400
    assert seen["notification"][:2] == [202, ""]
    assert json.loads(seen["unknown"][1])["error"]["code"] == -32601 and seen["unknown"][0] == 200
    assert seen["get"][0] == 405 and seen["no_token"][0] == 401
    assert seen["bad"][0] == 400 and seen["array"][0] == 400 and seen["elsewhere"][0] == 404
    assert json.loads(seen["no_name"][1])["error"]["code"] == -32602


def test_session_6_1_the_inventory_and_a_call(lab):
    echo = echo_tool(lab, description="Answers with its input.", input_schema={
        "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    session = bridged(lab, """
        listed = rpc("tools/list")["result"]["tools"]
        keep("seen", {"tools": listed, "told": request["tools"], "answer": use("echo", n=5), "status": use("session-status")})
    """, tools=[echo])

    seen = kept(session)
    tools = {tool["name"]: tool for tool in seen["tools"]}
    assert list(tools) == seen["told"] == ["echo", "session-status"]
    assert tools["echo"]["description"] == "Answers with its input." and tools["echo"]["inputSchema"]["required"] == ["n"]
    text, is_error = seen["answer"]
    assert is_error is False and text.startswith("<untrusted-content source=tool:echo>\n") and '"n":5' in text
    status = json.loads(seen["status"][0].split("\n")[1])
    assert status["context"] == "unknown" and status["turns"]["used"] == 0
    assert session.trace.one("harness_start")["bridge_tools"] == ["echo", "session-status"]


def test_session_6_1_required_fields_are_checked(lab):
    echo = echo_tool(lab, input_schema={"type": "object", "required": ["a", "b"]})
    session = bridged(lab, 'keep("seen", use("echo", b=1))', tools=[echo])

    text, is_error = kept(session)
    assert is_error and "a" in text and "untrusted" not in text
    assert session.trace.one("tool_input_refused")["missing"] == ["a"]


def test_session_6_1_an_unknown_tool_fails_in_its_result(lab):
    text, is_error = kept(bridged(lab, 'keep("seen", use("nothing-here"))'))
    assert is_error and "nothing-here" in text


def test_session_14_a_deny_hook_is_asked_about_bridged_calls(lab):
    hook = Hook(lab, binding="on-tool-call", commit_policy="deny",
                on={"before-tool-call": {"answer": "deny", "text": "not here"}})
    session = bridged(lab, 'keep("seen", use("echo", n=1))', tools=[echo_tool(lab), hook.entry])

    text, is_error = kept(session)
    assert is_error and "not here" in text
    denied = session.trace.one("call_denied")
    assert (denied["event"], denied["target"], denied["reason"]) == ("on-tool-call", "echo", "not here")


def test_containment_33_a_protected_path_holds_for_bridged_calls(lab):
    session = bridged(lab, 'keep("seen", use("echo", path="tests/a", content="x"))', tools=[echo_tool(lab)],
                      capabilities={"filesystem": {"read_only": ["tests"]}})

    assert kept(session)[1] is True and session.trace.one("protected_path_denied")["path"] == "tests/a"


def test_session_6_1_a_shell_command_is_confined_and_recorded(lab):
    session = bridged(lab, 'keep("seen", use("bash", command="echo $MURMUR_SESSION_ID; exit 3"))',
                      capabilities=SHELL)

    text, is_error = kept(session)
    assert not is_error and session.id in text and "Exit code: 3" in text
    line = session.trace.one("shell")
    assert (line["command"], line["exit_code"]) == ("echo $MURMUR_SESSION_ID; exit 3", 3)
    assert session.trace.one("task_end")["shell_calls"] == 1


def test_session_37_the_seventeenth_call_is_refused(lab):
    session = bridged(lab, """
        answers = []
        def one(n):
            answers.append(use("bash", command=": > go-%d; while ! [ -e release ]; do sleep 0.05; done; echo fine" % n))
        threads = [threading.Thread(target=one, args=(n,)) for n in range(16)]
        for thread in threads: thread.start()
        while len([name for name in os.listdir(".") if name.startswith("go-")]) < 16: time.sleep(0.02)
        refused = use("bash", command="echo never")
        open("release", "w").close()
        for thread in threads: thread.join()
        keep("seen", {"answers": answers, "refused": refused})
    """, capabilities=SHELL, lifecycle={"shell_grace_secs": 60})

    seen = kept(session)
    assert len(seen["answers"]) == 16 and all("fine" in text and not bad for text, bad in seen["answers"])
    text, is_error = seen["refused"]
    assert is_error and "16" in text and "untrusted" not in text
    assert "16" in session.trace.one("harness_note")["text"]
    assert len(session.trace.all("shell")) == 16


def test_session_6_1_calls_run_beside_each_other(lab):
    session = bridged(lab, """
        begun, answers = time.monotonic(), []
        threads = [threading.Thread(target=lambda: answers.append(use("bash", command="sleep 2"))) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        keep("seen", [time.monotonic() - begun, answers])
    """, capabilities=SHELL)
    took, answers = kept(session)
    assert len(answers) == 4 and all("Exit code: 0" in text for text, _ in answers)
    assert 2 <= took < 6


def test_session_6_1_a_closed_connection_sends_its_command_to_the_background(lab):
    session = bridged(lab, """
        import socket
        from urllib.parse import urlparse
        where = urlparse(request["url"])
        connection = socket.create_connection((where.hostname, where.port))
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "bash", "arguments": {"command": ": > began; sleep 2; : > ended"}}}).encode()
        connection.sendall(b"POST /bridge HTTP/1.1\\r\\nAuthorization: Bearer " + request["token"].encode()
                           + b"\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)
        while not os.path.exists("began"): time.sleep(0.02)
        connection.close()
        while not os.path.exists("ended"): time.sleep(0.05)
    """, capabilities=SHELL, lifecycle={"shell_grace_secs": 60})

    assert session.trace.one("shell_detached")["command"].startswith(": > began")
    assert "bash" in session.trace.one("harness_note")["text"]
    assert session.result_text == "done"


def test_session_6_1_a_command_left_behind_ends_with_the_session(lab):
    seconds = f"6{os.getpid()}"
    project = harness_project(lab, dedent(f"""
        started()
        threading.Thread(target=use, args=("bash",), kwargs={{"command": "echo > up; sleep {seconds}"}}, daemon=True).start()
        while not os.path.exists("up"): time.sleep(0.02)
        say("turn-end", text="done"); os._exit(0)
    """), capabilities=SHELL)

    session = lab.session(project.run("--task", "x").ok())

    eventually(lambda: not marked_processes(f"sleep {seconds}".encode()) and
               not marked_processes(f"sleep\0{seconds}\0".encode()), 5)
    assert (work_of(session) / "up").exists()
    assert "shell_detached" in session.trace.types and "shell_abandoned" in session.trace.types


def test_session_6_1_a_slow_request_is_dropped_and_others_are_served(lab):
    session = bridged(lab, """
        import socket
        from urllib.parse import urlparse
        where = urlparse(request["url"])
        slow = [socket.create_connection((where.hostname, where.port)) for _ in range(40)]
        for connection in slow: connection.sendall(b"POST /bridge HTTP/1.1\\r\\n")
        keep("seen", use("session-status")[1])
        for connection in slow: connection.close()
    """)
    assert kept(session) is False


def test_session_6_1_the_token_is_of_the_run_and_in_no_record(lab):
    session = bridged(lab, 'keep("seen", request["token"])')
    token = kept(session)
    assert len(token) == 64
    for path in session.records.rglob("*"):
        if path.is_file():
            assert token not in path.read_text(errors="replace"), path


def test_session_6_1_large_inputs_and_outputs_pass_whole(lab):
    session = bridged(lab, """
        text, is_error = use("echo", blob="x" * 3000000)
        keep("seen", [len(text), is_error])
    """, tools=[echo_tool(lab)])
    size, is_error = kept(session)
    assert size > 3000000 and not is_error


def test_session_12_a_plan_runs_through_the_bridge(lab):
    session = bridged(lab, """
        keep("seen", use("submit-plan", plan={"id": "p", "steps": [
            {"id": "a", "tool": "echo", "input": {"n": 1}}, {"id": "b", "shell": "bash -c 'echo two'", "depends_on": ["a"]}]}))
    """, tools=[echo_tool(lab)], capabilities={**SHELL, "plan": {"submit": True}})

    text, is_error = kept(session)
    assert not is_error and '"completed":true' in text and "two" in text
    assert session.trace.one("plan_end")["outcome"] == "completed"


def test_session_6_1_a_plan_step_of_a_harness_passes_every_gate(lab):
    hook = Hook(lab, binding="on-tool-call", commit_policy="deny",
                on={"before-tool-call": {"answer": "deny", "text": "no echo", "times": 5}})
    session = bridged(lab, """
        keep("seen", use("submit-plan", plan={"id": "p", "steps": [{"id": "a", "tool": "echo", "input": {}}]}))
    """, tools=[echo_tool(lab), hook.entry], capabilities={"plan": {"submit": True}})

    assert kept(session)[1] is True and "call_denied" in session.trace.types


def test_session_6_1_the_harness_reports_its_calls_and_the_bridge_does_not(lab):
    session = bridged(lab, """
        say("tool-call", id="c1", name="mcp__murmur__echo", input='{"n": 1}')
        text, is_error = use("echo", n=1)
        say("tool-result", id="c1", output=text, is_error=is_error)
    """, tools=[echo_tool(lab)])

    call = session.trace.one("tool_call")
    assert (call["tool_name"], call["tool_call_id"], call["status"]) == ("mcp__murmur__echo", "c1", "ok")
    assert not map_file(lab).exists()
