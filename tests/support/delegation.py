# SPDX-License-Identifier: Apache-2.0
#
# A real agent that delegates: a daemon, children in the store, a parent on the scripted driver.

import json

from .polling import eventually, pid_exists
from .lab import SLOWER
from .roost import Roost

WRAPPER = """#!/bin/sh
printf '%s\\n' "$*" >>"{log}"
exec "{mur}" "$@"
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


class Plane:
    """A daemon, `local/parent` and the children it may start; as a context manager."""

    def __init__(self, lab, *children, roost_arguments=()):
        self.lab, self.children = lab, list(children)
        self.roost = Roost(lab, "--spawn-allow", "local/parent", *roost_arguments)
        self.log = lab.directory / "launches.log"
        self.wrapper = lab.directory / "mur-wrapper"
        self.wrapper.write_text(WRAPPER.format(log=self.log, mur=lab.mur_path))
        self.wrapper.chmod(0o755)

    def parent(self, *steps, spawn=None, **manifest):
        """The parent's project. Its work folder is `work`."""
        grants = {**manifest.pop("capabilities", {}), "spawn": {"allow": self.children, **(spawn or {})}}
        project = self.lab.agent("parent", steps=list(steps), capabilities=grants, **manifest)
        (project / "work").mkdir(exist_ok=True)
        self.publish_parent(grants)
        return project

    def publish_parent(self, grants):
        """The daemon looks the parent's envelope up in the store."""
        from .spawn import publish_agent
        if not (self.lab.murmur_home / "artifacts/local/parent").is_dir():
            publish_agent(self.lab, "parent", [{"text": "never run"}], capabilities=grants)

    @property
    def environment(self):
        return {"MURMUR_ROOST_URL": self.roost.url, "MURMUR_MUR_BINARY": self.wrapper}

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
        assert self.roost.stop() == 0, self.roost.lines

    def __enter__(self):
        return self

    def __exit__(self, kind, *_exception):
        if kind is None:
            self.close()
        else:
            self.roost.stop()


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


def process_of(lab, session_id):
    """The pid of a running session."""
    record = json.loads((lab.murmur_home / "running" / f"{session_id}.json").read_text())
    return record["pid"]


def gone(pid, within_s=20):
    eventually(lambda: not pid_exists(pid), within_s * SLOWER, f"process {pid} is gone")
