# SPDX-License-Identifier: Apache-2.0
#
# Acceptance cases of spec/artifacts.md 17 about sources, the index, search and installs over the network, with a GitHub of
# our own; every request it got is part of what is asserted.

import json
import os
import pty
import re
import subprocess
import threading
import time

import pytest

from tests.support.packages import (GitHub, component, index_artifact, index_of, index_version, manifest, native_package,
                                    sha256, skill_package, tool_package, zip_of)

ANA = "Ana/my-artifacts"
INDEX_QUESTIONS = [f"/repos/{ANA}", f"/repos/{ANA}/releases/latest", f"/repos/{ANA}/releases/assets/1"]
FOREIGN = "darwin-aarch64"


@pytest.fixture
def github():
    server = GitHub()
    yield server
    server.close()


@pytest.fixture
def project(lab, github):
    """A project whose configuration knows the source of `ana`."""
    lab.env.update(github.env)
    project = lab.project(manifest={"name": "p", "version": "0.1.0"})
    project.write(".murmur/config.yaml", f"registry:\n  sources:\n    - repo: {ANA}\n")
    return project


def serve_tool(github, bytes_by_version, **more):
    """One artifact `tool-x` of scope ana with these versions, newest first."""
    versions = [index_version("tool-x", version, {None: content}) for version, content in bytes_by_version.items()]
    payloads = {f"tool-x-{version}.mur.zip": content for version, content in bytes_by_version.items()}
    github.serve(ANA, index_artifact("tool-x", versions), payloads=payloads.items(), **more)


def stored_versions(project, name="ana/tool-x"):
    root = project / ".murmur/artifacts" / name
    return sorted(os.listdir(root)) if root.exists() else []


def test_artifacts_a_first_install_of_a_scope_asks_four_questions(project, github):
    packed = tool_package("tool-x", "1.0.0")
    serve_tool(github, {"1.0.0": packed})
    result = project.mur("install", "ana/tool-x@1.0.0").ok()
    assert result.stdout == f"Installed ana/tool-x@1.0.0 from github:{ANA}\n"
    assert github.paths == INDEX_QUESTIONS + [f"/repos/{ANA}/releases/assets/2"]
    headers = github.requests[0][1]
    assert headers["user-agent"] == "murmur-cli" and headers["accept"] == "application/vnd.github+json"
    assert github.requests[3][1]["accept"] == "application/octet-stream"
    assert "authorization" not in {name.lower() for name in headers}
    lock = (project / "murmur.lock").read_text()
    assert f"any: {sha256(packed)}" in lock and "owner_id: 4242" in lock
    meta = json.loads((project / ".murmur/artifacts/ana/tool-x/1.0.0/tool-x-1.0.0.meta.json").read_text())["meta"]
    assert meta["owner_id"] == 4242


def test_artifacts_tokens_come_from_the_entry_then_the_environment(project, github):
    serve_tool(github, {"1.0.0": tool_package("tool-x", "1.0.0")})
    project.mur("install", "ana/tool-x@1.0.0", env={"GITHUB_TOKEN": " from-env \n"}).ok()
    assert {headers["authorization"] for _path, headers in github.requests} == {"Bearer from-env"}
    github.requests.clear()
    project.write(".murmur/config.yaml", f"registry:\n  sources:\n    - repo: {ANA}\n      token: ${{OWN}}\n")
    project.mur("install", "ana/tool-x", env={"GITHUB_TOKEN": "x", "OWN": "own-token"}).ok()
    assert {headers["authorization"] for _path, headers in github.requests} == {"Bearer own-token"}


def test_artifacts_21_one_of_three_unavailable(project, github):
    a, c = tool_package("a", "1.0.0"), skill_package("c", "1.0.0")
    github.serve(ANA, index_artifact("a", [index_version("a", "1.0.0", {None: a})]),
                 index_artifact("c", [index_version("c", "1.0.0", {None: c}, interfaces=())], runtime="skill"),
                 payloads={"a-1.0.0.mur.zip": a, "c-1.0.0.mur.zip": c}.items())
    project.write_manifest({"name": "p", "version": "0.1.0", "artifacts": [
        {"name": "ana/a", "version": "1.0.0"}, {"name": "ana/absent", "version": "1.0.0"},
        {"name": "ana/c", "version": "1.0.0", "runtime": "skill"}]})
    result = project.mur("install").failed()
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert lines[:5] == ["", "1 of 3 artifacts failed to install:", "", "  ana/absent@1.0.0", lines[4]]
    assert lines[4].startswith("    error[E-REG-001]: ")
    assert lines[-2] == "" and lines[-1].startswith("installed 2 artifacts  ")
    assert stored_versions(project, "ana/a") == ["1.0.0"] and stored_versions(project, "ana/c") == ["1.0.0"]
    lock = (project / "murmur.lock").read_text()
    assert "ana/a" in lock and "ana/c" in lock and "absent" not in lock


