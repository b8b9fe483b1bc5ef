# SPDX-License-Identifier: Apache-2.0
#
# The spawn referee: R1-R8 of spec/spawn.md, parts B and C1 as a client of the daemon sees them, case 30 of spec/cli.md.

import base64
import json
import os
import re
import signal
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.lab import IS_SANITIZED, MUR, ROOT, SLOWER
from tests.support.polling import descriptor_count, eventually, threads_of, tree_of
from tests.support.roost import Roost, publish_capsule, run_roost

ROOT_SESSION = "ses_" + "a" * 32
REFUSED = b'{"error":"the credential presented is not valid for this request"}'
APPROVAL_LIFE_S = 60


def session_id(number):
    return f"ses_{number:032x}"


@pytest.fixture
def start(lab):
    """Starts daemons; each must end well with the test."""
    started = []

    def start_one(*arguments, **how):
        started.append(Roost(lab, *arguments, **how))
        return started[-1]
    yield start_one
    codes = [roost.stop() for roost in started]
    assert codes == [0] * len(codes), [roost.lines for roost in started]


@pytest.fixture
def family(lab):
    """local/lead, which may start itself and local/worker."""
    publish_capsule(lab, "worker")
    return publish_capsule(lab, "lead", capabilities={"spawn": {"allow": ["local/lead", "local/worker"]}})


def test_roost_serves_its_table_byte_for_byte(lab, family, start):
    roost = start("--spawn-allow", family)

    head, body = roost.raw(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n").split(b"\r\n\r\n")
    assert head == (b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close")
    assert body == b"{}"
    for method, path in (("GET", "/health?x"), ("GET", "/health/"), ("POST", "/health"), ("GET", "/spawn"), ("GET", "/")):
        answer = roost.ask(method, path)
        assert (answer.status, answer.body) == (404, b'{"error":"not found"}')

    credential = roost.credential(ROOT_SESSION, family)
    assert credential.startswith("msc1.")
    granted = roost.spawn(credential, "local/worker").ok()
    assert list(granted) == ["approval", "name", "version", "sha256", "expires_at_ms"]
    assert (granted["name"], granted["version"]) == ("local/worker", "0.1.0")
    assert len(granted["sha256"]) == 64
    assert 0 < granted["expires_at_ms"] - time.time() * 1000 <= APPROVAL_LIFE_S * 1000
    assert roost.status(ROOT_SESSION).body == (
        b'{"status":"running","depth_remaining":3,"live_children":1,"live_capsules":2}')
    assert roost.status("ses_unknown").refused(404) == "session not found"

    assert roost.deregister(credential, "complete").body == b"{}"
    assert roost.status(ROOT_SESSION).ok()["status"] == "complete"
    assert roost.status(ROOT_SESSION).ok()["live_capsules"] == 0


def test_roost_judges_the_body_before_the_credential(lab, family, start):
    roost = start("--spawn-allow", family, "--spawn-allow", "bare")
    for body in (b"", b"{", b"[]", {}, {"name": "local/lead"}, {"name": 1, "version": "0.1.0"}):
        assert roost.ask("POST", "/spawn", body).status == 400
        assert roost.ask("POST", "/register", body).status == 400
    assert roost.register("", family).status == 400
    assert "bare" in roost.register(session_id(1), "bare").refused(400)
    credential = roost.credential(ROOT_SESSION, family)
    assert roost.deregister(credential, "done").status == 400
    assert roost.status(ROOT_SESSION).ok()["status"] == "running"
    assert roost.register(session_id(2), family, "9.9.9").status == 500
    assert roost.spawn(credential, "local/worker", "9.9.9").status == 500
    assert "local/worker" in roost.spawn(credential, "local/stranger").refused()


def test_roost_R1_every_fault_of_identity_gets_the_same_bytes(lab, family, start):
    old = start("--spawn-allow", family)
    foreign = old.credential(ROOT_SESSION, family)
    roost = start("--spawn-allow", family)
    credential = roost.credential(ROOT_SESSION, family)
    approval = roost.approval(credential, "local/worker")
    finished = roost.credential(session_id(1), family)
    orphan = roost.approval(finished, "local/worker")
    roost.deregister(finished).ok()

    tag, payload, mac = credential.split(".")
    other = base64.urlsafe_b64encode(json.dumps({"v": 1, "sid": session_id(1), "n": "0" * 32}).encode()).rstrip(b"=").decode()
    presented = [None, "", "msc1", credential + ".x", credential + "=", f"{tag}.{other}.{mac}", f"msa1.{payload}.{mac}", foreign,
                 approval, finished]
    answers = [roost.spawn(token, "local/worker") for token in presented]
    answers += [roost.deregister(token) for token in presented if token is not None]
    answers += [roost.register(session_id(2), "local/worker", approval=token)
                for token in ("", "msa1.x.y", credential, foreign, orphan)]
    answers.append(roost.register(ROOT_SESSION, family))
    for answer in answers:
        assert (answer.status, answer.body) == (403, REFUSED)


def test_roost_R2_a_capsule_that_lists_itself_gets_exactly_its_depth(lab, family, start):
    roost = start("--spawn-allow", family, "--max-depth", "2")
    credential = roost.credential(session_id(0), family)
    for level in (1, 2):
        approval = roost.approval(credential, family)
        credential = roost.credential(session_id(level), family, approval=approval)
        assert roost.status(session_id(level)).ok()["depth_remaining"] == 2 - level
    assert "--max-depth 2" in roost.spawn(credential, family).refused()


def test_roost_a_depth_of_zero_refuses_every_delegation(lab, family, start):
    roost = start("--spawn-allow=" + family, "--max-depth", "0")
    assert "--max-depth 0" in roost.spawn(roost.credential(ROOT_SESSION, family), "local/worker").refused()


def test_roost_R3_concurrent_asks_get_as_many_approvals_as_there_are_places(lab, family, start):
    roost = start("--spawn-allow", family, "--max-concurrent", "4")
    credential = roost.credential(ROOT_SESSION, family)
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: roost.spawn(credential, "local/worker"), range(20)))
    assert sorted(answer.status for answer in answers) == [200] * 4 + [403] * 16
    assert all("--max-concurrent 4" in answer.error for answer in answers if answer.status == 403)
    assert roost.status(ROOT_SESSION).ok()["live_children"] == 4


