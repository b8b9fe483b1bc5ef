# SPDX-License-Identifier: Apache-2.0
#
# Rosters that are not started: `mur new --roster`, and `mur doctor` in a formation's folder (spec/cli.md 4 and 5,
# spec/manifest.md 16).

import os
import re

import pytest
import yaml

from tests.support.packages import index_artifact, index_of, index_version, zip_of

FITTING = "1.4.0"


def write_index(project, *versions, scope="murmur", name="driver-anthropic", interfaces=("murmur:tool/run@0.1.0",)):
    listed = [index_version(name, version, {None: "0" * 64}, interfaces=interfaces if version == FITTING else
                            ("murmur:tool/run@9.9.9",)) for version in versions]
    return project.write("index.json", index_of(scope, index_artifact(name, listed, "driver", ("driver",))))


def everything_below(path):
    return {str(found.relative_to(path)): found.read_bytes() for found in sorted(path.rglob("*")) if found.is_file()}


# --- mur new --roster ------------------------------------------------------------------------------------------------------


def test_cli_26_a_formation_is_created_whole_and_never_twice(lab):
    project = lab.project()
    write_index(project, "2.0.0", FITTING)
    result = project.mur("new", "--roster", "x", "--index", "./index.json").ok()
    made = everything_below(project / "x")
    assert sorted(made) == ["lead/murmur.yaml", "roster.yaml", "worker/murmur.yaml"]
    assert "x/roster.yaml" in result.stdout and result.stderr == ""
    for member in ("lead", "worker"):
        manifest = yaml.safe_load(made[f"{member}/murmur.yaml"])
        driver = manifest["artifacts"][0]
        assert (driver["name"], driver["version"]) == ("murmur/driver-anthropic", FITTING)
        assert manifest["network"]["authentication"]["scheme"] == "bearer"
    assert yaml.safe_load(made["worker/murmur.yaml"])["exports"]["peer_tasks"] == {"accept": True}
    again = project.mur("new", "--roster", "x", "--index", "./index.json").failed("E-NEW-003")
    assert again.stdout == "" and everything_below(project / "x") == made
    project.mur("new", "--roster", "x", "--index", "local").failed("E-NEW-005")
    assert sorted(os.listdir(project.directory)) == ["index.json", "x"]


def test_cli_26_the_same_name_and_choices_give_the_same_bytes(lab):
    one, two = lab.project("one"), lab.project("two")
    for project in (one, two):
        write_index(project, FITTING)
        project.mur("new", "--roster", "team", "--index", "index.json").ok()
    assert everything_below(one / "team") == everything_below(two / "team")


def test_cli_26_a_link_to_nowhere_is_in_the_way(lab):
    project = lab.project()
    write_index(project, FITTING)
    os.symlink("nowhere", project / "team")
    project.mur("new", "--roster", "team", "--index", "index.json").failed("E-NEW-003")
    assert os.readlink(project / "team") == "nowhere"


@pytest.mark.parametrize("name", ["Team", "a/b", "", "-x", "x-", "a b", "..", "a/", "t" * 94])
def test_cli_26_names_a_formation_cannot_have(lab, name):
    project = lab.project()
    write_index(project, FITTING)
    result = project.mur("new", f"--roster={name}", "--index", "index.json").failed("E-NEW-002")
    assert f'"{name}"' in result.stderr and os.listdir(project.directory) == ["index.json"]


def test_cli_26_the_provider_decides_the_driver(lab):
    project = lab.project()
    write_index(project, FITTING, name="driver-openai")
    project.mur("config", "set", "inference.provider", "openai").ok()
    project.mur("config", "set", "inference.model", "a: model").ok()
    project.mur("config", "set", "inference.endpoint", "https://proxy.example/v1").ok()
    project.mur("new", "--roster", "team", "--index", "index.json").ok()
    manifest = yaml.safe_load((project / "team/lead/murmur.yaml").read_text())
    assert manifest["inference"]["model"] == "a: model"
    gateway = manifest["artifacts"][0]["gateway"]
    assert gateway == {"endpoint": "https://proxy.example/v1", "api_key": "${OPENAI_API_KEY}"}
    project.mur("config", "set", "inference.provider", "acme").ok()
    result = project.mur("new", "--roster", "other", "--index", "index.json").failed("E-NEW-004")
    assert "acme" in result.stderr and not (project / "other").exists()


