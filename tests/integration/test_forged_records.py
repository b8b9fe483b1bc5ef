# SPDX-License-Identifier: Apache-2.0
#
# Files in the folder of running records that no session wrote: what they are is never waited for, followed or believed further than
# it can be checked, and their words reach no terminal as they are.

import json
import os
import socket
import threading

import pytest

from tests.integration.test_running import session_id, start_time, write_record
from tests.integration.test_running import bystander  # noqa: F401
from tests.support.door_client import SLEEPER

COMMANDS = [("ps",), ("ps", "--json"), ("watch", session_id(1)), ("stop", session_id(1), "--timeout", "1"), ("token",),
            ("cancel", session_id(1), "tsk_x"), ("trace", "list"), ("send", session_id(1), "hello")]


def each_command(lab):
    """All commands that go by records; none waits, and none is ended by a signal. What they printed."""
    results = [lab.mur(*command, timeout=30) for command in COMMANDS]
    assert all(result.code in (0, 1, 2) for result in results), [str(result) for result in results]
    return "".join(result.stdout + result.stderr for result in results)


def place(lab):
    path = write_record(lab)
    path.unlink()
    return path


def test_security_a_fifo_is_no_record_and_is_not_waited_for(lab):
    path = place(lab)
    os.mkfifo(path)
    os.mkfifo(path.with_suffix(".control"))
    each_command(lab)


def test_security_a_link_is_no_record_and_what_it_leads_to_stays(lab):
    path = place(lab)
    secret = lab.directory / "secret"
    secret.write_text('{"not": "murmur-secret-word"}')
    os.symlink(secret, path)
    os.symlink(secret, path.with_suffix(".control"))
    assert "murmur-secret-word" not in each_command(lab)
    assert secret.read_text() == '{"not": "murmur-secret-word"}'
    device = lab.murmur_home / "running" / f"{session_id(2)}.json"
    os.symlink("/dev/zero", device)
    each_command(lab)


def test_security_a_folder_and_a_socket_are_no_records(lab):
    path = place(lab)
    path.mkdir()
    (path / "inside").write_text("kept\n")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(path.parent)
        try:
            server.bind(f"{session_id(3)}.json")
        finally:
            os.chdir(here)
        each_command(lab)
    assert (path / "inside").read_text() == "kept\n"


@pytest.mark.parametrize("kind", ["sparse", "deep", "long"])
def test_security_a_huge_record_costs_one_line(lab, kind):
    path = place(lab)
    if kind == "sparse":
        with open(path, "w") as record:
            record.truncate(8 << 30)
    elif kind == "deep":
        path.write_text("[" * 200000)
    else:
        write_record(lab, capsule_name="x" * (3 << 20))
    text = each_command(lab)
    assert len(text) < 100000, len(text)


HOSTILE = "a\x1b]0;PWN\x07\x1b[2J\u202eevil\r\n\x9bx"


def test_security_words_of_a_record_do_not_steer_the_terminal(lab, bystander):  # noqa: F811
    write_record(lab, pid=bystander.pid, capsule_name=HOSTILE, capsule_version=HOSTILE, workdir="/" + HOSTILE,
                 records_dir="/" + HOSTILE, url="localhost:1" + HOSTILE, started_at=HOSTILE, spawned_by=HOSTILE)
    write_record(lab, 2, pid=bystander.pid, capsule_name=HOSTILE)
    plain = [command for command in COMMANDS if "--json" not in command and command[0] != "stop"]
    for command in plain:
        result = lab.mur(*command, timeout=30)
        for text in (result.stdout, result.stderr):
            assert not [c for c in text if c in "\x1b\x07\x9b\r\u202e"], (command, text)
    shown = lab.mur("ps", "--json").ok().json["capsules"]
    assert all(HOSTILE in (row.get("capsule_name") or row.get("name") or HOSTILE) for row in shown)
    assert bystander.poll() is None


def test_security_a_record_in_the_name_of_another_takes_nothing_of_it_away(lab):
    """A file of any name that says it is a session that runs, with the number of a process that is gone."""
    running = lab.agent(steps=[{"text": "done"}], lifecycle=SLEEPER).start()
    own = lab.murmur_home / "running" / f"{running.session_id}.json"
    forged = own.with_name("forged.json")
    forged.write_text(json.dumps({**json.loads(own.read_text()), "pid": 4194304, "process_start": "1"}))
    shown = lab.mur("ps").ok().stdout
    assert shown.count(running.session_id) == 1 and "running" in shown
    assert own.exists() and not forged.exists()
    running.signal()
    running.result(20).ok()


@pytest.mark.parametrize("url", ["evil.example:80", "127.0.0.1:1@evil.example:80", "localhost:0", "localhost:99999", "localhost", "",
                                 "http://localhost:1/x", "[::1]:1", "localhost:1/../x", "0.0.0.0:1"])
def test_security_a_record_leads_to_no_other_machine(lab, bystander, url):  # noqa: F811
    """Its token would go there."""
    write_record(lab, pid=bystander.pid, url=url, door_token="murmur-secret-word")
    text = each_command(lab)
    assert "murmur-secret-word" not in text.replace(lab.mur("token").stdout, "")


def test_security_a_record_of_another_user_s_process_signals_nobody(lab):
    """pid 1 is not the user's, or where it is, is not what the record says."""
    path = write_record(lab, pid=1, process_start="1")
    each_command(lab)
    assert os.path.exists("/proc/1") and not path.exists()


def test_security_a_door_that_floods_is_not_believed(lab, bystander):  # noqa: F811
    """What answers at a record's address says it is the session and sends without an end."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(1)
        is_over = threading.Event()

        def serve():
            while not is_over.is_set():
                try:
                    client, _ = server.accept()
                    client.settimeout(1)
                    client.recv(4096)
                    client.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{\"x\":\"")
                    for _ in range(64):
                        client.sendall(b"y" * (1 << 20))
                    client.close()
                except OSError:
                    pass
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        write_record(lab, pid=bystander.pid, process_start=start_time(bystander.pid), url=f"localhost:{server.getsockname()[1]}")
        rows = json.loads(lab.mur("ps", "--json", timeout=60).ok().stdout)["capsules"]
        assert [row["status"] for row in rows] == ["unreachable"], rows
        is_over.set()
        thread.join()
