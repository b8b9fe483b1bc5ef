# SPDX-License-Identifier: Apache-2.0
#
# Packages in a real OCI registry, Debian's `docker-registry`: published, installed, and read by nothing of ours.

import json
import shutil
import socket
import subprocess
import urllib.request

import pytest

from tests.support.packages import native_package, sha256, tool_package
from tests.support.polling import eventually

MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def answers(host):
    try:
        with urllib.request.urlopen(f"http://{host}/v2/", timeout=5):
            return True
    except OSError:
        return False


@pytest.fixture
def registry(tmp_path):
    program = shutil.which("docker-registry")
    if not program:
        pytest.skip("docker-registry is not installed: apt-get install docker-registry")
    with socket.create_server(("127.0.0.1", 0)) as held:
        host = f"127.0.0.1:{held.getsockname()[1]}"
    (tmp_path / "registry.yml").write_text(
        f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {tmp_path}/data}}}}\nhttp: {{addr: '{host}'}}\n")
    with open(tmp_path / "log", "w") as log:
        process = subprocess.Popen([program, "serve", str(tmp_path / "registry.yml")], stdout=log, stderr=log)
    try:
        eventually(lambda: answers(host), within_s=30)
        yield host
    finally:
        process.terminate()
        process.wait(30)


def test_registry_real_publish_and_install(lab, registry):
    project = lab.project(manifest={"name": "p", "version": "0.1.0"})
    project.write(".murmur/config.yaml", f"registry:\n  sources:\n    - oci: {registry}/ana\n")
    content = tool_package("tool-x", "1.0.0")
    (project / "x.mur.zip").write_bytes(content)
    project.mur("publish", "x.mur.zip", f"oci://{registry}/ana/tool-x").ok()
    assert "Already there" in project.mur("publish", "x.mur.zip", f"oci://{registry}/ana/tool-x").ok().stdout
    request = urllib.request.Request(f"http://{registry}/v2/ana/tool-x/manifests/1.0.0", headers={"accept": MANIFEST})
    with urllib.request.urlopen(request, timeout=30) as answer:
        layer = json.loads(answer.read())["layers"][0]["digest"]
    with urllib.request.urlopen(f"http://{registry}/v2/ana/tool-x/blobs/{layer}", timeout=30) as answer:
        assert answer.read() == content
    project.mur("install", "ana/tool-x").ok()
    assert f"any: {sha256(content)}" in (project / "murmur.lock").read_text()
    shutil.rmtree(project / ".murmur/artifacts")
    project.mur("install", "ana/tool-x@1.0.0").ok()


def test_registry_real_index_of_platforms(lab, registry):
    project = lab.project(manifest={"name": "p", "version": "0.1.0"})
    (project / "nat.mur.zip").write_bytes(native_package("nat", "1.0.0"))
    for platform in ("darwin-aarch64", "linux-x86_64", "linux-aarch64"):
        project.mur("publish", "nat.mur.zip", f"oci://{registry}/ana/nat", "--platform", platform).ok()
    project.mur("install", f"oci://{registry}/ana/nat:1.0.0").ok()
    assert "local/nat" in (project / "murmur.lock").read_text()


def test_registry_real_signatures(lab, registry):
    """It keeps no list of referrers: the tag stands for one."""
    project = lab.project(manifest={"name": "p", "version": "0.1.0"})
    project.mur("trust", "keygen", "ana").ok()
    project.mur("trust", "add", "ana", str(lab.murmur_home / "keys/ana.pub")).ok()
    (lab.murmur_home / "config.yaml").write_text("trust:\n  require:\n    local: [ana]\n")
    (project / "x.mur.zip").write_bytes(tool_package("tool-x", "1.0.0"))
    (project / "nat.mur.zip").write_bytes(native_package("nat", "1.0.0"))
    project.mur("publish", "x.mur.zip", f"oci://{registry}/ana/tool-x").ok()
    project.mur("install", f"oci://{registry}/ana/tool-x:1.0.0").failed("E-TRU-001")
    project.mur("sign", "x.mur.zip", "nat.mur.zip", "--key", "ana").ok()
    project.mur("publish", "x.mur.zip", f"oci://{registry}/ana/tool-x").ok()
    project.mur("publish", "nat.mur.zip", f"oci://{registry}/ana/nat").ok()
    project.mur("install", f"oci://{registry}/ana/tool-x:1.0.0").ok()
    project.mur("install", f"oci://{registry}/ana/nat:1.0.0").ok()
    assert "is signed by ana" in project.mur("verify", "local/nat@1.0.0").ok().stdout
