# SPDX-License-Identifier: Apache-2.0
#
# An artifact is of the kind it is declared as, and whole, before anybody relies on it.

import zipfile

import pytest

from tests.support.fixtures import own_component


def declared(project, name, runtime):
    manifest = project / "murmur.yaml"
    manifest.write_text(manifest.read_text().replace("artifacts:\n", f'artifacts:\n- {{name: {name}, version: "0.1.0", runtime: {runtime}}}\n', 1))
    return project


@pytest.mark.parametrize("name, is_a, runtime", [
    ("std/driver-openai", "driver", "tool"), ("std/hook-deny", "hook", "tool"), ("std/files", "tool", "hook"),
    ("std/files", "tool", "skill"), ("std/hook-deny", "hook", "driver")])
def test_an_artifact_of_another_kind_than_declared_is_told_with_its_kind(lab, name, is_a, runtime):
    """The manifest that uses it decides what it is: that may be meant."""
    project = declared(lab.agent(steps=[{"text": "hi"}]), name, runtime)
    for command in (("run", "--task", "x"), ("doctor",)):
        done = project.mur(*command)
        told = done.stdout + done.stderr
        assert "W-REG-005" in told and f"{name}@0.1.0 is a {is_a}, and it is declared as a {runtime}: write runtime: {is_a} beside" in told, told


def test_a_driver_that_is_declared_as_a_tool_runs(lab):
    declared(project := lab.agent(steps=[{"text": "hi"}]), "std/driver-openai", "tool")
    assert project.run("--task", "x", "--print").ok().stdout == "hi\n"


def test_a_driver_packed_as_a_tool_without_a_schema_still_drives(lab):
    archive, = (lab.mur_path.parent / "artifacts").glob("std/driver-scripted/**/*.mur.zip")
    component = lab.directory / "driver.wasm"
    with zipfile.ZipFile(archive) as package:
        component.write_bytes(package.read("driver-scripted.wasm"))
    name = lab.publish("plain", component, upstream="none")
    project = lab.agent(steps=[{"text": "hi"}])
    manifest = project / "murmur.yaml"
    manifest.write_text(manifest.read_text().replace("std/driver-scripted", "local/plain"))
    refused = project.mur("run", "--task", "x")
    assert name and "W-REG-005" not in refused.stderr


@pytest.mark.parametrize("says, component, is_a", [("tool", "hook-seed", "hook"), ("driver", "hook-seed", "hook")])
def test_a_package_whose_component_is_of_another_kind_is_told_at_publish(lab, says, component, is_a):
    source = lab.directory / "odd"
    source.mkdir()
    (source / "murmur.yaml").write_text(f'name: odd\nversion: "0.1.0"\nruntime: {says}\n')
    package = lab.directory / "odd-0.1.0.mur.zip"
    with zipfile.ZipFile(package, "w") as out:
        out.write(source / "murmur.yaml", "murmur.yaml")
        out.write(own_component(component), "odd.wasm")
    told = lab.mur("publish", package).ok().stderr
    assert f"says runtime: {says}, and its component is a {is_a}" in told and f"write runtime: {is_a}" in told


def damaged(lab):
    """A package of which one byte of a stored entry changed, its checksum not."""
    archive, = (lab.mur_path.parent / "artifacts").glob("std/files/**/*.mur.zip")
    package = lab.directory / "files-0.1.0.mur.zip"
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(package, "w", zipfile.ZIP_STORED) as new:
        for item in old.infolist():
            new.writestr(item.filename, old.read(item))
    with zipfile.ZipFile(package) as archive:
        at = archive.getinfo("files.wasm").header_offset + 30 + len("files.wasm") + 5000
    data = bytearray(package.read_bytes())
    data[at] ^= 1
    package.write_bytes(data)
    return package


@pytest.mark.parametrize("command", ["publish", "install", "verify", "sign"])
def test_a_damaged_package_is_refused_where_it_is_stored_signed_or_believed(lab, command):
    package = damaged(lab)
    lab.mur("trust", "keygen", "me").ok()
    more = {"publish": [package], "install": ["-g", package], "verify": [package], "sign": [package, "--key", "me"]}[command]
    refused = lab.mur(command, *more).failed("E-IO-003")
    assert 'entry "files.wasm" does not match its checksum' in refused.stderr and "build it or fetch it again" in refused.stderr
    assert not list(lab.murmur_home.glob("artifacts/local/files/**/*.mur.zip"))
