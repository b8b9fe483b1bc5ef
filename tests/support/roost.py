# SPDX-License-Identifier: Apache-2.0
#
# mur-roost in a lab: the daemon on a port of its own, capsules in the store it reads, and what its clients send.

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading

import yaml

from .fixtures import own_component
from .lab import BUILD, SLOWER
from .polling import eventually

ROOST = BUILD / "mur-roost"


def publish_capsule(lab, name, version="0.1.0", component=None, **manifest):
    """Packs a script capsule and puts it into the lab's global store; returns its full name. A version may be put again."""
    directory = lab.directory / "packages" / f"capsule-{name}-{version}"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "capsule.wasm").write_bytes((component or own_component("script-task")).read_bytes())
    (directory / "murmur.yaml").write_text(yaml.safe_dump(
        {"name": name, "version": version, "runtime": "capsule", "requires_files": ["capsule.wasm"], **manifest},
        sort_keys=False))
    lab.mur("build", ".", cwd=directory).ok()
    published = lab.murmur_home / "artifacts/local" / name / version
    if published.is_dir():
        for path in published.iterdir():
            path.unlink()
        published.rmdir()
    lab.mur("publish", cwd=directory).ok()
    return f"local/{name}"


class Answer:
    """One answer, to its last byte."""

    def __init__(self, status, head, body):
        self.status, self.head, self.body = status, head, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]

    def ok(self):
        assert self.status == 200, str(self)
        return self.json

    def refused(self, status=403):
        assert self.status == status, str(self)
        return self.error

    def __str__(self):
        return f"{self.status} {self.body!r}"


class Roost:
    """A running daemon; `arguments` are added to `--port 0`."""

    def __init__(self, lab, *arguments, env=None):
        self.lab = lab
        self.process = subprocess.Popen(
            [str(ROOST), "--port", "0", *map(str, arguments)], env=lab.environment(env), cwd=lab.directory,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
        self.lines = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        eventually(lambda: len(self.lines) >= 3 or self.process.poll() is not None, 20 * SLOWER, "mur-roost is ready")
        assert self.process.poll() is None, self.lines
        self.port = int(re.search(r"127\.0\.0\.1:(\d+)$", self.lines[1]).group(1))
        self.url = f"http://127.0.0.1:{self.port}"

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line.decode(errors="replace").rstrip("\n"))
        self.process.stderr.close()

    @property
    def pid(self):
        return self.process.pid

    def raw(self, data, within_s=20):
        """Sends bytes as they are; what came back until the end."""
        with socket.create_connection(("127.0.0.1", self.port), within_s * SLOWER) as wire:
            wire.sendall(data)
            wire.shutdown(socket.SHUT_WR)
            received = b""
            while piece := wire.recv(65536):
                received += piece
            return received

    def ask(self, method, path, body=None, headers=None):
        wire = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30 * SLOWER)
        text = None if body is None else body if isinstance(body, (bytes, str)) else json.dumps(body)
        wire.request(method, path, text, headers or {})
        answer = wire.getresponse()
        got = Answer(answer.status, answer.getheaders(), answer.read())
        wire.close()
        return got

    def register(self, session_id, name, version="0.1.0", approval=None):
        headers = {"X-Murmur-Spawn-Approval": approval} if approval is not None else {}
        return self.ask("POST", "/register", {"session_id": session_id, "name": name, "version": version}, headers)

    def credential(self, session_id, name, version="0.1.0", approval=None):
        return self.register(session_id, name, version, approval).ok()["credential"]

    def spawn(self, credential, name, version="0.1.0"):
        headers = {"X-Murmur-Spawn-Credential": credential} if credential is not None else {}
        return self.ask("POST", "/spawn", {"name": name, "version": version}, headers)

    def approval(self, credential, name, version="0.1.0"):
        return self.spawn(credential, name, version).ok()["approval"]

    def deregister(self, credential, outcome="complete"):
        return self.ask("POST", "/deregister", {"outcome": outcome}, {"x-murmur-spawn-credential": credential})

    def status(self, session_id):
        return self.ask("GET", f"/status/{session_id}")

    def stop(self, number=signal.SIGTERM, within_s=20):
        """Signals, waits; the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            code = self.process.wait(within_s * SLOWER)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            code = self.process.wait(10)
        self._reader.join(5)
        return code


def run_roost(lab, *arguments, env=None, stdout=subprocess.PIPE):
    """The daemon where it is not to serve: exit status, stdout, stderr."""
    done = subprocess.run([str(ROOST), *map(str, arguments)], env=lab.environment(env), cwd=lab.directory, timeout=30 * SLOWER,
                          stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE)
    return done.returncode, (done.stdout or b"").decode(), done.stderr.decode()
