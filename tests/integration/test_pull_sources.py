# SPDX-License-Identifier: Apache-2.0
#
# Pulls of a running session from a source, and what a pattern finds in stores and sources (spec/artifacts.md 14), with a
# GitHub of our own: every request it got is part of what is asserted.

import json

import pytest

from tests.integration.test_pull import call, inside, lock, publish, pulling, run
from tests.support.fixtures import own_component
from tests.support.packages import (GitHub, component, index_artifact, index_version, manifest, native_package, sha256,
                                    skill_package, zip_of)

ANA = "Ana/my-artifacts"
REPO = f"/repos/{ANA}"
FROM_SOURCES = {"skill": ["ana/*"], "tool": ["ana/t*"], "from": ["stores", "sources"]}


@pytest.fixture
def github(lab):
    server = GitHub()
    lab.env.update(server.env)
    yield server
    server.close()


def knows_ana(project):
    project.write("work/.keep", "")
    project.write(".murmur/config.yaml", f"registry:\n  sources:\n    - repo: {ANA}\n")
    return project


def skills(name, *versions, **how):
    """An index entry of a skill and its payloads, newest first."""
    packages = {version: skill_package(name, version, f"# {name} {version}\n") for version in versions}
    entry = index_artifact(name, [index_version(name, version, {None: packages[version]}, interfaces=how.get("interfaces", ()))
                                  for version in versions], "skill", ("skill",), description=f"About {name}.")
    return entry, {f"{name}-{version}.mur.zip": package for version, package in packages.items()}


def listing(answer):
    assert not answer[0], answer
    return json.loads(inside(answer[1]))


def test_artifacts_a_named_pull_from_a_source_asks_index_then_owner_then_payload(lab, github):
    entry, payloads = skills("sk", "1.1.0", "1.0.0")
    github.serve(ANA, entry, payloads=payloads.items())
    project = knows_ana(pulling(lab, call("pull-artifact", artifact="ana/sk"), call("sk"), install=FROM_SOURCES))

    session, answers, tools, _ = run(project)

    assert listing(answers[0]) == {"artifact": "ana/sk", "fetched_from": f"github:{ANA}", "runtime": "skill", "tool_name": "sk",
                                   "version": "1.1.0"}
    assert "# sk 1.1.0" in answers[1][1] and "sk" in tools
    assert github.paths == [f"{REPO}/releases/latest", f"{REPO}/releases/assets/1", REPO, f"{REPO}/releases/assets/2"]
    pulled = session.trace.one("artifact_pulled")
    assert (pulled["fetched_from"], pulled["owner_id"], pulled["version"]) == (f"github:{ANA}", 4242, "1.1.0")
    pin = lock(project)["ana/sk"]
    assert (pin["origin"], pin["session"], pin["owner_id"], pin["resolved_version"]) == ("runtime", session.id, 4242, "1.1.0")
    assert pin["sha256"]["any"] == sha256(payloads["sk-1.1.0.mur.zip"])
    assert not (project / ".murmur/artifacts").exists() and not (lab.murmur_home / "artifacts").exists()


def test_artifacts_a_named_version_comes_from_the_store_without_a_question(lab, github):
    entry, payloads = skills("sk", "2.0.0", "1.0.0")
    github.serve(ANA, entry, payloads=payloads.items())
    project = knows_ana(pulling(lab, call("pull-artifact", artifact="ana/sk@1.0.0"), install=FROM_SOURCES))
    project.mur("install", "-g", "ana/sk@1.0.0").ok()
    github.requests.clear()
    _, answers, _, _ = run(project)
    assert listing(answers[0])["fetched_from"] == "global store"
    assert github.requests == []


def test_artifacts_a_store_wins_a_tie_and_a_newer_version_of_the_source_wins_over_it(lab, github):
    entry, payloads = skills("sk", "1.0.0")
    github.serve(ANA, entry, payloads=payloads.items())
    project = knows_ana(pulling(lab, call("pull-artifact", artifact="ana/sk"), install=FROM_SOURCES))
    project.mur("install", "-g", "ana/sk@1.0.0").ok()
    _, answers, _, _ = run(project)
    assert listing(answers[0])["fetched_from"] == "global store"
    newer, more = skills("sk", "1.2.0", "1.0.0")
    github.serve(ANA, newer, payloads=more.items())
    (project / "murmur.lock").unlink()
    _, answers, _, _ = run(project)
    assert (listing(answers[0])["fetched_from"], listing(answers[0])["version"]) == (f"github:{ANA}", "1.2.0")


def test_artifacts_without_the_word_sources_nothing_is_asked(lab, github):
    entry, payloads = skills("sk", "1.0.0")
    github.serve(ANA, entry, payloads=payloads.items())
    project = knows_ana(pulling(lab, call("pull-artifact", artifact="ana/sk"), call("pull-artifact", artifact="ana/*"),
                                install={"skill": ["ana/*"], "from": ["stores"]}))
    _, answers, _, _ = run(project)
    assert inside(answers[0][1]).startswith("not-found: ")
    assert listing(answers[1]) == {"matches": [], "notes": [], "omitted": 0, "pattern": "ana/*"}
    assert github.requests == []


