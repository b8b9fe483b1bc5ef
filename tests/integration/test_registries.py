# SPDX-License-Identifier: Apache-2.0
#
# Packages over OCI registries (spec/artifacts.md 8.1): a registry of our own that keeps what it is given, and does what a
# hostile or broken one would do.

import base64
import json
import os
import shutil
import stat
import time

import pytest

from tests.support.oci_registry import INDEX, Registry, digest_of
from tests.support.packages import native_package, sha256, tool_package


@pytest.fixture
def registry():
    server = Registry()
    yield server
    server.close()


@pytest.fixture
def project(lab, registry):
    """A project whose configuration knows a registry's place for the scope `ana`."""
    project = lab.project(manifest={"name": "p", "version": "0.1.0"})
    project.write(".murmur/config.yaml", f"registry:\n  sources:\n    - oci: {registry.host}/ana\n")
    return project


def packed(project, version="1.0.0", name="tool-x", **more):
    content = tool_package(name, version, **more)
    path = project / f"{name}-{version}.mur.zip"
    path.write_bytes(content)
    return content, str(path)


def publish(project, registry, version="1.0.0", name="tool-x", **more):
    content, path = packed(project, version, name, **more)
    project.mur("publish", path, f"oci://{registry.host}/ana/{name}").ok()
    return content


def lock_of(project):
    return (project / "murmur.lock").read_text()


def manifest_of(registry, tag="1.0.0", name="ana/tool-x"):
    return json.loads(registry.manifests[name, tag][1])


def test_registry_a_package_goes_there_and_comes_back_pinned(project, registry):
    content = publish(project, registry)
    manifest = manifest_of(registry)
    assert manifest["artifactType"] == "application/vnd.murmur.tool.v1"
    assert [layer["digest"] for layer in manifest["layers"]] == [f"sha256:{sha256(content)}"]
    assert manifest["annotations"]["dev.murmur.package.sha256"] == sha256(content)
    assert registry.blobs[f"sha256:{sha256(content)}"] == content
    result = project.mur("install", "ana/tool-x@1.0.0").ok()
    assert result.stdout == f"Installed ana/tool-x@1.0.0 from oci://{registry.host}/ana\n"
    digest = digest_of(registry.manifests["ana/tool-x", "1.0.0"][1])
    assert f"any: {sha256(content)}" in lock_of(project)
    assert f"source: oci://{registry.host}/ana/tool-x@{digest}" in lock_of(project)
    stored = project / ".murmur/artifacts/ana/tool-x/1.0.0/tool-x-1.0.0.mur.zip"
    assert stored.read_bytes() == content


def test_registry_publishing_twice_is_one_and_other_bytes_are_refused(project, registry):
    publish(project, registry)
    before = dict(registry.manifests)
    _content, path = packed(project)
    result = project.mur("publish", path, f"oci://{registry.host}/ana/tool-x").ok()
    assert result.stdout.startswith("Already there: tool-x@1.0.0")
    _content, path = packed(project, description="another")
    project.mur("publish", path, f"oci://{registry.host}/ana/tool-x").failed("E-REG-003")
    assert registry.manifests == before


def test_registry_two_publishers_at_one_moment(project, registry):
    """The tag is somebody else's when ours has been put: said, not hidden."""
    _content, path = packed(project)
    registry.scripted.append((r"HEAD .*/manifests/1\.0\.0", lambda request: request.reply(
        200, docker_content_digest="sha256:" + "0" * 64)))
    result = project.mur("publish", path, f"oci://{registry.host}/ana/tool-x").failed("E-REG-003")
    assert "somebody else" in result.stderr


def test_registry_two_publishers_of_one_scope(project, registry):
    """The place of a scope changed: what the lock recorded stands."""
    publish(project, registry)
    project.mur("install", "ana/tool-x@1.0.0").ok()
    _content, path = packed(project, "2.0.0")
    project.mur("publish", path, f"oci://{registry.host}/mallory/tool-x").ok()
    project.write(".murmur/config.yaml", f"registry:\n  sources:\n    - oci: {registry.host}/mallory\n      scope: ana\n")
    result = project.mur("install", "ana/tool-x@2.0.0").failed("E-REG-010")
    assert f"oci://{registry.host}/ana/tool-x" in result.stderr


