# SPDX-License-Identifier: Apache-2.0
#
# Acceptance cases of spec/artifacts.md that packing, publishing and the compiled-form cache show: 1, 2, 3, 12, 37, 38.

import os
import stat
import time
import zipfile

import pytest

from tests.support.fixtures import own_component

TOOL = 'name: echo\nversion: "0.1.0"\nruntime: tool\nrequires_files: [tool.wasm]\n'


def package_folder(lab, manifest=TOOL, files=None):
    project = lab.project("package", manifest)
    for name, content in (files or {"tool.wasm": own_component("echo").read_bytes()}).items():
        project.write(name, content)
    return project


def test_artifacts_01_a_skill_packs_manifest_text_and_level_in_order(lab):
    project = package_folder(lab, 'name: greet\nversion: "0.1.0"\nruntime: skill\n', {"skill.md": "# Greet\n"})

    project.mur("build").ok()

    with zipfile.ZipFile(project / "greet-0.1.0.mur.zip") as archive:
        assert archive.namelist() == ["murmur.yaml", "skill.md", "murmur-build.json"]
        assert archive.read("murmur-build.json") == b'{"built_at_level":1}\n'


def test_artifacts_02_only_what_is_declared_is_packed(lab):
    component = own_component("echo").read_bytes()
    project = package_folder(lab, files={"tool.wasm": component, "src/main.c": "int x;", "README.md": "hello"})

    result = project.mur("build").ok()

    assert result.stdout == "Built artifact: ./echo-0.1.0.mur.zip (WIT level 1)\n"
    with zipfile.ZipFile(project / "echo-0.1.0.mur.zip") as archive:
        assert archive.namelist() == ["murmur.yaml", "tool.wasm", "murmur-build.json"]
        assert archive.read("tool.wasm") == component


def test_artifacts_03_two_builds_give_the_same_bytes(lab):
    project = package_folder(lab)
    project.mur("build", "-o", "one.mur.zip").ok()
    os.utime(project / "tool.wasm", (1, 1))
    project.mur("build", "-o", "two.mur.zip").ok()
    assert (project / "one.mur.zip").read_bytes() == (project / "two.mur.zip").read_bytes()


def test_artifacts_12_publishing_twice_keeps_the_first(lab):
    project = package_folder(lab)
    project.mur("build").ok()

    assert project.mur("publish").ok().stdout == "Published local/echo@0.1.0\n"

    folder = lab.murmur_home / "artifacts/local/echo/0.1.0"
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert len(kept) == 3
    project.mur("publish").failed("E-REG-003")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == kept


def compiled_files(lab, suffix=".cwasm"):
    folder = lab.murmur_home / "compiled"
    return sorted(path for path in folder.iterdir() if path.name.endswith(suffix))


def test_artifacts_37_a_second_precompile_finds_the_form_and_leaves_it(lab):
    project = package_folder(lab)
    project.mur("build").ok()

    first = project.mur("precompile", "echo-0.1.0.mur.zip").ok()
    assert first.stdout == "compiled        echo@0.1.0\n"
    (form,) = compiled_files(lab)
    before = form.stat()
    second = project.mur("precompile", "echo-0.1.0.mur.zip").ok()

    assert second.stdout == "already stored  echo@0.1.0\n"
    after = form.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert stat.S_IMODE(form.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(form.stat().st_mode) == 0o600
    assert stat.S_IMODE((form.parent / f"{form.name}.sha256").stat().st_mode) == 0o600


def spoil_mode(form, _sidecar):
    form.chmod(0o640)


def spoil_length(form, _sidecar):
    os.truncate(form, form.stat().st_size // 2)


def spoil_link(form, _sidecar):
    planted = form.parent.parent / "planted"
    planted.write_bytes(form.read_bytes())
    planted.chmod(0o600)
    form.unlink()
    form.symlink_to(planted)


def spoil_sidecar(_form, sidecar):
    sidecar.unlink()


def spoil_content(form, _sidecar):
    content = bytearray(form.read_bytes())
    content[len(content) // 2] ^= 0xFF
    form.write_bytes(content)


@pytest.mark.parametrize("spoil", [spoil_mode, spoil_length, spoil_link, spoil_sidecar, spoil_content])
def test_artifacts_38_a_spoiled_form_is_never_run_and_is_written_anew(lab, spoil):
    project = lab.script_capsule(own_component("script-task"))
    work = lab.directory / "work"
    work.mkdir()
    project.run("--workdir", work, "--task", "one").ok()
    (form,) = compiled_files(lab)
    good = form.read_bytes()
    spoil(form, form.parent / f"{form.name}.sha256")

    project.run("--workdir", work, "--task", "two").ok()

    assert (work / "out/result.txt").read_text() == "task: two"
    assert not form.is_symlink()
    assert form.read_bytes() == good or form.stat().st_mtime <= time.time()
    assert stat.S_IMODE(form.stat().st_mode) == 0o600
    assert (form.parent / f"{form.name}.sha256").is_file()


def test_artifacts_39_a_capsule_that_could_write_the_cache_does_not_use_it(lab):
    project = lab.script_capsule(own_component("script-task"))
    project.run("--workdir", lab.home, "--task", "one").ok()
    assert not (lab.murmur_home / "compiled").exists() or compiled_files(lab) == []