def test_artifacts_42_a_hook_of_a_source_is_refused_before_it_is_downloaded(lab, github):
    packed = zip_of({"murmur.yaml": manifest("watch", "1.0.0", "hook"), "hook.wasm": component()})
    github.serve(ANA, index_artifact("watch", [index_version("watch", "1.0.0", {None: packed})], "hook", ("hook",)),
                 payloads=[("watch-1.0.0.mur.zip", packed)])
    project = knows_ana(pulling(lab, call("pull-artifact", artifact="ana/watch"), install=FROM_SOURCES))
    _, answers, tools, _ = run(project)
    assert inside(answers[0][1]).startswith("not-granted: ana/watch is a hook") and "watch" not in tools
    assert github.paths == [f"{REPO}/releases/latest", f"{REPO}/releases/assets/1"]
    assert set(lock(project)) == {"std/driver-scripted"}


def test_artifacts_a_source_version_that_does_not_fit_is_not_downloaded(lab, github):
    entry, payloads = skills("sk", "1.0.0", interfaces=["murmur:tool/run@9.9.9"])
    github.serve(ANA, entry, payloads=payloads.items())
    project = knows_ana(pulling(lab, call("pull-artifact", artifact="ana/sk@1.0.0"), call("pull-artifact", artifact="ana/sk@7.0.0"),
                                call("pull-artifact", artifact="ana/none"), install=FROM_SOURCES))
    _, answers, _, _ = run(project)
    words = [inside(text) for _, text in answers]
    assert words[0].startswith("does-not-fit: [E-WIT-LEVEL-001] ") and "murmur:tool/run@9.9.9" in words[0] and "\n" not in words[0]
    assert words[1].startswith("not-found: [E-REG-001] ") and "1.0.0" in words[1]
    assert words[2].startswith("not-found: [E-REG-001] ")
    assert not any("assets/2" in path for path in github.paths)


@pytest.mark.parametrize("what,code", [("owner", "E-REG-010"), ("bytes", "E-REG-002"), ("silence", "E-REG-006")])
def test_artifacts_a_source_that_lies_or_is_silent_changes_nothing(lab, github, what, code):
    entry, payloads = skills("sk", "1.0.0")
    if what == "bytes":
        payloads["sk-1.0.0.mur.zip"] += b"x"
    github.serve(ANA, entry, payloads=payloads.items())
    project = knows_ana(pulling(lab, call("pull-artifact", artifact="ana/sk"), install=FROM_SOURCES))
    if what == "owner":
        project.run("--task", "first").ok()
        text = (project / "murmur.lock").read_text().split("- name: ana/sk")[0]
        project.write("murmur.lock", text + f"- name: ana/other\n  resolved_version: 1.0.0\n  sha256:\n    any: {'a' * 64}\n"
                                            "  origin: operator\n  owner_id: 1111\n")
        github.requests.clear()
    if what == "silence":
        github.failures["releases/latest"] = (503, {}, b"down")
    before = (project / "murmur.lock").read_text() if (project / "murmur.lock").exists() else None
    _, answers, tools, _ = run(project)
    word = inside(answers[0][1])
    assert word.startswith(f"not-fetched: [{code}] "), word
    assert "sk" not in tools
    assert "ana/sk" not in lock(project)
    if before:
        assert (project / "murmur.lock").read_text() == before


def test_artifacts_a_pattern_finds_stores_and_sources_together(lab, github):
    sk, payloads = skills("sk", "1.2.0", "1.0.0")
    extra, more = skills("extra", "0.1.0", interfaces=["murmur:tool/run@9.9.9"])
    tool = native_package("tool-n", "3.0.0")
    native = index_artifact("tool-n", [index_version("tool-n", "3.0.0", {"darwin-aarch64": tool}, interfaces=())], "tool", ("tool",))
    hook = index_artifact("watch", [index_version("watch", "1.0.0", {None: tool})], "hook", ("hook",))
    github.serve(ANA, sk, extra, native, hook, payloads={**payloads, **more}.items())
    project = knows_ana(pulling(lab, call("pull-artifact", artifact="ana/*"), call("pull-artifact", artifact="ana/s*"),
                                call("pull-artifact", artifact="*"), install=FROM_SOURCES))
    project.mur("install", "-g", "ana/sk@1.0.0").ok()
    publish(lab, skill_package("mine"), "mine")
    github.requests.clear()
    _, answers, _, _ = run(project)
    both = {"artifact": "ana/sk", "runtime": "skill", "description": "About sk.", "versions": ["1.2.0", "1.0.0"],
            "newest_fitting": "1.2.0", "held_in": ["global store", f"github:{ANA}"]}
    assert listing(answers[0]) == {"matches": [
        {"artifact": "ana/extra", "runtime": "skill", "description": "About extra.", "versions": ["0.1.0"],
         "held_in": [f"github:{ANA}"]},
        both,
        {"artifact": "ana/tool-n", "runtime": "tool", "versions": ["3.0.0"], "held_in": [f"github:{ANA}"]},
    ], "notes": [], "omitted": 0, "pattern": "ana/*"}
    assert listing(answers[1])["matches"] == [both]
    # The grant names no scope but ana: no other source is asked, and what is local is not covered.
    assert [match["artifact"] for match in listing(answers[2])["matches"]] == ["ana/extra", "ana/sk", "ana/tool-n"]
    assert set(github.paths) == {f"{REPO}/releases/latest", f"{REPO}/releases/assets/1"}, "a listing asks no owner"


