# SPDX-License-Identifier: Apache-2.0
#
# A killed program and a full disk at every change of store, lock, index and compiled form: what is found afterwards is whole,
# and the next command works (spec/artifacts.md 6, 7, 12, 16.15). A full disk is played (an error at the N-th change) and real
# (a tmpfs of every size).

import hashlib
import shutil

import pytest

from tests.support.faults import fault_at_every_change
from tests.support.fixtures import own_component
from tests.support.packages import component, sha256, tool_package
from tests.support.small_disk import on_every_size

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


# --- compiled forms ------------------------------------------------------------------------------------------------------


def check_forms(root):
    """A form that has its sidecar is the one the sidecar was written for; a form without one is never loaded."""
    for path in root.glob("*.cwasm"):
        sidecar = path.with_name(path.name + ".sha256")
        if sidecar.exists():
            assert sidecar.read_text().splitlines()[0] == sha256(path.read_bytes()), path


@pytest.mark.parametrize("kind", KINDS)
def test_artifacts_a_precompile_disturbed_at_every_change(lab, kind):
    root = lab.murmur_home / "compiled"
    packed = lab.project("package").write("x.mur.zip", tool_package("x", wasm=own_component("echo").read_bytes()))

    def prepare(number):
        shutil.rmtree(lab.murmur_home, ignore_errors=True)
        return packed

    def command(path):
        return ["precompile", path], lab.directory

    def check(path, result, through):
        check_forms(root)
        if kind == "enospc":
            # The cache never fails a command; what could not be stored is compiled again.
            assert (result.code, result.stdout) == (0, "compiled        x@0.1.0\n"), str(result)
            assert hidden(lab.murmur_home) == []
        lab.mur("precompile", path).ok()
        check_forms(root)
        assert lab.mur("precompile", path).ok().stdout == "already stored  x@0.1.0\n"
        assert len(list(root.glob("*.cwasm"))) == len(list(root.glob("*.cwasm.sha256"))) == 1

    assert fault_at_every_change(lab, prepare, command, check, kind) > 8


@pytest.mark.parametrize("kind", KINDS)
def test_artifacts_a_first_launch_disturbed_at_every_change_of_its_form(lab, kind):
    """The changes of a launch before its session's folders are those of its form."""
    root = lab.murmur_home / "compiled"
    project = lab.script_capsule(own_component("script-task"))

    def prepare(number):
        shutil.rmtree(lab.murmur_home, ignore_errors=True)
        shutil.rmtree(project / "workdir", ignore_errors=True)
        return project

    def command(state):
        return ["run", "--task", "hi"], state.directory

    def check(state, result, through):
        check_forms(root)
        if kind == "enospc":
            assert result.code in (0, 1) and (result.code == 0 or "No space left" in result.stderr), str(result)
        state.run("--task", "hi").ok()
        check_forms(root)
        assert lab.runtime_directories in ([], lab.runtime_directories[:1])

    assert fault_at_every_change(lab, prepare, command, check, kind) > 15


# --- a disk that is really full --------------------------------------------------------------------------------------------


def real_sizes(seen):
    """The command failed on the smallest disks, came through on the largest, and with room always."""
    assert seen[0]["code"] != 0, seen[0]
    assert seen[-1]["code"] == 0, seen[-1]
    for one in seen:
        assert one["left"] == [], one
        assert one["code"] == 0 or "No space left on device" in one["stderr"], one
        assert one["again"] == 0 or "E-REG-003" in one["again_stderr"], one
    return seen


def test_artifacts_a_publish_onto_a_full_disk(lab):
    packed = tool_package("x", wasm=own_component("echo").read_bytes())
    path = lab.project("package").write("x.mur.zip", packed)
    for one in real_sizes(on_every_size(lab, lab.murmur_home, ["publish", path], range(4, 92, 8))):
        stem = "artifacts/local/x/0.1.0/x-0.1.0"
        assert one["stored"][f"{stem}.mur.zip"] == sha256(packed) == one["texts"][f"{stem}.sha256"], one


def test_artifacts_an_install_and_its_lock_onto_a_full_disk(lab):
    packed = tool_package("x")
    files = {"murmur.yaml": b"name: p\nversion: 0.1.0\n", "x.mur.zip": packed}
    command = ["install", "./x.mur.zip", "--no-precompile"]
    for one in real_sizes(on_every_size(lab, lab.project("p").directory, command, range(8, 40, 4), files)):
        assert one["stored"][".murmur/artifacts/local/x/0.1.0/x-0.1.0.mur.zip"] == sha256(packed), one
        assert sha256(packed) in one["texts"]["murmur.lock"], one


def test_artifacts_an_index_onto_a_full_disk(lab):
    files = {f"a{number}-1.0.0.mur.zip": tool_package(f"a{number}", "1.0.0") for number in range(12)}
    command = ["index", ".", "--repo", "ana/x", "--release", "v1"]
    for one in real_sizes(on_every_size(lab, lab.project("d").directory, command, range(48, 72, 4), files)):
        assert one["texts"]["artifacts-index.json"].endswith("}\n"), one


def test_artifacts_a_form_onto_a_full_disk(lab):
    path = lab.project("package").write("x.mur.zip", tool_package("x", wasm=own_component("echo").read_bytes()))
    seen = on_every_size(lab, lab.murmur_home, ["precompile", path], range(4, 420, 32))
    for one in seen:
        assert one["code"] == 0 and one["left"] == [] and one["again"] == 0, one
        forms = [name for name in one["stored"] if name.endswith(".cwasm")]
        assert len(forms) == 1, one
        assert one["texts"][f"{forms[0]}.sha256"].splitlines()[0] == one["stored"][forms[0]], one
    assert seen[-1]["stdout"] == "compiled        x@0.1.0\n"
