# SPDX-License-Identifier: Apache-2.0
#
# A test as the launcher of a real child: the approval on stdin, the handle and the lifeline in the environment, a door that
# completions come to.

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml

from .roost import Roost

DELEGATION = "dlg_" + "0" * 31 + "1"
PARENT = "ses_" + "b" * 32
CONTEXT = "ctx_" + "0" * 31 + "2"
TAKEN = {"result": {"message": {"messageId": f"msg_{DELEGATION}_received", "role": "ROLE_AGENT", "parts": []}}}


def publish_agent(lab, name, steps, inference=None, artifacts=(), **manifest):
    """An agent on the scripted driver in the lab's store; returns its full name."""
    directory = lab.directory / "packages" / name
    directory.mkdir(parents=True)
    (directory / "murmur.yaml").write_text(yaml.safe_dump({
        "name": name, "version": "0.1.0", "runtime": "capsule", "execution": "static",
        "artifacts": [{"name": "std/driver-scripted", "version": "0.1.0", "runtime": "driver"}, *artifacts],
        "inference": {"model": "scripted", "max_tokens": 1024,
                      "driver": {"artifact": "std/driver-scripted", "config": {"steps": steps}}, **(inference or {})},
        **manifest}, sort_keys=False))
    lab.mur("build", ".", cwd=directory).ok()
    lab.mur("publish", cwd=directory).ok()
    return f"local/{name}"


class ParentDoor:
    """Takes completions and keeps them as (headers in lower case, JSON body). `answer` is what each is answered."""

    def __init__(self, answer=None, status=200):
        door = self
        self.received, self.answer, self.status = [], TAKEN if answer is None else answer, status
        self.on_request = None

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if door.on_request:
                    door.on_request()
                door.received.append(({name.lower(): value for name, value in self.headers.items()}, body, self.path))
                text = json.dumps(door.answer).encode()
                self.send_response(door.status)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_arguments):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        self.close()


def handle(url=None, delegation=DELEGATION):
    """MURMUR_SPAWNER's text."""
    return json.dumps({"session_id": PARENT, "context_id": CONTEXT, "delegation_id": delegation, **({"url": url} if url else {})})


class Lifeline:
    def __init__(self):
        self.read_end, self.write_end = os.pipe()

    def start(self, start, *arguments, env=None, **how):
        """`start` (a project's or the lab's) with the read end handed over; ours goes at once."""
        running = start(*arguments, env={**(env or {}), "MURMUR_SPAWNER_LIFELINE": self.read_end},
                        pass_fds=(self.read_end,), **how)
        os.close(self.read_end)
        return running

    def cut(self):
        if self.write_end >= 0:
            os.close(self.write_end)
            self.write_end = -1


def hand_grant(running, grant):
    """The grant's one line, then the end, as a launcher writes it."""
    running.process.stdin.write(grant.encode() + b"\n")
    running.process.stdin.close()
    return running


def readiness(running):
    """The readiness line of a child started with --json."""
    return json.loads(running.wait_for(r"^\{.*\}$").group(0))


def completion(records):
    return json.loads((Path(records) / "completion.json").read_text())


class Family:
    """A daemon that knows a parent, and children in the store the parent may start; as a context manager."""

    def __init__(self, lab, *children, roost_arguments=(), parent="local/suite-parent"):
        self.lab = lab
        self.roost = Roost(lab, "--spawn-allow", parent, *roost_arguments)
        self.credential = self.roost.credential(PARENT, parent)
        self.children = children

    def approval(self, name):
        return self.roost.approval(self.credential, name)

    def start(self, name, *arguments, grant=None, spawner=None, lifeline=None, env=None):
        """The child's `mur run` in a new folder, with a grant of the daemon unless one is given; read `readiness` of it."""
        workdir = self.lab.directory / f"work-{len(list(self.lab.directory.glob('work-*')))}"
        workdir.mkdir(mode=0o700)
        words = ("run", "--capsule", name, "--capsule-version", "0.1.0", "--workdir", workdir, "--json",
                 "--readiness-tokens", "--no-env-file", "--spawn-grant-stdin", "--contained-launch", *arguments)
        variables = {"MURMUR_ROOST_URL": self.roost.url, "MURMUR_HOST_WARNINGS_REPORTED": "1",
                     **({"MURMUR_SPAWNER": spawner} if spawner else {}), **(env or {})}
        how = {"env": variables, "stdin": True}
        running = lifeline.start(self.lab.start, *words, **how) if lifeline else self.lab.start(*words, **how)
        running.workdir = workdir
        return hand_grant(running, self.approval(name) if grant is None else grant)

    def close(self):
        assert self.roost.stop() == 0, self.roost.lines

    def __enter__(self):
        return self

    def __exit__(self, kind, *_exception):
        if kind is None:
            self.close()
        else:
            self.roost.stop()
