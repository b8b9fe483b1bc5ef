# SPDX-License-Identifier: Apache-2.0
#
# An agent that speaks the Agent Client Protocol, written by each test as a few lines of Python, and the capsule that runs it.

import sys
from textwrap import dedent

PROGRAM = """\
#!{python} -u
import json, os, subprocess, sys, time, urllib.request

if sys.argv[1:] == ["--version"]:
    print("lab-agent 0.1.0")
    sys.exit(0)
seen = []

def write(message):
    sys.stdout.write(json.dumps({{"jsonrpc": "2.0", **message}}) + "\\n")
    sys.stdout.flush()

def read():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    seen.append(json.loads(line))
    with open("seen.json", "w") as kept:
        json.dump(seen, kept)
    return seen[-1]

def answer(request, result=None, error=None):
    write({{"id": request["id"], **({{"error": error}} if error else {{"result": result or {{}}}})}})

def expect(method):
    request = read()
    assert request["method"] == method, request
    return request

def say(update, **fields):
    write({{"method": "session/update", "params": {{"sessionId": "s-1", "update": {{"sessionUpdate": update, **fields}}}}}})

def text(words):
    say("agent_message_chunk", content={{"type": "text", "text": words}})

def permission(kind, title="do it", options=("allow_once", "reject_once"), **call):
    write({{"id": "p-1", "method": "session/request_permission", "params": {{"sessionId": "s-1",
        "toolCall": {{"toolCallId": "c-1", "kind": kind, "title": title, **call}},
        "options": [{{"optionId": "o-" + one, "name": one, "kind": one}} for one in options]}}}})
    return read()["result"]["outcome"]

def begin(capabilities=None, version=1, session="session/new"):
    answer(expect("initialize"), {{"protocolVersion": version, "agentCapabilities":
        {{"loadSession": True, "mcpCapabilities": {{"http": True}}, **(capabilities or {{}})}}, "authMethods": []}})
    request = expect(session)
    if session == "session/load":
        text("said before")
    answer(request, {{"sessionId": "s-1"}})
    return request, expect("session/prompt")

def stop(prompt, reason="end_turn", **more):
    answer(prompt, {{"stopReason": reason, **more}})

{body}
"""


def acp_agent(lab, body, name="lab-agent"):
    path = lab.directory / name
    path.write_text(PROGRAM.format(python=sys.executable, body=dedent(body)))
    path.chmod(0o755)
    return path


def acp_project(lab, body, config=None, tools=(), containment="scoped", inference=None, gateway=None, **manifest):
    """A capsule that runs the agent inside the walls."""
    entry = {"name": "std/driver-acp", "version": "0.1.0", "runtime": "driver"}
    manifest.setdefault("capabilities", {"shell": {"allow": ["sh", "ls"]}})
    return lab.project("agent", {
        "name": "agent", "version": "0.1.0",
        "artifacts": [{**entry, **({"gateway": gateway} if gateway else {})}, *tools],
        "inference": {"transport": "process", "containment": containment, "command": str(acp_agent(lab, body)),
                      "driver": {"artifact": "std/driver-acp", **({"config": config} if config else {})}, **(inference or {})},
        **manifest})
