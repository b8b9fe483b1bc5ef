# SPDX-License-Identifier: Apache-2.0
#
# Signatures of packages and the policy that asks for them (spec/artifacts.md 8.2): at install and at launch.

import base64
import datetime
import hashlib
import json
import os
import shutil
import stat
import zipfile

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from tests.support.oci_registry import INDEX, Registry, digest_of
from tests.support.formation import Team
from tests.support.lab import BUILD
from tests.support.packages import GitHub, native_package, skill_package, tool_package
from tests.support.roost import publish_capsule
from tests.support.small_disk import on_every_size
from tests.support.spawn import Family, Launcher, publish_agent

ISSUER = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.8")
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


def write(lab, name, content):
    (lab.directory / name).write_bytes(content)
    return str(lab.directory / name)


def public_pem():
    key = ed25519.Ed25519PrivateKey.generate().public_key()
    return key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def key_id(lab, name="ana"):
    """The fingerprint of one's own key: of the 32 bytes at the end of its public file."""
    text = (lab.murmur_home / f"keys/{name}.pub").read_text().split("-----")[2]
    return hashlib.sha256(base64.b64decode(text)[-32:]).hexdigest()


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


def test_trust_half_a_pair_is_made_whole(lab, project):
    """A kill between the two files, a full disk, a private key that was carried here alone."""
    private, public = lab.murmur_home / "keys/ana.key", lab.murmur_home / "keys/ana.pub"
    before = private.read_text(), public.read_text()
    public.unlink()
    assert "mur trust keygen ana" in project.mur("sign", "tool-x-1.0.0.mur.zip", "--key", "ana").failed("E-TRU-005").stderr
    project.mur("trust", "keygen", "ana").ok()
    assert (private.read_text(), public.read_text()) == before
    public.write_text((lab.murmur_home / "keys/mallory.pub").read_text())
    result = project.mur("sign", "tool-x-1.0.0.mur.zip", "--key", "ana").failed("E-TRU-005")
    assert "is not the public half of" in result.stderr


def test_trust_a_key_onto_a_full_disk(lab):
    for name, options in (("keys", ("keygen", "new")), ("trust", ("add", "new", write(lab, "new.pub", public_pem())))):
        directory = lab.murmur_home / name
        directory.mkdir(parents=True, exist_ok=True)
        runs = on_every_size(lab, directory, ["trust", *options], [4, 8, 64])
        assert runs[0]["code"] == (1 if name == "keys" else 0) and runs[-1]["code"] == 0, runs
        for run in runs:
            assert run["code"] == 0 or ("No space left" in run["stderr"] and run["again"] == 0), run
            assert not run["left"] and len(run["stored"]) == (2 if name == "keys" else 1), run


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


def trust_ana(lab, directory):
    lab.mur("trust", "keygen", "ana", cwd=directory).ok()
    lab.mur("trust", "add", "ana", str(lab.murmur_home / "keys/ana.pub"), cwd=directory).ok()


def sign_stored(lab, name, version="0.1.0"):
    lab.mur("sign", str(lab.murmur_home / f"artifacts/local/{name}/{version}/{name}-{version}.mur.zip"), "--key", "ana",
            cwd=lab.directory).ok()


def test_trust_a_name_below_std_in_a_projects_own_store_does_not_come_with_mur(lab):
    """A hostile checkout brings a store along whose std/driver-scripted is not that of this installation."""
    agent = lab.agent(steps=[{"text": "done"}])
    trust_ana(lab, agent.directory)
    require(lab, 'trust:\n  require:\n    "*": [ana]\n')
    agent.run("--task", "go").ok()
    shutil.copytree(BUILD / "artifacts/std/driver-scripted/0.1.0", agent / ".murmur/artifacts/std/driver-scripted/0.1.0")
    said = agent.run("--task", "go").failed("E-TRU-001").stderr
    assert "std/driver-scripted@0.1.0" in said