def test_roost_the_machine_ceiling_outranks_the_parents_own(lab, family, start):
    roost = start("--spawn-allow", family, "--max-live-capsules", "2", "--max-concurrent", "1")
    credential = roost.credential(ROOT_SESSION, family)
    roost.approval(credential, "local/worker")
    assert "--max-live-capsules 2" in roost.spawn(credential, "local/worker").refused()
    roost.credential(session_id(1), family)  # the ceiling is for delegations


def test_roost_R4_an_approval_nobody_used_lapses_after_a_minute(lab, family, start):
    roost = start("--spawn-allow", family, "--max-concurrent", "1")
    credential = roost.credential(ROOT_SESSION, family)
    granted = roost.spawn(credential, "local/worker").ok()
    assert "--max-concurrent 1" in roost.spawn(credential, "local/worker").refused()

    eventually(lambda: roost.status(ROOT_SESSION).ok()["live_children"] == 0, APPROVAL_LIFE_S + 10, "the slot is free", 0.2)

    assert time.time() * 1000 >= granted["expires_at_ms"]
    assert "60 s" in roost.register(session_id(1), "local/worker", approval=granted["approval"]).refused()
    roost.approval(credential, "local/worker")


def test_roost_R5_an_approval_is_spent_by_whoever_shows_it(lab, family, start):
    roost = start("--spawn-allow", family)
    credential = roost.credential(ROOT_SESSION, family)

    replayed = roost.approval(credential, "local/worker")
    roost.credential(session_id(1), "local/worker", approval=replayed)
    assert "spent" in roost.register(session_id(2), "local/worker", approval=replayed).refused()

    misused = roost.approval(credential, "local/worker")
    error = roost.register(session_id(3), family, approval=misused).refused()
    assert "local/worker@0.1.0" in error and "local/lead@0.1.0" in error
    assert "spent" in roost.register(session_id(3), "local/worker", approval=misused).refused()

    granted = roost.spawn(credential, "local/worker").ok()
    publish_capsule(lab, "worker", description="another one")
    error = roost.register(session_id(4), "local/worker", approval=granted["approval"]).refused()
    assert granted["sha256"] in error and roost.spawn(credential, "local/worker").ok()["sha256"] in error
    assert "spent" in roost.register(session_id(4), "local/worker", approval=granted["approval"]).refused()
    assert roost.status(session_id(4)).status == 404


def test_roost_a_fault_at_the_artifact_leaves_the_approval_good(lab, family, start):
    roost = start("--spawn-allow", family)
    approval = roost.approval(roost.credential(ROOT_SESSION, family), "local/worker")
    folder = lab.murmur_home / "artifacts/local/worker"
    folder.rename(folder.with_name("elsewhere"))
    assert roost.register(session_id(1), "local/worker", approval=approval).status == 500
    folder.with_name("elsewhere").rename(folder)
    roost.credential(session_id(1), "local/worker", approval=approval)