def test_registry_the_newest_that_fits_and_no_way_back(project, registry):
    publish(project, registry, "1.0.0")
    publish(project, registry, "1.2.0")
    publish(project, registry, "1.10.0")
    assert "ana/tool-x@1.10.0" in project.mur("install", "ana/tool-x").ok().stdout
    for key in [key for key in registry.manifests if key[1] == "1.10.0"]:
        del registry.manifests[key]
    before = lock_of(project)
    result = project.mur("install", "ana/tool-x").failed("E-REG-014")
    assert "1.2.0" in result.stderr and "1.10.0" in result.stderr and lock_of(project) == before
    project.mur("install", "ana/tool-x@1.2.0").ok()


def test_registry_a_moved_tag_changes_nothing_that_is_pinned(project, registry, lab):
    content = publish(project, registry)
    project.write_manifest({"name": "p", "version": "0.1.0", "artifacts": [{"name": "ana/tool-x", "version": "1.0.0"}]})
    project.mur("install").ok()
    other = lab.project("other")
    publish(other, registry, name="tool-x", version="9.0.0")
    registry.manifests["ana/tool-x", "1.0.0"] = registry.manifests["ana/tool-x", "9.0.0"]
    shutil.rmtree(project / ".murmur/artifacts")
    project.mur("install").ok()
    assert f"any: {sha256(content)}" in lock_of(project)
    assert (project / ".murmur/artifacts/ana/tool-x/1.0.0/tool-x-1.0.0.mur.zip").read_bytes() == content


def test_registry_a_tag_whose_package_is_of_another_version(project, registry):
    """An older package, genuine, under the name of a newer one."""
    publish(project, registry, "1.0.0")
    registry.manifests["ana/tool-x", "2.0.0"] = registry.manifests["ana/tool-x", "1.0.0"]
    project.mur("install", "ana/tool-x@2.0.0").failed("E-REG-002")
    assert not (project / "murmur.lock").exists() and not (project / ".murmur/artifacts").exists()


def test_registry_other_bytes_than_the_digest_says(project, registry):
    content = publish(project, registry)
    registry.blobs[f"sha256:{sha256(content)}"] = content[:-1] + b"!"
    project.mur("install", "ana/tool-x@1.0.0").failed("E-REG-002")
    assert not (project / ".murmur/artifacts").exists()


def test_registry_a_truncated_layer(project, registry):
    content = publish(project, registry)
    registry.scripted.append((rf"GET .*/blobs/sha256:{sha256(content)}", lambda request: request.reply(200, content[:100])))
    result = project.mur("install", "ana/tool-x@1.0.0").failed("E-REG-006")
    assert "100 of" in result.stderr


def test_registry_a_layer_without_an_end(project, registry):
    content = publish(project, registry)
    registry.scripted.append((rf"GET .*/blobs/sha256:{sha256(content)}",
                              lambda request: request.reply(200, content + b"x" * 1000)))
    project.mur("install", "ana/tool-x@1.0.0").failed("E-REG-002")


def test_registry_a_manifest_that_differs_from_its_digest(project, registry):
    publish(project, registry)
    digest = digest_of(registry.manifests["ana/tool-x", "1.0.0"][1])
    registry.scripted.append((rf"GET .*/manifests/{digest}", lambda request: request.reply(
        200, registry.manifests["ana/tool-x", "1.0.0"][1] + b" ", content_type="application/vnd.oci.image.manifest.v1+json")))
    project.mur("install", f"oci://{registry.host}/ana/tool-x@{digest}").failed("E-REG-002")


def test_registry_a_huge_manifest(project, registry):
    registry.put("ana/tool-x", "1.0.0", b"{" + b" " * (5 << 20) + b"}")
    result = project.mur("install", "ana/tool-x@1.0.0").failed("E-REG-013")
    assert "larger" in result.stderr


@pytest.mark.parametrize("manifest", [
    {"schemaVersion": 2, "config": {"mediaType": "application/vnd.oci.image.config.v1+json"}, "layers": []},
    {"schemaVersion": 2, "artifactType": "application/vnd.wasm.config.v0+json", "layers": [{}]},
    {"schemaVersion": 2, "artifactType": "application/vnd.murmur.tool.v1", "layers": []},
    {"schemaVersion": 2, "artifactType": "application/vnd.murmur.tool.v1", "layers": [{"mediaType": "x"}]},
    [],
])
def test_registry_a_manifest_of_foreign_type(project, registry, manifest):
    registry.put("ana/tool-x", "1.0.0", manifest)
    project.mur("install", "ana/tool-x@1.0.0").failed("E-REG-013")