def test_artifacts_a_name_below_std_is_what_comes_with_mur_but_for_what_the_lock_pins(lab):
    """The same checkout with other bytes under the name: nobody who runs it asked for those."""
    agent = lab.agent(steps=[{"text": "done"}])
    theirs = agent / ".murmur/artifacts/std/driver-scripted/0.1.0"
    shutil.copytree(BUILD / "artifacts/std/driver-scripted/0.1.0", theirs)
    package, hashed = theirs / "driver-scripted-0.1.0.mur.zip", theirs / "driver-scripted-0.1.0.sha256"
    ours = hashed.read_text().strip()
    with zipfile.ZipFile(package, "a") as archive:
        archive.writestr("more.txt", "other bytes")
    other = hashlib.sha256(package.read_bytes()).hexdigest()
    hashed.write_text(other)

    agent.run("--task", "go").ok()
    lock = (agent / "murmur.lock").read_text()
    assert ours in lock and other not in lock
    (agent / "murmur.lock").write_text(lock.replace(ours, other))
    agent.run("--task", "go").ok()
    assert other in (agent / "murmur.lock").read_text()
    package.write_bytes(package.read_bytes() + b"x")
    agent.run("--task", "go").failed("E-REG-002")


def test_trust_asked_again_at_launch(lab):
    agent = lab.agent(steps=[{"text": "done"}])
    trust_ana(lab, agent.directory)
    agent.run("--task", "go").ok()
    require(lab, "trust:\n  require:\n    std: [ana]\n")
    said = agent.run("--task", "go").failed("E-TRU-001").stderr
    assert "std/driver-scripted@0.1.0" in said and "ana" in said


def test_trust_a_capsule_by_name_and_the_members_of_a_roster(lab):
    team = Team(lab, "lead", "coder")
    team.member("lead")
    team.member("coder")
    trust_ana(lab, team.project.directory)
    require(lab)
    said = lab.mur("run", "--capsule", "local/coder", "--capsule-version", "0.1.0", "--task", "x",
                   cwd=team.project.directory).failed("E-TRU-001").stderr
    assert "local/coder@0.1.0" in said
    team.run("--task", "x").failed("E-TRU-001")
    sign_stored(lab, "lead")
    assert "local/coder@0.1.0" in team.run("--task", "x").failed("E-TRU-001").stderr
    sign_stored(lab, "coder")
    team.run("--task", "x").ok()


def test_trust_a_child_is_refused_at_its_launch(lab):
    publish_agent(lab, "child-agent", [{"text": "done"}])
    publish_capsule(lab, "suite-parent", capabilities={"spawn": {"allow": ["local/child-agent"]}})
    trust_ana(lab, lab.directory)
    with Family(lab) as family:
        launcher = Launcher(lab, family, {})
        try:
            require(lab)
            assert "E-TRU-001" in launcher.refused("local/child-agent")
            sign_stored(lab, "child-agent")
            launcher.launch("local/child-agent")
        finally:
            launcher.close()


def test_trust_a_pull_is_refused_and_nothing_is_written(lab):
    lab.mur("publish", write(lab, "sk.mur.zip", skill_package("sk", text="# How to\n")), cwd=lab.directory).ok()
    agent = lab.agent(steps=[{"tool_calls": [{"name": "pull-artifact", "input": {"artifact": "local/sk"}}]}, {"text": "done"}],
                      capabilities={"install": {"skill": ["local/*"]}})
    trust_ana(lab, agent.directory)
    require(lab)
    session = lab.session(agent.run("--task", "go").ok())
    assert session.trace.all("artifact_pulled") == []
    assert "local/sk" not in (agent / "murmur.lock").read_text()
    sign_stored(lab, "sk")
    session = lab.session(agent.run("--task", "go").ok())
    assert session.trace.one("artifact_pulled")["name"] == "local/sk"
    assert f"signer: ed25519:{key_id(lab)}" in (agent / "murmur.lock").read_text()


@pytest.fixture
def registry():
    server = Registry()
    yield server
    server.close()


def publish(project, registry, path, name="tool-x", **how):
    project.mur("publish", path, f"oci://{registry.host}/ana/{name}", **how).ok()


def test_trust_a_signature_of_an_older_build_is_not_published(lab, project, registry):
    (project / "tool-x-1.0.0.mur.zip").write_bytes(tool_package("tool-x", "1.0.0", description="built again"))
    for place in ([], [f"oci://{registry.host}/ana/tool-x"]):
        said = project.mur("publish", "tool-x-1.0.0.mur.zip", *place).failed("E-TRU-003").stderr
        assert "mur sign tool-x-1.0.0.mur.zip" in said
    assert registry.manifests == {} and not (lab.murmur_home / "artifacts").exists()
    project.mur("sign", "tool-x-1.0.0.mur.zip", "--key", "ana").ok()
    published = project.mur("publish", "tool-x-1.0.0.mur.zip", f"oci://{registry.host}/ana/tool-x").ok()
    assert "Its signature is there, too" in published.stdout