def test_cli_26_an_index_that_cannot_be_read_or_has_nothing_that_fits(lab):
    project = lab.project()
    absent = project.mur("new", "--roster", "a", "--index", "./absent.json").failed("E-NEW-006")
    assert "absent.json" in absent.stderr
    project.write("index.json", "{}")
    project.mur("new", "--roster", "a", "--index", "./index.json").failed("E-NEW-006")
    write_index(project, "2.0.0")
    result = project.mur("new", "--roster", "a", "--index", "./index.json").failed("E-NEW-007")
    assert "driver-anthropic" in result.stderr and "2.0.0" in result.stderr
    write_index(project, FITTING, name="other")
    project.mur("new", "--roster", "a", "--index", "./index.json").failed("E-NEW-007")
    assert not (project / "a").exists()


@pytest.mark.parametrize("arguments", [
    (), ("--index", "x"), ("--roster",), ("--roster", "a", "script", "b"), ("nothing", "a"), ("agent",), ("agent", "a", "b"),
])
def test_cli_new_usage(lab, arguments):
    project = lab.project()
    result = project.mur("new", *arguments).failed(exit_status=2)
    assert result.stdout == "" and os.listdir(project.directory) == []


def test_cli_26_what_was_made_builds_and_is_admitted(lab):
    project = lab.project()
    write_index(project, FITTING)
    project.mur("new", "--roster", "team", "--index", "index.json").ok()
    team = project / "team"
    for member in ("lead", "worker"):
        lab.mur("build", member, cwd=team).ok()
        lab.mur("publish", f"{member}/team-{member}-0.1.0.mur.zip", cwd=team).ok()
    result = lab.mur("doctor", cwd=team).ok()
    assert "  lead    local/team-lead@0.1.0     entry   refuses peers   authenticated door\n" in result.stdout
    assert "  worker  local/team-worker@0.1.0           serves peers    authenticated door\n" in result.stdout
    assert "  reachability: lead → worker\n" in result.stdout
    assert result.stdout.endswith("\nAll checks passed.\n") and result.stderr == ""


# --- mur doctor ------------------------------------------------------------------------------------------------------------


AUTH = "network: {authentication: {scheme: bearer}}\n"
SERVES = "exports: {peer_tasks: {accept: true}}\n"


def publish(lab, name, version="1.0", more=AUTH + SERVES):
    text = f'name: {name}\nversion: "{version}"\nruntime: capsule\nexecution: static\n{more}'
    path = lab.directory / f"{name}.mur.zip"
    path.write_bytes(zip_of({"murmur.yaml": text}))
    lab.mur("publish", path).ok()


def roster(lab, *members, reachability=None, name="team"):
    text = {"roster_version": 1, "members": [
        {"name": member, "capsule": f"local/{member}", "version": "1.0", **({"entry": True} if member == members[0] else {})}
        for member in members]}
    if reachability is not None:
        text["reachability"] = reachability
    return lab.project(name, files={"roster.yaml": yaml.safe_dump(text)})


def state(lab):
    return everything_below(lab.murmur_home)


def test_manifest_16_an_admitted_roster_is_shown_in_columns(lab):
    for member in ("lead", "coder", "tester"):
        publish(lab, member)
    team = roster(lab, "lead", "coder", "tester", reachability=[{"from": "tester", "to": ["coder"]},
                                                               {"from": "lead", "to": ["tester", "coder"]}])
    before = state(lab)
    result = team.mur("doctor").ok()
    lines = result.stdout.splitlines()
    at = lines.index("Roster")
    assert lines[at + 1] == f"  file: {team / 'roster.yaml'}"
    assert lines[at + 2:at + 6] == [
        "  lead    local/lead@1.0     entry   serves peers    authenticated door",
        "  coder   local/coder@1.0            serves peers    authenticated door",
        "  tester  local/tester@1.0           serves peers    authenticated door",
        "  reachability: lead → coder, lead → tester, tester → coder"]
    # Two callers, one task at once.
    assert re.fullmatch(r"  warning\[W-ROS-001\]: .*'coder'.* 2 .*1 task .*", lines[at + 6])
    assert [line for line in lines if line.startswith("  ✓")] and lines[-1] == "3 checks passed, 0 errors found, 1 warning."
    assert str(team.directory) in lines[0]
    assert state(lab) == before and os.listdir(team.directory) == ["roster.yaml"]


@pytest.mark.parametrize("reachability,shown", [
    (None, "reachability: none"), ([], "reachability: none"), ("all", "reachability (all): lead → coder"),
])
def test_manifest_16_closed_and_all(lab, reachability, shown):
    for member in ("lead", "coder"):
        publish(lab, member)
    result = roster(lab, "lead", "coder", reachability=reachability).mur("doctor").ok()
    assert f"  {shown}\n" in result.stdout and "All checks passed." in result.stdout


