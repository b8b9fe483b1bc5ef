# SPDX-License-Identifier: Apache-2.0
#
# `mur image`: a capsule as an OCI image layout, to a registry and back (docs/deploy.md). The same packages give the same bytes,
# what was unpacked runs, and nothing in a layout or a registry is believed that its digest does not say.

import json
import os
import shutil
import tarfile
import zipfile

import pytest
import yaml

from tests.support.formation import BEARER, CALLS, SERVES, Team
from tests.support.oci_registry import INDEX, Registry, digest_of
from tests.support.packages import component, manifest, sha256, skill_package, zip_of

DOCKER = "application/vnd.docker.distribution.manifest.v2+json"
GOLDEN = "sha256:5bfdc576530aa2905db87fc434953ba5f4aa88ee6e976a8ab868b62f63068db9"


@pytest.fixture
def registry():
    server = Registry()
    yield server
    server.close()


def stored_package(name, version="1.0.0"):
    """A package whose bytes no compressor has a say in."""
    return zip_of({"murmur.yaml": manifest(name, version), "tool.wasm": component()}, zipfile.ZIP_STORED)


@pytest.fixture
def writer(lab):
    """A project of one skill, which is in the global store."""
    content = skill_package("skill-x", "1.0.0")
    (lab.directory / "skill.mur.zip").write_bytes(content)
    lab.mur("publish", "skill.mur.zip").ok()
    project = lab.agent("writer", tools=[{"name": "local/skill-x", "version": "1.0.0", "runtime": "skill"}], steps=[{"text": "done"}])
    project.content = content
    return project


class Layout:
    def __init__(self, path):
        self.path = path

    def blob_path(self, digest):
        return self.path / "blobs/sha256" / digest.removeprefix("sha256:")

    def blob(self, digest):
        return self.blob_path(digest).read_bytes()

    @property
    def index(self):
        return json.loads((self.path / "index.json").read_text())

    @property
    def digest(self):
        return self.index["manifests"][0]["digest"]

    @property
    def manifest(self):
        return json.loads(self.blob(self.digest))

    @property
    def config(self):
        return json.loads(self.blob(self.manifest["config"]["digest"]))

    def layer(self, at=-1):
        return tarfile.open(self.blob_path(self.manifest["layers"][at]["digest"]))

    def rewrite(self, change):
        """The manifest changed, under its new digest."""
        new = self.manifest
        change(new)
        self.put_manifest(json.dumps(new).encode())

    def put_manifest(self, data, **more):
        self.blob_path(digest_of(data)).write_bytes(data)
        index = self.index
        index["manifests"][0].update(digest=digest_of(data), size=len(data), **more)
        (self.path / "index.json").write_text(json.dumps(index))


def build(project, *arguments, to="image"):
    project.mur("image", "build", *arguments, "-o", to).ok()
    return Layout(project / to)


def tree(path):
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


# --- building --------------------------------------------------------------------------------------------------------------


def test_fleet_6_two_builds_are_the_same_bytes(writer):
    image = build(writer)
    first = tree(image.path)
    os.utime(writer / "murmur.yaml", (1, 1))
    assert tree(build(writer, to="again").path) == first
    assert writer.mur("image", "build", "-o", "image", env={"TZ": "Asia/Tokyo", "LC_ALL": "C"}).ok().stdout.endswith(image.digest + "\n")
    assert tree(image.path) == first
    assert set(first) == {"oci-layout", "index.json", *(f"blobs/sha256/{one.removeprefix('sha256:')}" for one in (
        image.digest, image.manifest["config"]["digest"], image.manifest["layers"][0]["digest"]))}