def test_registry_an_index_with_platforms(project, registry):
    native = native_package("nat", "1.0.0")
    path = project / "nat.mur.zip"
    path.write_bytes(native)
    for platform in ("linux-x86_64", "linux-aarch64"):
        project.mur("publish", str(path), f"oci://{registry.host}/ana/nat", "--platform", platform).ok()
    kind, data = registry.manifests["ana/nat", "1.0.0"]
    places = [entry["platform"] for entry in json.loads(data)["manifests"]]
    assert kind == INDEX and places == [{"architecture": "amd64", "os": "linux"}, {"architecture": "arm64", "os": "linux"}]
    project.mur("install", "ana/nat@1.0.0").ok()
    assert "platforms:" in lock_of(project) and sha256(native) in lock_of(project)
    registry.put("ana/far", "1.0.0", {"schemaVersion": 2, "mediaType": INDEX, "manifests": [
        {"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": "sha256:" + "1" * 64, "size": 10,
         "platform": {"os": "darwin", "architecture": "arm64"}}]}, INDEX)
    result = project.mur("install", "ana/far@1.0.0").failed("E-REG-001")
    assert "darwin-aarch64" in result.stderr


def publish_native(project, registry, *platforms, **more):
    """One package a platform, each with bytes of its own; platform -> bytes."""
    made = {}
    for platform in platforms:
        made[platform] = native_package("nat", "1.0.0", description=platform, **more)
        (project / "nat.mur.zip").write_bytes(made[platform])
        project.mur("publish", str(project / "nat.mur.zip"), f"oci://{registry.host}/ana/nat", "--platform", platform).ok()
    return made


def test_registry_a_lock_of_one_platform_serves_the_others(project, registry):
    made = publish_native(project, registry, "linux-aarch64", "linux-x86_64", "darwin-aarch64")
    index = digest_of(registry.manifests["ana/nat", "1.0.0"][1])
    project.mur("install", "ana/nat@1.0.0").ok()
    lock = lock_of(project)
    assert f"source: oci://{registry.host}/ana/nat@{index}" in lock
    assert all(f"{platform}: {sha256(content)}" in lock for platform, content in made.items())
    shutil.rmtree(project / ".murmur/artifacts")
    registry.requests.clear()
    project.write_manifest({"name": "p", "version": "0.1.0", "artifacts": [{"name": "ana/nat", "version": "1.0.0"}]})
    project.mur("install").ok()
    assert f"/v2/ana/nat/manifests/{index}" in registry.paths("GET") and "/v2/ana/nat/manifests/1.0.0" not in registry.paths()
    assert lock_of(project) == lock


def test_registry_a_lock_from_before_this_platform_was_published(project, registry):
    """Another machine pinned its platform alone: by that manifest (an older lock), or by the index there was."""
    made = publish_native(project, registry, "linux-aarch64")
    one = digest_of(registry.manifests["ana/nat", "1.0.0"][1])
    [manifest] = [entry["digest"] for entry in json.loads(registry.manifests["ana/nat", "1.0.0"][1])["manifests"]]
    made |= publish_native(project, registry, "linux-x86_64")
    now = digest_of(registry.manifests["ana/nat", "1.0.0"][1])
    for pinned in (one, manifest):
        shutil.rmtree(project / ".murmur/artifacts", ignore_errors=True)
        project.write("murmur.lock", f"""lock_version: 3
artifacts:
- name: ana/nat
  resolved_version: 1.0.0
  sha256:
    platforms:
      linux-aarch64: {sha256(made['linux-aarch64'])}
  origin: operator
  source: oci://{registry.host}/ana/nat@{pinned}
""")
        project.mur("install", "ana/nat@1.0.0").ok()
        assert f"ana/nat@{now}" in lock_of(project) and all(sha256(content) in lock_of(project) for content in made.values())


def test_registry_an_index_that_changed_what_another_platform_pins(project, registry):
    publish_native(project, registry, "linux-aarch64", "linux-x86_64")
    project.write("murmur.lock", f"""lock_version: 3
artifacts:
- name: ana/nat
  resolved_version: 1.0.0
  sha256:
    platforms:
      linux-aarch64: {'5' * 64}
  origin: operator
  source: oci://{registry.host}/ana/nat@sha256:{'6' * 64}
""")
    before = lock_of(project)
    assert "5" * 64 in project.mur("install", "ana/nat@1.0.0").failed("E-REG-005").stderr
    assert lock_of(project) == before


# --- who we are ---


def docker_config(lab, config):
    lab.env["DOCKER_CONFIG"] = str(lab.directory / "docker")
    (lab.directory / "docker").mkdir(exist_ok=True)
    (lab.directory / "docker/config.json").write_text(json.dumps(config))


def helper(lab, name, script):
    folder = lab.directory / "helpers"
    folder.mkdir(exist_ok=True)
    path = folder / f"docker-credential-{name}"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    lab.env["PATH"] = f"{folder}:{lab.env['PATH']}"