OVERREACHING = {
    "host": ({"network": {"allow": ["https://inside.example", "https://outside.example"]}},
             "capabilities.network.allow:", "https://outside.example"),
    "variable": ({"env": {"allow": ["HELD", "NOT_HELD"]}}, "capabilities.env.allow:", "NOT_HELD"),
    "exec": ({"filesystem": {"workdir_exec": True}}, "capabilities.filesystem.workdir_exec:", "true"),
    "floor": ({"containment": "advisory"}, "capabilities.containment:", "advisory"),
    "spawn": ({"spawn": {"allow": ["local/stranger"]}}, "capabilities.spawn.allow:", "local/stranger"),
}


def test_roost_R6_a_child_wider_than_its_parent_is_refused_by_key_and_entry(lab, start):
    for name, (capabilities, _key, _entry) in OVERREACHING.items():
        publish_capsule(lab, name, capabilities={"containment": "scoped", **capabilities})
    publish_capsule(lab, "fits", capabilities={"containment": "sealed", "env": {"allow": ["HELD"]},
                                               "network": {"allow": ["https://inside.example:443"]}})
    parent = publish_capsule(lab, "parent", capabilities={
        "containment": "scoped", "env": {"allow": ["HELD"]}, "network": {"allow": ["https://inside.example"]},
        "spawn": {"allow": [f"local/{name}" for name in [*OVERREACHING, "fits"]]}})
    roost = start("--spawn-allow", parent)
    credential = roost.credential(ROOT_SESSION, parent)
    before = tree_of(lab.murmur_home)

    for name, (_capabilities, key, entry) in OVERREACHING.items():
        error = roost.spawn(credential, f"local/{name}").refused()
        assert error.startswith(key) and entry in error
    assert roost.status(ROOT_SESSION).ok()["live_children"] == 0
    roost.approval(credential, "local/fits")
    assert tree_of(lab.murmur_home) == before


def process_start(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        return stat.read().rsplit(")", 1)[1].split()[19]


def running_record(lab, session, pid, begun, changed=()):
    record = {"session_id": session, "url": "localhost:1", "pid": pid, "process_start": begun, "capsule_name": "local/x",
              "capsule_version": "0.1.0", "workdir": "/w", "records_dir": f"/r/{session}", "outlives_launcher": False,
              "started_at": "2026-01-01T00:00:00+00:00", "something_new": 1, **dict(changed)}
    folder = lab.murmur_home / "running"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{session}.json").write_text(json.dumps({key: value for key, value in record.items() if value is not None}))


@pytest.fixture
def sleepers():
    """Processes that stand for live sessions."""
    started = [subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL) for _ in range(2)]
    yield started
    for process in started:
        process.kill()
        process.wait()


def test_roost_R7_a_restart_counts_what_an_earlier_one_approved(lab, family, start, sleepers):
    for number, process in enumerate(sleepers):
        running_record(lab, session_id(number), process.pid, process_start(process.pid))
    running_record(lab, session_id(2), sleepers[0].pid, "1")
    folder = lab.murmur_home / "running"
    (folder / "notes.txt").write_text("not a record")
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}

    roost = start("--spawn-allow", family, "--max-live-capsules", "3")

    line = roost.lines[0]
    assert line.startswith(f"mur-roost: 2 live capsules, {folder}: 3 records read in ")
    assert line.endswith(" ms, 1 stale, 0 unreadable")
    assert roost.lines[1] == f"mur-roost: listening on 127.0.0.1:{roost.port}"
    assert roost.lines[2] == "mur-roost: at most 3 live capsules on this machine (--max-live-capsules)"
    credential = roost.credential(ROOT_SESSION, family)
    assert roost.status(ROOT_SESSION).ok()["live_capsules"] == 3
    assert "--max-live-capsules 3" in roost.spawn(credential, "local/worker").refused()
    sleepers[0].kill()
    sleepers[0].wait()
    roost.approval(credential, "local/worker")
    assert roost.status(ROOT_SESSION).ok()["live_capsules"] == 3
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()} == before


def test_roost_what_cannot_be_read_as_a_record_is_named_and_not_counted(lab, start, sleepers):
    pid, begun = sleepers[0].pid, process_start(sleepers[0].pid)
    for number, changed in enumerate(({"process_start": None}, {"records_dir": None}, {"pid": "1"}, {"url": None})):
        running_record(lab, session_id(number), pid, begun, changed)
    running_record(lab, session_id(8), pid, "")
    folder = lab.murmur_home / "running"
    (folder / "empty.json").touch()
    (folder / "folder.json").mkdir()
    (folder / "link.json").symlink_to("nowhere")
    (folder / "torn.json").write_text('{"session_id": ')
    assert start().lines[0].endswith(" ms, 1 stale, 8 unreadable")