SIGNATURE = "application/vnd.murmur.signature.v1+json"


def signatures_of(registry, name="ana/tool-x"):
    """Digest -> manifest, of every signature a repository has."""
    found = {reference: json.loads(data) for (repository, reference), (_kind, data) in registry.manifests.items()
             if repository == name and reference.startswith("sha256:")}
    return {digest: text for digest, text in found.items() if text.get("artifactType") == SIGNATURE}


def envelope_of(registry):
    """The digest of the blob of the one signature there is."""
    [manifest] = signatures_of(registry).values()
    return manifest["layers"][0]["digest"]


@pytest.mark.parametrize("keeps_referrers", [True, False])
def test_trust_a_registry_lists_what_refers_to_a_package_or_a_tag_does(lab, project, registry, keeps_referrers):
    require(lab)
    registry.keeps_referrers = keeps_referrers
    publish(project, registry, "tool-x-1.0.0.mur.zip")
    package = digest_of(registry.manifests["ana/tool-x", "1.0.0"][1])
    [(digest, manifest)] = signatures_of(registry).items()
    assert manifest["subject"]["digest"] == package
    tag = ("ana/tool-x", package.replace(":", "-"))
    if keeps_referrers:
        assert tag not in registry.manifests
    else:
        [entry] = json.loads(registry.manifests[tag][1])["manifests"]
        assert (entry["digest"], entry["artifactType"]) == (digest, SIGNATURE)
    project.mur("install", f"oci://{registry.host}/ana/tool-x:1.0.0").ok()


@pytest.mark.parametrize("keeps_referrers", [True, False])
def test_trust_a_second_signature_is_added_to_a_published_package(lab, project, registry, keeps_referrers):
    registry.keeps_referrers = keeps_referrers
    path = pack(project, "3.0.0", key="mallory")
    publish(project, registry, path)
    os.unlink(path + ".sig")
    project.mur("sign", path, "--key", "ana").ok()
    publish(project, registry, path)
    publish(project, registry, path)
    assert len(signatures_of(registry)) == 2
    require(lab)
    project.mur("install", f"oci://{registry.host}/ana/tool-x:3.0.0").ok()
    stored = json.loads((project / ".murmur/artifacts/local/tool-x/3.0.0/tool-x-3.0.0.mur.zip.sig").read_text())
    assert {one["keyid"] for one in stored["signatures"]} == {key_id(lab), key_id(lab, "mallory")}


def test_trust_a_list_of_referrers_that_goes_on(lab, project, registry):
    """The signature stands on the second page."""
    registry.keeps_referrers = True
    publish(project, registry, "tool-x-1.0.0.mur.zip")
    require(lab)

    def first(request):
        registry.scripted.clear()
        request.reply(200, json.dumps({"manifests": []}).encode(), link=f'<{request.path}?page=2>; rel="next"')

    registry.scripted.append((r"GET .*/referrers/", first))
    project.mur("install", f"oci://{registry.host}/ana/tool-x:1.0.0").ok()


def test_trust_a_registry_that_is_busy_does_not_say_that_nobody_signed(lab, project, registry):
    registry.keeps_referrers = True
    publish(project, registry, "tool-x-1.0.0.mur.zip")
    require(lab)
    registry.scripted.append((r"GET .*/referrers/", lambda request: request.reply(503, b"{}")))
    assert "HTTP 503" in project.mur("install", f"oci://{registry.host}/ana/tool-x:1.0.0").failed("E-REG-006").stderr


def test_trust_a_native_package_is_signed_for_each_platform(lab, project, registry):
    for platform in ("linux-aarch64", "linux-x86_64"):
        path = write(lab, "nat.mur.zip", native_package("nat", "1.0.0", description=platform))
        if os.path.exists(path + ".sig"):
            os.unlink(path + ".sig")
        project.mur("sign", path, "--key", "ana").ok()
        project.mur("publish", path, f"oci://{registry.host}/ana/nat", "--platform", platform).ok()
    require(lab)
    project.mur("install", f"oci://{registry.host}/ana/nat:1.0.0").ok()
    project.mur("verify", "local/nat@1.0.0").ok()


