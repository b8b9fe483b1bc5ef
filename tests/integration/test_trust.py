# SPDX-License-Identifier: Apache-2.0
#
# Signatures of packages and the policy that asks for them (spec/artifacts.md 8.2): at install and at launch.

import base64
import json
import os
import shutil
import stat

import pytest

from tests.support.oci_registry import Registry
from tests.support.packages import tool_package

REQUIRE = "trust:\n  require:\n    local: [ana]\n"


@pytest.fixture
def project(lab):
    """A project, a key `ana` that is trusted, a key `mallory` that is not, and a signed package."""
    project = lab.project(manifest={"name": "p", "version": "0.1.0", "artifacts": [{"name": "local/tool-x", "version": "1.0.0"}]})
    for name in ("ana", "mallory"):
        project.mur("trust", "keygen", name).ok()
    project.mur("trust", "add", "ana", str(lab.murmur_home / "keys/ana.pub")).ok()
    pack(project)
    return project


def pack(project, version="1.0.0", key="ana", name="tool-x", file=None, **more):
    path = project / (file or f"{name}-{version}.mur.zip")
    path.write_bytes(tool_package(name, version, **more))
    if key:
        project.mur("sign", str(path), "--key", key).ok()
    return str(path)


def require(lab, text=REQUIRE):
    (lab.murmur_home / "config.yaml").write_text(text)


def test_trust_keys_are_ones_own_alone(lab, project):
    key = lab.murmur_home / "keys/ana.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600 and "BEGIN PRIVATE KEY" in key.read_text()
    project.mur("trust", "keygen", "ana").failed("E-TRU-005")
    key.chmod(0o644)
    assert "chmod 600" in project.mur("sign", "tool-x-1.0.0.mur.zip", "--key", "ana").failed("E-TRU-005").stderr
    listed = project.mur("trust", "list").ok().stdout
    assert "own      mallory" in listed and "trusted  ana" in listed


def test_trust_a_signed_package_installs_and_is_verified(lab, project):
    require(lab)
    project.mur("install", "./tool-x-1.0.0.mur.zip").ok()
    assert "is signed by ana" in project.mur("verify", "./tool-x-1.0.0.mur.zip").ok().stdout
    assert "is signed by ana" in project.mur("verify", "local/tool-x@1.0.0").ok().stdout
    project.mur("install").ok()
    shutil.rmtree(lab.murmur_home / "trust")
    project.mur("verify", "local/tool-x@1.0.0").failed("E-TRU-002")


def test_trust_an_absent_signature(lab, project):
    os.unlink(project / "tool-x-1.0.0.mur.zip.sig")
    project.mur("verify", "./tool-x-1.0.0.mur.zip").failed("E-TRU-001")
    require(lab)
    said = project.mur("install", "./tool-x-1.0.0.mur.zip").failed("E-TRU-001").stderr
    assert "local/tool-x@1.0.0" in said and "ana" in said and "mur sign" in said
    assert not (project / ".murmur/artifacts").exists() and not (project / "murmur.lock").exists()


def test_trust_a_foreign_key(lab, project):
    require(lab)
    path = pack(project, key="mallory", file="other.mur.zip")
    project.mur("install", path).failed("E-TRU-002")
    project.mur("sign", path, "--key", "ana").ok()
    project.mur("install", path).ok()  # both signed it


def test_trust_an_altered_package(lab, project):
    require(lab)
    (project / "tool-x-1.0.0.mur.zip").write_bytes(tool_package("tool-x", "1.0.0", description="altered"))
    project.mur("install", "./tool-x-1.0.0.mur.zip").failed("E-TRU-003")


def test_trust_the_signature_of_another_package_or_version(lab, project):
    require(lab)
    for name, version in (("tool-y", "1.0.0"), ("tool-x", "2.0.0")):
        path = pack(project, version, key=None, name=name)
        shutil.copy(project / "tool-x-1.0.0.mur.zip.sig", path + ".sig")
        assert "tool-x@1.0.0" in project.mur("install", path).failed("E-TRU-003").stderr