def test_artifacts_21_all_failed_writes_no_lock(project, github):
    serve_tool(github, {"1.0.0": tool_package("tool-x", "1.0.0")})
    project.write_manifest({"name": "p", "version": "0.1.0", "artifacts": [{"name": "ana/absent", "version": "1.0.0"}]})
    result = project.mur("install").failed()
    assert "1 of 1 artifact failed to install:" in result.stdout and "installed" not in result.stdout
    assert not (project / "murmur.lock").exists()


def test_artifacts_22_a_bare_name_asks_nothing(project, github):
    result = project.mur("install", "tool-x").failed("E-REG-007")
    for form in ("murmur/tool-x", "<owner>/tool-x", "local/tool-x"):
        assert form in result.stderr
    assert github.requests == []


def test_artifacts_23_a_reserved_version_asks_nothing(project, github):
    project.mur("install", "ana/tool-x@latest").failed("E-REG-004")
    assert github.requests == []


def test_artifacts_24_local_is_never_asked_for(project, github):
    result = project.mur("install", "local/absent@1.0.0").failed("E-REG-001")
    assert "mur install ./absent-1.0.0.mur.zip" in result.stderr
    assert github.requests == []


def test_artifacts_25_a_scope_without_a_source_shows_what_to_write(project, github):
    result = project.mur("install", "bob/tool-x@1.0.0").failed("E-REG-008")
    assert "sources:" in result.stderr and "repo: bob/" in result.stderr
    assert github.requests == []


def test_artifacts_26_the_murmur_scope_has_one_owner(project, github):
    github.serve("murmur-nexus/default-artifacts", scope="murmur", owner_id=1)
    project.mur("install", "murmur/tool-x@1.0.0").failed("E-REG-010")
    assert github.paths == ["/repos/murmur-nexus/default-artifacts"]


def test_artifacts_27_an_owner_that_changed_stops_before_the_index(project, github):
    serve_tool(github, {"1.0.0": tool_package("tool-x", "1.0.0")}, owner_id=2222)
    lock = ("lock_version: 3\nartifacts:\n- name: ana/other\n  resolved_version: 1.0.0\n  sha256:\n    any: "
            f"{'a' * 64}\n  origin: operator\n  owner_id: 1111\n")
    project.write("murmur.lock", lock)
    result = project.mur("install", "ana/tool-x@1.0.0").failed("E-REG-010")
    assert "1111" in result.stderr and "2222" in result.stderr
    assert github.paths == [f"/repos/{ANA}"]
    assert (project / "murmur.lock").read_text() == lock
    project.write_manifest({"name": "p", "version": "0.1.0", "artifacts": [{"name": "ana/tool-x", "version": "1.0.0"}]})
    project.mur("install").failed("E-REG-010")
    assert not (project / ".murmur/artifacts").exists()


def test_artifacts_28_bytes_the_index_does_not_list(project, github):
    packed = tool_package("tool-x", "1.0.0")
    version = index_version("tool-x", "1.0.0", {None: "0" * 64})
    github.serve(ANA, index_artifact("tool-x", [version]), payloads={"tool-x-1.0.0.mur.zip": packed}.items())
    result = project.mur("install", "ana/tool-x@1.0.0").failed("E-REG-002")
    for text in ("0" * 64, sha256(packed), "tool-x-1.0.0.mur.zip"):
        assert text in result.stderr
    assert stored_versions(project) == [] and not (project / "murmur.lock").exists()


def test_artifacts_29_an_index_speaks_for_its_own_scope_only(project, github):
    serve_tool(github, {"1.0.0": tool_package("tool-x", "1.0.0")}, scope="murmur")
    result = project.mur("install", "ana/tool-x@1.0.0").failed("E-REG-009")
    assert '"murmur"' in result.stderr and '"ana"' in result.stderr


