# SPDX-License-Identifier: Apache-2.0
#
# Hostile and huge inputs: each ends in little time and memory, with a clear answer (spec/artifacts.md 3.4, spec/manifest.md 2).

import os
import re
import subprocess
import sys
import time

import pytest

from tests.support.fixtures import own_component
from tests.support.lab import IS_SANITIZED, SLOWER
from tests.support.packages import component, declare_size, leb, manifest, tool_package, zip_of

# A sanitizer's shadow memory and quarantine are not ours.
PEAK_KIB = (64 << 10) * (8 if IS_SANITIZED else 1)
# One second is the promise on an idle machine; the tests share theirs.
WITHIN_S = 5 * SLOWER


class Measured:
    """How a command ended, how long it took and how much memory it ever held."""

    def __init__(self, lab, project, *arguments, env=None):
        # A helper that runs nothing else: its children's high-water mark is the command's.
        code = ("import resource, subprocess, sys\n"
                "r = subprocess.run(sys.argv[1:], capture_output=True, timeout=120)\n"
                "print(r.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
                "sys.stderr.buffer.write(r.stdout + r.stderr)")
        started = time.monotonic()
        done = subprocess.run([sys.executable, "-c", code, str(lab.mur_path), *map(str, arguments)],
                              cwd=project.directory, env=lab.environment(env), capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=180)
        self.took_s = time.monotonic() - started
        self.code, self.peak_kib = map(int, done.stdout.split())
        self.output = done.stderr

    def is_small(self, within_s=WITHIN_S):
        assert self.peak_kib < PEAK_KIB, f"{self.peak_kib} KiB\n{self.output[:2000]}"
        assert self.took_s < within_s, f"{self.took_s} s\n{self.output[:2000]}"
        return self

    def failed(self, code):
        assert self.code == 1 and f"error[{code}]" in self.output, self.output[:2000]
        return self.is_small()

    def ok(self):
        assert self.code == 0, self.output[:2000]
        return self.is_small()


# --- archives ------------------------------------------------------------------------------------------------------------


def test_artifacts_10_a_bomb_is_stopped_at_the_ceiling(lab):
    project = lab.project()
    bomb = zip_of({"murmur.yaml": manifest("x"), "tool.wasm": b"\0" * (200 << 20)})
    path = project.write("x.mur.zip", bomb)
    seen = Measured(lab, project, "precompile", path, env={"MURMUR_MAX_ARTIFACT_DECOMPRESSED_BYTES": str(16 << 20)})
    assert seen.code == 1 and "decompression ceiling" in seen.output
    seen.is_small()


def test_artifacts_10_a_bomb_of_a_manifest_is_stopped(lab):
    project = lab.project()
    path = project.write("x.mur.zip", zip_of({"murmur.yaml": b"#" * (100 << 20), "tool.wasm": component()}))
    seen = Measured(lab, project, "publish", path).failed("E-MAN-002")
    assert "murmur.yaml" in seen.output


def test_artifacts_65535_entries_are_read(lab):
    project = lab.project()
    entries = {"murmur.yaml": manifest("x"), "tool.wasm": component()}
    entries.update({f"e/{number:05}": b"" for number in range(65533)})
    Measured(lab, project, "publish", project.write("x.mur.zip", zip_of(entries))).ok()


def test_artifacts_a_component_of_300_megabytes_is_stored_with_its_contracts(lab):
    project = lab.project()
    # A custom section of zeros behind the exports: all of it is inflated and checked, none of it kept.
    wasm = component() + b"\0" + leb(300 << 20) + b"\0" * (300 << 20)
    path = project.write("big.mur.zip", zip_of({"murmur.yaml": manifest("big"), "tool.wasm": wasm}))
    Measured(lab, project, "publish", path).ok()
    meta = (lab.murmur_home / "artifacts/local/big/0.1.0/big-0.1.0.meta.json").read_text()
    assert "murmur:tool/run@0.1.0" in meta


@pytest.mark.parametrize("size", [0xFFFFFFF0, 0xFFFFFFFF])
def test_artifacts_an_entry_that_declares_gigabytes_is_read_as_it_is(lab, size):
    project = lab.project()
    packed = zip_of({"murmur.yaml": manifest("x", runtime="skill"), "skill.md": "# text\n" * 10})
    seen = Measured(lab, project, "publish", project.write("x.mur.zip", declare_size(packed, size))).is_small()
    assert seen.code == 0 or "error[E-IO-003]" in seen.output


def test_artifacts_an_archive_that_is_a_device_or_too_large_is_not_read(lab):
    project = lab.project()
    Measured(lab, project, "publish", "/dev/zero").failed("E-IO-003")
    huge = project / "huge.mur.zip"
    huge.touch()
    os.truncate(huge, 10 << 30)
    seen = Measured(lab, project, "publish", huge).failed("E-IO-003")
    assert "1073741824" in seen.output


def test_artifacts_a_build_refuses_a_payload_no_archive_may_have(lab):
    project = lab.project("p", manifest("x", requires_files=["tool.wasm"]))
    (project / "tool.wasm").touch()
    os.truncate(project / "tool.wasm", 10 << 30)
    seen = Measured(lab, project, "build").failed("E-IO-003")
    assert "tool.wasm" in seen.output and not list(project.directory.glob("*.mur.zip"))


