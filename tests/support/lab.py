# SPDX-License-Identifier: Apache-2.0
#
# The lab: one test's own world. A home, projects, published artifacts, and the real `mur` run in it.
#
# Always true: nothing of the person's own environment reaches a program under test but PATH; every process started here is
# gone when the test ends, or the test fails; paths in assertions come from the lab, never from the machine.

import json
import os
import re
import shutil
import signal
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

import yaml

from .model_server import ModelServer
from .polling import eventually, pid_exists

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("MURMUR_BUILD", ROOT / "build"))
MUR = Path(os.environ.get("MUR", BUILD / "mur"))
IS_SANITIZED = os.environ.get("MURMUR_SANITIZED") == "1"
# Sanitized programs are several times slower; limits that bound a wait, not a promise, are stretched by this.
SLOWER = 5 if IS_SANITIZED else 1
SESSION_ID = re.compile(r"ses_[0-9a-f]{32}")


def base_environment(home, temporary):
    kept = {name: os.environ[name] for name in
            ("PATH", "MURMUR_TEST_RUN", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS") if name in os.environ}
    return {**kept, "HOME": str(home), "TMPDIR": str(temporary), "LANG": "C.UTF-8"}


@dataclass
class Result:
    """What a finished command showed."""

    argv: list
    code: int
    stdout: str
    stderr: str

    @property
    def json(self):
        return json.loads(self.stdout)

    @property
    def session_id(self):
        found = SESSION_ID.search(self.stdout)
        assert found, f"no session id on stdout:\n{self}"
        return found.group(0)

    @property
    def status(self):
        """The word of the `status:  <word>` line."""
        found = re.search(r"^status:  (\w+)$", self.stdout, re.MULTILINE)
        assert found, f"no status line on stdout:\n{self}"
        return found.group(1)

    def ok(self):
        assert self.code == 0, str(self)
        return self

    def failed(self, code=None, exit_status=1):
        """Asserts the exit status and, when given, the diagnostic code of an `error[CODE]` line on stderr."""
        assert self.code == exit_status, str(self)
        if code:
            assert f"error[{code}]" in self.stderr, str(self)
        return self

    def __str__(self):
        return (f"$ {' '.join(map(str, self.argv))}\nexit {self.code}\n"
                f"--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}")


class Running:
    """A command that is still running; its output is read as it comes."""

    def __init__(self, argv, cwd, env, stdin=None, stdout=None, pass_fds=()):
        self.argv = argv
        self._text = {"stdout": "", "stderr": ""}
        self._lock = threading.Lock()
        self.process = subprocess.Popen(
            [str(word) for word in argv], cwd=cwd, env=env, start_new_session=True, pass_fds=pass_fds,
            stdin=subprocess.PIPE if stdin is True else subprocess.DEVNULL if stdin is None else stdin,
            stdout=stdout if stdout is not None else subprocess.PIPE, stderr=subprocess.PIPE)
        self._readers = [threading.Thread(target=self._read, args=(name,), daemon=True)
                         for name in ("stdout", "stderr") if getattr(self.process, name)]
        for reader in self._readers:
            reader.start()

    def _read(self, name):
        stream = getattr(self.process, name)
        while piece := os.read(stream.fileno(), 65536):
            with self._lock:
                self._text[name] += piece.decode(errors="replace")
        stream.close()

    @property
    def pid(self):
        return self.process.pid

    @property
    def stdout(self):
        return self._text["stdout"]

    @property
    def stderr(self):
        return self._text["stderr"]

    @property
    def is_running(self):
        return self.process.poll() is None

    def wait_for(self, pattern, within_s=20):
        """Until a line of stdout matches; returns the match. Fails at once when the program ends without it."""
        def seen():
            ended = not self.is_running
            if ended:
                for reader in self._readers:
                    reader.join(5)
            match = re.search(pattern, self.stdout, re.MULTILINE)
            if not match and ended:
                raise EOFError
            return match
        try:
            return eventually(seen, within_s * SLOWER, f"{pattern!r} on stdout")
        except EOFError:
            raise AssertionError(f"ended without {pattern!r} on stdout:\n{self.result()}") from None

    @property
    def session_id(self):
        return self.wait_for(SESSION_ID.pattern).group(0)

    @property
    def url(self):
        """The door's base address."""
        return "http://" + self.wait_for(r'(?:^murmur: url |"url":")([^"\s]+:\d+)').group(1)

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self

    def result(self, timeout=30):
        """Waits for the end and returns what was shown."""
        self.process.wait(timeout * SLOWER)
        for reader in self._readers:
            reader.join(5)
        return Result(self.argv, self.process.returncode, self.stdout, self.stderr)

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(10)


class Trace:
    """The events of one trace.jsonl, in file order; keys keep their order. A last line without its end is just being written."""

    def __init__(self, path):
        self.path = Path(path)
        whole, _, _ = self.path.read_bytes().rpartition(b"\n")
        self.lines = [line for line in whole.decode().split("\n") if line]
        self.events = [json.loads(line) for line in self.lines]

    @property
    def types(self):
        return [event["event_type"] for event in self.events]

    def all(self, event_type):
        return [event for event in self.events if event["event_type"] == event_type]

    def one(self, event_type):
        found = self.all(event_type)
        assert len(found) == 1, f"{len(found)} {event_type} lines in {self.path}: {self.types}"
        return found[0]


class Session:
    """The records of one session."""

    def __init__(self, lab, session_id):
        self.lab, self.id = lab, session_id

    @property
    def records(self):
        found = [path for path in self.lab.records if path.name == self.id]
        assert len(found) == 1, f"records directories of {self.id}: {found}"
        return found[0]

    @property
    def trace(self):
        return Trace(self.records / "trace.jsonl")

    @property
    def result_text(self):
        return (self.records / "out/result.txt").read_text()

    @property
    def runtime_directory(self):
        return self.lab.murmur_home / "sessions" / self.id


class Project:
    """A directory with a murmur.yaml."""

    def __init__(self, lab, directory):
        self.lab, self.directory = lab, Path(directory)

    def __truediv__(self, name):
        return self.directory / name

    def write_manifest(self, manifest):
        text = manifest if isinstance(manifest, str) else yaml.safe_dump(manifest, sort_keys=False)
        if self.lab.is_peer:
            text = text.replace("std/driver-scripted", "local/driver-scripted")
        (self.directory / "murmur.yaml").write_text(text)
        return self

    def write(self, name, content):
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def mur(self, *arguments, **how):
        return self.lab.mur(*arguments, cwd=self.directory, **how)

    def run(self, *arguments, **how):
        """`mur run` to its end."""
        return self.mur("run", *arguments, **how)

    def start(self, *arguments, **how):
        """`mur run`, not waited for."""
        return self.lab.start("run", *arguments, cwd=self.directory, **how)

    @property
    def session_directories(self):
        """Default work folders made so far, oldest first."""
        workdir = self.directory / "workdir"
        return sorted(path for path in workdir.iterdir()) if workdir.is_dir() else []


class Lab:
    def __init__(self, directory, mur=MUR):
        self.directory = Path(directory)
        self.mur_path = Path(mur)
        # Another build has no bundled artifacts: what the tests need of them is published there. With MUR and MUR_PEER naming
        # the same program, a test written for ours shows what the other one does.
        self.is_peer = str(self.mur_path) == os.environ.get("MUR_PEER")
        self.home = self.directory / "home"
        self.temporary = self.directory / "tmp"
        self.home.mkdir(parents=True)
        self.temporary.mkdir()
        self.env = base_environment(self.home, self.temporary)
        self._running = []
        self._servers = []

    @property
    def murmur_home(self):
        return self.home / ".murmur"

    # --- running -----------------------------------------------------------------------------------------------------

    def environment(self, extra=None):
        """The lab's environment with `extra` laid over it; a value of None takes the name away."""
        merged = {**self.env, **(extra or {})}
        return {name: str(value) for name, value in merged.items() if value is not None}

    def mur(self, *arguments, cwd=None, env=None, stdin=None, timeout=60, stdout=None):
        """Runs `mur` to its end. `stdin` is text; `stdout` replaces the capture with a descriptor."""
        argv = [self.mur_path, *map(str, arguments)]
        done = subprocess.run(
            argv, cwd=cwd or self.directory, env=self.environment(env), timeout=timeout * SLOWER,
            stdout=subprocess.PIPE if stdout is None else stdout, stderr=subprocess.PIPE,
            **({"input": stdin.encode()} if stdin is not None else {"stdin": subprocess.DEVNULL}))
        return Result(argv, done.returncode, (done.stdout or b"").decode(errors="replace"),
                      done.stderr.decode(errors="replace"))

    def start(self, *arguments, cwd=None, env=None, stdin=None, stdout=None, pass_fds=()):
        running = Running([self.mur_path, *map(str, arguments)], cwd or self.directory, self.environment(env), stdin,
                          stdout, pass_fds)
        self._running.append(running)
        return running

    # --- projects and artifacts --------------------------------------------------------------------------------------

    def project(self, name="project", manifest=None, files=None):
        directory = self.directory / name
        directory.mkdir(parents=True, exist_ok=True)
        project = Project(self, directory)
        if manifest is not None:
            project.write_manifest(manifest)
        for file_name, content in (files or {}).items():
            project.write(file_name, content)
        return project

    def script_capsule(self, component, name="script", **manifest):
        """A project whose component is that file."""
        project = self.project(name, {"name": name, "version": "0.1.0", **manifest})
        shutil.copy(component, project / "capsule.wasm")
        return project

    def agent(self, name="agent", driver="std/driver-scripted@0.1.0", steps=None, tools=(), gateway=None, inference=None,
              driver_entry=None, **manifest):
        """A project of an http agent.

        `steps` script the bundled driver; `gateway` ({"endpoint", "api_key"|"keyless"}) is for a driver with a provider.
        `tools`: "scope/name@version", or whole entries. `inference`, `driver_entry` and other keywords overlay the manifest.
        """
        if self.is_peer and driver.startswith("std/"):
            driver = self.publish("driver-scripted", BUILD / "guests/driver-scripted.wasm", "driver",
                                  upstream_auth={"header": "x-api-key", "value": "{key}"},
                                  models={"scripted": {"max_output_tokens": 8192, "context_window": 200000}})
            gateway = {"endpoint": "http://127.0.0.1:9", "keyless": True}
        driver_name, driver_version = driver.rsplit("@", 1)
        entry = {"name": driver_name, "version": driver_version, "runtime": "driver"}
        if gateway:
            entry["gateway"] = gateway
        entry.update(driver_entry or {})
        artifacts = [entry]
        for tool in tools:
            if isinstance(tool, str):
                tool_name, tool_version = tool.rsplit("@", 1)
                tool = {"name": tool_name, "version": tool_version, "runtime": "tool"}
            artifacts.append(tool)
        block = {"model": "scripted", "max_tokens": 1024, "driver": {"artifact": driver_name}}
        if steps is not None:
            block["driver"]["config"] = {"steps": steps}
        block.update(inference or {})
        return self.project(name, {"name": name, "version": "0.1.0", "artifacts": artifacts, "inference": block,
                                   **manifest})

    def publish(self, name, component, runtime="tool", version="0.1.0", **manifest):
        """Packs a component with `mur build` and publishes it; returns "local/<name>@<version>"."""
        directory = self.directory / "packages" / f"{name}-{version}"
        if directory.exists():
            return f"local/{name}@{version}"
        directory.mkdir(parents=True)
        file_name = Path(component).name
        shutil.copy(component, directory / file_name)
        (directory / "murmur.yaml").write_text(yaml.safe_dump(
            {"name": name, "version": version, "runtime": runtime, "requires_files": [file_name], **manifest},
            sort_keys=False))
        self.mur("build", ".", cwd=directory).ok()
        self.mur("publish", cwd=directory).ok()
        return f"local/{name}@{version}"

    # --- servers, records, leftovers -----------------------------------------------------------------------------------

    def model_server(self):
        server = ModelServer()
        self._servers.append(server)
        return server

    def session(self, result):
        """The records behind a Result, a Running or a session id."""
        return Session(self, result if isinstance(result, str) else result.session_id)

    @property
    def records(self):
        """Every records directory, oldest session first. Mount points in a session's temporary folder bear such names too,
        and so does a component of the path to a delegated child's."""
        root = self.murmur_home / "records"

        def is_one(path):
            return (path / "home").is_dir() and (path / "tmp").is_dir()
        # Unlike rglob, a walk passes over what is removed meanwhile.
        found = (Path(folder) / name for folder, names, _ in os.walk(root) for name in names if name.startswith("ses_"))
        return sorted((path for path in found if is_one(path) and not
                       any(parent.name.startswith("ses_") and is_one(parent) for parent in path.parents)),
                      key=lambda path: path.name)

    @property
    def runtime_directories(self):
        root = self.murmur_home / "sessions"
        return sorted(path.name for path in root.iterdir()) if root.is_dir() else []

    def close(self):
        """Ends what runs; returns what should not have been there, one line each."""
        complaints = []
        for running in self._running:
            if running.is_running:
                running.kill()
        for server in self._servers:
            for request in server.unexpected:
                complaints.append(f"a request beyond the script: {request.method} {request.path}")
            server.close()
        left = [f"process {pid}: {line}" for pid, line in self.processes()]
        if left:
            try:
                eventually(lambda: not list(self.processes()), 5)
                left = []
            except AssertionError:
                left = [f"process {pid}: {line}" for pid, line in self.processes()]
        complaints += left
        complaints += [f"left in the temporary folder: {name}" for name in os.listdir(self.temporary)]
        return complaints

    def processes(self):
        """Processes that run in this lab: by their environment where it may be read, else by their command line."""
        mark = f"HOME={self.home}".encode()
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                command = (entry / "cmdline").read_bytes()
                try:
                    environment = (entry / "environ").read_bytes()
                except PermissionError:
                    environment = b""
            except OSError:
                continue
            if mark in environment.split(b"\0") or str(self.directory).encode() in command:
                if pid_exists(int(entry.name)):
                    yield int(entry.name), command.replace(b"\0", b" ").decode(errors="replace").strip()