def test_fleet_6_the_layer_holds_the_exact_packages_and_the_lock(writer):
    image = build(writer)
    assert not (writer / "murmur.lock").exists(), "nothing is written into the project"
    layer = image.layer()
    entries = {entry.name: entry for entry in layer}
    package = "artifacts/local/skill-x/1.0.0/skill-x-1.0.0.mur.zip"
    assert layer.extractfile(package).read() == writer.content
    assert layer.extractfile(package.replace("mur.zip", "sha256")).read().decode() == sha256(writer.content)
    assert entries[f"capsule/.murmur/{package}"].islnk() and entries[f"capsule/.murmur/{package}"].linkname == package
    assert layer.extractfile("capsule/murmur.yaml").read() == (writer / "murmur.yaml").read_bytes()
    assert sha256(writer.content).encode() in layer.extractfile("capsule/murmur.lock").read()
    assert {(e.uid, e.gid, e.mtime) for e in entries.values()} == {(0, 0, 0)}
    assert {e.mode for e in entries.values() if e.isdir()} == {0o755} and {e.mode for e in entries.values() if not e.isdir()} == {0o644}
    assert list(entries) == list(dict.fromkeys(entries)), "no name twice"
    for name in entries:
        assert name.rpartition("/")[0] in ("", *entries), "each folder comes before what is in it"
    found = image.manifest
    assert found["artifactType"] == "application/vnd.murmur.capsule.v1"
    assert found["annotations"]["dev.murmur.package.sha256/local/skill-x@1.0.0"] == sha256(writer.content)
    assert image.config["rootfs"]["diff_ids"] == [found["layers"][0]["digest"]]
    assert image.index["manifests"][0]["annotations"] == {"org.opencontainers.image.ref.name": "0.1.0"}


def test_fleet_6_golden_digest_of_a_capsule_that_is_a_script(lab):
    (lab.directory / "tool.mur.zip").write_bytes(stored_package("tool-x"))
    lab.mur("publish", "tool.mur.zip").ok()
    project = lab.project("golden")
    project.write("murmur.yaml", "name: golden\nversion: 0.1.0\nartifacts:\n  - {name: local/tool-x, version: 1.0.0, runtime: tool}\n")
    (project / "capsule.wasm").write_bytes(component(exports=("wasi:cli/run@0.2.0",)))
    image = build(project)
    assert image.layer().extractfile("capsule/capsule.wasm").read() == (project / "capsule.wasm").read_bytes()
    assert image.manifest["layers"][0]["digest"] == GOLDEN


def test_fleet_6_long_names_are_kept(lab):
    name = "tool-" + "n" * 59
    (lab.directory / "tool.mur.zip").write_bytes(stored_package(name))
    lab.mur("publish", "tool.mur.zip").ok()
    project = lab.agent("writer", tools=[f"local/{name}@1.0.0"], steps=[{"text": "done"}])
    package = f"artifacts/local/{name}/1.0.0/{name}-1.0.0.mur.zip"
    layer = build(project).layer()
    assert layer.getmember(f"capsule/.murmur/{package}").linkname == package and len(package) > 100
    assert layer.extractfile(package).read() == stored_package(name)


def test_fleet_6_what_was_unpacked_runs_from_a_folder_that_is_read(lab, writer):
    layer = build(writer).layer()
    root = lab.directory / "unpacked"
    layer.extractall(root)
    shutil.rmtree(lab.murmur_home / "artifacts/local")
    before = tree(root)
    assert "status:  ok" in lab.mur("run", "--manifest", root / "capsule/murmur.yaml", "--task", "write").ok().stdout
    assert tree(root) == before


def test_fleet_6_capsules_it_delegates_to_come_along_with_their_packages(lab, writer):
    (lab.directory / "more.mur.zip").write_bytes(stored_package("tool-y"))
    lab.mur("publish", "more.mur.zip").ok()
    helper = zip_of({"murmur.yaml": "name: helper\nversion: 2.0.0\nruntime: capsule\nartifacts:\n"
                                    "  - {name: local/tool-y, version: 1.0.0, runtime: tool}\n",
                     "capsule.wasm": component(exports=("wasi:cli/run@0.2.0",))})
    (lab.directory / "helper.mur.zip").write_bytes(helper)
    lab.mur("publish", "helper.mur.zip").ok()
    names = build(writer, ".", "local/helper@2.0.0").layer().getnames()
    assert {"artifacts/local/helper/2.0.0/helper-2.0.0.mur.zip", "artifacts/local/tool-y/1.0.0/tool-y-1.0.0.mur.zip"} <= set(names)
    writer.mur("image", "build", ".", "local/helper@3.0.0", "-o", "other").failed("E-RUN-008")
    writer.mur("image", "build", ".", "local/helper", "-o", "other").failed("E-IO-003")
    assert not (writer / "other").exists()


