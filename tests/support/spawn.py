# SPDX-License-Identifier: Apache-2.0
#
# A test as the launcher of a real child: the approval on stdin, the handle and the lifeline in the environment, a door that
# completions come to.

import http.client
import json
import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml

from .lab import BUILD, SLOWER
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


def trace_so_far(records):
    """The events of a session that may still be writing: a reader can see the last line torn."""
    text = (Path(records) / "trace.jsonl").read_text()
    return [json.loads(line) for line in text.split("\n")[:-1]]


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


class Child:
    """A handle of the launcher's: what it said at the launch, and what may be asked of it."""

    def __init__(self, launcher, facts):
        self._launcher, self.facts = launcher, facts
        self.number = facts["child"]

    def __getattr__(self, name):
        return self.facts[name]

    @property
    def names(self):
        """The environment's keys in order."""
        return [entry.split("=", 1)[0] for entry in self.environment]

    def value(self, name):
        return dict(entry.split("=", 1) for entry in self.environment)[name]

    def argument(self, flag):
        return self.argv[self.argv.index(flag) + 1]

    @property
    def trace(self):
        return trace_so_far(self.records_dir)

    def ask(self, what):
        return self._launcher.ask(do=what, child=self.number)

    def drop(self):
        self.ask("free")


class Launcher:
    """A parent process that is no `mur`: the child library behind a pipe. Its `mur` is a wrapper that logs the arguments and the
    environment it got (a shell passes the latter on in another order); every parent has a records folder of its own."""

    def __init__(self, lab, family, env=None):
        self.lab, self.family = lab, family
        self.log = lab.directory / "launches.log"
        self.wrapper = lab.directory / "mur-wrapper"
        self.wrapper.write_text(
            f"#!/bin/sh\nprintf '%s\\n' \"$*\" >>{self.log}\ncat /proc/$$/environ >{self.log}.environ.$$\n"
            f"exec {lab.mur_path} \"$@\"\n")
        self.wrapper.chmod(0o755)
        self.parent_dir = lab.directory / f"parent-{len(list(lab.directory.glob('parent-*')))}"
        self.parent_dir.mkdir()
        self.errors = open(lab.directory / "launcher.stderr", "wb")
        self.process = subprocess.Popen(
            [str(BUILD / "tests/launcher/child-launcher")], cwd=lab.directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.errors, start_new_session=True, env=lab.environment({"MURMUR_MUR_BINARY": self.wrapper, **(env or {})}))

    def ask(self, **command):
        self.process.stdin.write(json.dumps(command).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def try_launch(self, name, approval=None, **how):
        return self.ask(**{"do": "launch", "approval": approval or self.family.approval(name), "capsule": name,
                           "version": "0.1.0", "parent_records_dir": str(self.parent_dir),
                           "roost_url": self.family.roost.url, **how})

    def launch(self, name, **how):
        answer = self.try_launch(name, **how)
        assert "error" not in answer, answer["error"]
        return Child(self, answer)

    def refused(self, name, **how):
        """The refusal's text."""
        answer = self.try_launch(name, **how)
        assert "error" in answer, answer
        return answer["error"]

    def environment_of(self, child):
        """What the child's program was started with, in order."""
        content = (self.log.parent / f"{self.log.name}.environ.{child.pid}").read_bytes()
        return [entry.decode() for entry in content.split(b"\0") if entry]

    @property
    def launches(self):
        return self.log.read_text().splitlines() if self.log.exists() else []

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(60 * SLOWER) == 0
        self.process.stdout.close()
        self.errors.close()


def send_task(url, text="go"):
    """Hands a task to a child's door (an address with or without its scheme); the task's id."""
    host, port = url.removeprefix("http://").rsplit(":", 1)
    wire = http.client.HTTPConnection(host, int(port), timeout=20 * SLOWER)
    wire.request("POST", "/", json.dumps({"jsonrpc": "2.0", "id": "1", "method": "SendMessage", "params": {
        "message": {"messageId": "msg_1", "role": "ROLE_USER", "parts": [{"text": text, "mediaType": "text/plain"}]},
        "configuration": {"returnImmediately": True}}}), {"content-type": "application/json", "a2a-version": "1.0"})
    answer = json.loads(wire.getresponse().read())
    wire.close()
    return answer["result"]["task"]["id"]
