# SPDX-License-Identifier: Apache-2.0
#
# Artifacts pulled and removed while a session runs: what is granted, what is refused before anything is written, and what the
# next turn sees.

import json

import pytest
import re
import yaml

from tests.support.fixtures import own_component
from tests.support.packages import manifest, native_package, skill_package, zip_of

ANSWER = "</untrusted-content>"


def publish(lab, package, name="package"):
    path = lab.directory / f"{name}.mur.zip"
    path.write_bytes(package)
    lab.mur("publish", path).ok()


def call(tool, **given):
    return {"tool_calls": [{"name": tool, "input": given}]}


def pulling(lab, *steps, install=None, **how):
    steps = [*steps, {"text": "done", "save_request": "request.json"}]
    return lab.agent(steps=steps, capabilities={"install": install or {"skill": ["local/*"]}, **how.pop("more", {})}, **how)


def run(project, **how):
    (project / "work").mkdir(exist_ok=True)
    session = project.lab.session(project.run("--task", "go", "--workdir", project / "work", **how).ok())
    request = json.loads((project / "work/request.json").read_text())
    answers = [(message["is_error"], message["content"][0]["text"]) for message in request["messages"]
               if message["role"] == "tool"]
    return session, answers, [tool["name"] for tool in request["tools"]], request


def inside(text):
    """What an answer says: within its fence, or the whole of a refusal, which is the runtime's own."""
    if not text.startswith("<untrusted-content"):
        return text
    return text.split("\n", 1)[1].split("\n" + ANSWER)[0]


def lock(project):
    return {entry["name"]: entry for entry in yaml.safe_load((project / "murmur.lock").read_text())["artifacts"]}


def test_artifacts_41_a_pulled_skill_is_listed_called_and_pinned_as_what_it_is(lab):
    publish(lab, skill_package("sk", text="# How to\n"), "sk")
    project = pulling(lab, call("pull-artifact", artifact="local/sk"), call("sk"))

    session, answers, tools, request = run(project)

    assert json.loads(inside(answers[0][1])) == {
        "artifact": "local/sk", "fetched_from": "global store", "runtime": "skill", "tool_name": "sk", "version": "0.1.0"}
    assert answers[0][1].startswith("<untrusted-content source=tool:pull-artifact>\n")
    assert "next turn" in answers[0][1].split(ANSWER)[1]
    assert answers[1][0] is False and re.fullmatch(
        "<untrusted-content source=skill:sk>\n# How to\n\n</untrusted-content> [0-9]{8}", answers[1][1])
    assert "sk" in tools
    listed = next(tool for tool in request["tools"] if tool["name"] == "sk")
    assert "untrusted" in listed["description"]
    pulled = session.trace.one("artifact_pulled")
    assert (pulled["name"], pulled["runtime"], pulled["origin"], pulled["session"], pulled["trust"]) == (
        "local/sk", "skill", "runtime", session.id, "untrusted")
    refreshed = session.trace.one("tools_refreshed")
    assert (refreshed["turn"], refreshed["trigger"], refreshed["added"], refreshed["removed"]) == (1, "agent", ["sk"], [])
    skill = session.trace.one("skill_call")
    assert (skill["origin"], skill["trust"]) == ("runtime", "untrusted")
    entry = lock(project)["local/sk"]
    assert (entry["origin"], entry["session"], entry["resolved_version"]) == ("runtime", session.id, "0.1.0")

    text = (project / "murmur.yaml").read_text()
    declared = yaml.safe_load(text)
    declared["artifacts"].append({"name": "local/sk", "version": "0.1.0", "runtime": "hook"})
    project.write_manifest(declared)
    project.run("--task", "go").failed("E-RUN-043")