def test_fleet_4_6_what_may_not_be_in_an_image(lab, writer):
    (writer / ".env").write_text("KEY=sk-never\n")
    assert b"sk-never" not in b"".join(tree(build(writer).path).values())
    driver = {"gateway": {"endpoint": "https://api.example.com", "api_key": "sk-literal"}}
    literal = lab.agent("literal", steps=[], driver_entry=driver)
    refused = literal.mur("image", "build", "-o", "image").failed("E-DEP-004")
    assert "sk-literal" not in refused.stderr and not (literal / "image").exists()
    gone = lab.agent("gone", tools=["local/never@1.0.0"], steps=[])
    gone.mur("image", "build", "-o", "image").failed("E-REG-001")
    lock = (lab.directory / "writer/murmur.lock")
    writer.mur("run", "--task", "x").ok()
    lock.write_text(lock.read_text().replace(sha256(writer.content), "0" * 64))
    assert "skill-x" in writer.mur("image", "build", "-o", "other").failed("E-REG-002").stderr
    assert not (writer / "other").exists()


def test_fleet_6_a_folder_of_other_things_is_left_alone(writer):
    (writer / "mine").mkdir()
    (writer / "mine/letter").write_text("dear")
    writer.mur("image", "build", "-o", "mine").failed("E-IO-003")
    assert tree(writer / "mine") == {"letter": b"dear"}
    image = build(writer)
    old = image.digest
    writer.write_manifest({**yaml.safe_load((writer / "murmur.yaml").read_text()), "version": "0.2.0"})
    image = build(writer)
    assert image.digest != old and not image.blob_path(old).exists(), "an image that is replaced leaves nothing"


def test_fleet_6_the_image_of_a_roster_runs_as_a_pod_would_see_it(lab):
    """The store of all members, and the roster as the rendered objects bring it; nothing of it is written to."""
    team = Team(lab, "lead", "coder", reachability=[{"from": "lead", "to": ["coder"]}])
    team.member("lead", [{"tool_calls": [{"name": "call-member", "input": {"member": "coder", "task": "count"}}]}, {"text": "."},
                         {"text": "{{task}}"}], **BEARER, **CALLS)
    team.member("coder", [{"text": "coder answers"}], **BEARER, **SERVES)
    image = build(team.project, "--roster")
    first = tree(image.path)
    assert tree(build(team.project, "--roster", to="again").path) == first
    layer = image.layer()
    names = set(layer.getnames())
    assert {"capsule/roster.yaml", "capsule/murmur.lock"} <= names
    assert {f"artifacts/local/{name}/0.1.0/{name}-0.1.0.mur.zip" for name in ("lead", "coder")} <= names
    assert any(name.startswith("artifacts/std/driver-scripted/0.1.0/") for name in names)
    assert image.manifest["annotations"]["org.opencontainers.image.title"] == "lead"
    rendered = list(yaml.safe_load_all(team.project.mur("deploy", "render", "--roster", "--to", "kubernetes", "--image", "base:1", "--capsule-image",
                                                       "r.example/t", "--layout", "image", "--task", "go").ok().stdout))
    root, work = lab.directory / "unpacked", lab.project("work")
    layer.extractall(root)
    data = next(one for one in rendered if one["kind"] == "ConfigMap")["data"]
    for name in ("roster.yaml", "murmur.lock"):
        work.write(name, data[name])
    shutil.rmtree(lab.murmur_home / "artifacts")
    (lab.murmur_home / "artifacts").symlink_to(root / "artifacts")
    [container] = next(one for one in rendered if one["kind"] == "Job")["spec"]["template"]["spec"]["containers"]
    before = tree(root)
    lab.mur(*(str(work.directory) if word == "/formation" else word for word in container["args"])).ok()
    [answer] = (path for path in lab.murmur_home.glob("records/**/out/result.txt") if "member:coder" in path.read_text())
    assert "coder answers" in answer.read_text()
    assert tree(root) == before and {name: (work / name).read_text() for name in ("roster.yaml", "murmur.lock")} == {
        name: data[name] for name in ("roster.yaml", "murmur.lock")}
    work.write("murmur.lock", data["murmur.lock"].replace(sha256((root / "artifacts/local/coder/0.1.0/coder-0.1.0.mur.zip").read_bytes()), "0" * 64))
    work.mur("run", "--roster", "--task", "go").failed("E-REG-005")