@pytest.fixture
def github(lab):
    server = GitHub()
    lab.env.update(server.env)
    yield server
    server.close()


def test_trust_signatures_beside_the_assets_of_a_release(lab, project, github):
    """A release that holds <package>.sig delivers it; one without is unsigned."""
    content = tool_package("tool-x", "1.0.0")
    signature = (project / "tool-x-1.0.0.mur.zip.sig").read_bytes()
    github.repository("ana/tools").release("ana/tools", "v1", {"tool-x-1.0.0.mur.zip": content, "tool-x-1.0.0.mur.zip.sig": signature})
    github.release("ana/tools", "v2", {"tool-x-1.0.0.mur.zip": content})
    require(lab, "trust:\n  require:\n    ana: [ana]\n")
    project.mur("install", "github:ana/tools@v2").failed("E-TRU-001")
    project.mur("install", "github:ana/tools@v1").ok()
    assert f"signer: ed25519:{key_id(lab)}" in (project / "murmur.lock").read_text()


def test_trust_signatures_travel_through_a_registry(lab, project, registry):
    publish(project, registry, "tool-x-1.0.0.mur.zip")
    require(lab)
    project.mur("install", f"oci://{registry.host}/ana/tool-x:1.0.0").ok()
    assert "is signed by ana" in project.mur("verify", "local/tool-x@1.0.0").ok().stdout
    assert f"signer: ed25519:{key_id(lab)}" in (project / "murmur.lock").read_text()
    publish(project, registry, pack(project, "2.0.0", key="mallory"))
    project.mur("install", f"oci://{registry.host}/ana/tool-x:2.0.0").failed("E-TRU-002")
    assert "1.0.0" in (project / "murmur.lock").read_text()


def test_trust_a_tag_moved_to_an_older_signed_version_is_a_downgrade(lab, project, registry):
    require(lab)
    place = f"oci://{registry.host}/ana/tool-x"
    for version in ("1.0.0", "2.0.0"):
        path = pack(project, version)
        project.mur("publish", path, f"{place}:latest").ok()
    project.mur("install", place).ok()
    project.mur("publish", "tool-x-1.0.0.mur.zip", f"{place}:latest").ok()
    said = project.mur("install", place).failed("E-REG-014").stderr
    assert "1.0.0" in said and "2.0.0" in said
    assert "resolved_version: 2.0.0" in (project / "murmur.lock").read_text()


def test_trust_a_tag_moved_to_bytes_nobody_signed(lab, project, registry):
    require(lab)
    publish(project, registry, "tool-x-1.0.0.mur.zip")
    other = Registry()
    try:
        publish(project, other, pack(project, key=None, file="other.mur.zip", description="another"))
        registry.manifests["ana/tool-x", "1.0.0"] = other.manifests["ana/tool-x", "1.0.0"]
        registry.blobs.update(other.blobs)
        project.mur("install", f"oci://{registry.host}/ana/tool-x:1.0.0").failed("E-TRU-001")
    finally:
        other.close()


@pytest.mark.parametrize("harm, code", [("truncated", "E-REG-006"), ("other", "E-REG-002"), ("gone", "E-REG-001")])
def test_trust_a_signature_a_registry_does_harm_to(lab, project, registry, harm, code):
    require(lab)
    publish(project, registry, "tool-x-1.0.0.mur.zip")
    digest = envelope_of(registry)
    text = registry.blobs[digest]
    harmed = {"truncated": lambda request: request.reply(200, text[:50]),
              "other": lambda request: request.reply(200, text.replace(b"a", b"b")),
              "gone": lambda request: request.refuse(404, "BLOB_UNKNOWN")}[harm]
    registry.scripted.append((rf"GET .*/blobs/{digest}", harmed))
    project.mur("install", f"oci://{registry.host}/ana/tool-x:1.0.0").failed(code)
    assert not (project / ".murmur/artifacts").exists()