def test_artifacts_42_what_is_not_granted_is_refused_before_a_store_is_read(lab):
    publish(lab, zip_of({"murmur.yaml": manifest("watch", runtime="hook"), "hook.wasm": own_component("echo").read_bytes()}),
            "watch")
    publish(lab, skill_package("sk"), "sk")
    project = pulling(lab, call("pull-artifact", artifact="ana/x@1.0.0/../../y"), call("pull-artifact", artifact="local/watch"),
                      call("pull-artifact", artifact="local/sk@"), call("pull-artifact", artifact="sk"),
                      call("pull-artifact", artifact="bob/sk"), call("pull-artifact", artifact="local/absent"),
                      install={"skill": ["local/*"], "tool": ["local/watch"]})
    session, answers, tools, _ = run(project)
    assert all(is_error for is_error, _ in answers)
    assert [inside(text).split(" ")[0] for _, text in answers] == ["not-granted:"] * 5 + ["not-found:"]
    assert "artifact_pulled" not in session.trace.types and "tools_refreshed" not in session.trace.types
    assert set(lock(project)) == {"std/driver-scripted"}


def test_artifacts_42_without_a_grant_the_tool_is_not_there(lab):
    project = lab.agent(steps=[call("pull-artifact", artifact="local/sk"), {"text": "{{fenced}}"}])
    session = lab.session(project.run("--task", "go").ok())
    line = session.trace.one("tool_call")
    assert line["status"] == "error" and "capabilities.install" in line["error"]
    assert "pull-artifact" not in session.trace.one("session_start")["tools_declared"]


def test_artifacts_43_what_was_pulled_can_be_removed_and_what_is_declared_cannot(lab):
    publish(lab, skill_package("sk"), "sk")
    publish(lab, skill_package("kept"), "kept")
    project = pulling(lab, call("pull-artifact", artifact="local/sk"), call("remove-artifact", artifact="local/sk"), call("sk"),
                      call("remove-artifact", artifact="local/sk"), call("remove-artifact", artifact="local/kept"),
                      tools=[{"name": "local/kept", "version": "0.1.0", "runtime": "skill"}])
    session, answers, tools, _ = run(project)
    assert json.loads(inside(answers[1][1])) == {"artifact": "local/sk", "removed": True}
    assert answers[2] == (True, "sk was removed from this session")
    assert json.loads(inside(answers[3][1])) == {"artifact": "local/sk", "removed": False}
    assert answers[4][0] and inside(answers[4][1]).startswith("not-removable: ")
    assert "sk" not in tools and "kept" in tools
    assert "local/sk" not in lock(project) and lock(project)["local/kept"]["origin"] == "operator"
    assert [(event["added"], event["removed"]) for event in session.trace.all("tools_refreshed")] == [
        (["sk"], []), ([], ["sk"])]


def test_artifacts_a_pulled_tool_runs_without_a_grant_of_its_own(lab):
    lab.publish("echo", own_component("echo"), input_schema={"type": "object"})
    project = pulling(lab, call("pull-artifact", artifact="local/echo@0.1.0"), call("echo", text="hi"),
                      install={"tool": ["local/echo"]})
    session, answers, tools, _ = run(project)
    assert not answers[1][0] and "hi" in answers[1][1]
    assert session.trace.all("tool_call")[1]["status"] == "ok"
    assert lock(project)["local/echo"]["sha256"].keys() == {"any"}


def test_artifacts_the_newest_that_fits_is_taken_and_a_pin_is_not_moved(lab):
    for version in ("0.1.0", "0.9.0", "0.10.0"):
        publish(lab, skill_package("sk", version), f"sk-{version}")
    project = pulling(lab, call("pull-artifact", artifact="local/sk"), call("pull-artifact", artifact="local/sk@0.9.0"),
                      call("pull-artifact", artifact="local/sk"))
    session, answers, _, _ = run(project)
    assert json.loads(inside(answers[0][1]))["version"] == "0.10.0"
    assert answers[1][0] and "0.10.0" in answers[1][1] and "0.9.0" in answers[1][1]
    assert not answers[2][0] and inside(answers[2][1]) == inside(answers[0][1])
    assert len(session.trace.all("artifact_pulled")) == 1


