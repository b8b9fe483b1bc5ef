# SPDX-License-Identifier: Apache-2.0
#
# mur-roost as the bench asks it: a daemon with a thousand live sessions, and children that register with it.

import http.client
import json
import os
import re
import select
import socket
import subprocess
import time
from pathlib import Path

LIVE = 1000
ASKS = 1000
BAD = 10_000
SESSION = "ses_{:032x}"


class Roost:
    """The daemon beside a subject's mur, with its store; as a context manager."""

    def __init__(self, subject):
        program = subject.path.parent / "mur-roost"
        if not program.is_file():
            raise FileNotFoundError(f"{subject.label}: there is no mur-roost beside mur")
        self.process = subprocess.Popen(
            [str(program), "--port", "0", "--spawn-allow", "local/bench-lead", "--max-live-capsules", "1000000",
             "--max-concurrent", "1000000"], env=subject.env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for line in self.process.stderr:
            found = re.search(rb"listening on 127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found.group(1))
                break
        self.process.stderr.readline()  # the ceiling: the last line before it serves

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        self.process.terminate()
        self.process.wait(20)
        self.process.stderr.close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path, body, headers=None):
        wire = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        wire.request("POST", path, json.dumps(body), headers or {})
        answer = wire.getresponse()
        text = answer.read()
        wire.close()
        if answer.status != 200:
            raise RuntimeError(f"mur-roost answered {answer.status}: {text.decode(errors='replace')}")
        return json.loads(text)

    def register(self, number):
        body = {"session_id": SESSION.format(number), "name": "local/bench-lead", "version": "0.1.0"}
        return self.ask("/register", body)["credential"]

    def approval(self, credential):
        body = {"name": "local/bench-child", "version": "0.1.0"}
        return self.ask("/spawn", body, {"x-murmur-spawn-credential": credential})["approval"]

    @property
    def peak_mib(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(re.search(r"VmHWM:\s+(\d+)", status).group(1)) / 1024

    @property
    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def publish(subject, component):
    subject.publish("bench-child", component, "capsule")
    subject.publish("bench-lead", component, "capsule", "capabilities: {spawn: {allow: [local/bench-child]}}\n")


def spawn_p99_ms(roost):
    """The 99th percentile of /spawn, asked by a thousand live sessions in turn."""
    credentials = [roost.register(number) for number in range(LIVE)]
    took = []
    for number in range(ASKS):
        begun = time.perf_counter_ns()
        roost.approval(credentials[number % LIVE])
        took.append((time.perf_counter_ns() - begun) / 1e6)
    return sorted(took)[int(ASKS * 0.99)]


def peak_mib(roost):
    """Its peak with a thousand live sessions after ten thousand requests that are none."""
    for number in range(LIVE):
        roost.register(number)
    bad = [b"\x00\xff" * 500, b"POST /spawn HTTP/1.1\r\nx: " + b"y" * 9000, b"POST /spawn HTTP/1.1\r\ncontent-length: 9\r\n\r\n{",
           b"POST /register HTTP/1.1\r\nx-murmur-spawn-approval: msa1.x.y\r\ncontent-length: 2\r\n\r\n{}"]
    for number in range(BAD):
        with socket.create_connection(("127.0.0.1", roost.port), 30) as wire:
            wire.sendall(bad[number % len(bad)])
            wire.shutdown(socket.SHUT_WR)
            try:
                while wire.recv(4096):
                    pass
            except ConnectionError:
                pass
    return roost.peak_mib


def launch_ms(subject, roost, credential, workdir):
    """From an approval in hand to the child's readiness line."""
    approval = roost.approval(credential)
    argv = [str(subject.path), "run", "--capsule", "local/bench-child", "--capsule-version", "0.1.0", "--workdir", str(workdir),
            "--json", "--readiness-tokens", "--no-env-file", "--spawn-grant-stdin", "--contained-launch"]
    begun = time.perf_counter_ns()
    process = subprocess.Popen(argv, env={**subject.env, "MURMUR_ROOST_URL": roost.url}, cwd=workdir, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    process.stdin.write(approval.encode() + b"\n")
    process.stdin.close()
    line = process.stdout.readline() if select.select([process.stdout], [], [], 30)[0] else b""
    took_ms = (time.perf_counter_ns() - begun) / 1e6
    process.wait(30)
    process.stdout.close()
    if not line:
        raise RuntimeError("the child said nothing")
    return took_ms


def library_launches_ms(subject, roost, credential, build, folder, count, at_once):
    """Launches through include/murmur/child.h, so many at once: from the approval in hand to the readiness line, each.

    Neither the launcher nor the daemon may hold a descriptor more afterwards."""
    program = build / "tests/launcher/launch-many"
    if not program.is_file():
        raise FileNotFoundError("launch-many is not built")
    approvals = "".join(roost.approval(credential) + "\n" for _ in range(count))
    held = roost.descriptors
    done = subprocess.run(
        [str(program), "local/bench-child", "0.1.0", str(folder), roost.url, str(at_once)], input=approvals.encode(),
        env={**subject.env, "MURMUR_MUR_BINARY": str(subject.path)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    *times, growth = done.stdout.decode().split("\n")[:-1]
    if done.returncode != 0 or len(times) != count:
        raise RuntimeError(done.stderr.decode(errors="replace").strip().split("\n")[-1] or "a launch failed")
    if growth != "descriptors 0" or roost.descriptors > held:
        raise RuntimeError(f"the launcher holds more after {count} launches ({growth}), mur-roost {roost.descriptors - held}")
    return [int(time_us) / 1000 for time_us in times]