def test_trust_the_signature_of_another_package_in_its_place_in_a_registry(lab, project, registry):
    require(lab)
    publish(project, registry, "tool-x-1.0.0.mur.zip")
    publish(project, registry, pack(project, name="tool-y"), "tool-y")
    [manifest] = signatures_of(registry, "ana/tool-y").values()
    tag = digest_of(registry.manifests["ana/tool-x", "1.0.0"][1]).replace(":", "-")
    forged = registry.put("ana/tool-x", "forged", manifest)
    listed = json.loads(registry.manifests["ana/tool-x", tag][1])
    listed["manifests"][0]["digest"] = forged
    registry.put("ana/tool-x", tag, listed, INDEX)
    project.mur("install", f"oci://{registry.host}/ana/tool-x:1.0.0").failed("E-TRU-003")


def test_trust_a_signature_behind_a_redirect_to_another_host(lab, project, registry):
    require(lab)
    publish(project, registry, "tool-x-1.0.0.mur.zip")
    elsewhere = Registry()
    try:
        blob = f"/v2/ana/tool-x/blobs/{envelope_of(registry)}"
        elsewhere.blobs.update(registry.blobs)
        registry.wants_basic, registry.account = True, ("ana", "pass-word")
        config = lab.directory / "docker"
        config.mkdir()
        auth = base64.b64encode(b"ana:pass-word").decode()
        (config / "config.json").write_text(json.dumps({"auths": {host: {"auth": auth} for host in (registry.host, elsewhere.host)}}))
        registry.scripted.append((f"GET {blob}", lambda request: request.reply(307, location=f"http://{elsewhere.host}{blob}")))
        project.mur("install", f"oci://{registry.host}/ana/tool-x:1.0.0", env={"DOCKER_CONFIG": str(config)}).ok()
        assert elsewhere.paths() == [blob] and "authorization" not in {name.lower() for name in elsewhere.requests[0][2]}
    finally:
        elsewhere.close()


def test_trust_two_publishers_of_one_scope(lab, project):
    project.mur("trust", "add", "bob", str(lab.murmur_home / "keys/mallory.pub")).ok()
    path = pack(project, "2.0.0", key="mallory")
    require(lab)
    project.mur("install", path).failed("E-TRU-002")
    require(lab, "trust:\n  require:\n    local: [ana, bob]\n")
    project.mur("install", "./tool-x-1.0.0.mur.zip").ok()
    said = project.mur("install", path).ok().stderr
    assert key_id(lab) in said and key_id(lab, "mallory") in said, "that another key signed it is said"
    assert f"signer: ed25519:{key_id(lab, 'mallory')}" in (project / "murmur.lock").read_text()


@pytest.mark.parametrize("rules, asked", [
    ('"loc*": [ana]', True), ('"acme-*": [ana]', False), ('local/tool-*: [ana]', True), ('local/other: [ana]', False),
    ('local: [ana]\n    local/tool-x: none', False), ('local: none\n    "local/*": [ana]', True),
    ('"*": none\n    "l*": [ana]', True), ('"*/tool-x": [ana]', True)])
def test_trust_the_closest_pattern_decides(lab, project, rules, asked):
    os.unlink(project / "tool-x-1.0.0.mur.zip.sig")
    require(lab, f"trust:\n  require:\n    {rules}\n")
    result = project.mur("install", "./tool-x-1.0.0.mur.zip")
    if asked:
        result.failed("E-TRU-001")
    else:
        result.ok()


@pytest.mark.parametrize("pattern", ["", "Local", "local/", "/tool-x", "local/tool-x/y", "loc al", "[l", "local@1.0.0"])
def test_trust_a_pattern_that_can_name_nothing_is_no_rule(lab, project, pattern):
    os.unlink(project / "tool-x-1.0.0.mur.zip.sig")
    require(lab, f"trust:\n  require:\n    {json.dumps(pattern)}: [ana]\n")
    assert "can name no artifact" in project.mur("install", "./tool-x-1.0.0.mur.zip").failed("E-TRU-004").stderr


def test_trust_a_key_is_named_not_a_path(lab, project):
    require(lab, "trust:\n  require:\n    local: [../keys/ana]\n")
    assert "no name of a key" in project.mur("install", "./tool-x-1.0.0.mur.zip").failed("E-TRU-004").stderr


