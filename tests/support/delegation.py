# SPDX-License-Identifier: Apache-2.0
#
# A real agent that delegates: a daemon, children in the store, a parent on the scripted driver.

import http.client
import json
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from .polling import eventually, pid_exists
from .lab import SLOWER
from .roost import Roost
from .spawn import publish_agent

WRAPPER = """#!/bin/sh
LOG="{log}" MUR="{mur}"
printf '%s\\n' "$*" >>"$LOG"
{body}
"""


def delegate(capsule, task="go", version="0.1.0", call_id=None):
    """One call of the scripted model."""
    call = {"name": "delegate-task", "input": {"capsule": capsule, "version": version, "task": task}}
    return {**call, "id": call_id} if call_id else call


def turn(*calls, **step):
    return {"tool_calls": list(calls), **step}


def reads(text="seen: {{fenced}}", file="request.json"):
    """The last turn; what the model was sent by then is in that file of the work folder."""
    return {"text": text, "save_request": file}


class RoostProxy:
    """In front of a daemon: passes requests on; `before` and `after` are called with the path, around the daemon's answer. What
    raises ConnectionError there loses the client's connection."""

    def __init__(self, url):
        proxy = self
        self.before = self.after = lambda path: None

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
                try:
                    proxy.before(self.path)
                    try:
                        answer = urllib.request.urlopen(urllib.request.Request(url + self.path, body, headers), timeout=60)
                    except urllib.error.HTTPError as refusal:
                        answer = refusal
                    status, text = answer.status, answer.read()
                    proxy.after(self.path)
                except (ConnectionError, urllib.error.URLError):
                    self.close_connection = True
                    return
                try:
                    self.send_response(status)
                    self.send_header("content-type", "application/json")
                    self.send_header("content-length", str(len(text)))
                    self.end_headers()
                    self.wfile.write(text)
                except ConnectionError:  # whoever asked is gone
                    self.close_connection = True

            def log_message(self, *_arguments):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


class Plane:
    """A daemon, `local/parent` and the children it may start; as a context manager."""

    def __init__(self, lab, *children, roost_arguments=()):
        self.lab, self.children = lab, list(children)
        self.roost = Roost(lab, "--spawn-allow", "local/parent", *roost_arguments)
        self.proxy = None
        self.log = lab.directory / "launches.log"
        self.wrapper = lab.directory / "mur-wrapper"
        self.wrap('exec "$MUR" "$@"')

    def wrap(self, body):
        """What stands for `mur` as a child: a shell script that knows $MUR and $LOG and has logged its arguments."""
        self.wrapper.write_text(WRAPPER.format(log=self.log, mur=self.lab.mur_path, body=body))
        self.wrapper.chmod(0o755)

    def through_proxy(self):
        """From here on launches reach the daemon through a proxy."""
        self.proxy = self.proxy or RoostProxy(self.roost.url)
        return self.proxy

    # --- capsules ---

    def parent(self, *steps, spawn=None, published=None, **manifest):
        """The parent's project. Its work folder is `work`. `published`: grants of the store's manifest where they differ."""
        grants = {**manifest.pop("capabilities", {}), "spawn": {"allow": self.children, **(spawn or {})}}
        project = self.lab.agent("parent", steps=list(steps), capabilities=grants, **manifest)
        (project / "work").mkdir(exist_ok=True)
        # The daemon reads the parent's envelope in the store.
        publish_agent(self.lab, "parent", [{"text": "never run"}], capabilities={**grants, **(published or {})})
        return project

    def publish_middle(self, *steps, **manifest):
        """A child that may start the children there are so far."""
        publish_agent(self.lab, "middle", list(steps), capabilities={"spawn": {"allow": list(self.children)}}, **manifest)
        self.children.append("local/middle")

    # --- running ---

    @property
    def environment(self):
        return {"MURMUR_ROOST_URL": (self.proxy or self.roost).url, "MURMUR_MUR_BINARY": self.wrapper}

    def start(self, project, *arguments, env=None):
        return project.start("--task", "go", "--workdir", project / "work", *arguments,
                             env={**self.environment, **(env or {})})

    def run(self, project, *arguments, env=None):
        return self.start(project, *arguments, env=env).result(60)

    @property
    def launches(self):
        return self.log.read_text().splitlines() if self.log.exists() else []

    def live_sessions(self):
        directory = self.lab.murmur_home / "running"
        return sorted(path.stem for path in directory.glob("ses_*.json")) if directory.is_dir() else []

    def close(self):
        if self.proxy:
            self.proxy.close()
        assert self.roost.stop() == 0, self.roost.lines

    def __enter__(self):
        return self

    def __exit__(self, kind, *_exception):
        if kind is None:
            self.close()
        else:
            self.roost.stop()


# --- what the parent's model read ---

def messages(project, file="request.json"):
    return json.loads((project / "work" / file).read_text())["messages"]


def text_of(message):
    return "".join(block["text"] for block in message["content"] if block["type"] == "text")


def tool_results(project, file="request.json"):
    """What the model read of its calls: (is_error, JSON or text without the fence)."""
    found = []
    for message in messages(project, file):
        if message["role"] != "tool":
            continue
        text = text_of(message)
        if text.startswith("<untrusted-content "):
            text = json.loads(text.split("\n", 1)[1].rsplit("\n</untrusted-content>", 1)[0])
        found.append((message["is_error"], text))
    return found


def continuation(project, file="request.json"):
    """The last user message: the outcomes of a round."""
    return [text_of(message) for message in messages(project, file) if message["role"] == "user"][-1]


# --- doors and processes ---

def ask_door(url, method, params, headers=None):
    """One JSON-RPC call; the whole answer."""
    host, port = url.removeprefix("http://").rsplit(":", 1)
    wire = http.client.HTTPConnection(host, int(port), timeout=20 * SLOWER)
    wire.request("POST", "/", json.dumps({"jsonrpc": "2.0", "id": "1", "method": method, "params": params}),
                 {"content-type": "application/json", "a2a-version": "1.0", **(headers or {})})
    answer = json.loads(wire.getresponse().read())
    wire.close()
    return answer


def cancel(url, task_id):
    """Cancels a task; its residue items."""
    task = ask_door(url, "CancelTask", {"id": task_id})["result"]
    return [part["data"] for artifact in task.get("artifacts", []) if artifact["name"] == "residue"
            for part in artifact["parts"]]


def complete(url, delegation, session, context=None, method="SendMessage"):
    """A completion as a child sends it; the door's answer."""
    headers = {"x-murmur-task-origin": "completion"}
    headers.update({"x-murmur-delegation-id": delegation} if delegation else {})
    headers.update({"x-murmur-completion-session": session} if session is not None else {})
    message = {"messageId": "msg_1", "role": "ROLE_USER", "parts": [{"text": "ended"}], **({"contextId": context} if context else {})}
    return ask_door(url, method, {"message": message}, headers)


def process_of(lab, session_id):
    """The pid of a running session."""
    record = json.loads((lab.murmur_home / "running" / f"{session_id}.json").read_text())
    return record["pid"]


def gone(pid, within_s=20):
    eventually(lambda: not pid_exists(pid), within_s * SLOWER, f"process {pid} is gone")
