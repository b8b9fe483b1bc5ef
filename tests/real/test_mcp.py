# SPDX-License-Identifier: Apache-2.0
#
# Real MCP clients against `mur mcp serve`: the SDK of Python, of both eras' generations, from PyPI.

import json
import subprocess
import sys

import pytest

from tests.integration.test_mcp_serve import served, trace_of
from tests.support.pypi import python_with

SDKS = ["mcp==1.30.0", "mcp==2.3.0"]
ROUND = '''
import asyncio, json, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

def field(o, snake, camel):
    return getattr(o, snake, None) if hasattr(o, snake) else getattr(o, camel)

async def main(program, folder, home):
    server = StdioServerParameters(command=program, args=["mcp", "serve", folder], env={"HOME": home})
    async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()
        tools = [tool.name for tool in (await session.list_tools()).tools]
        written = await session.call_tool("files", {"action": "write", "path": "a.txt", "content": "by an SDK"})
        read = await session.call_tool("files", {"action": "read", "path": "a.txt"})
        refused = await session.call_tool("files", {"action": "read", "path": "missing"})
        asked = await session.call_tool("ask_agent", {"message": "hi"})
        print(json.dumps([tools, field(written, "is_error", "isError"), read.content[0].text,
                          field(refused, "is_error", "isError"), field(asked, "structured_content", "structuredContent")]))

asyncio.run(main(*sys.argv[1:]))
'''


@pytest.mark.skipif(sys.version_info < (3, 10), reason="the SDKs need Python 3.10")
@pytest.mark.parametrize("package", SDKS)
def test_mcp_21_the_sdk_of_python_does_a_full_round(lab, package):
    python, project = python_with(package), served(lab)

    done = subprocess.run([python, "-c", ROUND, str(lab.mur_path.resolve()), str(project.directory), str(lab.murmur_home.parent)],
                          capture_output=True, text=True, timeout=120)

    assert done.returncode == 0, done.stderr
    tools, failed, text, refused, asked = json.loads(done.stdout)
    assert tools == ["files", "ask_agent"] and not failed and text == "by an SDK" and refused
    assert asked["state"] == "completed" and "hi" in asked["answer"]
    assert [line["tool_name"] for line in trace_of(lab).all("tool_call")] == ["files"] * 3
