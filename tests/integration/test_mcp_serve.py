# SPDX-License-Identifier: Apache-2.0
#
# `mur mcp serve`: a capsule's tools, and the capsule itself, for one MCP client on standard input and output.

import hashlib
import json
import signal
from pathlib import Path

import pytest

from tests.integration.test_hooks import Hook
from tests.integration.test_pull import publish, skill_package
from tests.support.fixtures import own_component
from tests.support.mcp_client import LEGACY, MODERN, StdioClient, meta
from tests.support.polling import eventually

FILES = {"name": "std/files", "version": "0.1.0"}


def served(lab, tools=(), steps=None, exports=None, **how):
    """A project that serves std/files, the given tools and itself."""
    names = ["files", *[tool["name"].split("/")[1] if isinstance(tool, dict) else tool.split("/")[1].split("@")[0]
                        for tool in tools]]
    exported = {"tools": names, "agent": {"name": "ask_agent", "description": "Answers."}}
    return lab.agent(steps=steps or [{"text": "you said {{task}}"}], tools=[FILES, *tools],
                     exports={"mcp": {**exported, **(exports or {})}}, **how)


def trace_of(lab):
    (directory,) = lab.records
    return lab.session(directory.name).trace


def test_mcp_01_discover_is_answered_first_with_everything_a_client_needs(lab):
    client = StdioClient(lab, served(lab).directory)

    result = client.ask("server/discover", id="server-discover-probe-1")

    assert client.raw[0]["id"] == "server-discover-probe-1" and result["supportedVersions"] == [MODERN]
    assert result["capabilities"]["tools"] == {"listChanged": True} and result["resultType"] == "complete"
    assert isinstance(result["ttlMs"], int) and result["cacheScope"] in ("public", "private")
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"] == {"name": "agent", "version": "0.1.0"}
    assert client.close() == 0


