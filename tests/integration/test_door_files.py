# SPDX-License-Identifier: Apache-2.0
#
# The resource plane of a real session: listing and reading exported files, and every way to be refused.

import hashlib
import http.client
import json
import os
import socket
import threading
import time
import urllib.parse

import pytest

from tests.support.lab import SLOWER
from tests.support.polling import eventually

SLEEPER = {"task_acceptance": "queue", "after_task": "sleep", "queue_depth": 4}


def exporting(lab, name="agent", steps=None, max_bytes=100, **manifest):
    return lab.agent(name=name, steps=steps or [{"text": "the answer"}], lifecycle=SLEEPER,
                     exports={"files": {"root": "out", "mode": "read-only", "max_bytes": max_bytes}}, **manifest)


def ask(running, path, method="GET", headers=(), body=None):
    """One request with the path as it is; (status, headers, body)."""
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(running.url).netloc, timeout=30)
    connection.putrequest(method, path, skip_accept_encoding=True)
    for name, value in headers:
        connection.putheader(name, value)
    if body is not None:
        connection.putheader("content-length", str(len(body)))
    connection.endheaders(body)
    with connection.getresponse() as reply:
        answer = reply.status, reply.headers, reply.read()
    connection.close()
    return answer


def test_security_D7_files_too_large_to_be_read_share_a_bound_of_hashing(lab):
    folder = lab.directory / "large"
    (folder / "out").mkdir(parents=True)
    sizes = {"a-large": 3 << 20, "b-sparse": 4 << 30, "c-small": 5}
    for name, size in sizes.items():
        with open(folder / "out" / name, "wb") as file:
            file.truncate(size)
    running = exporting(lab).start("--workdir", folder)
    _, _, body = ask(running, "/resources/files")
    told = {entry["path"]: (entry["size_bytes"], entry["sha256"]) for entry in json.loads(body)["entries"]}
    assert told == {"a-large": (3 << 20, hashlib.sha256(bytes(3 << 20)).hexdigest()), "b-sparse": (4 << 30, None),
                    "c-small": (5, hashlib.sha256(bytes(5)).hexdigest())}
    running.signal().result()


def refusal(running, path, **how):
    status, _, body = ask(running, path, **how)
    return status, json.loads(body)["error"]


@pytest.fixture
def folder(lab):
    work = lab.directory / "work"
    (work / "out/sub").mkdir(parents=True)
    (work / "out/a.txt").write_text("alpha")
    (work / "out/sub/b.txt").write_text("bravo")
    (work / "secret.txt").write_text("secret")
    (work / "outside").mkdir()
    (work / "outside/c.txt").write_text("c")
    return work


@pytest.fixture
def door(lab, folder):
    running = exporting(lab).start("--workdir", folder)
    running.url
    yield running
    if running.is_running:
        running.signal()
        running.result(20).ok()


def trace_of(lab, running):
    return lab.session(running).trace


def test_door_the_card_and_the_grants_name_the_file_planes(lab, door):
    _, _, body = ask(door, "/.well-known/agent-card.json")
    capsule = next(e["params"] for e in json.loads(body)["capabilities"]["extensions"] if "capsule-v1" in e["uri"])
    assert capsule["planes"] == ["files"]
    grants = trace_of(lab, door).one("session_start")["effective_grants"]
    assert grants["exports_files"] == {"root": "out", "mode": "read-only", "max_bytes": 100}
    assert grants["peer_tasks"] is False and grants["peer_files"] is None