# --- on a base -------------------------------------------------------------------------------------------------------------


def base_layout(path, architecture=None, diffs=None):
    """A layout of one layer made by hand, as other builders write them."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    blobs = path / "blobs/sha256"
    blobs.mkdir(parents=True)
    layer = b"\x1f\x8b not looked into"
    config = json.dumps({"architecture": architecture or machine, "os": "linux", "created": "2020-01-01T00:00:00Z",
                         "config": {"Env": ["PATH=/usr/bin"], "Entrypoint": ["/bin/sh"], "Cmd": ["-c"], "User": "10001"},
                         "rootfs": {"type": "layers", "diff_ids": diffs if diffs is not None else ["sha256:" + "1" * 64]}}).encode()
    found = {"schemaVersion": 2, "mediaType": DOCKER,
             "config": {"mediaType": "application/vnd.docker.container.image.v1+json", "digest": digest_of(config), "size": len(config)},
             "layers": [{"mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip", "digest": digest_of(layer), "size": len(layer)}]}
    text = json.dumps(found).encode()
    for blob in (layer, config, text):
        (blobs / sha256(blob)).write_bytes(blob)
    (path / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (path / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [
        {"mediaType": DOCKER, "digest": digest_of(text), "size": len(text)}]}))
    return Layout(path)


def test_fleet_6_on_a_base_its_layers_come_first_and_its_settings_stay(writer):
    base = base_layout(writer / "base")
    image = build(writer, "--base", "base")
    assert image.manifest["layers"][0] == base.manifest["layers"][0] and len(image.manifest["layers"]) == 2
    assert image.blob(base.manifest["layers"][0]["digest"]) == base.blob(base.manifest["layers"][0]["digest"])
    config = image.config
    assert config["rootfs"]["diff_ids"] == ["sha256:" + "1" * 64, image.manifest["layers"][1]["digest"]]
    assert config["config"] == {"Env": ["PATH=/usr/bin"], "User": "10001", "Entrypoint": ["mur"],
                                "Cmd": ["run", "--manifest", "/capsule/murmur.yaml"]}
    assert tree(build(writer, "--base", "base", to="again").path) == tree(image.path)


def test_fleet_6_bases_that_do_not_fit(writer):
    base_layout(writer / "foreign", architecture="s390x")
    assert "s390x" in writer.mur("image", "build", "--base", "foreign", "-o", "x").failed("E-DEP-005").stderr
    base_layout(writer / "odd", diffs=[])
    writer.mur("image", "build", "--base", "odd", "-o", "x").failed("E-REG-013")
    assert not (writer / "x/index.json").exists()
    writer.mur("image", "build", "--base", "absent", "-o", "x").failed("E-IO-001")


# --- layouts of others -----------------------------------------------------------------------------------------------------


def change_byte(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def layer_path(image):
    return image.blob_path(image.manifest["layers"][0]["digest"])


def as_link(image):
    path = layer_path(image)
    shutil.copy(path, image.path / "elsewhere")
    path.unlink()
    path.symlink_to(image.path / "elsewhere")


def as_pipe(image):
    layer_path(image).unlink()
    os.mkfifo(layer_path(image))


def truncated(image):
    path = layer_path(image)
    path.write_bytes(path.read_bytes()[:-1])


def put_index(image, value):
    (image.path / "index.json").write_text(value if isinstance(value, str) else json.dumps(value))


def outside(found):
    found["layers"][0]["digest"] = "sha256:../../../../etc/passwd"


HARM = {
    "layer changed": ("E-REG-002", lambda image: change_byte(layer_path(image))),
    "layer truncated": ("E-REG-002", truncated),
    "layer longer": ("E-REG-002", lambda image: layer_path(image).write_bytes(layer_path(image).read_bytes() + b"x")),
    "layer gone": ("E-IO-003", lambda image: layer_path(image).unlink()),
    "layer a link": ("E-IO-003", as_link),
    "layer a pipe": ("E-REG-013", as_pipe),
    "config changed": ("E-REG-002", lambda image: change_byte(image.blob_path(image.manifest["config"]["digest"]))),
    "manifest changed": ("E-REG-002", lambda image: change_byte(image.blob_path(image.digest))),
    "manifest no JSON": ("E-REG-013", lambda image: image.put_manifest(b"{")),
    "digest of another place": ("E-REG-013", lambda image: image.rewrite(outside)),
    "too many layers": ("E-REG-013", lambda image: image.rewrite(lambda m: m["layers"].extend(m["layers"] * 200))),
    "an index in it": ("E-REG-013", lambda image: image.put_manifest(b"{}", mediaType=INDEX)),
    "no index": ("E-REG-013", lambda image: (image.path / "index.json").unlink()),
    "index no JSON": ("E-REG-013", lambda image: put_index(image, "[")),
    "two images": ("E-REG-013", lambda image: put_index(image, {"manifests": image.index["manifests"] * 2})),
    "no image": ("E-REG-013", lambda image: put_index(image, {"manifests": []})),
    "another layout": ("E-REG-013", lambda image: (image.path / "oci-layout").write_text('{"imageLayoutVersion": "9"}')),
    "no layout": ("E-REG-013", lambda image: (image.path / "oci-layout").unlink()),
}


@pytest.fixture
def image_of(lab, tmp_path_factory):
    """A small image of a script, made anew for each use."""
    project = lab.project("small")
    project.write("murmur.yaml", "name: small\nversion: 0.1.0\n")
    (project / "capsule.wasm").write_bytes(component(exports=("wasi:cli/run@0.2.0",)))

    def make(to="image"):
        return project, build(project, to=to)
    return make


def test_fleet_6_a_layout_that_does_harm_is_refused_and_no_tag_comes_to_be(image_of, registry):
    for what, (code, harm) in HARM.items():
        project, image = image_of(what.replace(" ", "-"))
        harm(image)
        project.mur("image", "push", image.path, f"oci://{registry.host}/ana/writer:1").failed(code)
        assert registry.manifests == {}, what


# --- a registry ------------------------------------------------------------------------------------------------------------


def push(project, registry, tag="1.0"):
    return project.mur("image", "push", "image", f"oci://{registry.host}/ana/writer:{tag}")


def pull(project, registry, *arguments, tag=":1.0", to="back"):
    return project.mur("image", "pull", f"oci://{registry.host}/ana/writer{tag}", "-o", to, *arguments)


def test_fleet_6_an_image_goes_to_a_registry_and_comes_back_the_same(writer, registry):
    image = build(writer)
    said = push(writer, registry).ok().stdout
    assert said.endswith(f"{registry.host}/ana/writer@{image.digest}\n")
    kind, data = registry.manifests["ana/writer", "1.0"]
    assert kind == image.index["manifests"][0]["mediaType"] and data == image.blob(image.digest)
    assert registry.paths("PUT")[-1].endswith("/manifests/1.0"), "the tag comes last"
    pull(writer, registry).ok()
    back = Layout(writer / "back")
    assert {name: data for name, data in tree(back.path).items() if name != "index.json"} == {
        name: data for name, data in tree(image.path).items() if name != "index.json"}
    registry.requests.clear()
    pull(writer, registry, tag=f"@{image.digest}").ok()
    assert all("/blobs/" not in path for path in registry.paths()), "what is there already is not asked for"
    push(writer, registry, tag="again").ok()
    assert not [path for path in registry.paths("PUT") if "/blobs/" in path]
    registry.requests.clear()
    assert "tag" in writer.mur("image", "push", "image", f"oci://{registry.host}/ana/writer").failed("E-REG-007").stderr
    assert registry.requests == []


def test_fleet_6_an_index_gives_the_image_of_a_platform(writer, registry):
    image = build(writer)
    push(writer, registry).ok()
    entry = {**image.index["manifests"][0], "platform": {"os": "linux", "architecture": "arm64"}}
    registry.put("ana/writer", "many", {"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}, INDEX)
    pull(writer, registry, "--platform", "linux-aarch64", tag=":many").ok()
    assert Layout(writer / "back").digest == image.digest
    assert "linux-aarch64" in pull(writer, registry, "--platform", "darwin-x86_64", tag=":many", to="x").failed("E-REG-001").stderr
    assert not (writer / "x").exists()
    pull(writer, registry, tag=":never", to="x").failed("E-REG-001")


def test_fleet_6_a_registry_that_lies_is_found_out(writer, registry):
    image = build(writer)
    push(writer, registry).ok()
    layer = image.manifest["layers"][0]["digest"]
    kept = registry.blobs[layer]
    pull(writer, registry, to="kept").ok()
    for data, code in ((kept[:-1] + b"x", "E-REG-002"), (kept + b"x", "E-REG-002"), (kept[:-512], "E-REG-006")):
        registry.blobs[layer] = data
        pull(writer, registry, to="new").failed(code)
        assert not (writer / "new/index.json").exists() and layer[7:] not in {path.name for path in (writer / "new").rglob("*")}
        (Layout(writer / "kept")).blob_path(layer).unlink(missing_ok=True)
        before = (writer / "kept/index.json").read_bytes()
        pull(writer, registry, to="kept").failed(code)
        assert (writer / "kept/index.json").read_bytes() == before
    del registry.blobs[layer]
    pull(writer, registry, to="new").failed("E-REG-001")
    registry.blobs[layer] = kept
    kind, data = registry.manifests["ana/writer", image.digest]
    registry.manifests["ana/writer", image.digest] = (kind, data.replace(b"0.1.0", b"0.1.1"))
    pull(writer, registry, tag=f"@{image.digest}", to="new").failed("E-REG-002")
    pull(writer, registry, to="new").ok()
    assert Layout(writer / "new").digest == image.digest
    registry.scripted.append((r"^HEAD /v2/ana/writer/manifests/moved", lambda one: one.reply(200, docker_content_digest="sha256:" + "f" * 64)))
    push(writer, registry, tag="moved").failed("E-REG-003")


# --- deployed --------------------------------------------------------------------------------------------------------------


def test_fleet_6_a_deployment_names_the_image_by_its_digest(writer):
    image = build(writer)
    on_base = writer.mur("deploy", "render", "--to", "kubernetes", "--image", "r.example/writer:1", "--layout", "image").ok()
    pod = {one["kind"]: one for one in yaml.safe_load_all(on_base.stdout)}["Job"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"] == f"r.example/writer:1@{image.digest}" and "by digest" not in on_base.stderr
    volume = writer.mur("deploy", "render", "--to", "kubernetes", "--image", "r.example/mur@sha256:" + "a" * 64, "--capsule-image",
                        "r.example/writer", "--layout", "image").ok()
    pod = {one["kind"]: one for one in yaml.safe_load_all(volume.stdout)}["Job"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"] == "r.example/mur@sha256:" + "a" * 64
    assert {"name": "capsule", "image": {"reference": f"r.example/writer@{image.digest}", "pullPolicy": "IfNotPresent"}} in pod["volumes"]
    mounts = {mount["mountPath"]: mount for mount in pod["containers"][0]["volumeMounts"]}
    assert mounts["/capsule"]["subPath"] == "capsule" and mounts["/home/murmur/.murmur/artifacts"]["subPath"] == "artifacts"
    assert all(mounts[path]["readOnly"] for path in ("/capsule", "/home/murmur/.murmur/artifacts"))
    other = ("--image", "r.example/writer@sha256:" + "b" * 64, "--layout", "image")
    writer.mur("deploy", "render", "--to", "kubernetes", *other).failed("E-DEP-005")
    writer.mur("deploy", "render", "--to", "kubernetes", "--layout", "image").failed("E-DEP-002")
    writer.mur("deploy", "render", "--to", "nomad", "--image", "x@sha256:1", "--capsule-image", "y").failed("E-DEP-005")
    tagged = writer.mur("deploy", "render", "--to", "kubernetes", "--image", "x@sha256:1", "--capsule-image", "y:1").ok()
    assert "y:1 is not named by digest" in tagged.stderr
