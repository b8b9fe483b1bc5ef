# SPDX-License-Identifier: Apache-2.0
#
# What MCP costs: a tool's call by a client, a packed server's first call beside the bare program, servers
# that are declared and never called.

import json
import shutil
import statistics
import subprocess
import time

CALLS = 400
DECLARED = 5
NODE_SERVER = """\
const lines = require('node:readline').createInterface({ input: process.stdin })
const say = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n')
lines.on('line', (line) => {
  const { id, method } = JSON.parse(line)
  if (method === 'initialize')
    say(id, { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'bench', version: '1' } })
  else if (method === 'tools/list')
    say(id, { tools: [{ name: 'echo', description: 'Echoes.', inputSchema: { type: 'object' } }] })
  else if (method === 'tools/call') say(id, { content: [{ type: 'text', text: 'done' }] })
  else if (id !== undefined)
    process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no such method' } }) + '\\n')
})
"""


class Talk:
    """A client of a program on its standard streams."""

    def __init__(self, argv, **how):
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **how)
        self.next_id = 0
        self.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "bench", "version": "1"})

    def ask(self, method, **params):
        self.next_id += 1
        message = {"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError(f"no answer to {method}")
            answer = json.loads(line)
            if answer.get("id") == self.next_id:
                return answer["result"]

    def close(self):
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()


def served_call_ms(subject, folder):
    """The median of calls of bench-echo by a client."""
    talk = Talk([str(subject.path), "mcp", "serve", "--workdir", "."], cwd=folder, env=subject.env)
    try:
        took = []
        for _ in range(CALLS):
            began = time.perf_counter_ns()
            result = talk.ask("tools/call", name="bench-echo", arguments={"text": "x"})
            took.append((time.perf_counter_ns() - began) / 1e6)
            if result["isError"]:
                raise RuntimeError(result["content"][0]["text"])
        return statistics.median(took)
    finally:
        talk.close()


def node_folder(subject):
    folder = subject.directory / "node-server"
    if not folder.exists():
        folder.mkdir()
        (folder / "server.js").write_text(NODE_SERVER)
        subject.run("mcp", "add", f"path:{folder}", "--name", "bench", "--version", "0.1.0")
    return folder


def bare_node_ms(subject):
    """The same server without us: started, opened, its tools listed, called once."""
    began = time.perf_counter_ns()
    talk = Talk([shutil.which("node"), str(node_folder(subject) / "server.js")])
    talk.ask("tools/list")
    talk.ask("tools/call", name="echo", arguments={})
    took = (time.perf_counter_ns() - began) / 1e6
    talk.close()
    return took


def declare(manifest, count):
    """A manifest with so many packed servers more, the first of them called `bench`."""
    entries = "".join(f'  - {{name: local/mcp-bench{number or ""}, version: "0.1.0", runtime: mcp}}\n' for number in range(count))
    return manifest.replace("inference:", entries + "inference:", 1)


def publish_servers(subject):
    folder = node_folder(subject)
    for number in range(1, DECLARED):
        subject.run("mcp", "add", f"path:{folder}", "--name", f"bench{number}", "--version", "0.1.0")
