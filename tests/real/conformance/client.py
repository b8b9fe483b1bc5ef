# SPDX-License-Identifier: Apache-2.0
#
# What the conformance suite runs as a client: the server at the address of the last argument is added with `mur mcp add`, and a
# capsule that declares it calls its tools. Questions are answered by a person at the door with nothing but the defaults.

import json
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.support.door_client import SLEEPER, Door  # noqa: E402
from tests.support.lab import Lab  # noqa: E402
from tests.support.mcp_servers import called, entry  # noqa: E402
from tests.support.polling import eventually  # noqa: E402

VALUES = {"string": "text", "integer": 2, "number": 2, "boolean": True, "array": [], "object": {}}
ENDED = ("COMPLETED", "FAILED", "CANCELED")


def filled(schema):
    """Arguments a tool takes: what it requires, by type."""
    properties = schema.get("properties", {})
    return {name: VALUES[properties.get(name, {}).get("type", "string")] for name in schema.get("required", [])}


def wanted_calls(tools):
    """(name, arguments) of what this scenario is to call: what the suite names, or each tool that was packed."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    named = [(call["name"], call["arguments"]) for call in context.get("toolCalls", [])]
    schemas = {tool["name"]: tool["inputSchema"] for tool in tools}
    if "json_schema_echo" in schemas:
        return [("json_schema_echo", {"schema": schemas["json_schema_2020_12_tool"]})]
    return named or [(name, filled(schema)) for name, schema in schemas.items()]


def answered(door, task):
    """Until its task is over: whatever is asked, the person leaves everything as it is."""
    def goes_on():
        state = door.state(task)
        if state == "INPUT_REQUIRED":
            door.send("{}", taskId=task)
        return state in ENDED
    eventually(goes_on, within_s=25)


def main():
    lab = Lab(Path(tempfile.mkdtemp(prefix="client-", dir=os.getcwd())))
    url = sys.argv[1]
    try:
        added = lab.mur("mcp", "add", url, "--name", "suite", "--accept")
        if "a schema refers outside itself" in added.stderr:  # such a server is not taken: nothing is fetched for it
            return
        added.ok()
        tools = json.loads(lab.mur("mcp", "show", "suite", "--json").ok().stdout)["tools"]
        steps = [called(name, **arguments) for name, arguments in wanted_calls(tools)]
        project = lab.agent(steps=[*steps, {"text": "done"}], lifecycle=SLEEPER,
                            tools=[entry("suite", "1", mcp={"url": url, "prefix": "", "ask": "operator"})])
        running = project.start()
        door = Door(running)
        answered(door, door.send_at_once("go")["id"])
        running.signal()
        print(running.result(20))
    finally:
        lab.close()


main()