@pytest.mark.parametrize("version, answered", [
    *[(version, version) for version in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")], ("1900-01-01", LEGACY)])
def test_mcp_02_initialize_echoes_what_is_served(lab, version, answered):
    client = StdioClient(lab, served(lab).directory, era=version)

    assert client.opened["protocolVersion"] == answered and "resultType" not in client.opened
    assert [tool["name"] for tool in client.ask("tools/list")["tools"]] == ["files", "ask_agent"]
    assert client.ask("ping") == {}


def test_mcp_03_an_incomplete_meta_and_an_unserved_revision(lab):
    client = StdioClient(lab, served(lab).directory)

    assert client.fails("tools/list", _meta={})["code"] == -32602
    assert client.fails("tools/list", _meta={"io.modelcontextprotocol/protocolVersion": MODERN})["code"] == -32602
    error = client.fails("tools/list", _meta=meta("1900-01-01"))
    assert error["code"] == -32022 and error["data"] == {"supported": [MODERN], "requested": "1900-01-01"}


def test_mcp_04_ids_return_as_they_were_sent(lab):
    client = StdioClient(lab, served(lab).directory)

    for id in (0, "", "a", -7):
        assert client.ask("tools/list", id=id)
    client.write('{"jsonrpc":"2.0","id":null,"method":"tools/list"}\nno json\n[]\n')
    client.wait_until(lambda: sum(1 for message in client.raw if message and "error" in message) == 3)
    assert [message["error"]["code"] for message in client.raw[-3:]] == [-32600, -32700, -32600]
    assert all(message["id"] is None for message in client.raw[-3:])


def test_mcp_08_only_what_is_exported_is_served(lab):
    echo = lab.publish("echo", own_component("echo"), input_schema={"type": "object"})
    client = StdioClient(lab, served(lab, [echo], exports={"tools": ["files"]}).directory)

    assert [tool["name"] for tool in client.ask("tools/list")["tools"]] == ["files", "ask_agent"]
    for name in ("echo", "session-status", "nothing"):
        assert client.fails("tools/call", name=name, arguments={})["code"] == -32602
    assert client.fails("tools/list", cursor="x")["code"] == -32602
    assert client.fails("resources/list")["code"] == -32601


def test_mcp_08_a_capsule_that_exports_nothing_or_what_it_lacks_is_refused(lab):
    nothing = lab.agent("nothing", steps=[{"text": "x"}])
    lacking = lab.agent("lacking", steps=[{"text": "x"}], tools=[FILES], exports={"mcp": {"tools": ["fils"]}})

    assert "exports" in lab.mur("mcp", "serve", nothing.directory).failed("E-MCP-010").stderr
    refused = lab.mur("mcp", "serve", lacking.directory).failed("E-MCP-010")
    assert "fils" in refused.stderr and "files" in refused.stderr and refused.stdout == ""


def test_mcp_09_the_gates_of_a_models_call_hold_and_the_trace_says_so(lab):
    echo = lab.publish("echo", own_component("echo"), input_schema={"type": "object"})
    hook = Hook(lab, name="guard", binding="on-tool-call", commit_policy="deny",
                on={"before-tool-call": {"answer": "deny", "text": "not on Sundays"}})
    project = lab.agent(steps=[{"text": "x"}], tools=[FILES, echo, hook.entry], exports={"mcp": {"tools": ["files", "echo"]}},
                        capabilities={"filesystem": {"read_only": ["tests"]}})
    client = StdioClient(lab, project.directory)

    kept = client.call("echo", {"path": "tests/a", "content": "x"})
    denied = client.call("files", {"action": "list"})
    lacking = client.call("files", {})

    assert kept["isError"] and denied["isError"] and lacking["isError"]
    assert "tests" in kept["content"][0]["text"] and "not on Sundays" in denied["content"][0]["text"]
    assert "action" in lacking["content"][0]["text"]
    client.close()
    trace = trace_of(lab)
    assert trace.one("protected_path_denied")["path"] == "tests/a"
    assert trace.one("call_denied")["reason"] == "not on Sundays"
    assert trace.one("tool_input_refused")["missing"] == ["action"]


def test_mcp_09_a_served_call_is_recorded_like_a_models(lab):
    client = StdioClient(lab, served(lab).directory)

    assert client.text("files", {"action": "write", "path": "a.txt", "content": "hello"}, id="x")
    assert client.text("files", {"action": "read", "path": "a.txt"}) == "hello"
    client.close()

    first, second = trace_of(lab).all("tool_call")
    (start,) = [event for event in trace_of(lab).all("task_start") if event["source"] == "mcp"]
    assert (first["tool_name"], first["status"], first["tool_call_id"]) == ("files", "ok", '"x"')
    assert first["task_id"] == second["task_id"] == start["task_id"] and (first["turn"], second["turn"]) == (1, 2)
    assert trace_of(lab).one("session_end")["exit_status"] == "ok"


@pytest.mark.parametrize("era", ["modern", LEGACY])
def test_mcp_10_an_output_schema_brings_structure_and_equal_text(lab, era):
    echo = lab.publish("echo", own_component("echo"), input_schema={"type": "object"}, output_schema={"type": "object"})
    client = StdioClient(lab, served(lab, [echo]).directory, era=era)

    result = client.call("echo", {"n": 7})

    assert json.loads(result["content"][0]["text"]) == result["structuredContent"] and not result["isError"]
    (tool,) = [tool for tool in client.ask("tools/list")["tools"] if tool["name"] == "echo"]
    assert tool["outputSchema"] == {"type": "object"}
    assert "structuredContent" not in client.call("files", {"action": "read", "path": "missing"})


def runs(mark):
    """True while a shell with this text in its command line runs; its own numbering of processes says nothing here."""
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if b"-c" in words and any(str(mark).encode() in word for word in words[words.index(b"-c"):]):
            return True
    return False


def slow(lab, **how):
    project = lab.agent(steps=[{"text": "x"}], tools=[FILES], capabilities={"shell": {"allow": ["sleep", "sh"]}},
                        exports={"mcp": {"tools": ["files", "sleep", "sh"]}}, **how)
    return project


def test_mcp_11_a_slow_call_tells_its_progress_to_who_asked_for_it(lab):
    client = StdioClient(lab, slow(lab).directory)

    told = client.send("tools/call", name="sleep", arguments={"command": "23"}, token="p")
    untold = client.send("tools/call", name="sleep", arguments={"command": "23"})
    client.answer(told, 40)
    client.answer(untold, 40)

    progress = [notice["params"] for notice in client.notices if notice["method"] == "notifications/progress"]
    assert len(progress) >= 2 and {one["progressToken"] for one in progress} == {"p"}
    assert sorted({one["progress"] for one in progress}) == [one["progress"] for one in progress]


def test_mcp_12_a_cancelled_call_ends_and_is_not_answered(lab):
    client = StdioClient(lab, slow(lab).directory)
    call = client.send("tools/call", name="sh", arguments={"command": f"echo {lab.directory}; sleep 600"})
    eventually(lambda: runs(lab.directory), 20)
    client.notify("notifications/cancelled", requestId=call, reason="no more")

    eventually(lambda: not runs(lab.directory), 2)
    assert client.text("files", {"action": "list"})
    assert json.dumps(call) not in client.answers


def test_mcp_13_many_calls_at_once_are_all_answered(lab):
    client = StdioClient(lab, slow(lab).directory)
    for number in range(32):
        client.text("files", {"action": "write", "path": f"{number}.txt", "content": str(number)})

    ids = {client.send("tools/call", name="files", arguments={"action": "read", "path": f"{number}.txt"}): number
           for number in range(32)}

    for id, number in ids.items():
        assert client.answer(id)["result"]["content"][0]["text"] == str(number)


def test_mcp_14_a_subscription_is_acknowledged_and_ends_with_a_result(lab):
    client = StdioClient(lab, served(lab).directory)
    id = client.send("subscriptions/listen", notifications={"toolsListChanged": True, "promptsListChanged": True})
    client.wait_until(lambda: client.notices)

    (first,) = client.notices
    assert first["method"] == "notifications/subscriptions/acknowledged"
    assert first["params"]["notifications"] == {"toolsListChanged": True}
    assert first["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == id
    client.running.signal(signal.SIGTERM)
    assert client.answer(id)["result"]["resultType"] == "complete"


@pytest.mark.parametrize("era", ["modern", LEGACY])
def test_mcp_14_a_pull_is_told_to_who_listens(lab, era):
    publish(lab, skill_package("sk", text="# How to\n"), "sk")
    pull = {"tool_calls": [{"name": "pull-artifact", "input": {"artifact": "local/sk"}}]}
    client = StdioClient(lab, served(lab, steps=[pull, {"text": "pulled"}], capabilities={"install": {"skill": ["local/*"]}}).directory, era=era)
    if era == "modern":
        listening = client.send("subscriptions/listen", notifications={"toolsListChanged": True})
    assert client.call("ask_agent", {"message": "go"})["structuredContent"]["state"] == "completed"
    changed = "notifications/tools/list_changed"
    client.wait_until(lambda: any(notice["method"] == changed for notice in client.notices))
    (notice,) = [notice for notice in client.notices if notice["method"] == changed]
    if era == "modern":
        assert notice["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == listening


def test_mcp_15_a_conversation_goes_on_with_its_context(lab):
    client = StdioClient(lab, served(lab).directory)

    first = client.call("ask_agent", {"message": "one"})["structuredContent"]
    second = client.call("ask_agent", {"message": "two", "context_id": first["context_id"]})["structuredContent"]
    unknown = client.call("ask_agent", {"message": "three", "context_id": "ctx_none"})

    assert first["state"] == second["state"] == "completed" and "one" in first["answer"] and "two" in second["answer"]
    assert first["context_id"] == second["context_id"] and first["task_id"] != second["task_id"]
    assert unknown["isError"] and "context_id" in unknown["content"][0]["text"]
    assert client.call("ask_agent", {"message": " "})["isError"]


def test_mcp_15_tools_are_served_while_the_agent_thinks(lab):
    thinking = {"tool_calls": [{"name": "sh", "input": {"command": "echo > begun; sleep 600"}}]}
    project = lab.agent(tools=[FILES], capabilities={"shell": {"allow": ["sh", "sleep"]}}, steps=[thinking, {"text": "x"}],
                        exports={"mcp": {"tools": ["files"], "agent": {"name": "ask_it", "description": "Thinks."}}})
    client = StdioClient(lab, project.directory)
    asked = client.send("tools/call", name="ask_it", arguments={"message": "go"})

    eventually(lambda: "begun" in client.text("files", {"action": "list"}), 10)
    client.notify("notifications/cancelled", requestId=asked)
    assert client.close() == 0


@pytest.mark.parametrize("how", ["eof", "kill"])
def test_mcp_19_nothing_is_left_when_the_client_is_gone(lab, how):
    client = StdioClient(lab, slow(lab).directory)
    client.send("tools/call", name="sh", arguments={"command": f"trap '' TERM; : {lab.directory}; sleep 600 & wait"})
    eventually(lambda: runs(lab.directory), 20)

    if how == "eof":
        client.process.stdin.close()
    else:
        client.running.signal(signal.SIGKILL)
    eventually(lambda: not runs(lab.directory) and not client.running.is_running, 4)


def test_mcp_18_skills_and_exported_files_are_read(lab):
    skill = "---\nname: notes\ndescription: How notes are kept.\n---\nKeep them short.\n"
    project = lab.agent(steps=[{"text": "x"}], tools=[FILES, {"name": "notes", "runtime": "skill", "source": "skills/notes"}],
                        exports={"files": {"root": "out", "mode": "read-only"},
                                 "mcp": {"tools": ["files"], "skills": True, "files": True}})
    project.write("skills/notes/skill.md", skill)
    client = StdioClient(lab, project.directory)
    client.text("files", {"action": "write", "path": "out/a b.txt", "content": "hello"})
    client.text("files", {"action": "write", "path": "secret.txt", "content": "no"})

    (listed,) = client.ask("skills/list")["skills"]
    (file,) = listed["resources"]
    text = client.ask("resources/read", uri=file["uri"])["contents"][0]["text"]
    assert listed["frontmatter"]["name"] == "notes" and listed["frontmatter"]["description"]
    assert file["digest"] == "sha256:" + hashlib.sha256(text.encode()).hexdigest() and file["size"] == len(text.encode())
    assert "Keep them short." in text and client.ask("skills/get", uri=listed["uri"])["skill"] == listed
    assert [prompt["name"] for prompt in client.ask("prompts/list")["prompts"]] == ["notes"]
    assert client.ask("prompts/get", name="notes")["messages"][0]["content"]["text"] == text
    (resource,) = client.ask("resources/list")["resources"]
    assert resource["uri"] == "file:///a%20b.txt"
    assert client.ask("resources/read", uri=resource["uri"])["contents"][0]["text"] == "hello"
    for uri in ("file:///../secret.txt", "file:///%2e%2e/secret.txt", "file:////etc/passwd", "skill://nothing/SKILL.md", "x"):
        assert client.fails("resources/read", uri=uri)["code"] == -32602


REVIEW = {"name": "review", "description": "Looks at a file.", "text": "Review {{path}} for {{what}}.", "attach": ["{{path}}"],
          "arguments": [{"name": "path", "required": True}, {"name": "what", "values": ["speed", "style", "safety"]}]}


def with_files(lab, *prompts, **mcp):
    """A project that serves these prompts and the files of shared/."""
    project = lab.agent(steps=[{"text": "x"}], tools=[FILES],
                        exports={"files": {"root": "shared", "mode": "read-only"},
                                 "mcp": {"tools": ["files"], "files": True, "prompts": list(prompts), **mcp}})
    (project.directory / "shared/sub").mkdir(parents=True)
    (project.directory / "shared/a.md").write_text("# A\n")
    (project.directory / "shared/sub/a b.txt").write_text("b")
    (project.directory / "shared/dot.png").write_bytes(b"\x89PNG\r\n\x1a\n\xff")
    return project


def test_mcp_18_prompts_are_filled_and_files_go_along(lab):
    client = StdioClient(lab, "--workdir", ".", cwd=with_files(lab, REVIEW).directory)

    (listed,) = client.ask("prompts/list")["prompts"]
    assert listed["arguments"] == [{"name": "path", "required": True}, {"name": "what", "required": False}]
    file, text = client.ask("prompts/get", name="review", arguments={"path": "a.md", "what": "style"})["messages"]
    assert text["content"]["text"] == "Review a.md for style." and file["content"]["type"] == "resource"
    assert file["content"]["resource"] == {"uri": "file:///a.md", "mimeType": "text/markdown", "text": "# A\n"}
    picture, _ = client.ask("prompts/get", name="review", arguments={"path": "file:///dot.png"})["messages"]
    assert picture["content"]["type"] == "image" and picture["content"]["mimeType"] == "image/png"
    for arguments in ({}, {"path": 7}, {"path": "../murmur.yaml"}, {"path": "missing"}):
        assert client.fails("prompts/get", name="review", arguments=arguments)["code"] == -32602
    complete = {"ref": {"type": "ref/prompt", "name": "review"}, "argument": {"name": "what", "value": "s"}}
    assert client.ask("completion/complete", **complete)["completion"] == {"values": ["speed", "style", "safety"], "total": 3,
                                                                             "hasMore": False}
    complete["argument"]["value"] = "sp"
    assert client.ask("completion/complete", **complete)["completion"]["values"] == ["speed"]
    assert client.fails("completion/complete", ref={}, argument={})["code"] == -32602


def test_mcp_18_a_prompts_missing_arguments_are_asked_for(lab):
    client = StdioClient(lab, "--workdir", ".", cwd=with_files(lab, REVIEW).directory)
    asked = client.ask("prompts/get", name="review", capabilities={"elicitation": {}})
    (key, request), = asked["inputRequests"].items()
    assert asked["resultType"] == "input_required" and list(request["params"]["requestedSchema"]["properties"]) == ["path"]
    given = {key: {"action": "accept", "content": {"path": "a.md", "what": "style", "extra": "x"}}}
    _, text = client.ask("prompts/get", name="review", capabilities={"elicitation": {}}, inputResponses=given)["messages"]
    assert text["content"]["text"] == "Review a.md for style."


@pytest.mark.parametrize("era", ["modern", LEGACY])
def test_mcp_18_files_have_the_addresses_the_manifest_gives_them(lab, era):
    client = StdioClient(lab, "--workdir", ".", cwd=with_files(lab, files_uri="notes://team/").directory, era=era)

    listed = {resource["name"]: resource["uri"] for resource in client.ask("resources/list")["resources"]}
    assert listed["sub/a b.txt"] == "notes://team/sub/a%20b.txt"
    assert client.ask("resources/read", uri=listed["sub/a b.txt"])["contents"][0]["text"] == "b"
    (template,) = client.ask("resources/templates/list")["resourceTemplates"]
    assert template["uriTemplate"] == "notes://team/{+path}"
    found = client.ask("completion/complete", ref={"type": "ref/resource", "uri": template["uriTemplate"]},
                       argument={"name": "path", "value": "sub/"})["completion"]
    assert found["values"] == ["sub/a b.txt"]
    refused = client.fails("resources/read", uri="file:///a.md")
    assert refused["code"] == -32602 and refused["data"]["uri"] == "file:///a.md"


@pytest.mark.parametrize("mcp, says", [
    ({"files_uri": "notes"}, "files_uri"), ({"files_uri": "notes://x"}, "ends with /"), ({"files_uri": "skill://"}, "files_uri"),
    ({"prompts": [{"name": "a b", "text": "x"}]}, "prompts[0].name"), ({"prompts": [{"name": "a"}]}, "says something"),
    ({"prompts": [{"name": "a", "text": "{{x}}"}]}, "{{x}} is none of its arguments"),
    ({"prompts": [{"name": "a", "text": "{{x"}]}, "has no }}"),
    ({"prompts": [{"name": "a", "text": "x"}, {"name": "a", "text": "x"}]}, "prompts[1].name"),
    ({"prompts": [{"name": "a", "text": "x", "attach": ["{{y}}"]}]}, "prompts[0].attach[0]"),
    ({"prompts": [{"name": "a", "text": "x", "arguments": [{"name": "b"}, {"name": "b"}]}]}, "b is there twice")])
def test_mcp_18_what_a_prompt_or_an_address_cannot_be_is_refused_with_its_place(lab, mcp, says):
    project = lab.agent(steps=[{"text": "x"}], tools=[FILES],
                        exports={"files": {"root": "shared", "mode": "read-only"}, "mcp": {"tools": ["files"], **mcp}})
    assert says in lab.mur("mcp", "serve", project.directory).failed("E-MAN-003").stderr


def test_mcp_18_a_prompt_is_not_called_like_a_skill(lab):
    project = lab.agent(steps=[{"text": "x"}], tools=[{"name": "notes", "runtime": "skill", "source": "skills/notes"}],
                        exports={"mcp": {"skills": True, "prompts": [{"name": "notes", "text": "x"}]}})
    project.write("skills/notes/skill.md", "---\nname: notes\ndescription: d\n---\nx\n")
    assert "name of a skill" in lab.mur("mcp", "serve", project.directory).failed("E-MCP-010").stderr