REFUSALS = {
    "E-ROS-001": ("roster_version: 1\nmembers: [{name: lead, capsule: local/lead, version: '1.0', entry: true}]\nreachabilty: all\n",
                  ["reachabilty", "reachability"]),
    "E-ROS-003": ("roster_version: 1\nmembers:\n- {name: lead, capsule: local/lead, version: '1.0', entry: true}\n"
                  "- {name: lead, capsule: local/none, version: '1.0'}\n", ["'lead'"]),
    "E-ROS-002": ("roster_version: 1\nmembers: [{name: lead, capsule: local/none, version: '1.0'}]\n", ["entry: true"]),
    "E-ROS-004": ("roster_version: 1\nmembers: [{name: lead, capsule: local/none, version: '1.0', entry: true}]\n"
                  "reachability: [{from: lead, to: [ghost]}]\n", ["'ghost'"]),
    "E-ROS-008": ("roster_version: 1\nmembers:\n- {name: lead, capsule: local/none, version: '1.0', entry: true}\n"
                  "- {name: coder, capsule: local/none, version: '1.0'}\nreachability: [{from: coder, to: [lead]}]\n",
                  ["'lead'", "from: lead, to: [coder]"]),
}


@pytest.mark.parametrize("code", sorted(REFUSALS))
def test_manifest_37_a_roster_is_refused_for_its_shape_before_any_store_is_read(lab, code):
    text, words = REFUSALS[code]
    team = lab.project("team", files={"roster.yaml": text})
    result = team.mur("doctor").failed(exit_status=1)
    assert f"[mur doctor] error[{code}]: " in result.stderr and "  ✗  " in result.stdout
    for word in words:
        assert word in result.stderr + result.stdout, word
    assert "1 error found" in result.stdout
    assert not lab.murmur_home.exists() and os.listdir(team.directory) == ["roster.yaml"]


def test_manifest_16_members_are_judged_in_order_and_their_bytes_verified(lab):
    publish(lab, "lead")
    publish(lab, "coder")
    team = roster(lab, "lead", "absent", "coder")
    result = team.mur("doctor").failed(exit_status=1)
    assert "[mur doctor] error[E-ROS-007]: " in result.stderr and "'absent'" in result.stderr
    assert "  ✓  lead" in result.stdout and "  ✗  absent" in result.stdout and "Fix: " in result.stdout
    stored = lab.murmur_home / "artifacts/local/coder/1.0/coder-1.0.mur.zip"
    stored.write_bytes(stored.read_bytes() + b"x")
    result = roster(lab, "lead", "coder", name="other").mur("doctor").failed(exit_status=1)
    assert "error[E-ROS-007]" in result.stderr and "'coder'" in result.stderr and "hash" in result.stderr


def test_manifest_16_a_member_contradicting_the_lock(lab):
    publish(lab, "lead")
    team = roster(lab, "lead")
    team.write("murmur.lock", "lock_version: 3\nartifacts:\n- name: local/lead\n  resolved_version: \"1.0\"\n  sha256:\n"
                              f"    any: {'a' * 64}\n  origin: operator\n")
    result = team.mur("doctor").failed(exit_status=1)
    assert "[mur doctor] error[E-REG-005]: " in result.stderr and "'lead'" in result.stderr


def test_manifest_16_a_callee_must_serve_peers(lab):
    publish(lab, "lead")
    publish(lab, "coder", more=AUTH)
    result = roster(lab, "lead", "coder", reachability=[{"from": "lead", "to": ["coder"]}]).mur("doctor").failed(exit_status=1)
    assert "error[E-ROS-005]" in result.stderr and "'coder'" in result.stderr and "exports.peer_tasks.accept" in result.stdout


def test_manifest_38_every_member_needs_a_closed_door_even_one_nobody_calls(lab):
    publish(lab, "lead")
    publish(lab, "coder")
    publish(lab, "idle", more=SERVES)
    rules = [{"from": "lead", "to": ["coder"]}]
    result = roster(lab, "lead", "coder", "idle", reachability=rules).mur("doctor").failed(exit_status=1)
    assert "error[E-ROS-006]" in result.stderr and "'idle'" in result.stderr
    roster(lab, "lead", "coder", "idle", name="closed").mur("doctor").ok()


def test_manifest_16_a_manifest_beside_the_roster_is_what_doctor_checks(lab):
    team = roster(lab, "lead")
    team.write_manifest({"name": "p", "version": "0.1.0"})
    assert "Roster" not in team.mur("doctor").ok().stdout
