# SPDX-License-Identifier: Apache-2.0
#
# `mur run --records-store` and `mur trace fetch` (docs/spec/records.md 15): records go to a store while a session runs and come
# home from it, and a store that fails costs a warning and a bounded wait.

import json
import time

import pytest

from tests.support.packages import sha256
from tests.support.polling import eventually
from tests.support.record_store import Store

TOKEN = "rs-token-4711"


@pytest.fixture
def store():
    one = Store()
    yield one
    one.close()


@pytest.fixture
def volume(lab):
    folder = lab.directory / "volume"
    folder.mkdir()
    return folder


def writer(lab, name="writer", **step):
    return lab.agent(name, steps=[{"text": "a long answer", **step}], trace={"capture": "content"})


def keys(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def parts(objects, session):
    return b"".join(objects[key] for key in sorted(objects) if key.startswith(f"{session}/trace/"))


def test_fleet_records_all_of_a_session_comes_to_a_volume_and_home_again(lab, volume):
    project = writer(lab)
    result = project.mur("run", "--task", "write", "--records-store", f"file://{volume}").ok()
    session, records = result.session_id, lab.session(result).records
    objects = keys(volume)
    assert parts(objects, session) == (records / "trace.jsonl").read_bytes()
    complete = json.loads(objects[f"{session}/complete.json"])
    assert complete["session_id"] == session and complete["status"] == "ok" and complete["capsule"] == "local/writer"
    listed = {f"{session}/{folder}/{one['name']}": one for folder in ("trace", "blobs", "files") for one in complete[folder]}
    assert set(objects) == {*listed, f"{session}/complete.json"}
    for key, one in listed.items():
        assert (one["sha256"], one["size"]) == (sha256(objects[key]), len(objects[key])), key
    assert {one["name"] for one in complete["blobs"]} == {path.name for path in (records / "blobs").iterdir()}
    assert "out/result.txt" in {one["name"] for one in complete["files"]}
    there = project.mur("trace", "show", session).ok().stdout
    home = lab.directory / "elsewhere"
    home.mkdir()
    env = {"HOME": str(home)}
    said = lab.mur("trace", "fetch", f"file://{volume}", session, cwd=home, env=env).ok().stdout
    assert "ended ok" in said and session in said
    assert lab.mur("trace", "show", session, cwd=home, env=env).ok().stdout == there
    found = next((home / ".murmur/records").rglob(session))
    assert keys(found / "blobs") == keys(records / "blobs") and (found / "out/result.txt").read_bytes() == (records / "out/result.txt").read_bytes()


def test_fleet_records_the_token_is_a_file_and_stands_nowhere_else(lab, store):
    (lab.directory / "keys").mkdir()
    (lab.directory / "keys/MUR_RECORDS_TOKEN").write_text(TOKEN + "\n")
    project = writer(lab)
    result = project.mur("run", "--task", "write", "--records-store", store.url, "--secrets-dir", lab.directory / "keys").ok()
    assert {who for _method, _path, who in store.requests} == {f"Bearer {TOKEN}"}
    assert store.put_keys()[-1] == f"{result.session_id}/complete.json", "what says it is all comes last"
    assert len(store.put_keys()) == len(set(store.put_keys())), "nothing is sent twice"
    everything = b"".join(keys(lab.murmur_home).values()) + b"".join(store.objects.values()) + (result.stdout + result.stderr).encode()
    assert TOKEN.encode() not in everything
    lab.mur("trace", "fetch", store.url, result.session_id, "--secrets-dir", lab.directory / "keys").ok()
    assert store.requests[-1][2] == f"Bearer {TOKEN}"


@pytest.mark.parametrize("host", ["records.example.com", "127.0.0.1.example.com", "127.example.com"])
def test_fleet_records_a_token_goes_over_https_or_to_this_machine_alone(lab, host):
    (lab.directory / "keys").mkdir()
    (lab.directory / "keys/MUR_RECORDS_TOKEN").write_text(TOKEN)
    refused = lab.mur("trace", "fetch", f"http://{host}/team", "ses_" + "0" * 32, "--secrets-dir", lab.directory / "keys").failed("E-IO-003")
    assert "a token is sent over https alone" in refused.stderr and TOKEN not in refused.stderr


def test_fleet_28_what_was_not_taken_is_offered_again_with_the_same_bytes(lab, store):
    store.harms = [503, "cut", 500, 429]
    project = writer(lab)
    result = project.mur("run", "--task", "write", "--records-store", store.url).ok()
    assert result.stderr.count("warning[W-RUN-011]") == 1
    trace = (lab.session(result).records / "trace.jsonl").read_bytes()
    assert parts(store.objects, result.session_id) == trace
    assert json.loads(store.objects[f"{result.session_id}/complete.json"])["trace"][0]["sha256"] == sha256(
        store.objects[f"{result.session_id}/trace/000001.jsonl"])


def test_fleet_29_with_a_store_that_fails_the_session_ends_as_it_would(lab):
    began = time.monotonic()
    harms = {name: Store() for name in ("cut", 403, 507, "silent")}
    running = {}
    for name, one in harms.items():
        one.harm = name
        running[name] = writer(lab, f"writer-{name}").start("--task", "write", "--records-store", one.url)
    down = Store()
    down.close()
    running["down"] = writer(lab, "writer-down").start("--task", "write", "--records-store", down.url)
    for name, one in running.items():
        result = one.result(90)
        assert result.code == 0 and "status:  ok" in result.stdout, f"{name}: {result}"
        assert result.stderr.count("warning[W-RUN-011]") == 1, f"{name}: {result.stderr}"
        if name in (403, 507):
            assert f"answered {name}" in result.stderr
    assert time.monotonic() - began < 80
    for one in harms.values():
        one.close()


def test_fleet_28_a_session_that_is_killed_is_there_up_to_its_last_part(lab, volume):
    project = writer(lab, delay_ms=600000)
    running = project.start("--task", "write", "--records-store", f"file://{volume}")
    eventually(lambda: any("trace" in key and b"session_start" in data for key, data in keys(volume).items()), 60)
    running.kill()
    session, = {key.split("/")[0] for key in keys(volume)}
    assert f"{session}/complete.json" not in keys(volume)
    home = lab.directory / "elsewhere"
    home.mkdir()
    said = lab.mur("trace", "fetch", f"file://{volume}", session, cwd=home, env={"HOME": str(home)}).ok().stdout
    assert "not complete" in said
    found = next((home / ".murmur/records").rglob("trace.jsonl")).read_bytes()
    assert found.endswith(b"\n") and all(json.loads(line) for line in found.splitlines())
    shown = lab.mur("trace", "show", session, cwd=home, env={"HOME": str(home)}).ok().stdout
    assert "writer" in shown


def shipped(lab, store):
    return writer(lab).mur("run", "--task", "write", "--records-store", store.url).ok().session_id


def test_fleet_records_a_store_that_lies_is_found_out(lab, store):
    session = shipped(lab, store)
    kept = dict(store.objects)
    home = lab.directory / "elsewhere"
    home.mkdir()

    def fetch():
        return lab.mur("trace", "fetch", store.url, session, cwd=home, env={"HOME": str(home)})
    for key in kept:
        if not key.endswith("complete.json"):
            store.objects = {**kept, key: kept[key] + b"x"}
            fetch().failed("E-REG-002")
            store.objects = {other: data for other, data in kept.items() if other != key}
            fetch().failed("E-IO-003")
    complete = json.loads(kept[f"{session}/complete.json"])
    for name in ("../../../outside", "/etc/x", "a//b", ".ssh/keys", "a/../b", ""):
        complete["files"][0]["name"] = name
        store.objects = {**kept, f"{session}/complete.json": json.dumps(complete).encode()}
        fetch().failed("E-IO-003")
    for text in (b"{", b"[]", b"{}", b'{"session_id": "ses_%s", "trace": []}' % (b"0" * 32)):
        store.objects = {**kept, f"{session}/complete.json": text}
        fetch().failed("E-IO-003")
    assert not list(home.rglob("outside"))
    store.objects = {}
    fetch().failed("E-TRC-002")
    store.objects = kept
    fetch().ok()


def test_fleet_records_a_store_that_keeps_nothing_gives_nothing(lab, store):
    store.harm = "lies"
    session = shipped(lab, store)
    assert store.objects == {}
    store.harm = None
    lab.mur("trace", "fetch", store.url, session).failed("E-TRC-002")


@pytest.mark.parametrize("url", ["file://relative", "file:///nowhere/at/all", "ftp://x/y", "https://u:p@x/y", "https://x/y?z=1", "nothing"])
def test_fleet_records_an_address_that_is_none_is_refused(lab, url):
    project = writer(lab)
    refused = project.mur("run", "--task", "write", "--records-store", url).failed("E-IO-003")
    assert ":p@" not in refused.stderr or url in refused.stderr


def test_fleet_records_a_script_and_a_child_process_use_the_same_store(lab, store):
    """The address is handed on in MURMUR_RECORDS_STORE."""
    result = writer(lab).mur("run", "--task", "write", env={"MURMUR_RECORDS_STORE": store.url}).ok()
    assert f"{result.session_id}/complete.json" in store.objects