def test_door_a_file_is_served_with_its_provenance(lab, door, folder):
    status, headers, body = ask(door, "/resources/files/sub/b.txt?x=1")
    assert (status, body) == (200, b"bravo")
    assert headers["content-type"] == "application/octet-stream" and headers["content-length"] == "5"
    assert headers["etag"] == f'"sha256:{hashlib.sha256(b"bravo").hexdigest()}"'
    assert headers["x-murmur-generation"] == "0" and headers["x-murmur-export-root"] == "out"
    assert headers["x-murmur-mtime-ms"] == str(os.stat(folder / "out/sub/b.txt").st_mtime_ns // 1_000_000)
    achieved = trace_of(lab, door).one("session_start")["containment_achieved"]
    assert headers["x-murmur-containment"] == achieved
    line = trace_of(lab, door).one("resource_read")
    assert list(line)[5:] == ["path", "outcome", "bytes", "sha256", "generation", "containment_achieved", "reason"]
    assert (line["path"], line["outcome"], line["bytes"], line["reason"]) == ("sub/b.txt", "ok", 5, None)
    assert line["sha256"] == hashlib.sha256(b"bravo").hexdigest() and line["containment_achieved"] == achieved
    assert ask(door, "/resources/files/sub/b.txt/")[2] == b"bravo"  # one trailing slash is dropped


def test_door_the_listing_names_every_file_once(lab, door, folder):
    (folder / "out/large.bin").write_bytes(b"x" * 101)
    for path in ("/resources/files", "/resources/files/", "/resources/files?all"):
        status, headers, body = ask(door, path)
        assert status == 200 and headers["content-type"] == "application/json"
    listing = json.loads(body)
    assert list(listing) == ["root", "mode", "max_bytes", "generation", "containment_achieved", "entries"]
    assert (listing["root"], listing["mode"], listing["max_bytes"], listing["generation"]) == ("out", "read-only", 100, 0)
    assert [entry["path"] for entry in listing["entries"]] == ["a.txt", "large.bin", "sub/b.txt"]
    assert list(listing["entries"][1]) == ["path", "size_bytes", "mtime_ms", "sha256"]
    assert listing["entries"][1]["size_bytes"] == 101
    assert listing["entries"][1]["sha256"] == hashlib.sha256(b"x" * 101).hexdigest()
    lines = trace_of(lab, door).all("resource_list")
    assert len(lines) == 3
    assert list(lines[0])[5:] == ["root", "entry_count", "total_bytes", "generation", "containment_achieved", "outcome",
                                  "reason"]
    assert (lines[0]["root"], lines[0]["entry_count"], lines[0]["total_bytes"], lines[0]["outcome"]) == ("out", 3, 111, "ok")


def test_door_27_paths_that_leave_the_root_are_refused_by_their_shape(lab, door):
    asked = {"%2e%2e%2fsecret.txt": "../secret.txt", "/etc/passwd": "/etc/passwd", "a%00b": "a\0b", "a/./b": "a/./b",
             "sub//b.txt": "sub//b.txt", "..": "..", "sub/../a.txt": "sub/../a.txt", "%ff": "�"}
    for path in asked:
        assert refusal(door, f"/resources/files/{path}") == (403, "outside_root"), path
    lines = trace_of(lab, door).all("resource_read")
    assert [line["path"] for line in lines] == list(asked.values())
    assert {(line["outcome"], line["bytes"], line["sha256"]) for line in lines} == {("outside_root", None, None)}
    assert all(line["reason"] for line in lines)


def test_door_27_an_escape_is_decoded_once(door, folder):
    (folder / "out/%41 b%").write_text("odd")
    assert ask(door, "/resources/files/%2541%20b%")[2] == b"odd"
    assert refusal(door, "/resources/files/%252e%252e/secret.txt") == (404, "not_found")


def test_door_28_only_regular_files_are_served_and_only_with_get(lab, door, folder):
    os.mkfifo(folder / "out/pipe")
    begun = time.monotonic()
    assert refusal(door, "/resources/files/pipe") == (403, "not_a_regular_file")
    assert refusal(door, "/resources/files/sub") == (403, "not_a_regular_file")
    assert time.monotonic() - begun < 2
    assert refusal(door, "/resources/files/none") == (404, "not_found")
    assert refusal(door, "/resources/files/a.txt/below") == (404, "not_found")
    (folder / "out/large.bin").write_bytes(b"x" * 101)
    assert refusal(door, "/resources/files/large.bin") == (413, "too_large")
    for path in ("/resources/x", "/resources/files", "/resources/files/a.txt"):
        status, headers, body = ask(door, path, "PUT", body=b"x" * 200_000)
        assert (status, headers["allow"], json.loads(body)["error"]) == (405, "GET", "method_not_allowed")
    for path in ("/resources/", "/resources/filesx", "/resources/x/y"):
        assert refusal(door, path) == (404, "not_found")
    assert ask(door, "/resources")[::2] == (404, b"")
    trace = trace_of(lab, door)
    assert [line["outcome"] for line in trace.all("resource_read")][-1] == "method_not_allowed"
    assert [(line["root"], line["outcome"]) for line in trace.all("resource_list")] == [("", "method_not_allowed")]
    assert len(trace.all("resource_read")) == 6


def test_door_29_every_body_is_one_version_and_matches_its_etag(door, folder):
    path, versions = folder / "out/changing", [bytes([65 + i % 26]) * (i % 90 + 1) for i in range(1000)]
    path.write_bytes(versions[0])
    done = threading.Event()

    def rewrite():
        for version in versions:
            (folder / "next").write_bytes(version)
            os.replace(folder / "next", path)
        done.set()

    threading.Thread(target=rewrite, daemon=True).start()
    reads = 0
    while not done.is_set() or reads == 0:
        status, headers, body = ask(door, "/resources/files/changing")
        assert status == 200 and body in versions
        assert headers["etag"] == f'"sha256:{hashlib.sha256(body).hexdigest()}"'
        reads += 1


def test_door_links_are_followed_only_inside_the_root_and_never_under_scoped(lab, door, folder):
    (folder / "out/inside").symlink_to("a.txt")
    (folder / "out/away").symlink_to("../secret.txt")
    (folder / "out/aside").symlink_to(folder / "outside")
    (folder / "out/below").symlink_to("sub")
    listed = {entry["path"] for entry in json.loads(ask(door, "/resources/files")[2])["entries"]}
    if trace_of(lab, door).one("session_start")["containment_achieved"] == "scoped":
        for path in ("inside", "below/b.txt"):
            assert refusal(door, f"/resources/files/{path}") == (403, "symlink_refused")
        assert listed == {"a.txt", "sub/b.txt"}
    else:
        assert ask(door, "/resources/files/inside")[2] == b"alpha"
        assert ask(door, "/resources/files/below/b.txt")[2] == b"bravo"
        assert listed == {"a.txt", "inside", "sub/b.txt"}
    for path in ("away", "aside/c.txt"):
        assert ask(door, f"/resources/files/{path}")[0] == 403


def test_door_advisory_follows_a_link_inside_the_root(lab, folder):
    (folder / "out/inside").symlink_to(folder / "out/a.txt")
    (folder / "out/away").symlink_to("../secret.txt")
    running = exporting(lab, capabilities={"filesystem": {"workdir_exec": True}}).start("--workdir", folder)
    assert ask(running, "/resources/files/inside")[2] == b"alpha"
    assert refusal(running, "/resources/files/away") == (403, "outside_root")
    assert [e["path"] for e in json.loads(ask(running, "/resources/files")[2])["entries"]] == ["a.txt", "inside", "sub/b.txt"]
    running.signal()
    running.result(20).ok()


def test_door_a_root_that_leads_outside_refuses_the_launch(lab, folder):
    (folder / "away").symlink_to("/etc")
    for plane in ({"files": {"root": "away", "mode": "read-only"}}, {"peer_files": {"root": "away/ssl", "max_ttl": "60s"}}):
        agent = lab.agent(name="agent", steps=[{"text": "x"}], lifecycle=SLEEPER, exports=plane)
        refused = agent.run("--workdir", folder).failed("E-CAP-007")
        assert f"exports.{next(iter(plane))}.root" in refused.stderr


def test_door_a_root_that_comes_to_lead_outside_serves_nothing(door, folder):
    (folder / "out").rename(folder / "kept")
    assert json.loads(ask(door, "/resources/files")[2])["entries"] == []
    (folder / "out").symlink_to("/etc")
    assert refusal(door, "/resources/files/passwd") == (403, "outside_root")
    assert refusal(door, "/resources/files") == (403, "outside_root")


def test_door_nothing_declared_is_no_resource_plane(lab):
    running = lab.agent(steps=[{"text": "x"}], lifecycle=SLEEPER).start()
    for path in ("/resources/files", "/resources/files/a"):
        status, headers, body = ask(running, path)
        assert (status, json.loads(body)["error"]) == (404, "no_resource_plane")
        assert headers["x-murmur-generation"] == "0"
    assert refusal(running, "/resources/files", method="POST") == (405, "method_not_allowed")
    assert len(trace_of(lab, running).all("resource_list")) == 2
    running.signal()
    running.result(20).ok()


def test_door_reading_files_needs_its_scope(lab, folder):
    credentials = {"files": {"scopes": ["resources/files"]}, "tasks": {"scopes": ["GetTask"]}}
    running = exporting(lab, network={"authentication": {"scheme": "bearer", "credentials": credentials}}).start(
        "--workdir", folder)
    running.url

    def bearer(name):
        return [("Authorization", "Bearer " + lab.mur("token", running.session_id, "--credential", name).ok().stdout.strip())]

    assert ask(running, "/resources/files/a.txt")[0] == 401
    status, headers, body = ask(running, "/resources/files/a.txt", headers=bearer("tasks"))
    assert (status, json.loads(body)["error"]) == (403, "insufficient_scope")
    assert 'scope="resources/files"' in headers["www-authenticate"]
    assert refusal(running, "/resources/nothing", headers=bearer("tasks")) == (403, "insufficient_scope")
    for name in ("files", "operator"):
        assert ask(running, "/resources/files/a.txt", headers=bearer(name))[2] == b"alpha"
    assert ask(running, "/.well-known/agent-card.json")[2].find(b"planes") < 0
    running.signal()
    running.result(20).ok()


def test_door_the_generation_counts_tasks_that_ran(lab, door):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {
        "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "go"}]}}}).encode()
    status, _, answer = ask(door, "/", "POST", [("content-type", "application/json"), ("A2A-Version", "1.0")], body)
    assert status == 200 and "COMPLETED" in answer.decode()
    assert eventually(lambda: ask(door, "/resources/files/a.txt")[1]["x-murmur-generation"] == "1")


def test_door_26_peer_consent_is_asked_before_files(lab, folder):
    running = exporting(lab).start("--workdir", folder)
    answers = {ask(running, path, method, [("x-murmur-task-origin", "peer")])[::2]
               for path, method in (("/resources/files", "GET"), ("/resources/files/a.txt", "GET"), ("/nothing", "PUT"))}
    assert len(answers) == 1 and next(iter(answers))[0] == 403
    running.signal()
    running.result(20).ok()


def test_door_26_a_capsule_that_accepts_peers_serves_them(lab):
    agent = lab.agent(steps=[{"text": "x"}], lifecycle=SLEEPER, exports={"peer_tasks": {"accept": True}})
    running = agent.start()
    card = json.loads(ask(running, "/.well-known/agent-card.json")[2])
    door = next(e["params"] for e in card["capabilities"]["extensions"] if "door-v1" in e["uri"])
    assert door["peerTasks"] is True
    assert ask(running, "/nothing", headers=[("x-murmur-task-origin", "peer")])[::2] == (404, b"")
    assert trace_of(lab, running).one("session_start")["effective_grants"]["peer_tasks"] is True
    running.signal()
    running.result(20).ok()


def test_door_listings_of_endless_files_hold_up_neither_reads_nor_the_end(door, folder):
    with open(folder / "out/sparse", "wb") as sparse:
        sparse.truncate(1 << 40)
    address = urllib.parse.urlsplit(door.url)
    listings = [socket.create_connection((address.hostname, address.port), timeout=20) for _ in range(8)]
    for listing in listings:
        listing.sendall(b"GET /resources/files HTTP/1.1\r\nHost: x\r\n\r\n")
    started = time.monotonic()
    for _ in range(10):
        assert ask(door, "/resources/files/a.txt")[2] == b"alpha"
    assert time.monotonic() - started < 5 * SLOWER
    door.signal().result(10).ok()
    for listing in listings:
        listing.close()


def test_door_answers_nobody_reads_are_bounded(lab, folder):
    running = exporting(lab, max_bytes=10 << 20).start("--workdir", folder)
    (folder / "out/big").write_bytes(b"q" * (10 << 20))
    address = urllib.parse.urlsplit(running.url)
    idle, statuses = [], []
    for _ in range(40):
        reader = socket.socket()
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.settimeout(30 * SLOWER)
        reader.connect((address.hostname, address.port))
        reader.sendall(b"GET /resources/files/big HTTP/1.1\r\nHost: x\r\n\r\n")
        statuses.append(int(reader.recv(12)[9:]))
        idle.append(reader)
    assert statuses == sorted(statuses) and set(statuses) == {200, 503} and statuses.count(200) == 25
    assert refusal(running, "/resources/files/big") == (503, "busy")
    assert ask(running, "/resources/files/a.txt")[2] == b"alpha"
    assert trace_of(lab, running).all("resource_read")[-2]["outcome"] == "busy"
    for reader in idle:
        reader.close()
    eventually(lambda: ask(running, "/resources/files/big")[0] == 200, 20 * SLOWER, "there is room again")
    running.signal()
    running.result(20).ok()