@pytest.mark.parametrize("kind", ["fifo", "folder", "large"])
def test_trust_a_signature_that_cannot_be_read_is_not_none(lab, project, kind):
    path = project / "tool-x-1.0.0.mur.zip.sig"
    text = path.read_text()
    path.unlink()
    {"fifo": os.mkfifo, "folder": os.mkdir, "large": lambda path: path.write_text(text + " " * 70_000)}[kind](path)
    require(lab)
    project.mur("install", "./tool-x-1.0.0.mur.zip").failed("E-TRU-003")
    project.mur("verify", "./tool-x-1.0.0.mur.zip").failed("E-TRU-003")


def test_trust_a_lock_without_signers_is_read_and_gets_them(lab, project):
    project.mur("install", "./tool-x-1.0.0.mur.zip").ok()
    lock = (project / "murmur.lock").read_text()
    signer = f"  signer: ed25519:{key_id(lab)}\n"
    assert signer in lock
    (project / "murmur.lock").write_text(lock.replace(signer, ""))
    project.mur("install").ok()
    assert signer in (project / "murmur.lock").read_text()


def test_trust_lists_search_and_doctor_say_who_signed(lab, project):
    plain = pack(project, name="tool-y", key=None)
    foreign = pack(project, name="tool-z", key="mallory")
    for path in (plain, "./tool-x-1.0.0.mur.zip", foreign):
        project.mur("install", "-g", path).ok()
    rows = {line.split()[0]: line for line in project.mur("list", "-g").ok().stdout.splitlines()}
    assert "SIGNER" in rows["NAME"] and rows["local/tool-x"].endswith("ana") and rows["local/tool-y"].endswith("—")
    assert rows["local/tool-z"].endswith("an unknown key")
    assert "local/tool-x: signer of 1.0.0: ana" in project.mur("search", "tool-x", "--index", "local").ok().stdout
    require(lab)
    assert f"local   signed by ana (ed25519 {key_id(lab)[:16]})" in project.mur("doctor", "--verbose").stdout
    require(lab, "trust:\n  require:\n    local: [carol]\n")
    assert "E-TRU-004" in project.mur("doctor").failed().stdout


def test_trust_a_machine_without_a_network_has_the_file_and_its_signature(lab, project):
    """Two files and a public key on a stick, and another home."""
    away = lab.directory / "away"
    stick = away / "stick"
    stick.mkdir(parents=True)
    for path in (project / "tool-x-1.0.0.mur.zip", project / "tool-x-1.0.0.mur.zip.sig", lab.murmur_home / "keys/ana.pub"):
        shutil.copy(path, stick)
    (away / ".murmur").mkdir(mode=0o700)
    (away / ".murmur/config.yaml").write_text(REQUIRE)
    home = {"HOME": str(away)}
    lab.mur("trust", "add", "ana", "stick/ana.pub", cwd=away, env=home).ok()
    assert "is signed by ana" in lab.mur("verify", "stick/tool-x-1.0.0.mur.zip", cwd=away, env=home).ok().stdout
    lab.mur("install", "-g", "stick/tool-x-1.0.0.mur.zip", cwd=away, env=home).ok()
    lab.mur("verify", "local/tool-x@1.0.0", cwd=away, env=home).ok()


def test_trust_keys_are_added_listed_and_removed(lab, project):
    added = project.mur("trust", "add", "boris", str(lab.murmur_home / "keys/mallory.pub")).ok().stdout
    assert key_id(lab, "mallory")[:16] in added
    listed = project.mur("trust", "list").ok().stdout
    assert f"trusted  boris  {key_id(lab, 'mallory')[:16]}" in listed and f"own      ana  {key_id(lab)[:16]}" in listed
    project.mur("trust", "add", "boris", str(lab.murmur_home / "keys/ana.pub")).failed("E-TRU-005")
    project.mur("trust", "add", "none", str(lab.murmur_home / "keys/ana.key")).failed("E-TRU-005")
    project.mur("trust", "add", "../x", str(lab.murmur_home / "keys/ana.pub")).failed("E-TRU-005")
    project.mur("trust", "remove", "boris").ok()
    assert "mur trust list" in project.mur("trust", "remove", "boris").failed("E-TRU-005").stderr
    assert "boris" not in project.mur("trust", "list").ok().stdout


# --- Sigstore bundles beside a file ---


