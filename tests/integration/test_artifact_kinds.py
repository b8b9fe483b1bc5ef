# SPDX-License-Identifier: Apache-2.0
#
# An artifact is of the kind it is declared as, and whole, before anybody relies on it.

import shutil
import zipfile

import pytest

from tests.support.fixtures import own_component


def declared(project, name, runtime):
    manifest = project / "murmur.yaml"
    manifest.write_text(manifest.read_text().replace("artifacts:\n", f'artifacts:\n- {{name: {name}, version: "0.1.0", runtime: {runtime}}}\n', 1))
    return project


@pytest.mark.parametrize("name, is_a, runtime", [
    ("std/driver-openai", "driver", "tool"), ("std/driver-acp", "driver", "tool"), ("std/hook-deny", "hook", "tool"),
    ("std/files", "tool", "hook"), ("std/files", "tool", "skill"), ("std/files", "tool", "mcp"), ("std/hook-deny", "hook", "driver"),
    ("std/driver-openai", "driver", "hook")])
def test_an_artifact_of_another_kind_than_declared_is_refused_with_its_kind(lab, name, is_a, runtime):
    project = declared(lab.agent(steps=[{"text": "hi"}]), name, runtime)
    for command in (("run", "--task", "x"), ("doctor",), ("install",)):
        refused = project.mur(*command)
        told = refused.stdout + refused.stderr
        assert refused.code == 1 and f"{name}@0.1.0 is a {is_a}, and it is declared as a {runtime}" in told, told
        assert f"write runtime: {is_a} beside its name in murmur.yaml" in told


def test_a_tool_is_no_driver_of_a_model(lab):
    project = lab.agent(steps=[{"text": "hi"}])
    manifest = project / "murmur.yaml"
    manifest.write_text(manifest.read_text().replace("std/driver-scripted", "std/files"))
    assert "std/files@0.1.0 is a tool, and it is declared as a driver" in project.mur("run", "--task", "x").failed("E-REG-015").stderr


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
    assert name and "E-REG-015" not in refused.stderr


@pytest.mark.parametrize("says, component, is_a", [("tool", "hook-seed", "hook"), ("driver", "hook-seed", "hook")])
def test_a_package_whose_component_is_of_another_kind_is_not_published(lab, says, component, is_a):
    source = lab.directory / "odd"
    source.mkdir()
    found = own_component(component)
    shutil.copy(found, source / "odd.wasm")
    (source / "murmur.yaml").write_text(f'name: odd\nversion: "0.1.0"\nruntime: {says}\n')
    package = lab.directory / "odd-0.1.0.mur.zip"
    with zipfile.ZipFile(package, "w") as out:
        out.write(source / "murmur.yaml", "murmur.yaml")
        out.write(source / "odd.wasm", "odd.wasm")
    refused = lab.mur("publish", package).failed("E-REG-015")
    assert f"says runtime: {says}, and its component is a {is_a}" in refused.stderr and f"write runtime: {is_a}" in refused.stderr
    lab.mur("install", "-g", package).failed("E-REG-015")
    assert not list(lab.murmur_home.glob("artifacts/local/odd/**/*.mur.zip"))


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