def in_base64(text):
    return base64.b64encode(text.encode()).decode()


def test_registry_a_token_is_asked_for_with_the_kept_password(project, registry, lab):
    registry.wants_token, registry.account = True, ("ana", "s3cret-pass")
    docker_config(lab, {"auths": {registry.host: {"auth": in_base64("ana:s3cret-pass")}}})
    publish(project, registry)
    project.mur("install", "ana/tool-x@1.0.0").ok()
    assert registry.token_requests[0][1]["service"] == ["reg"]
    everything = [path.read_bytes() for path in lab.directory.rglob("*") if path.is_file() and "docker" not in str(path)]
    assert not any(b"s3cret-pass" in data for data in everything)


def test_registry_an_expired_token_is_made_fresh_once(project, registry, lab):
    registry.wants_token, registry.account = True, ("ana", "s3cret-pass")
    docker_config(lab, {"auths": {registry.host: {"auth": in_base64("ana:s3cret-pass")}}})
    publish(project, registry)

    def expire(request):
        registry.scripted.clear()
        registry.token = "gone"
        request.reply(401, b"{}", www_authenticate=f'Bearer realm="{registry.realm}",service="reg",error="invalid_token"')

    given = registry.tokens_given
    registry.scripted.append((r"GET .*/blobs/", expire))
    project.mur("install", "ana/tool-x@1.0.0").ok()
    assert registry.tokens_given == given + 2


def test_registry_without_a_login_the_remedy_is_said(project, registry, lab):
    docker_config(lab, {})
    registry.wants_basic, registry.account = True, ("ana", "pass-word")
    result = project.mur("install", "ana/tool-x@1.0.0").failed("E-REG-012")
    assert f"docker login {registry.host}" in result.stderr


def test_registry_a_helper_is_asked(project, registry, lab):
    registry.wants_basic, registry.account = True, ("ana", "from-helper")
    docker_config(lab, {"credHelpers": {registry.host: "ours"}})
    helper(lab, "ours", 'read host; [ "$1" = get ] && [ "$host" = "%s" ] || exit 3\n'
           'echo \'{"ServerURL":"x","Username":"ana","Secret":"from-helper"}\'' % registry.host)
    publish(project, registry)


@pytest.mark.parametrize("script, said", [
    ("echo nothing good; exit 4", "exit status 4"),
    ("echo no json", "no JSON"),
    (None, "docker-credential-ours"),
])
def test_registry_a_helper_that_fails(project, registry, lab, script, said):
    registry.wants_basic, registry.account = True, ("ana", "x")
    docker_config(lab, {"credsStore": "ours"})
    if script:
        helper(lab, "ours", script)
    result = project.mur("install", "ana/tool-x@1.0.0").failed("E-REG-012")
    assert said in result.stderr


def test_registry_a_redirect_to_another_host_gets_no_credentials(project, registry, lab):
    """The blob lies elsewhere; elsewhere wants to know who we are, too, and is not told."""
    elsewhere = Registry()
    try:
        registry.wants_basic, registry.account = True, ("ana", "pass-word")
        docker_config(lab, {"auths": {host: {"auth": in_base64("ana:pass-word")} for host in (registry.host, elsewhere.host)}})
        content = publish(project, registry)
        blob = f"/v2/ana/tool-x/blobs/sha256:{sha256(content)}"
        elsewhere.blobs.update(registry.blobs)
        registry.scripted.append((f"GET {blob}", lambda request: request.reply(
            307, location=f"http://{elsewhere.host}{blob}")))
        project.mur("install", "ana/tool-x@1.0.0").ok()
        assert elsewhere.paths() == [blob] and "authorization" not in {name.lower() for name in elsewhere.requests[0][2]}
        (project / "murmur.lock").unlink()
        elsewhere.wants_token = True
        project.mur("install", "ana/tool-x").failed("E-REG-006")
        assert elsewhere.token_requests == []
        assert all("authorization" not in {name.lower() for name in headers} for _m, _p, headers in elsewhere.requests)
    finally:
        elsewhere.close()


def test_registry_http_is_for_loopback_alone(lab):
    project = lab.project(manifest={"name": "p", "version": "0.1.0"})
    project.write(".murmur/config.yaml", "registry:\n  plain_http: [registry.example:5000]\n")
    result = project.mur("install", "oci://127.0.0.1:1/ana/tool-x:1.0.0").failed("E-REG-006")
    assert "plain_http is only read from" in result.stderr


