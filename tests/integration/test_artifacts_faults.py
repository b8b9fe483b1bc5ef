# SPDX-License-Identifier: Apache-2.0
#
# A killed program and a full disk at every change of store, lock and index: what is found afterwards is whole, and the next
# command works (spec/artifacts.md 6, 7, 16.15).

import hashlib
import shutil

import pytest

from tests.support.faults import fault_at_every_change
from tests.support.packages import component, tool_package

KINDS = ["kill", "enospc"]


def check_store(root):
    """Every payload that has a hash hashes to it; without faults nothing hidden is left."""
    for path in root.rglob("*.sha256"):
        payload = path.with_name(path.name.removesuffix(".sha256") + ".mur.zip")
        if payload.exists() and path.stat().st_size:
            assert hashlib.sha256(payload.read_bytes()).hexdigest() == path.read_text(), payload


def hidden(root):
    return [path for path in root.rglob(".*") if path.is_file()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("over", ["nothing", "an older payload"])
def test_artifacts_an_install_disturbed_at_every_change(lab, kind, over):
    old, new = tool_package("x", description="old"), tool_package("x", description="new")

    def prepare(number):
        project = lab.project(f"p{number}", {"name": "p", "version": "0.1.0"})
        if over != "nothing":
            project.write("old.mur.zip", old)
            project.mur("install", "./old.mur.zip").ok()
        project.write("new.mur.zip", new)
        return project

    def command(project):
        return ["install", "./new.mur.zip", "--no-precompile"], project.directory

    def check(project, result, through):
        root = project / ".murmur/artifacts"
        check_store(root)
        lock = project / "murmur.lock"
        before = hashlib.sha256(old).hexdigest()
        after = hashlib.sha256(new).hexdigest()
        if lock.exists():
            assert before in lock.read_text() or after in lock.read_text()
        if kind == "enospc":
            if result.code != 0:
                assert result.code == 1 and "No space left" in result.stderr, str(result)
            assert hidden(project.directory) == [], str(result)
            if result.code != 0 and over != "nothing" and before in lock.read_text():
                stored = (root / "local/x/0.1.0/x-0.1.0.mur.zip").read_bytes()
                assert stored in (old, new)
        project.mur("list").ok()
        project.mur("install", "./new.mur.zip", "--no-precompile").ok()
        assert (root / "local/x/0.1.0/x-0.1.0.mur.zip").read_bytes() == new
        assert after in lock.read_text()
        shutil.rmtree(project.directory)

    assert fault_at_every_change(lab, prepare, command, check, kind) > 8


@pytest.mark.parametrize("kind", KINDS)
def test_artifacts_a_publish_disturbed_at_every_change(lab, kind):
    root = lab.murmur_home / "artifacts"

    def prepare(number):
        shutil.rmtree(lab.murmur_home, ignore_errors=True)
        project = lab.project(f"p{number}")
        project.write("x.mur.zip", tool_package("x"))
        return project

    def command(project):
        return ["publish", "x.mur.zip"], project.directory

    def check(project, result, through):
        check_store(root)
        if kind == "enospc" and result.code != 0:
            assert list(root.rglob("*.mur.zip")) == [] or "No space left" not in result.stderr, str(result)
            assert hidden(lab.murmur_home) == []
        again = project.mur("publish", "x.mur.zip")
        assert again.code == 0 or "E-REG-003" in again.stderr, str(again)
        if again.code != 0 and len(list(root.rglob("*.sha256"))) == 0:
            # A payload whose hash never came is in the way of publishing, and is replaced by installing.
            project.mur("install", "-g", "./x.mur.zip").ok()
        check_store(root)
        shutil.rmtree(project.directory)

    assert fault_at_every_change(lab, prepare, command, check, kind) > 8


@pytest.mark.parametrize("kind", KINDS)
def test_artifacts_an_index_disturbed_at_every_change(lab, kind):
    def prepare(number):
        return lab.project(f"d{number}", files={"a-1.0.0.mur.zip": tool_package("a", "1.0.0"),
                                                "artifacts-index.json": "before"})

    def command(folder):
        return ["index", ".", "--repo", "ana/x", "--release", "v1"], folder.directory

    def check(folder, result, through):
        text = (folder / "artifacts-index.json").read_text()
        assert text == "before" or text.endswith("}\n"), str(result)
        if kind == "enospc":
            assert hidden(folder.directory) == []
        folder.mur("index", ".", "--repo", "ana/x", "--release", "v1").ok()
        shutil.rmtree(folder.directory)

    assert fault_at_every_change(lab, prepare, command, check, kind) >= 4


@pytest.mark.parametrize("kind", KINDS)
def test_artifacts_a_build_disturbed_at_every_change(lab, kind):
    def prepare(number):
        return lab.project(f"b{number}", 'name: x\nversion: "0.1.0"\nruntime: tool\nrequires_files: [tool.wasm]\n',
                           {"tool.wasm": component()})

    def command(project):
        return ["build"], project.directory

    def check(project, result, through):
        path = project / "x-0.1.0.mur.zip"
        whole = path.read_bytes() if path.exists() else None
        if kind == "enospc":
            assert hidden(project.directory) == []
        project.mur("build").ok()
        assert whole in (None, path.read_bytes())
        shutil.rmtree(project.directory)

    assert fault_at_every_change(lab, prepare, command, check, kind) >= 3