def test_artifacts_a_tier_needs_its_own_list(lab):
    lab.publish("echo", own_component("echo"), input_schema={"type": "object"})
    _, answers, tools, _ = run(pulling(lab, call("pull-artifact", artifact="local/echo")))
    assert inside(answers[0][1]).startswith("not-granted: ") and "echo" not in tools


def test_artifacts_a_name_that_is_taken_stays_with_its_holder(lab):
    publish(lab, skill_package("session-status"), "reserved")
    project = pulling(lab, call("pull-artifact", artifact="local/brief"), call("pull-artifact", artifact="local/session-status"),
                      tools=[{"name": "brief", "source": "brief.md", "runtime": "skill"}])
    project.write("brief.md", "# Brief\n")
    publish(lab, skill_package("brief"), "brief")
    _, answers, _, _ = run(project)
    assert [inside(text).split(" ")[0] for _, text in answers] == ["not-granted:", "not-granted:"]


def test_artifacts_a_pattern_lists_what_could_be_pulled(lab):
    for version in ("0.1.0", "0.2.0"):
        publish(lab, skill_package("sk", version), f"sk-{version}")
    lab.publish("echo", own_component("echo"))
    _, answers, _, _ = run(pulling(lab, call("pull-artifact", artifact="local/*")))
    assert json.loads(inside(answers[0][1])) == {
        "matches": [{"artifact": "local/sk", "runtime": "skill", "newest_fitting": "0.2.0", "versions": ["0.2.0", "0.1.0"],
                     "held_in": ["global store"]}], "notes": [], "omitted": 0, "pattern": "local/*"}


def test_artifacts_a_tampered_payload_is_not_pulled(lab):
    publish(lab, skill_package("sk"), "sk")
    path = next((lab.murmur_home / "artifacts/local/sk/0.1.0").glob("*.mur.zip"))
    path.write_bytes(path.read_bytes() + b"x")
    project = pulling(lab, call("pull-artifact", artifact="local/sk"))
    _, answers, tools, _ = run(project)
    assert inside(answers[0][1]).startswith("not-fetched: [E-REG-002] ") and "sk" not in tools
    assert "local/sk" not in lock(project)


def test_artifacts_a_pulled_native_tool_runs_under_the_host_s_confinement(lab):
    publish(lab, native_package("hello", program=b"#!/bin/sh\necho '{\"status\":\"passed\",\"data\":\"native hi\"}'\n"), "hello")
    project = pulling(lab, call("pull-artifact", artifact="local/hello"), call("hello"), install={"tool": ["local/hello"]})
    _, answers, _, _ = run(project)
    assert not answers[0][0], answers
    assert "native hi" in answers[1][1]


def test_artifacts_a_script_pulls_uses_and_removes(lab):
    lab.publish("echo", own_component("echo"), input_schema={"type": "object"})
    project = lab.script_capsule(own_component("probe"), capabilities={"install": {"tool": ["local/echo"]}})
    task = ["pull local/echo 0.1.0", "invoke echo {\"text\":\"hi\"}", "artifacts", "diagnostics", "drop local/echo",
            "invoke echo {}", "drop local/echo", "pull local/other 0.1.0", "pull local/echo 1/2"]
    (project / "work").mkdir()
    session = lab.session(project.run("--task", "\n".join(task), "--workdir", project / "work").ok())
    lines = (project / "work/out/result.txt").read_text()
    for told in ("local/echo", "hi", "capabilities install: tool local/echo", "drop: true", "was removed", "drop: false",
                 "pull: error: not-granted: "):
        assert told in lines, lines
    assert session.trace.one("artifact_pulled")["session"] == session.id
    assert session.trace.types == ["artifact_pulled"]
    assert "local/echo" not in (project / "murmur.lock").read_text()