@pytest.mark.parametrize("entry, said", [
    ("oci: ghcr.io", "repository"),
    ("oci: ghcr.io/ana:1.0.0", "names one package"),
    ("oci: ghcr.io/local", "reserved"),
    ("oci: ghcr.io/ana\n      token: x", "docker"),
])
def test_registry_a_place_that_is_none(project, entry, said):
    project.write(".murmur/config.yaml", f"registry:\n  sources:\n    - {entry}\n")
    assert said in project.mur("install", "ana/tool-x@1.0.0").failed("E-CFG-003").stderr


@pytest.mark.parametrize("reference", ["oci://", "oci://host", "oci://ana/tool", "oci://h:1/UPPER", "oci://h:1/a:b:c",
                                       "oci://h:1/a@sha256:12", "oci://h:1/../x", "oci://u@h:1/a"])
def test_registry_a_reference_that_is_none(project, reference):
    project.mur("install", reference).failed("E-REG-007")


@pytest.mark.parametrize("config", [
    lambda host, auth: {"credsStore": "", "auths": {host: {"auth": auth}}},
    lambda host, auth: {"credsStore": "absent", "credHelpers": {host: ""}, "auths": {host: {"auth": auth}}},
    lambda host, auth: {"auths": {f"http://{host}": {"auth": auth}}},
    lambda host, auth: {"auths": {f"{host}/ana": {"auth": auth}, host: {"auth": in_base64("ana:other")}}},
    lambda host, auth: {"auths": {f"{host}/ana/tool-x": {"auth": auth}, f"{host}/an": {"auth": in_base64("ana:other")}}},
], ids=["no-store", "no-helper", "http", "scope", "repository"])
def test_registry_what_docker_and_podman_write_is_read(project, registry, lab, config):
    registry.wants_basic, registry.account = True, ("ana", "pass-word")
    docker_config(lab, config(registry.host, in_base64("ana:pass-word")))
    publish(project, registry)


def test_registry_a_file_of_logins_in_which_nothing_is_written_yet(project, registry, lab):
    docker_config(lab, {})
    (lab.directory / "docker/config.json").write_text("\n")
    registry.wants_basic, registry.account = True, ("ana", "pass-word")
    assert "docker login" in project.mur("install", "ana/tool-x@1.0.0").failed("E-REG-012").stderr


def test_registry_a_helper_has_ended_when_its_process_has(project, registry, lab):
    """It started something that holds its output open, as one that begins an agent does."""
    registry.wants_basic, registry.account = True, ("ana", "from-helper")
    docker_config(lab, {"credsStore": "ours"})
    held = lab.directory / "held"
    os.mkfifo(held)
    helper(lab, "ours", f'read host; (read never <{held}) 2>/dev/null & echo \'{{"Username":"ana","Secret":"from-helper"}}\'')
    try:
        started = time.monotonic()
        publish(project, registry)
        assert time.monotonic() - started < 25  # once it waited 30 s, and then refused
    finally:
        os.close(os.open(held, os.O_RDWR | os.O_NONBLOCK))


def test_registry_a_helper_that_closes_its_output_and_stays(project, registry, lab):
    registry.wants_basic, registry.account = True, ("ana", "from-helper")
    docker_config(lab, {"credsStore": "ours"})
    helper(lab, "ours", "read host; exec 1>&-; exec sleep 1000")
    assert "did not end in time" in project.mur("install", "ana/tool-x@1.0.0").failed("E-REG-012").stderr


def test_registry_more_tags_than_are_read_say_nothing_of_the_newest(project, registry):
    publish(project, registry)
    more = {"link": '</v2/ana/tool-x/tags/list?n=1000&last=x>; rel="next"'}
    registry.scripted.append((r"GET .*/tags/", lambda request: request.reply(200, b'{"tags":["0.1.0"]}', **more)))
    result = project.mur("install", "ana/tool-x").failed("E-REG-013")
    assert "too long" in result.stderr and "@<version>" in result.stderr
    registry.scripted[:] = [(r"GET .*/tags/", lambda request: request.reply(200, json.dumps({"tags": ["0.1.0"] * 700_000}).encode()))]
    assert "too long" in project.mur("install", "ana/tool-x").failed("E-REG-013").stderr
    project.mur("install", "ana/tool-x@1.0.0").ok()


@pytest.mark.parametrize("status", [429, 503])
def test_registry_that_is_busy_says_when_to_come_again(project, registry, status):
    publish(project, registry)
    registry.scripted.append((r"GET .*/manifests/", lambda request: request.reply(status, b"{}", retry_after="7")))
    assert "try again in 7 s" in project.mur("install", "ana/tool-x@1.0.0").failed("E-REG-006").stderr
