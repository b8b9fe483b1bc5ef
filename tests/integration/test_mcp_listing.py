# SPDX-License-Identifier: Apache-2.0
#
# `mur mcp list`, and `mur mcp call` where a person wants to be asked: what somebody at a shell sees of the servers of a folder.

import json

import pytest

from tests.support.mcp_remote import Remote
from tests.support.mcp_servers import add, called, entry, tool, using
from tests.support.terminal import Terminal


def listed(lab, directory):
    return {one["name"]: one for one in json.loads(lab.mur("mcp", "list", "--json", cwd=directory).ok().stdout)}


def test_mcp_list_says_what_a_folder_declares_and_what_was_added(lab):
    add(lab, tools=[tool("echo"), tool("more")]).ok()
    add(lab, name="other").ok()
    project = using(lab, [called("scripted_echo", text="x")], entry(mcp={"tools": ["echo"]}), entry("gone"))

    before = lab.mur("mcp", "list", cwd=project.directory).ok()
    assert before.stdout.split()[:4] == ["NAME", "VERSION", "HERE", "STATE"] and "1 of 2" in before.stdout
    assert "mur mcp add makes it" in before.stderr
    one = listed(lab, project.directory)["local/mcp-scripted"]
    assert one["declared"] and one["state"] == "ready" and one["pinned"] == "not yet" and (one["tools"], one["offered"]) == (2, 1)
    assert listed(lab, project.directory)["local/mcp-gone"]["state"] == "not added"
    assert listed(lab, project.directory)["local/mcp-other"]["declared"] is False


def test_mcp_list_says_whether_the_lock_pins_that_very_package(lab):
    add(lab).ok()
    project = using(lab, [called("scripted_echo", text="x")])
    project.run("--task", "go").ok()
    assert listed(lab, project.directory)["local/mcp-scripted"]["pinned"] == "yes"
    (project.directory / "murmur.lock").write_text((project.directory / "murmur.lock").read_text().replace(
        listed(lab, project.directory)["local/mcp-scripted"]["sha256"], "0" * 64))
    one = listed(lab, project.directory)["local/mcp-scripted"]
    assert one["pinned"] == "differs" and "murmur.lock" in one["state"]


def test_mcp_list_says_who_is_logged_in_far_away(lab):
    with Remote() as far:
        lab.mur("mcp", "add", far.url, "--name", "far", "--version", "1", timeout=60).ok()
        shown = lab.mur("mcp", "list", cwd=lab.directory).ok()
        one = listed(lab, lab.directory)["local/mcp-far"]
    assert one["url"] == far.url and one["login"] == "no" and one["runtime"] == "far away"
    assert f"mur mcp login {far.url}" in shown.stderr


def test_mcp_list_of_nothing_says_how_to_begin(lab):
    shown = lab.mur("mcp", "list", cwd=lab.directory).ok()
    assert "No servers of tools" in shown.stdout and "mur mcp add" in shown.stderr and listed(lab, lab.directory) == {}


RULES = [{"tools": ["scripted_echo"]}, {"tools": ["mcp-scripted"]}, {"tools": ["*"]}, {"hosts": ["api.example.com"]}, {"paths": ["deploy"]}]
INPUT = '{"text": "deploy to api.example.com"}'


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_mcp_call_asks_nobody_where_nobody_is_and_calls_nothing(lab, rules):
    add(lab).ok()
    project = using(lab, [], approvals=rules)
    refused = lab.mur("mcp", "call", "scripted", "echo", "--input", INPUT, cwd=project.directory).failed()
    assert "nobody said yes" in refused.stderr and "--yes" in refused.stderr and not refused.stdout
    allowed = lab.mur("mcp", "call", "scripted", "echo", "--yes", "--input", INPUT, cwd=project.directory).ok()
    assert "echo: deploy" in allowed.stdout


@pytest.mark.parametrize("answer, says", [("y", "echo: hi"), ("n", "nobody said yes"), ("", "nobody said yes")])
def test_mcp_call_asks_the_person_whom_approvals_name(lab, answer, says):
    add(lab).ok()
    project = using(lab, [], approvals={"tools": ["scripted_echo"]})
    terminal = Terminal(lab, "mcp", "call", "scripted", "echo", "--input", '{"text": "hi"}', cwd=project.directory, columns=200)
    terminal.wait_for(r"Call echo of local/mcp-scripted .*\[y/N\]")
    terminal.type(answer + "\n")
    terminal.wait_for(says)
    assert terminal.end() == (0 if answer == "y" else 1)


def test_mcp_call_asks_nobody_about_what_no_rule_covers(lab):
    add(lab).ok()
    project = using(lab, [], approvals={"tools": ["scripted_other"], "hosts": ["api.example.com"]})
    assert "echo: hi" in lab.mur("mcp", "call", "scripted", "echo", "--input", '{"text": "hi"}', cwd=project.directory).ok().stdout


def test_mcp_call_takes_its_arguments_in_either_place_and_says_what_is_wrong_with_them(lab):
    add(lab, tools=[tool("echo", schema={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]})]).ok()

    def call(*words):
        return lab.mur("mcp", "call", "scripted", "echo", *words, cwd=lab.directory)
    assert "echo: hi" in call('{"text": "hi"}').ok().stdout and "requires" not in call("--input", '{"text": "hi"}').ok().stderr
    assert "echo of scripted requires text, which is not given" in call().ok().stderr
    for wrong in ("{text: hi}", "text=hi", "[1]"):
        assert "JSON" in (refused := call(wrong).failed("E-IO-003")).stderr and '\'{"name": "value"}\'' in refused.stderr
    assert "twice" in call("{}", "--input", "{}").failed("E-IO-003").stderr


def test_mcp_call_in_either_place_asks_the_person_whom_approvals_name(lab):
    add(lab).ok()
    project = using(lab, [], approvals={"hosts": ["api.example.com"]})
    assert "nobody said yes" in lab.mur("mcp", "call", "scripted", "echo", INPUT, cwd=project.directory).failed().stderr


def test_mcp_call_of_a_version_that_is_not_there_names_the_one_that_is(lab):
    add(lab).ok()
    for command in (["call", "scripted@9.9", "echo"], ["show", "scripted@9.9"]):
        assert "local/mcp-scripted@0.1.0" in lab.mur("mcp", *command, cwd=lab.directory).failed("E-REG-001").stderr


def test_mcp_add_says_where_a_flag_of_node_goes(lab):
    refused = add(lab, start_fails="start me with node --experimental-vm-modules").failed("E-MCP-001").stderr
    assert "--env NODE_OPTIONS=--FLAG" in refused


@pytest.mark.parametrize("typed, meant", [("mcp-server-git", "npm: or pypi:mcp-server-git"), ("@scope/server", "npm:@scope/server"), ("here", "path:here")])
def test_mcp_add_says_what_a_source_without_its_kind_may_mean(lab, typed, meant):
    (lab.directory / "here").mkdir()
    assert f"did you mean {meant}?" in lab.mur("mcp", "add", typed, cwd=lab.directory).failed("E-IO-003").stderr
