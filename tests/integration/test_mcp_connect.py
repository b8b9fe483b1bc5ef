# SPDX-License-Identifier: Apache-2.0
#
# `mur mcp connect`: what an MCP client's own file holds afterwards.

import json
import tomllib

import pytest

from tests.integration.test_mcp_serve import served
from tests.support.lab import MUR

FILES = {"claude-code": (".mcp.json", "mcpServers"), "vscode": (".vscode/mcp.json", "servers"),
         "cursor": (".cursor/mcp.json", "mcpServers")}


@pytest.mark.parametrize("client", FILES)
def test_mcp_22_connect_writes_an_entry_and_keeps_the_rest(lab, client):
    project = served(lab)
    name, member = FILES[client]
    project.write(name, json.dumps({"kept": 1, member: {"other": {"command": "x"}}}))

    for _ in range(2):
        project.mur("mcp", "connect", client, "--write").ok()

    whole = json.loads((project / name).read_text())
    entry = whole[member]["agent"]
    assert whole["kept"] == 1 and whole[member]["other"] == {"command": "x"} and len(whole[member]) == 2
    assert (entry["command"], entry["args"]) == (str(MUR.resolve()), ["mcp", "serve", str(project.directory.resolve())])
    assert json.loads(project.mur("mcp", "connect", client).ok().stdout)[member]["agent"] == entry


def test_mcp_22_connect_writes_a_section_of_codex_and_keeps_the_rest(lab):
    project, file = served(lab), lab.murmur_home.parent / ".codex/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text('model = "m"\n\n[mcp_servers.agent]\ncommand = "old"\n\n[mcp_servers.other]\ncommand = "x"\n')

    for _ in range(2):
        project.mur("mcp", "connect", "codex", "--write").ok()

    whole = tomllib.loads(file.read_text())
    assert whole["model"] == "m" and set(whole["mcp_servers"]) == {"agent", "other"}
    assert whole["mcp_servers"]["agent"]["args"] == ["mcp", "serve", str(project.directory.resolve())]
    assert tomllib.loads(project.mur("mcp", "connect", "codex").ok().stdout)["mcp_servers"]["agent"]


def test_mcp_22_connect_writes_the_file_of_claude_desktop_in_the_home(lab):
    project, file = served(lab), lab.home / ".config/Claude/claude_desktop_config.json"
    for before in (None, '{"kept": 1, "mcpServers": {"other": {"command": "x"}}}'):
        if before:
            file.write_text(before)
        project.mur("mcp", "connect", "claude-desktop", "--write").ok()
        whole = json.loads(file.read_text())
        assert whole["mcpServers"]["agent"]["args"] == ["mcp", "serve", str(project.directory.resolve())]
    assert whole["kept"] == 1 and set(whole["mcpServers"]) == {"agent", "other"}


def test_mcp_22_connect_refuses_what_it_cannot_keep(lab):
    project = served(lab)
    project.write(".mcp.json", "{ // a comment\n}")

    refused = project.mur("mcp", "connect", "claude-code", "--write").failed()
    assert ".mcp.json" in refused.stderr and (project / ".mcp.json").read_text() == "{ // a comment\n}"
    assert "codex" in project.mur("mcp", "connect", "emacs").failed().stderr
    nothing = lab.agent("nothing", steps=[{"text": "x"}])
    nothing.mur("mcp", "connect", "cursor").failed("E-MCP-010")
    assert json.loads(project.mur("mcp", "connect", "cursor", "acme/reviewer@1.2.0").ok().stdout)["mcpServers"]["reviewer"]
