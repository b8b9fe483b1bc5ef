# SPDX-License-Identifier: Apache-2.0
#
# What `mur mcp add` says when a package cannot be had, built, started or looked at: one sentence, and what helps.

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.mcp_servers import add, called, using, write_server


def fake(lab, name, text, status=1):
    """A program of that name, first on PATH, that prints this and fails."""
    folder = lab.directory / "fake"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit {status}\n")
    (folder / name).chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


@pytest.mark.parametrize("log, says, hint", [
    ("npm error code E404\nnpm error 404 Not Found", "npm:nothing@1: there is no such package on npm", "npx -y"),
    ("npm error code ETARGET\nnpm error notarget No matching version", "npm has no such version of it", "npm view"),
    ("npm error code ENOVERSIONS", "npm has no version of it any more", "npx -y"),
    ("npm error code EUNSUPPORTEDPROTOCOL\nnpm error Unsupported URL Type \"workspace:\": workspace:*", "workspace:", "path:"),
    ("npm error code ERESOLVE", "contradicts itself", "another version"),
    ("npm error code EBADPLATFORM", "not made for this system", ""),
    ("npm error code ENOTFOUND", "the registry of npm cannot be reached", ""),
    ("npm error code 1\nnpm error gyp ERR! find Python\nnpm error gyp ERR! not ok", "built here, which needs python3", "build-essential"),
    ("npm error code 1\nnpm error gyp ERR! stack Error: not found: make", "built here, which needs make", "build-essential"),
    ("npm error code 1\nnpm error gyp ERR! build error\nnpm error gyp ERR! stack Error: make failed", "built here, and that failed", "C++ compiler"),
    ("npm error something else", "npm error something else", "")])
def test_mcp_43_what_npm_says_is_told_in_a_sentence(lab, log, says, hint):
    refused = lab.mur("mcp", "add", "npm:nothing@1", env=fake(lab, "npm", log)).failed("E-IO-003")
    assert says in refused.stderr and hint in refused.stderr


NATIVE = """#!/bin/sh
if [ "$1" = rebuild ]; then
    echo "gyp ERR! find Python" >&2
    exit 1
fi
mkdir -p node_modules/withnative
cat > node_modules/withnative/package.json <<'END'
{"name": "withnative", "version": "1.0.0", "bin": "index.js", "scripts": {"install": "node-gyp rebuild"}}
END
cat > node_modules/withnative/index.js <<'END'
#!/usr/bin/env node
throw new Error("Could not locate the bindings file. Tried: build/Release/native.node");
END
cat > package-lock.json <<'END'
{"lockfileVersion": 3, "packages": {"node_modules/withnative": {"version": "1.0.0", "hasInstallScript": true, "bin": {"withnative": "index.js"}}}}
END
cp package-lock.json node_modules/.package-lock.json
"""


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
@pytest.mark.parametrize("options, code, says, hint", [
    ([], "E-MCP-001", "Could not locate the bindings file", "built by an install script, which was not run"),
    (["--allow-scripts", "withnative"], "E-IO-003", "built here, which needs python3", "build-essential")])
def test_mcp_43_a_native_module_that_is_not_built_is_named(lab, options, code, says, hint):
    path = fake(lab, "npm", "")
    (lab.directory / "fake/npm").write_text(NATIVE)
    refused = lab.mur("mcp", "add", "npm:withnative@1.0.0", *options, env=path, timeout=120).failed(code)
    assert says in refused.stderr and hint in refused.stderr


PIP = "ERROR: Could not find a version that satisfies the requirement {} (from versions: {})\nERROR: No matching distribution found"


@pytest.mark.parametrize("log, says, hint", [
    (PIP.format("nothing", "none"), "PyPI has no package nothing", "uvx"),
    (PIP.format("nothing==9", "0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7"), "no nothing==9; the newest are 0.3, 0.4, 0.5, 0.6, 0.7", ""),
    ("ERROR: Ignored the following versions that require a different python version: 1.0 Requires-Python >=3.14; 1.1 Requires-Python "
     ">=3.14\n" + PIP.format("nothing", "none"), "another Python than python3 here: it wants >=3.14", "first on PATH"),
    ("WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError'\n" + PIP.format("nothing", "none"),
     "PyPI cannot be reached", ""),
    ("/usr/bin/python3: No module named pip", "python3 has no pip", "python3-pip"),
    ("error: command 'gcc' failed\nERROR: Failed building wheel for fastthing", "fastthing is built here from its source, and that failed",
     "python3-dev"),
    (PIP.format("onlywheels", "none"), "none that is built for this Python and machine", "--allow-scripts onlywheels"),
    ("ERROR: ResolutionImpossible: for help visit", "contradicts itself", "--with")])