@pytest.mark.parametrize("harm", ["payload", "sig", "type", "text"])
def test_trust_an_altered_signature(lab, project, harm):
    require(lab)
    path = project / "tool-x-1.0.0.mur.zip.sig"
    envelope = json.loads(path.read_text())
    if harm == "payload":
        statement = base64.b64decode(envelope["payload"]).replace(b'"1.0.0"', b'"9.9.9"')
        envelope["payload"] = base64.b64encode(statement).decode()
    elif harm == "sig":
        envelope["signatures"][0]["sig"] = base64.b64encode(b"x" * 64).decode()
    elif harm == "type":
        envelope["payloadType"] = "text/plain"
    path.write_text("no JSON" if harm == "text" else json.dumps(envelope))
    project.mur("install", "./tool-x-1.0.0.mur.zip").failed("E-TRU-003")


def test_trust_a_removed_key(lab, project):
    require(lab)
    project.mur("trust", "remove", "ana").ok()
    said = project.mur("install", "./tool-x-1.0.0.mur.zip").failed("E-TRU-004").stderr
    assert "ana" in said and "mur trust add ana" in said


@pytest.mark.parametrize("text", ["trust: yes\n", "trust:\n  require: [ana]\n", "trust:\n  require:\n    local: {}\n",
                                  "trust:\n  require:\n    local: []\n"])
def test_trust_an_unreadable_policy(lab, project, text):
    require(lab, text)
    project.mur("install", "./tool-x-1.0.0.mur.zip").failed("E-TRU-004")


def test_trust_a_projects_policy_is_not_the_users(lab, project):
    require(lab)
    os.unlink(project / "tool-x-1.0.0.mur.zip.sig")
    project.write(".murmur/config.yaml", "trust:\n  require:\n    local: none\n")
    project.mur("install", "./tool-x-1.0.0.mur.zip").failed("E-TRU-001")


def test_trust_scopes_star_none_and_what_comes_with_mur(lab, project):
    require(lab, 'trust:\n  require:\n    "*": [ana]\n')
    os.unlink(project / "tool-x-1.0.0.mur.zip.sig")
    project.mur("install", "./tool-x-1.0.0.mur.zip").failed("E-TRU-001")
    project.mur("install", "std/files@0.1.0").ok()
    require(lab, 'trust:\n  require:\n    "*": [ana]\n    local: none\n')
    project.mur("install", "./tool-x-1.0.0.mur.zip").ok()


def test_trust_asked_again_at_launch(lab):
    agent = lab.agent(steps=[{"text": "done"}], tools=("std/files@0.1.0",))
    agent.run(timeout=60).ok()
    require(lab, "trust:\n  require:\n    std: [ana]\n")
    lab.mur("trust", "keygen", "ana", cwd=agent.directory).ok()
    lab.mur("trust", "add", "ana", str(lab.murmur_home / "keys/ana.pub"), cwd=agent.directory).ok()
    said = agent.run(timeout=60).failed("E-TRU-001").stderr
    assert "std/" in said and "ana" in said


def test_trust_signatures_travel_through_a_registry(lab, project):
    registry = Registry()
    try:
        project.mur("publish", "tool-x-1.0.0.mur.zip", f"oci://{registry.host}/ana/tool-x").ok()
        require(lab)
        project.mur("install", f"oci://{registry.host}/ana/tool-x:1.0.0").ok()
        assert "is signed by ana" in project.mur("verify", "local/tool-x@1.0.0").ok().stdout
        path = pack(project, "2.0.0", key="mallory")
        project.mur("publish", path, f"oci://{registry.host}/ana/tool-x").ok()
        project.mur("install", f"oci://{registry.host}/ana/tool-x:2.0.0").failed("E-TRU-002")
    finally:
        registry.close()