def test_roost_R8_a_machine_that_cannot_be_counted_is_not_served(lab):
    lab.murmur_home.mkdir()
    (lab.murmur_home / "running").write_text("not a folder")

    code, _stdout, stderr = run_roost(lab, "--port", "0")
    assert code == 1
    assert stderr.startswith("mur-roost: ") and str(lab.murmur_home / "running") in stderr
    assert "listening" not in stderr
    version = lab.mur("--version").stdout.split()[1]
    assert run_roost(lab, "--version") == (0, f"mur-roost {version}\n", "")
    assert run_roost(lab, "--port", "0", "--registry-path", lab.home, env={"HOME": None})[0] == 1


def test_roost_a_folder_of_records_that_is_missing_stays_missing(lab, start):
    assert start().lines[0].startswith("mur-roost: 0 live capsules, ")
    assert not lab.murmur_home.exists()


@pytest.mark.parametrize("words, said", [
    (["--port", "x"], "--port"), (["--port", "65536"], "--port"), (["--port", "-1"], "--port"), (["--max-depth", "two"], "--max-depth"),
    (["--max-depth=2"], "--max-depth=2"), (["--help"], "--help"), (["-V"], "-V"), (["--port"], "--port"), (["extra"], "extra"),
    (["--max-live-capsules", "4294967296"], "--max-live-capsules"), (["--bogus", "--version"], "--bogus"),
])
def test_cli_30_a_bad_word_ends_the_referee_before_it_binds(lab, words, said):
    code, stdout, stderr = run_roost(lab, *words)
    assert (code, stdout) == (1, "")
    assert stderr.startswith("mur-roost: ") and said in stderr
    assert stderr.count("\n") == 1


def test_roost_takes_every_flag_of_its_manual_page(lab):
    page = (ROOT / "src/roost/mur-roost.1").read_text().replace("\\-", "-")
    flags = set(re.findall(r"^\.BR (--[a-z-]+) ", page, re.MULTILINE))
    assert len(flags) == 21
    for flag in flags:
        code, _, told = run_roost(lab, flag)
        assert code == 1 and told == f"mur-roost: {flag} needs a value\n"


def test_cli_30_the_version_needs_no_port_and_no_home(lab):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, stdout, _stderr = run_roost(lab, "--port", port, "--version", env={"HOME": None})
        assert code == 0 and stdout.startswith("mur-roost ")
        code, _stdout, stderr = run_roost(lab, "--port", port)
        assert code == 1
        lines = stderr.splitlines()
        assert len(lines) == 2 and " live capsules, " in lines[0] and str(port) in lines[1]
    with open("/dev/full", "w", encoding="ascii") as full:
        code, _stdout, stderr = run_roost(lab, "--version", stdout=full)
    assert code == 1 and stderr.startswith("error[E-IO-003]:")
    reader, writer = os.pipe()
    os.close(reader)
    assert run_roost(lab, "--version", stdout=writer)[0] == 0
    os.close(writer)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_roost_ends_on_a_signal_with_status_0_and_leaves_no_silent_client_waiting(lab, start, number):
    roost = start()
    with socket.create_connection(("127.0.0.1", roost.port), 5) as silent:
        eventually(lambda: threads_of(roost.pid) > 1, 10, "the connection has its thread")
        begun = time.monotonic()
        assert roost.stop(number) == 0
        assert time.monotonic() - begun < 5 * SLOWER
        silent.settimeout(5)
        assert silent.recv(1) == b""


def test_roost_bad_requests_change_nothing(lab, family, start):
    roost = start("--spawn-allow", family)
    credential = roost.credential(ROOT_SESSION, family)
    ask = json.dumps({"name": "local/worker", "version": "0.1.0"}).encode()
    head = b"POST /spawn HTTP/1.1\r\nX-MURMUR-Spawn-Credential: " + credential.encode() + b"\r\n"
    # Headers beyond the first 8192 bytes never count; what is cut short is judged as far as it came.
    late = b"POST /spawn HTTP/1.1\r\nx-filler: " + b"x" * 8300 + b"\r\n" + head.split(b"\r\n", 1)[1]
    assert b" 200 " not in roost.raw(late + b"content-length: %d\r\n\r\n" % len(ask) + ask)
    assert b" 400 " in roost.raw(head + b"content-length: 999\r\n\r\n" + ask[:-1])
    assert b" 400 " in roost.raw(head + b"content-length: -1\r\n\r\n" + ask[:-1])
    assert b" 400 " in roost.raw(head + b"\r\n")
    roost.raw(b"\x00\xff" * 5000)
    roost.raw(b"\r\n\r\n")
    assert roost.raw(b"") == b""
    assert roost.status(ROOT_SESSION).ok()["live_children"] == 0
    assert b" 200 " in roost.raw(head + b"content-length: %d\r\n\r\n" % len(ask) + ask)