def certificate(key, identity="ana@example.org", issuer="https://accounts.example.org"):
    """As Sigstore issues them: short-lived, the name in subjectAltName, the issuer in an extension of its own."""
    now = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
    name = x509.Name([x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, "sigstore.dev")])
    return x509.CertificateBuilder(
        name, name, key.public_key(), 7, now, now + datetime.timedelta(minutes=10), [
            x509.Extension(x509.ExtensionOID.SUBJECT_ALTERNATIVE_NAME, True, x509.SubjectAlternativeName([x509.RFC822Name(identity)])),
            x509.Extension(ISSUER, False, x509.UnrecognizedExtension(ISSUER, bytes([12, len(issuer)]) + issuer.encode()))],
    ).sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


def b64(data):
    return base64.b64encode(data).decode()


def bundle_of(content, form="message", key=None, digest_of=None):
    key = key or ec.generate_private_key(ec.SECP256R1())
    bundle = {"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
              "verificationMaterial": {"certificate": {"rawBytes": b64(certificate(key))}, "tlogEntries": []}}
    digest = hashlib.sha256(digest_of or content)
    if form == "message":
        bundle["messageSignature"] = {"messageDigest": {"algorithm": "SHA2_256", "digest": b64(digest.digest())},
                                      "signature": b64(key.sign(content, ec.ECDSA(hashes.SHA256())))}
        return bundle
    payload = json.dumps({"subject": [{"name": "other", "digest": {"sha256": "0" * 64}},
                                      {"name": "x", "digest": {"sha256": digest.hexdigest()}}]}).encode()
    kind = "application/vnd.in-toto+json"
    signed = f"DSSEv1 {len(kind)} {kind} {len(payload)} ".encode() + payload
    bundle["dsseEnvelope"] = {"payload": b64(payload), "payloadType": kind,
                              "signatures": [{"sig": b64(key.sign(signed, ec.ECDSA(hashes.SHA256())))}]}
    return bundle


@pytest.mark.parametrize("form", ["message", "statement"])
def test_trust_a_sigstore_bundle_beside_a_file_is_read(lab, project, form):
    content = (project / "tool-x-1.0.0.mur.zip").read_bytes()
    project.write("tool-x-1.0.0.mur.zip.sigstore.json", json.dumps(bundle_of(content, form)))
    said = project.mur("verify", "./tool-x-1.0.0.mur.zip").ok().stdout
    assert "for ana@example.org by https://accounts.example.org" in said and "not checked" in said and "is signed by ana" in said
    os.unlink(project / "tool-x-1.0.0.mur.zip.sig")
    assert "ana@example.org" in project.mur("verify", "./tool-x-1.0.0.mur.zip").failed("E-TRU-001").stdout
    require(lab)
    project.mur("install", "./tool-x-1.0.0.mur.zip").failed("E-TRU-001")


@pytest.mark.parametrize("harm", ["bytes", "statement", "certificate", "signature", "text"])
def test_trust_a_sigstore_bundle_that_does_not_hold(project, harm):
    content = (project / "tool-x-1.0.0.mur.zip").read_bytes()
    bundle = bundle_of(content, "statement" if harm == "statement" else "message",
                       digest_of=b"other" if harm in ("bytes", "statement") else None)
    if harm == "certificate":
        other = ec.generate_private_key(ec.SECP256R1())
        bundle["verificationMaterial"]["certificate"]["rawBytes"] = b64(certificate(other))
    elif harm == "signature":
        bundle["messageSignature"]["signature"] = b64(b"x" * 70)
    project.write("tool-x-1.0.0.mur.zip.sigstore.json", "no JSON" if harm == "text" else json.dumps(bundle))
    project.mur("verify", "./tool-x-1.0.0.mur.zip").failed("E-TRU-003")


def test_trust_a_sigstore_bundle_of_a_key_without_a_certificate(project):
    bundle = bundle_of((project / "tool-x-1.0.0.mur.zip").read_bytes())
    bundle["verificationMaterial"] = {"publicKey": {"hint": "abc"}}
    project.write("tool-x-1.0.0.mur.zip.sigstore.json", json.dumps(bundle))
    assert "was not checked" in project.mur("verify", "./tool-x-1.0.0.mur.zip").ok().stdout