def test_artifacts_30_a_rate_limit_and_what_is_not_one(project, github):
    reset = str(int(time.time()) + 90)
    github.failures["."] = (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": reset}, b'{"message": "no more"}')
    result = project.mur("install", "ana/tool-x@1.0.0").failed("E-REG-006")
    assert "2 minutes" in result.stderr and "GITHUB_TOKEN" in result.stderr and "no more" in result.stderr
    result = project.mur("install", "ana/tool-x@1.0.0", env={"GITHUB_TOKEN": "t"}).failed("E-REG-006")
    assert "GITHUB_TOKEN" not in result.stderr and "exhausted" in result.stderr
    github.failures["."] = (403, {}, b'{"message": "Resource protected by organization SAML enforcement."}')
    result = project.mur("install", "ana/tool-x@1.0.0").failed("E-REG-006")
    assert "403" in result.stderr and "SAML" in result.stderr and "hint" not in result.stderr
    github.failures["."] = (429, {"retry-after": "1"}, b"slow down\nplease")
    result = project.mur("install", "ana/tool-x@1.0.0").failed("E-REG-006")
    assert "1 minute" in result.stderr and "slow down please" in result.stderr
    github.failures["."] = (500, {}, b"")
    assert "500" in project.mur("install", "ana/tool-x@1.0.0").failed("E-REG-006").stderr


def test_artifacts_31_the_newest_that_fits_is_taken_and_the_newest_refused(project, github):
    old, new = tool_package("tool-x", "1.0.0"), tool_package("tool-x", "2.0.0")
    github.serve(ANA, index_artifact("tool-x", [
        index_version("tool-x", "2.0.0", {None: new}, interfaces=["murmur:tool/run@9.9.9"]),
        index_version("tool-x", "1.0.0", {None: old})]),
        payloads={"tool-x-1.0.0.mur.zip": old, "tool-x-2.0.0.mur.zip": new}.items())
    result = project.mur("install", "ana/tool-x@2.0.0").failed("E-WIT-LEVEL-001")
    assert "it names murmur:tool/run@9.9.9" in result.stderr and "ana/tool-x@1.0.0" in result.stderr
    assert github.paths == INDEX_QUESTIONS
    assert project.mur("install", "ana/tool-x").ok().stdout.startswith("Installed ana/tool-x@1.0.0 ")
    assert stored_versions(project) == ["1.0.0"]


def test_artifacts_31_a_manifest_install_stops_whole_at_an_unfitting_one(project, github):
    a = tool_package("a", "1.0.0")
    github.serve(ANA, index_artifact("a", [index_version("a", "1.0.0", {None: a})]),
                 index_artifact("b", [index_version("b", "1.0.0", {None: a}, interfaces=["murmur:text/x@1.0.0"])]),
                 payloads={"a-1.0.0.mur.zip": a}.items())
    project.write_manifest({"name": "p", "version": "0.1.0", "artifacts": [
        {"name": "ana/a", "version": "1.0.0"}, {"name": "ana/b", "version": "1.0.0"}]})
    project.mur("install").failed("E-WIT-LEVEL-001")
    assert github.paths == INDEX_QUESTIONS
    assert not (project / ".murmur/artifacts").exists() and not (project / "murmur.lock").exists()


def test_artifacts_32_only_a_foreign_platform_is_published(project, github):
    packed = native_package("tool-x", "1.0.0")
    github.serve(ANA, index_artifact("tool-x", [index_version("tool-x", "1.0.0", {FOREIGN: packed}, interfaces=())]),
                 payloads={f"tool-x-1.0.0-{FOREIGN}.mur.zip": packed}.items())
    for reference in ("ana/tool-x@1.0.0", "ana/tool-x"):
        result = project.mur("install", reference).failed("E-REG-001")
        assert FOREIGN in result.stderr and "linux-" in result.stderr


def test_artifacts_a_version_that_is_not_listed_names_the_known_ones(project, github):
    serve_tool(github, {"1.1.0": tool_package("tool-x", "1.1.0"), "1.0.0": tool_package("tool-x", "1.0.0")})
    result = project.mur("install", "ana/tool-x@9.0.0").failed("E-REG-001")
    assert "1.1.0, 1.0.0" in result.stderr


def test_artifacts_a_packed_name_or_version_that_is_not_the_listed_one(project, github):
    other = tool_package("other", "1.0.0")
    serve_tool(github, {"1.0.0": other})
    assert "other" in project.mur("install", "ana/tool-x@1.0.0").failed("E-REG-002").stderr
    github.repositories.clear()
    serve_tool(github, {"1.0.0": tool_package("tool-x", "1.0.1")})
    assert "1.0.1" in project.mur("install", "ana/tool-x@1.0.0").failed("E-REG-002").stderr
    github.repositories.clear()
    serve_tool(github, {"1.0.0": b"not a zip"})
    project.mur("install", "ana/tool-x@1.0.0").failed("E-IO-003")
    assert stored_versions(project) == []


def test_artifacts_no_release_or_no_index_or_no_repository(project, github):
    project.mur("install", "ana/tool-x@1.0.0").failed("E-REG-001")
    github.repository(ANA)
    project.mur("install", "ana/tool-x@1.0.0").failed("E-IDX-002")
    github.release(ANA, "v1", {"README.md": b"x"})
    project.mur("install", "ana/tool-x@1.0.0").failed("E-IDX-002")
    github.release(ANA, "v2", {"artifacts-index.json": b'{"schema_version": 1}'})
    assert "schema 1" in project.mur("install", "ana/tool-x@1.0.0").failed("E-IDX-002").stderr


def test_artifacts_an_older_release_costs_one_question_more(project, github):
    packed = tool_package("tool-x", "1.0.0")
    github.repository(ANA)
    github.release(ANA, "v1", {"tool-x-1.0.0.mur.zip": packed})
    github.release(ANA, "v2", {"artifacts-index.json": index_of(
        "ana", index_artifact("tool-x", [index_version("tool-x", "1.0.0", {None: packed})]))})
    project.mur("install", "ana/tool-x@1.0.0").ok()
    assert len(github.paths) == 5 and f"/repos/{ANA}/releases/tags/v1" in github.paths


def test_artifacts_a_release_is_installed_whole_or_not_at_all(project, github):
    github.repository("Bob/Tools", 77)
    github.release("Bob/Tools", "v1", {"a-1.0.0.mur.zip": tool_package("a", "1.0.0"),
                                       "n-1.0.0-darwin-aarch64.mur.zip": native_package("n", "1.0.0"), "notes.txt": b"x"})
    result = project.mur("install", "github:Bob/Tools@v1").ok()
    assert result.stdout.splitlines() == ["Installed bob/a@1.0.0 from github:Bob/Tools",
                                          "Installed bob/n@1.0.0 from github:Bob/Tools"]
    lock = (project / "murmur.lock").read_text()
    assert lock.count("owner_id: 77") == 2 and "darwin-aarch64: " in lock
    github.release("Bob/Tools", "v2", {"b-1.0.0.mur.zip": tool_package("b", "1.0.0"), "c-1.0.0.mur.zip": b"broken"})
    assert "c-1.0.0.mur.zip" in project.mur("install", "github:Bob/Tools@v2").failed("E-IO-003").stderr
    assert stored_versions(project, "bob/b") == [] and (project / "murmur.lock").read_text() == lock
    github.release("Bob/Tools", "v3", {"notes.txt": b"x"})
    project.mur("install", "github:Bob/Tools@v3").failed("E-IO-003")
    project.mur("install", "github:Bob/Tools@v9").failed("E-IO-003")
    github.requests.clear()
    project.mur("install", "github:local/x@v1").failed("E-REG-007")
    assert github.requests == []


def test_artifacts_every_platform_goes_to_the_global_store(project, github, lab):
    packed = native_package("tool-x", "1.0.0")
    github.serve(ANA, index_artifact("tool-x", [index_version("tool-x", "1.0.0", {FOREIGN: packed}, interfaces=())]),
                 payloads={f"tool-x-1.0.0-{FOREIGN}.mur.zip": packed}.items())
    result = project.mur("install", "ana/tool-x@1.0.0", "--all-platforms").ok()
    path = f"~/.murmur/artifacts/ana/tool-x/1.0.0/tool-x-1.0.0-{FOREIGN}.mur.zip"
    assert result.stdout == f"Installed ana/tool-x@1.0.0 ({FOREIGN}) → {path}\n"
    assert "linux-x86_64" in result.stderr
    assert not (project / "murmur.lock").exists() and not (project / ".murmur/artifacts").exists()
    project.mur("install", "ana/tool-x", "--all-platforms").failed("E-IO-003")


def test_artifacts_a_manifest_install_is_quiet_and_asks_each_question_once(project, github):
    packages = {f"t{number:02}": tool_package(f"t{number:02}", "1.0.0") for number in range(20)}
    github.serve(ANA, *[index_artifact(name, [index_version(name, "1.0.0", {None: packed})])
                        for name, packed in packages.items()],
                 payloads={f"{name}-1.0.0.mur.zip": packed for name, packed in packages.items()}.items())
    project.write_manifest({"name": "p", "version": "0.1.0",
                            "artifacts": [{"name": f"ana/{name}", "version": "1.0.0"} for name in packages]})
    result = project.mur("install").ok()
    assert (result.stdout, result.stderr) == ("", "")
    assert len(github.paths) == len(set(github.paths)) == 3 + 20
    lock = (project / "murmur.lock").read_text()
    assert [line.split("/")[1] for line in lock.splitlines() if line.startswith("- name: ")] == sorted(packages)
    github.requests.clear()
    project.mur("install").ok()
    assert github.requests == [] and (project / "murmur.lock").read_text() == lock


def many(project, github, count=12):
    packages = {f"t{number:02}": tool_package(f"t{number:02}", "1.0.0") for number in range(count)}
    github.serve(ANA, *[index_artifact(name, [index_version(name, "1.0.0", {None: packed})])
                        for name, packed in packages.items()],
                 payloads={f"{name}-1.0.0.mur.zip": packed for name, packed in packages.items()}.items())
    project.write_manifest({"name": "p", "version": "0.1.0",
                            "artifacts": [{"name": f"ana/{name}", "version": "1.0.0"} for name in packages]})
    return packages


def test_artifacts_a_manifest_install_fetches_several_payloads_at_once(project, github):
    packages = many(project, github)
    waiting, most, all_there = [0], [0], threading.Condition()
    answer = github.answer

    def slow(path):
        if "/releases/assets/" not in path or path.endswith("/assets/1"):
            return answer(path)
        with all_there:
            waiting[0] += 1
            most[0] = max(most[0], waiting[0])
            all_there.notify_all()
            # Nobody is answered before four have asked, or two seconds went by.
            all_there.wait_for(lambda: most[0] >= 4, 2)
            waiting[0] -= 1
        return answer(path)

    github.answer = slow
    project.mur("install").ok()
    assert most[0] >= 4
    assert len(stored_versions(project, "ana")) == len(packages)


def test_artifacts_a_manifest_install_shows_one_line_of_progress_at_a_terminal(project, github):
    packages = many(project, github)
    terminal, end = pty.openpty()
    try:
        done = subprocess.run([project.lab.mur_path, "install"], cwd=project.directory, env=project.lab.environment(),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=end, timeout=60)
        os.close(end)
        shown = b""
        while True:
            try:
                piece = os.read(terminal, 65536)
            except OSError:
                break
            if not piece:
                break
            shown += piece
    finally:
        os.close(terminal)
    assert done.returncode == 0 and done.stdout == b""
    text = shown.decode()
    # One line, written over itself, and nothing of it left.
    assert "\n" not in text and text.endswith("\r\x1b[K")
    seen = [int(number) for number in re.findall(r"installing (\d+) of 12  \d+\.\d MB", text)]
    assert len(seen) == len(packages) and sorted(seen) == seen and seen[-1] == 12


@pytest.mark.parametrize("block, words", [
    ("  default: x\n", ["registry.default"]),
    ("  sources:\n    - repo: Ana/x\n      url: http://x\n", ["registry.sources[0]", "url"]),
    ("  sources:\n    - repo: ana\n", ["registry.sources[0]"]),
    ("  sources:\n    - repo: local/x\n", ["local"]),
    ("  sources:\n    - repo: Ana/x\n    - repo: ana/y\n", ["Ana/x", "ana/y"]),
    ("  sources:\n    - repo: a_b/x\n", ["a_b"]),
])
def test_artifacts_an_unusable_registry_is_refused_when_it_is_needed(project, github, block, words):
    project.write(".murmur/config.yaml", f"registry:\n{block}")
    result = project.mur("install", "ana/tool-x@1.0.0").failed("E-CFG-003")
    for word in ["config.yaml", *words]:
        assert word in result.stderr
    assert github.requests == []
    project.mur("list").ok()


# --- index -------------------------------------------------------------------------------------------------------------


def dist(lab, packages, name="dist"):
    return lab.project(name, files=packages)


INDEX = ("--repo", ANA, "--release", "v1")


def test_artifacts_33_one_bad_file_leaves_the_index_alone(lab):
    folder = dist(lab, {"a-1.0.0.mur.zip": tool_package("a", "1.0.0"), "b-1.0.0.mur.zip": b"bad"})
    folder.write("artifacts-index.json", "before")
    assert "b-1.0.0.mur.zip" in folder.mur("index", ".", *INDEX).failed("E-IDX-001").stderr
    assert (folder / "artifacts-index.json").read_text() == "before"
    assert sorted(os.listdir(folder.directory)) == ["a-1.0.0.mur.zip", "artifacts-index.json", "b-1.0.0.mur.zip"]


@pytest.mark.parametrize("name, packed", [
    ("a-1.0.0.mur.zip", tool_package("a", "1.0.1")),
    ("a-1.0.mur.zip", tool_package("a", "1.0")),
    ("a-latest.mur.zip", tool_package("a", "latest")),
    ("b-1.0.0.mur.zip", tool_package("a", "1.0.0")),
    ("a-1.0.0.mur.zip", native_package("a", "1.0.0")),
    ("a-1.0.0-linux-x86_64.mur.zip", tool_package("a", "1.0.0")),
    ("a-1.0.0.mur.zip", zip_of({"murmur.yaml": manifest("a", "1.0.0"), "tool.wasm": b"\0asm\1\0\0\0"})),
    ("a-1.0.0.mur.zip", zip_of({"murmur.yaml": manifest("a", "1.0.0"), "tool.wasm": component(),
                                "murmur-build.json": "[]"})),
    ("a-1.0.0.mur.zip", zip_of({"x": "y"})),
])
def test_artifacts_33_what_is_not_indexed(lab, name, packed):
    folder = dist(lab, {name: packed})
    assert name in folder.mur("index", ".", *INDEX).failed("E-IDX-001").stderr
    assert os.listdir(folder.directory) == [name]


def test_artifacts_34_the_same_files_give_the_same_index_newest_first(lab):
    folder = dist(lab, {
        "a-0.9.0.mur.zip": tool_package("a", "0.9.0"),
        "a-0.10.0.mur.zip": tool_package("a", "0.10.0", description="\n  Finds things. And more.\nsecond"),
        "murmur-tool-n-1.0.0-linux-x86_64.mur.zip": native_package("murmur-tool-n", "1.0.0"),
        "murmur-tool-n-1.0.0-darwin-aarch64.mur.zip": native_package("murmur-tool-n", "1.0.0")})
    result = folder.mur("index", ".", *INDEX).ok()
    assert result.stdout == "Indexed 2 artifacts (3 versions) for scope ana into artifacts-index.json\n"
    first = (folder / "artifacts-index.json").read_bytes()
    folder.mur("index", ".", *INDEX).ok()
    assert (folder / "artifacts-index.json").read_bytes() == first
    index = json.loads(first)
    a, n = index["artifacts"]
    assert [version["version"] for version in a["versions"]] == ["0.10.0", "0.9.0"]
    assert a["description"] == "Finds things." and a["tags"] == ["tool", "a"]
    assert a["versions"][0]["built_at_level"] == 1 and a["versions"][0]["interfaces"] == ["murmur:tool/run@0.1.0"]
    assert n["tags"] == ["tool", "n"] and [x["platform"] for x in n["versions"][0]["assets"]] == [
        "darwin-aarch64", "linux-x86_64"]
    assert first.endswith(b"}\n") and b'\n  "scope": "ana",\n' in first


def test_artifacts_an_index_is_merged_version_by_version(lab):
    old = dist(lab, {"a-1.0.0.mur.zip": tool_package("a", "1.0.0"), "a-1.1.0.mur.zip": tool_package("a", "1.1.0"),
                     "gone-1.0.0.mur.zip": skill_package("gone", "1.0.0")}, "old")
    old.mur("index", ".", *INDEX).ok()
    new = dist(lab, {"a-1.1.0.mur.zip": tool_package("a", "1.1.0"), "a-2.0.0.mur.zip": tool_package("a", "2.0.0"),
                     "b-1.0.0.mur.zip": tool_package("b", "1.0.0")}, "new")
    older = old / "artifacts-index.json"
    result = new.mur("index", ".", "--repo", ANA, "--release", "v2", "--merge", older, "-o", "out.json").ok()
    assert result.stdout == ("Indexed 3 artifacts (5 versions) for scope ana into out.json; "
                             f"2 versions kept from {older}, 0 replaced\n")
    index = json.loads((new / "out.json").read_text())
    assert [(v["version"], v["release"]) for v in index["artifacts"][0]["versions"]] == [
        ("2.0.0", "v2"), ("1.1.0", "v2"), ("1.0.0", "v1")]
    new.mur("index", ".", "--repo", "bob/x", "--release", "v2", "--merge", older).failed("E-IDX-003")
    new.write("broken.json", "{}")
    new.mur("index", ".", *INDEX, "--merge", "broken.json").failed("E-IDX-002")


def test_artifacts_unusable_index_arguments(lab):
    folder = dist(lab, {"a-1.0.0.mur.zip": tool_package("a", "1.0.0")})
    for repo, tag in (("ana", "v1"), ("local/x", "v1"), ("ana/x", "v 1"), ("ana/x/y", "v1"), ("a_b/x", "v1")):
        folder.mur("index", ".", "--repo", repo, "--release", tag).failed("E-IDX-003")
    folder.mur("index", "absent", *INDEX).failed("E-IO-003")
    (folder / "empty").mkdir()
    folder.mur("index", "empty", *INDEX).failed("E-IDX-001")


# --- search ------------------------------------------------------------------------------------------------------------


def test_artifacts_search_shows_the_newest_that_fits_and_says_what_does_not(lab, github):
    index = index_of("ana", index_artifact("tool-a", [
        index_version("tool-a", "2.0.0", {None: "0" * 64}, interfaces=["murmur:tool/run@9.9.9"]),
        index_version("tool-a", "1.0.0", {None: "0" * 64})], description="Finds Things."),
        index_artifact("b", [index_version("b", "1.0.0", {None: "0" * 64}, interfaces=["murmur:x/y@1.0.0"])],
                       tags=["things"]))
    folder = lab.project(files={"index.json": index})
    result = folder.mur("search", "THINGS", "--index", "index.json").ok()
    lines = result.stdout.splitlines()
    assert lines[:4] == ["NAME        VERSION  RUNTIME  DESCRIPTION", "ana/b       —        tool     —",
                         "ana/tool-a  1.0.0    tool     Finds Things.", ""]
    assert lines[4].startswith("ana/b: 1.0.0 needs murmur:x/y@1.0.0")
    assert lines[5].startswith("ana/tool-a: 2.0.0 needs murmur:tool/run@9.9.9")
    assert folder.mur("search", "nowhere", "--index", "index.json").ok().stdout == "No results found.\n"
    assert folder.mur("search", "things", "--index", "index.json", "--limit", "1").ok().stdout.count("ana/") == 2
    folder.mur("search", "x", "--index", "absent.json").failed("E-IO-003")
    folder.write("bad.json", "[]")
    folder.mur("search", "x", "--index", "bad.json").failed("E-IDX-002")


def test_artifacts_search_reads_an_address_from_the_configuration(lab, github):
    github.serve(ANA, index_artifact("tool-a", [index_version("tool-a", "1.0.0", {None: "0" * 64})]))
    folder = lab.project()
    folder.write(".murmur/config.yaml", f"registry:\n  index_url: {github.base}/repos/{ANA}/releases/assets/1\n")
    assert "ana/tool-a" in folder.mur("search", "tool").ok().stdout
    folder.mur("search", "tool", "--index", github.base + "/absent").failed("E-IO-003")
    assert not lab.murmur_home.exists()


def test_artifacts_search_of_the_global_store(lab):
    folder = lab.project()
    folder.mur("publish", folder.write("x.mur.zip", tool_package("finder", "1.0.0", description="Finds."))).ok()
    result = folder.mur("search", "finds", "--index", "local").ok()
    assert result.stdout.splitlines() == ["NAME          VERSION  RUNTIME  DESCRIPTION",
                                          "local/finder  1.0.0    tool     Finds."]