def test_artifacts_an_index_that_cannot_be_read_is_a_note(lab, github):
    github.serve(ANA)
    github.failures["releases/latest"] = (500, {}, b"down")
    project = knows_ana(pulling(lab, call("pull-artifact", artifact="ana/*"), call("pull-artifact", artifact="ana/sk"),
                                install=FROM_SOURCES))
    package = lab.directory / "sk.mur.zip"
    package.write_bytes(skill_package("sk"))
    stored = lab.murmur_home / "artifacts/ana/sk/0.1.0"
    stored.mkdir(parents=True)
    (stored / "sk-0.1.0.mur.zip").write_bytes(package.read_bytes())
    (stored / "sk-0.1.0.sha256").write_text(sha256(package.read_bytes()))
    (stored / "sk-0.1.0.meta.json").write_text(json.dumps({"meta": {
        "name": "ana/sk", "version": "0.1.0", "runtime": "static", "artifact_runtime": "skill", "platforms": [],
        "description": None, "tags": []}}))
    _, answers, _, _ = run(project)
    found = listing(answers[0])
    assert [match["artifact"] for match in found["matches"]] == ["ana/sk"]
    assert len(found["notes"]) == 1 and found["notes"][0].startswith("[E-REG-006] ") and "500" in found["notes"][0]
    pulled = listing(answers[1])
    assert pulled["fetched_from"] == "global store" and pulled["notes"][0].startswith("[E-REG-006] ")


def test_artifacts_at_most_50_matches_are_shown_and_the_rest_counted(lab, github):
    entries = [index_artifact(f"s{number:02}", [index_version(f"s{number:02}", "1.0.0", {None: "0" * 64}, interfaces=())], "skill",
                              ("skill",)) for number in range(60)]
    github.serve(ANA, *entries)
    project = knows_ana(pulling(lab, call("pull-artifact", artifact="ana/*"), install=FROM_SOURCES))
    _, answers, _, _ = run(project)
    found = listing(answers[0])
    assert (len(found["matches"]), found["omitted"]) == (50, 10)
    assert found["matches"][0]["artifact"] == "ana/s00" and found["matches"][-1]["artifact"] == "ana/s49"


@pytest.mark.parametrize("pattern", ["*/x*", "ana*", "ana/x*y*", "**", "ana/-x*"])
def test_artifacts_a_pattern_that_is_none_is_refused(lab, pattern):
    project = pulling(lab, call("pull-artifact", artifact=pattern), install={"skill": ["*"]})
    _, answers, _, _ = run(project)
    assert answers[0][0] and inside(answers[0][1]).startswith("not-granted: ")


def test_artifacts_a_script_lists_describes_and_searches(lab, github):
    sk, payloads = skills("sk", "1.0.0")
    github.serve(ANA, sk, payloads=payloads.items())
    echo = lab.publish("echo", own_component("echo"), description="Says it again.", tags=["text", "demo"],
                       input_schema={"type": "object"}, output_schema='{"type": "string"}')
    name, version = echo.rsplit("@", 1)
    project = lab.script_capsule(own_component("probe"), artifacts=[{"name": name, "version": version}],
                                 capabilities={"install": FROM_SOURCES, "shell": {"allow": ["cat", "echo"]}})
    knows_ana(project)
    task = ["artifacts", "describe local/echo", "describe cat", "describe nothing", "describe local/none", "search ana/*",
            "search SK", "search zzz", "search a*"]
    project.run("--task", "\n".join(task), "--workdir", project / "work").ok()
    lines = (project / "work/out/result.txt").read_text()
    # A command that a tool shadows is the tool.
    assert "local/echo@0.1.0 wasm\ncat@0.0.0 native\n" in lines and "echo@0.0.0" not in lines.replace("local/echo@0.0.0", "")
    assert ("name local/echo\nversion 0.1.0\ndescription Says it again.\ntags text demo\n"
            'input_schema {"type":"object"}\noutput_schema {"type":"string"}\n') in lines
    assert "name cat\nversion 0.0.0\n" in lines
    assert "describe: error: not-granted: " in lines and "murmur/nothing" in lines and "local/nothing" in lines
    assert "describe: error: not-found: local/none" in lines
    assert lines.count("ana/sk@1.0.0 wasm\n") == 2
    assert "search: error: not-granted: " in lines


def test_artifacts_a_script_without_a_grant_searches_nothing(lab):
    project = lab.script_capsule(own_component("probe"))
    (project / "work").mkdir()
    project.run("--task", "search x\npull local/x 1.0.0\ndrop local/x", "--workdir", project / "work").ok()
    lines = (project / "work/out/result.txt").read_text()
    for verb in ("search", "pull", "drop"):
        assert f"{verb}: error: not-granted: " in lines, lines