# --- a script's component --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["a device", "10 GiB of nothing", "900 MB of nothing"])
def test_session_a_component_without_end_is_refused_by_its_head(lab, what):
    project = lab.project("p", {"name": "p", "version": "0.1.0"})
    path = project / "capsule.wasm"
    if what == "a device":
        path.symlink_to("/dev/zero")
    else:
        path.touch()
        os.truncate(path, 10 << 30 if "GiB" in what else 900 << 20)
    seen = Measured(lab, project, "run").failed("E-RUN-001")
    assert str(path) in seen.output


def test_session_a_component_that_begins_well_and_never_ends_is_refused_by_its_size(lab):
    project = lab.project("p", {"name": "p", "version": "0.1.0"})
    path = project.write("capsule.wasm", own_component("script-task").read_bytes())
    os.truncate(path, 10 << 30)
    seen = Measured(lab, project, "run").failed("E-IO-003")
    assert "1073741824" in seen.output


# --- manifests -------------------------------------------------------------------------------------------------------------


def test_manifest_of_50_megabytes_is_refused_before_it_is_read(lab):
    text = "name: a\nversion: '1'\n#" + "x" * (50 << 20) + "\n"
    for number, arguments in enumerate([("run",), ("run", "--explain-scope"), ("doctor",), ("install",), ("build",)]):
        project = lab.project(f"p{number}", text)
        seen = Measured(lab, project, *arguments).failed("E-MAN-002")
        assert "8388608" in seen.output and "murmur.yaml" in seen.output


def test_manifest_of_10_000_artifacts_is_read_explained_and_refused_for_what_is_missing(lab):
    text = "name: a\nversion: '1'\nartifacts:\n" + "".join(
        f"- {{name: ana/t{number}, version: '1.0.0'}}\n" for number in range(10000))
    project = lab.project("p", text)
    Measured(lab, project, "run", "--explain-scope", "--json").ok()
    seen = Measured(lab, project, "run").failed("E-RUN-008")
    assert "ana/t0@1.0.0" in seen.output and "ana/t9999@1.0.0" in seen.output
    seen = Measured(lab, project, "install").is_small()
    assert seen.code == 1 and "10000 of 10000 artifacts failed to install" in seen.output


def bomb(levels=20):
    lines = ["name: a", "version: '1'", "a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, levels + 1)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("arguments", [("run",), ("run", "--explain-scope"), ("doctor",), ("install",)])
def test_manifest_40_an_alias_bomb_is_refused_where_it_grows_too_large(lab, arguments):
    seen = Measured(lab, lab.project("p", bomb()), *arguments).failed("E-MAN-002")
    assert re.search(r"murmur\.yaml:\d+:\d+: ", seen.output)


def test_manifest_40_a_packed_alias_bomb_is_no_manifest(lab):
    project = lab.project()
    packed = zip_of({"murmur.yaml": bomb() + "runtime: tool\n", "tool.wasm": component()})
    Measured(lab, project, "publish", project.write("x.mur.zip", packed)).failed("E-MAN-002")


def test_artifacts_a_lock_or_an_index_without_end_is_refused(lab):
    project = lab.project("p", {"name": "p", "version": "0.1.0", "artifacts": [{"name": "ana/x", "version": "1"}]})
    project.write("murmur.lock", "lock_version: 3\n#" + "x" * (20 << 20))
    Measured(lab, project, "install").failed("E-RUN-003")
    project.write("index.json", b'{"schema_version":2,"x":[' + b"1," * (20 << 20) + b"1]}")
    seen = Measured(lab, project, "search", "x", "--index", "./index.json").failed("E-IO-003")
    assert "8388608" in seen.output


# --- what a guest can take ---------------------------------------------------------------------------------------------------


def config_of(size):
    return {"k": "x" * (size - len('{"k":""}'))}


def test_manifest_12_a_config_of_65536_bytes_passes_with_a_word_of_warning(lab):
    probe = lab.publish("tool-probe", own_component("tool-probe"))
    name, version = probe.rsplit("@", 1)
    for size, warns in ((57344, False), (65536, True)):
        entry = {"name": name, "version": version, "config": config_of(size)}
        result = lab.agent(f"a{size}", tools=[entry], steps=[{"text": "done"}]).run("--task", "hi").ok()
        assert (f"the config of {name} has {size} bytes" in result.stderr) == warns, str(result)


def test_session_a_driver_configuration_its_component_cannot_take_is_refused_at_staging(lab):
    steps = [{"text": "x" * 60000}]
    project = lab.agent(steps=steps)
    result = project.run("--task", "hi").failed("E-CAP-010")
    assert "inference.driver.config" in result.stderr and "57344" in result.stderr
    assert lab.records == [] and not (project / "workdir").exists()
    file_project = lab.agent("file", steps=None, inference={
        "driver": {"artifact": "std/driver-scripted", "config": {"file": "steps.json"}}})
    work = lab.directory / "work"
    work.mkdir()
    (work / "steps.json").write_text('{"steps": [{"text": "' + "x" * 60000 + '"}]}')
    file_project.run("--task", "hi", "--workdir", work).ok()