def memory_kib(pid, key):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(re.search(rf"^{key}:\s+(\d+) kB", status.read(), re.MULTILINE).group(1))


def test_roost_ten_thousand_bad_requests_leak_nothing(lab, family, start):
    roost = start("--spawn-allow", family, "--max-concurrent", "100000", "--max-live-capsules", "100000")
    live = 100 if IS_SANITIZED else 1000
    credentials = [roost.credential(session_id(number), family) for number in range(live)]
    other = roost.credential(session_id(live), family)
    roost.deregister(other).ok()
    eventually(lambda: threads_of(roost.pid) == 1, 20 * SLOWER)
    held = descriptor_count(roost.pid)
    ask = json.dumps({"name": "local/worker", "version": "0.1.0"}).encode()

    def post(path, header, body):
        return b"POST " + path + b" HTTP/1.1\r\n" + header + b"\r\ncontent-length: %d\r\n\r\n" % len(body) + body

    forged = credentials[0][:-4] + "AAAA"
    bad = [
        b"GET / HTTP/1.1\r\nx: " + b"y" * 9000, b"\x00\xff" * 600, b"POST", b"",
        b"POST /spawn HTTP/1.1\r\ncontent-length: 999999\r\n\r\n{",
        post(b"/spawn", b"x-murmur-spawn-credential: " + forged.encode(), ask),
        post(b"/spawn", b"x-murmur-spawn-credential: " + other.encode(), ask),
        post(b"/spawn", b"x-murmur-spawn-credential: " + credentials[0].encode(), b"[" * 3000),
        post(b"/spawn", b"x-murmur-spawn-credential: " + credentials[0].encode(), b'{"name":"local/none","version":"1"}'),
        post(b"/register", b"x-murmur-spawn-approval: msa1.e30.AAAA", b'{"session_id":"ses_x","name":"local/lead","version":"0.1.0"}'),
        post(b"/deregister", b"x-murmur-spawn-credential: " + other.encode(), b'{"outcome":"complete"}'),
    ]

    def send(number):
        answer = roost.raw(bad[number % len(bad)])
        assert b" 200 " not in answer.split(b"\r\n", 1)[0]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(send, range(500)))  # buffers and arenas of the allocator reach their size
        before = memory_kib(roost.pid, "RssAnon")
        list(pool.map(send, range(1000 if IS_SANITIZED else 10_000)))
    eventually(lambda: threads_of(roost.pid) == 1, 20 * SLOWER, "no connection is served any more")
    if not IS_SANITIZED:
        assert memory_kib(roost.pid, "RssAnon") - before < 1024
        assert memory_kib(roost.pid, "VmHWM") <= 8 * 1024
    facts = roost.status(session_id(0)).ok()
    assert (facts["live_children"], facts["live_capsules"]) == (0, live)
    roost.spawn(credentials[0], "local/worker").ok()
    eventually(lambda: descriptor_count(roost.pid) == held, 10 * SLOWER, "as many descriptors as before")


def test_roost_a_body_that_never_comes_holds_nobody_up(lab, family, start):
    roost = start("--spawn-allow", family)
    credential = roost.credential(ROOT_SESSION, family)
    slow = []
    for _ in range(64):
        wire = socket.create_connection(("127.0.0.1", roost.port), 30)
        wire.sendall(b"POST /spawn HTTP/1.1\r\ncontent-length: 100\r\n\r\n{")
        slow.append(wire)
    begun = time.monotonic()
    roost.spawn(credential, "local/worker").ok()
    assert time.monotonic() - begun < 5 * SLOWER
    for wire in slow:
        wire.settimeout(20 * SLOWER)
        assert wire.recv(64).startswith(b"HTTP/1.1 400 ")  # judged as far as it came, at ten seconds
        wire.close()


def test_roost_writes_no_token_anywhere(lab, family, start):
    roost = start("--spawn-allow", family)
    credential = roost.credential(ROOT_SESSION, family)
    approval = roost.approval(credential, "local/worker")
    for token in (credential, approval):
        assert token not in "".join(roost.lines)
        for path in lab.directory.rglob("*"):
            assert not path.is_file() or token.encode() not in path.read_bytes()