def test_mcp_43_what_pip_says_is_told_in_a_sentence(lab, log, says, hint):
    refused = lab.mur("mcp", "add", "pypi:nothing", env=fake(lab, "python3", log)).failed("E-IO-003")
    assert says in refused.stderr and hint in refused.stderr


@pytest.mark.parametrize("wrote, hint", [
    ("Error: BRAVE_API_KEY environment variable is required", "--env BRAVE_API_KEY=placeholder"),
    ("Please set SLACK_BOT_TOKEN and SLACK_TEAM_ID environment variables", "--env SLACK_BOT_TOKEN=placeholder"),
    ("Usage: server <https://server-url>", "mur mcp add SOURCE -- ARGUMENTS"),
    ("ModuleNotFoundError: No module named 'numpy'", "--with numpy"),
    ("Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /x", "--with zod"),
    ("AttributeError: 'Server' object has no attribute 'list_resources'", "--with NAME<VERSION"),
    ("getaddrinfo ENOTFOUND api.example.com", "--network HOST"),
    ("PermissionError: [Errno 13] Permission denied: '/data'", "--scope FOLDER"),
    ("bye", "on its standard streams")])
def test_mcp_43_a_server_that_does_not_start_costs_one_error_with_what_helps(lab, wrote, hint):
    refused = add(lab, start_fails=wrote).failed("E-MCP-001")
    assert wrote in refused.stderr and hint in refused.stderr


def test_mcp_43_a_server_that_speaks_http_is_seen(lab):
    refused = add(lab, "--startup-secs", "8", listens=True).failed("E-MCP-002")
    assert "Server listening on port 3333" in refused.stderr and "--stdio" in refused.stderr


def test_mcp_43_programs_and_engines_of_a_package_are_named(lab):
    folder = write_server(lab, name="many")
    package = {"name": "many", "version": "1.0.0", "bin": {"one": "a.js", "two": "b.js"}}
    (folder / "package.json").write_text(json.dumps(package))
    (folder / "server.py").unlink()
    refused = lab.mur("mcp", "add", f"path:{folder}", "--bin", "three").failed("E-MCP-001")
    assert "can be started" in refused.stderr and "--bin" in refused.stderr


def test_mcp_43_what_an_added_server_sees_is_said_with_what_changes_it(lab):
    told = add(lab).ok().stdout
    assert "It sees an empty folder and no network." in told and "filesystem: {scope: .}" in told
    given = add(lab, "--scope", ".", "--network", "api.example.com", version="0.2.0").ok().stdout
    assert "empty folder" not in given and "filesystem: {scope: .}" in given


def test_mcp_43_an_interpreter_behind_a_version_managers_shim_is_found(lab):
    root, python = lab.directory / "manager/.pyenv", Path(shutil.which("python3", path="/usr/bin:/bin") or sys.executable).resolve()
    (root / "shims").mkdir(parents=True)
    (root / "versions/3.99.1/bin").mkdir(parents=True)
    (root / "version").write_text("3.99.1\n")
    (root / "shims/python3").write_text('#!/usr/bin/env bash\nexec pyenv exec "${0##*/}" "$@"\n')
    (root / "shims/python3").chmod(0o755)
    (root / "versions/3.99.1/bin/python3").symlink_to(python)
    env = {"PATH": f"{root}/shims:{os.environ['PATH']}", "PYENV_VERSION": None}
    folder = write_server(lab)
    lab.mur("mcp", "add", f"path:{folder}", "--version", "0.1.0", env=env, timeout=120).ok()
    project = using(lab, [called("scripted_echo", text="hi")])
    assert lab.session(project.run("--task", "go", env=env).ok()).trace.one("tool_call")["status"] == "ok"


def test_mcp_27_a_tool_that_was_not_reviewed_is_not_called_by_hand(lab):
    add(lab).ok()
    refused = lab.mur("mcp", "call", "scripted", "nosuch").failed("E-MCP-004")
    assert "its tools are: echo" in refused.stderr
