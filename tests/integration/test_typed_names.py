# SPDX-License-Identifier: Apache-2.0
#
# A name a person typed and that there is not: what it is, the nearest there is, and how to see all of them.

import pytest

from tests.support.door_client import SLEEPER
from tests.support.mcp_servers import add, tool
from tests.support.terminal import Terminal

UNKNOWN = [
    (("new", "agnt", "x"), "there is no template 'agnt', did you mean 'agent'?", "mcp-server"),
    (("new", "mcp-sever", "x"), "did you mean 'mcp-server'?", "script"),
    (("new", "harness", "codx", "x"), "did you mean codex?", "claude-code"),
    (("new", "tool", "x", "--language", "pyton"), "did you mean 'python'?", "(c|python|javascript|rust|go)"),
    (("completions", "bsh"), "did you mean bash?", "mur completions bash, zsh or fish"),
    (("config", "get", "inference.modl"), "did you mean inference.model?", "registry.index_url"),
    (("mcp", "connect", "cursr"), "did you mean cursor?", "claude-desktop"),
    (("explain", "E-RUN-01"), "mur explain E-RUN-0", "`mur explain` for all of them"),
    (("conversation", "show", "ctx_gone"), 'no conversation "ctx_gone" is recorded', "mur conversation list"),
    (("trace", "shw"), "did you mean 'show'?", "mur trace --help"),
    (("rn",), "did you mean 'run'?", "mur --help"),
]


@pytest.mark.parametrize("line, told, all_of_them", UNKNOWN, ids=[" ".join(line) for line, _, _ in UNKNOWN])
def test_an_unknown_name_is_told_with_the_nearest_and_where_all_are(lab, line, told, all_of_them):
    refused = lab.mur(*line)
    assert refused.code != 0 and told in refused.stderr and all_of_them in refused.stderr, refused.stderr
    assert not (lab.directory / "x").exists()


def test_a_beta_feature_nobody_knows_is_kept_for_another_build_and_said(lab):
    told = lab.mur("beta", "enable", "x").ok().stderr
    assert 'this build knows no beta feature "x"; `mur beta list` shows those there are' in told


def test_a_target_of_deploy_that_there_is_not(lab):
    project = lab.agent(steps=[{"text": "hi"}])
    told = project.mur("deploy", "render", "--to", "kuberntes").stderr
    assert "did you mean kubernetes?" in told and "nomad" in told


def test_a_key_that_there_is_not(lab):
    lab.mur("trust", "keygen", "alice").ok()
    package = lab.directory / "x.mur.zip"
    package.write_bytes(b"")
    own = lab.mur("sign", package, "--key", "alce").stderr
    assert "did you mean alice?" in own and "mur trust list" in own
    lab.mur("trust", "add", "bobby", lab.murmur_home / "keys/alice.pub").ok()
    trusted = lab.mur("trust", "remove", "boby").stderr
    assert "did you mean bobby?" in trusted and "mur trust list" in trusted


def test_servers_and_tools_that_there_are_not(lab):
    add(lab, tools=[tool("echo"), tool("reverse")]).ok()
    nameless = lab.mur("mcp", "call", "scripted")
    assert nameless.code != 0 and "which tool" in nameless.stderr and "its tools are: echo, reverse" in nameless.stderr
    assert "did you mean reverse? its tools are: echo, reverse" in lab.mur("mcp", "call", "scripted", "revrse").stderr
    for line in (("call", "scrpted", "echo"), ("show", "scrpted"), ("login", "scrpted"), ("diff", "scrpted")):
        assert "did you mean scripted? mur mcp list" in lab.mur("mcp", *line).stderr, line
    assert "did you mean local/mcp-scripted?" in lab.mur("mcp", "show", "local/mcp-scriptd").stderr


def test_a_folder_without_a_version_is_told_which_one_it_gets(lab):
    folder = lab.directory / "counter"
    folder.mkdir()
    (folder / "server.py").write_text("import sys\n")
    assert "so it is 0.1.0 (--version gives another)" not in lab.mur("mcp", "add", f"path:{folder}", "--version", "2").stderr
    add(lab).ok()
    source = lab.directory / "servers" / "scripted"
    told = lab.mur("mcp", "add", f"path:{source}", "--name", "second").ok().stderr
    assert "so it is 0.1.0 (--version gives another)" in told


WORDS = [("lifecycle: {after_task: slep}", "sleep"), ("lifecycle: {task_acceptance: queu}", "queue"),
         ("control: {settings: [inference.max_tokns]}", "inference.max_tokens"),
         ("network: {authentication: {scheme: bearer, credentials: {viewer: {scopes: [GetTsk]}}}}", "GetTask"),
         ("trace: {capture: replai}", "replay")]


@pytest.mark.parametrize("block, meant", WORDS)
def test_a_word_of_a_manifest_that_there_is_not(lab, block, meant):
    project = lab.agent(steps=[{"text": "hi"}])
    manifest = project / "murmur.yaml"
    manifest.write_text(manifest.read_text() + block + "\n")
    told = project.run("--task", "x")
    assert told.code == 1 and meant in told.stderr and f"did you mean {meant}?" in told.stderr, told.stderr


def test_a_kind_of_an_artifact_that_there_is_not(lab):
    project = lab.agent(steps=[{"text": "hi"}])
    manifest = project / "murmur.yaml"
    manifest.write_text(manifest.read_text().replace("runtime: driver", "runtime: drivr"))
    assert "did you mean driver?" in project.run("--task", "x").failed().stderr


def test_a_setting_that_a_running_capsule_has_not(lab):
    running = lab.agent(steps=[{"text": "hi"}], control={"settings": ["inference.max_tokens"]}, lifecycle=SLEEPER).start()
    running.wait_for("^session: ")
    told = lab.mur("control", "set", "inference.max_tokns", "5").failed("E-RUN-042").stderr
    assert "declares no such setting" in told and "`mur control show` says what it has" in told
    assert "@3 names none of the 1 running session\n" in lab.mur("stop", "@3").failed("E-RUN-022").stderr
    running.signal().result(30)


def test_a_command_of_the_chat_that_there_is_not(lab):
    project = lab.agent(steps=[{"text": "hi"}])
    terminal = Terminal(lab, "chat", cwd=project.directory)
    terminal.wait_for("/help")
    terminal.type("/hlp\r")
    terminal.wait_for("there is no /hlp, did you mean /help; /help lists what there is")
    terminal.type("\x04")
    terminal.end()
