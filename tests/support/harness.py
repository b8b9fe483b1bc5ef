# SPDX-License-Identifier: Apache-2.0
#
# A harness program for `inference.transport: process`: the real thing murmur starts, written by each test as a few lines of
# Python, and the capsule that drives it. Its driver is one of tests/guests/process-driver.

import sys
from textwrap import dedent

from .fixtures import own_component

PROGRAM = """\
#!{python} -u
import json, os, signal, subprocess, sys, threading, time, urllib.error, urllib.request

if sys.argv[1:] == ["--version"]:
    {version}
    sys.exit(0)
request = json.load(open(sys.argv[1]))

def say(type, **fields):
    print(json.dumps({{"type": type, **fields}}), flush=True)

def started(id="lab-1", auth="subscription", **more):
    say("session-started", id=id, auth=auth, **more)

def post(body, token=None, method="POST", path=""):
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    asked = urllib.request.Request(request["url"] + path, data, method=method)
    asked.add_header("authorization", "Bearer " + (request["token"] if token is None else token))
    try:
        answer = urllib.request.urlopen(asked, timeout=60)
    except urllib.error.HTTPError as error:
        answer = error
    return answer.status, answer.read().decode(), dict(answer.headers)

def rpc(method, params=None, id=1):
    return json.loads(post({{"jsonrpc": "2.0", "id": id, "method": method, "params": params or {{}}}})[1])

def use(name, **arguments):
    result = rpc("tools/call", {{"name": name, "arguments": arguments}})["result"]
    return result["content"][0]["text"], result["isError"]

def keep(name, value):
    with open(name + ".part", "w") as part:
        part.write(json.dumps(value))
    os.rename(name + ".part", name)

{body}
"""


def harness(lab, body, version="print('lab-harness 1.2.3')", name="lab-harness"):
    """Writes the program; returns its path."""
    path = lab.directory / name
    path.write_text(PROGRAM.format(python=sys.executable, version=version, body=dedent(body)))
    path.chmod(0o755)
    return path


def harness_project(lab, body, driver="harness-lines", config=None, tools=(), inference=None, name="agent",
                    version="print('lab-harness 1.2.3')", **manifest):
    """A capsule that drives this harness. `config` goes to the driver; `inference` and the rest overlay the manifest."""
    published = lab.publish(driver, own_component(driver), "driver")
    artifact, artifact_version = published.split("@")
    entries = [{"name": artifact, "version": artifact_version, "runtime": "driver"}]
    for tool in tools:
        if isinstance(tool, str):
            tool_name, tool_version = tool.rsplit("@", 1)
            tool = {"name": tool_name, "version": tool_version, "runtime": "tool"}
        entries.append(tool)
    block = {"transport": "process", "command": str(harness(lab, body, version)), "driver": {"artifact": artifact}}
    if config is not None:
        block["driver"]["config"] = config
    block.update(inference or {})
    return lab.project(name, {"name": name, "version": "0.1.0", "artifacts": entries, "inference": block, **manifest})
