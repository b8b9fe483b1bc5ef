# SPDX-License-Identifier: Apache-2.0
#
# One file handed to one capsule: share-file, the handle, fetch-peer-file, and every way to be refused.

import base64
import hashlib
import http.client
import json
import socket
import threading
import time
import urllib.parse

import pytest

from tests.support.polling import eventually

SLEEPER = {"task_acceptance": "queue", "after_task": "sleep", "queue_depth": 4}
FROM_FILE = {"driver": {"artifact": "std/driver-scripted", "config": {"file": "script.json"}}}


def get(running, path, method="GET", headers=()):
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(running.url).netloc, timeout=30)
    connection.putrequest(method, path, skip_accept_encoding=True)
    for name, value in headers:
        connection.putheader(name, value)
    connection.endheaders()
    with connection.getresponse() as reply:
        answer = reply.status, reply.headers, reply.read()
    connection.close()
    return answer


class Capsule:
    """An agent whose script is written before each task."""

    def __init__(self, lab, name, **manifest):
        self.lab, self.name = lab, name
        self.work = lab.directory / f"work-{name}"
        self.work.mkdir()
        self.running = lab.agent(name=name, inference=FROM_FILE, lifecycle=SLEEPER, **manifest).start(
            "--workdir", self.work)

    @property
    def address(self):
        return f"localhost:{urllib.parse.urlsplit(self.running.url).port}"

    @property
    def audience(self):
        return f"{self.name}@{self.address}"

    @property
    def trace(self):
        return self.lab.session(self.running).trace

    def do(self, tool, **arguments):
        """One task that makes one call; what the tool answered."""
        (self.work / "script.json").write_text(json.dumps({"steps": [
            {"tool_calls": [{"name": tool, "input": arguments}]}, {"text": "{{result}}"}]}))
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {
            "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "go"}]}}}).encode()
        connection = http.client.HTTPConnection(self.address, timeout=60)
        connection.request("POST", "/", body, {"content-type": "application/json", "A2A-Version": "1.0"})
        task = json.loads(connection.getresponse().read())["result"]["task"]
        connection.close()
        return task

    def call(self, tool, **arguments):
        task = self.do(tool, **arguments)
        assert task["status"]["state"] == "TASK_STATE_COMPLETED", task
        return task["artifacts"][0]["parts"][0]["text"]

    def end(self):
        self.running.signal()
        self.running.result(20).ok()


@pytest.fixture
def capsules(lab):
    made = []

    def make(name, **manifest):
        made.append(Capsule(lab, name, **manifest))
        return made[-1]

    yield make
    for capsule in made:
        capsule.end()


@pytest.fixture
def pair(capsules):
    """(who shares, who may fetch); the folder share/ of the first holds a file."""
    giver = capsules("Giver", exports={"peer_files": {"root": "share", "max_ttl": "300s", "max_bytes": 1000}},
                     capabilities={"network": {"allow": ["localhost"]}})
    taker = capsules("taker", capabilities={"peer_fetch": {"allow": ["localhost"]}})
    (giver.work / "share/sub").mkdir(parents=True)
    (giver.work / "share/sub/report.txt").write_text("the report")
    return giver, taker


def share(giver, taker, path="sub/report.txt", **more):
    return json.loads(giver.call("share-file", path=path, peer=taker.address, **more))


def redeem(giver, handle, audience):
    return get(giver.running, f"/resources/peer/{handle}", headers=[("x-murmur-audience", audience)])


def refusal(answer):
    status, _, body = answer
    return status, json.loads(body)["error"]


def test_door_a_shared_file_reaches_the_capsule_it_is_for(lab, pair):
    giver, taker = pair
    before = int(time.time() * 1000)
    given = share(giver, taker)
    assert sorted(given) == ["audience", "expires_at_ms", "handle", "handle_id"]
    assert given["audience"] == f"taker@{taker.address}"
    assert before + 290_000 < given["expires_at_ms"] < before + 400_000
    assert given["handle_id"] == hashlib.sha256(given["handle"].encode()).hexdigest()[:16]
    got = json.loads(taker.call("fetch-peer-file", peer=giver.address, handle=given["handle"]))
    sha = hashlib.sha256(b"the report").hexdigest()
    stored = f"peer-in/{given['handle_id']}-report.txt"
    assert got == {"path": stored, "bytes": 10, "sha256": sha, "peer": giver.address, "generation": 1}
    assert (taker.work / stored).read_text() == "the report"

    minted = giver.trace.one("peer_handle_mint")
    assert list(minted)[5:] == ["handle_id", "path", "audience", "expires_at_ms", "outcome", "reason"]
    assert (minted["handle_id"], minted["path"], minted["outcome"]) == (given["handle_id"], "sub/report.txt", "ok")
    redeemed = giver.trace.one("peer_handle_redeem")
    assert list(redeemed)[5:] == ["handle_id", "path", "generation", "audience_asserted", "bytes", "sha256", "outcome", "reason"]
    assert (redeemed["path"], redeemed["bytes"], redeemed["sha256"], redeemed["outcome"]) == ("sub/report.txt", 10, sha, "ok")
    fetched = taker.trace.one("peer_file_fetch")
    assert list(fetched)[5:] == ["peer", "handle_id", "stored_path", "bytes", "sha256", "outcome", "reason"]
    assert (fetched["peer"], fetched["stored_path"], fetched["outcome"]) == (giver.address, stored, "ok")
    for capsule in pair:
        text = capsule.trace.path.read_text()
        assert given["handle"] not in text
        assert "the report" not in text
    assert taker.trace.one("tool_call")["input"]["handle"] == f"<handle:{given['handle_id']}>"


def test_door_redeeming_again_gives_the_bytes_of_that_moment(pair):
    giver, taker = pair
    given = share(giver, taker)
    for text in ("the report", "another one"):
        (giver.work / "share/sub/report.txt").write_text(text)
        status, headers, body = redeem(giver, given["handle"], given["audience"].upper())
        assert (status, body) == (200, text.encode())
        assert headers["etag"] == f'"sha256:{hashlib.sha256(body).hexdigest()}"'
        assert headers["x-murmur-handle-id"] == given["handle_id"] and headers["x-murmur-export-root"] is None
        assert headers["x-murmur-generation"] and headers["x-murmur-containment"] and headers["x-murmur-mtime-ms"]


def test_door_30_what_is_not_this_handle_for_this_capsule_is_answered_alike(lab, pair, capsules):
    giver, taker = pair
    given = share(giver, taker)
    tag, payload, mac = given["handle"].split(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    assert claims["v"] == 1 and claims["iss"] == giver.running.session_id and claims["p"] == "sub/report.txt"
    assert claims["exp"] == given["expires_at_ms"] and len(claims["n"]) == 32
    forged = base64.urlsafe_b64encode(json.dumps({**claims, "p": "other"}).encode()).decode().rstrip("=")
    again = Capsule(lab, "again", exports={"peer_files": {"root": "share", "max_ttl": "60s"}},
                    capabilities={"network": {"allow": ["localhost"]}})
    answers = [redeem(giver, f"{tag}.{forged}.{mac}", given["audience"]), redeem(giver, given["handle"], "other@localhost:1"),
               redeem(again, given["handle"], given["audience"])]
    again.end()
    assert {answer[::2] for answer in answers} == {(403, answers[0][2])}
    assert json.loads(answers[0][2])["error"] == "handle_not_valid"
    assert [line["path"] for line in giver.trace.all("peer_handle_redeem")] == [None, None]


def test_door_the_order_of_the_peer_planes_refusals(lab, pair):
    giver, taker = pair
    assert refusal(get(giver.running, "/resources/peer")) == (404, "not_found")
    assert refusal(get(giver.running, "/resources/peer/?x")) == (404, "not_found")
    for path in ("/resources/peer", "/resources/peer/x"):
        status, headers, body = get(giver.running, path, "PUT")
        assert (status, headers["allow"], json.loads(body)["error"]) == (405, "GET", "method_not_allowed")
    given = share(giver, taker)
    handle = given["handle"]
    for bad in ("x", "mh1.a", f"{handle}.x", f"{handle}/", "mdt1" + handle[3:], handle + "=", "mh1..x"):
        assert refusal(get(giver.running, f"/resources/peer/{bad}")) == (400, "malformed_handle"), bad
    assert refusal(get(giver.running, f"/resources/peer/{handle}")) == (400, "missing_audience")
    assert refusal(redeem(giver, handle, "")) == (400, "missing_audience")
    assert redeem(giver, f"{handle}?query", given["audience"])[0] == 200
    (giver.work / "share/sub/report.txt").write_bytes(b"x" * 1001)
    status, headers, body = redeem(giver, handle, given["audience"])
    assert (status, json.loads(body)["error"], headers["x-murmur-handle-id"]) == (413, "too_large", given["handle_id"])
    (giver.work / "share/sub/report.txt").unlink()
    assert refusal(redeem(giver, handle, given["audience"])) == (404, "not_found")
    short = share_expired(giver, taker)
    assert refusal(redeem(giver, short["handle"], short["audience"])) == (410, "handle_expired")
    assert refusal(get(taker.running, "/resources/peer/x")) == (404, "no_peer_plane")
    assert refusal(get(taker.running, "/resources/peer/x", "PUT")) == (405, "method_not_allowed")


def share_expired(giver, taker):
    (giver.work / "share/short.txt").write_text("short")
    given = share(giver, taker, "share/short.txt", ttl="1s")
    eventually(lambda: time.time() * 1000 > given["expires_at_ms"])
    return given


def test_door_the_peer_plane_asks_for_no_door_token(lab, capsules):
    giver = capsules("locked", exports={"peer_files": {"root": "share", "max_ttl": 60}},
                     network={"authentication": {"scheme": "bearer"}})
    assert refusal(get(giver.running, "/resources/peer/x", headers=[("x-murmur-task-origin", "peer")])) == (
        400, "malformed_handle")
    assert get(giver.running, "/resources/files")[0] == 401


def test_door_sharing_is_refused_with_a_reason(pair, capsules):
    giver, taker = pair
    cases = {"none.txt": "not_found", "../script.json": "outside_root", "/etc/passwd": "outside_root",
             "sub": "not_a_regular_file"}
    for path, code in cases.items():
        assert code in giver.call("share-file", path=path, peer=taker.address), path
    assert "peer_unreachable" in giver.call("share-file", path="sub/report.txt", peer="127.0.0.1:9")
    assert "ttl" in giver.call("share-file", path="sub/report.txt", peer=taker.address, ttl="soon")
    outcomes = [line["outcome"] for line in giver.trace.all("peer_handle_mint")]
    assert outcomes == [*cases.values(), "peer_unreachable"]
    assert {line["handle_id"] for line in giver.trace.all("peer_handle_mint")} == {None}
    longer = share(giver, taker, ttl="5d")
    assert longer["expires_at_ms"] < (time.time() + 400) * 1000


class Peer:
    """A server that counts connections and answers each request with the same bytes."""

    def __init__(self, answer=b""):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.answer, self.connections = answer, 0
        threading.Thread(target=self.serve, daemon=True).start()

    @property
    def address(self):
        return f"localhost:{self.listener.getsockname()[1]}"

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            with connection:
                connection.recv(65536)
                connection.sendall(self.answer)


def http_answer(status, body, *headers):
    lines = [f"HTTP/1.1 {status} x", f"content-length: {len(body)}", "connection: close", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def handle_for(path):
    payload = base64.urlsafe_b64encode(json.dumps({"p": path}).encode()).decode().rstrip("=")
    return f"mh1.{payload}.AAAA"


def test_door_31_a_peer_that_is_not_allowed_sees_no_connection(capsules):
    taker = capsules("taker", capabilities={"peer_fetch": {"allow": ["elsewhere.example"]},
                                            "network": {"allow": ["localhost"]}})
    peer = Peer()
    assert "peer_not_allowed" in taker.call("fetch-peer-file", peer=peer.address, handle=handle_for("a"))
    line = taker.trace.one("peer_file_fetch")
    assert (line["outcome"], line["stored_path"], line["bytes"]) == ("peer_not_allowed", None, None)
    assert peer.connections == 0
    peer.listener.close()


def test_door_what_a_peer_answers_decides_what_is_stored(capsules):
    taker = capsules("taker", capabilities={"peer_fetch": {"allow": ["localhost"]}})

    def fetch(answer, path="dir/name.txt"):
        peer = Peer(answer)
        text = taker.call("fetch-peer-file", peer=peer.address, handle=handle_for(path))
        peer.listener.close()
        return text

    wrong = f'etag: "sha256:{"0" * 64}"'
    assert "etag_mismatch" in fetch(http_answer(200, b"body", wrong))
    assert "handle_expired" in fetch(http_answer(410, b'{"error":"handle_expired","message":"x"}'))
    assert "http_502" in fetch(http_answer(502, b"<html>"))
    assert "http_500" in fetch(http_answer(500, b'{"error":"Bad Code\\n"}'))
    assert "http_404" in fetch(http_answer(404, b'{"error":"ok"}'))
    assert taker.trace.all("peer_file_fetch")[-1]["outcome"] == "http_404"
    assert "peer_unreachable" in fetch(b"")
    assert not (taker.work / "peer-in").exists()
    assert "malformed_handle" in taker.call("fetch-peer-file", peer="localhost:9", handle="not a handle")
    names = {"a/b c.txt": "b_c.txt", "..": "file", "x/..": "file", "": "file", "y" * 200: "y" * 120, "é": "__"}
    for path, name in names.items():
        got = json.loads(fetch(http_answer(200, b"body"), path))
        assert got["path"].split("-", 2)[2] == name and "generation" not in got
        assert (taker.work / got["path"]).read_bytes() == b"body"


def test_door_a_planted_link_is_never_written_through(lab, capsules):
    taker = capsules("taker", capabilities={"peer_fetch": {"allow": ["localhost"]}})
    outside = lab.directory / "outside"
    outside.mkdir()
    (taker.work / "peer-in").symlink_to(outside)
    peer = Peer(http_answer(200, b"body"))
    taker.do("fetch-peer-file", peer=peer.address, handle=handle_for("a"))
    peer.listener.close()
    assert taker.trace.one("peer_file_fetch")["outcome"] == "path_refused"
    assert list(outside.iterdir()) == []


def test_door_the_tools_exist_only_when_declared(lab, pair):
    giver, taker = pair
    assert "share-file" in giver.trace.one("session_start")["tools_declared"]
    assert "fetch-peer-file" not in giver.trace.one("session_start")["tools_declared"]
    start = taker.trace.one("session_start")
    assert "fetch-peer-file" in start["tools_declared"] and "share-file" not in start["tools_declared"]
    assert start["effective_grants"]["peer_fetch_allow"] == ["localhost"]
    assert "exports.peer_files" in taker.call("share-file", path="a", peer="b")
    assert giver.trace.one("session_start")["effective_grants"]["peer_files"] == {
        "root": "share", "max_ttl_secs": 300, "max_bytes": 1000}


def test_door_a_sleeping_capsule_must_say_how_long_its_handles_live(lab):
    for plane in ({"root": "share"}, {"root": "share", "max_ttl": "901s"}):
        lab.agent(name="agent", steps=[{"text": "x"}], lifecycle=SLEEPER, exports={"peer_files": plane}).run().failed("E-CAP-008")
