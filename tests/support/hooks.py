# SPDX-License-Identifier: Apache-2.0
#
# A hook whose answers a test scripts, and what it saw.

import json

from .fixtures import own_component


class Hook:
    """A scripted hook of one test, and what it wrote down."""

    def __init__(self, lab, name="watch", on=None, capabilities=None, **manifest):
        self.name, self.lab = name, lab
        artifact, version = lab.publish(name, own_component("hook-scripted"), "hook", **manifest).split("@")
        granted = {"filesystem": {"records": True}} if capabilities is None else capabilities
        self.entry = {"name": artifact, "version": version, "runtime": "hook", "capabilities": granted,
                      "config": {"on": on or {}}}

    def events(self, session):
        log = session.records / "hooks/events.log"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def seen(self, session, event):
        return [line for line in self.events(session) if line["event"] == event]

    def log(self, session):
        path = session.records / f"logs/hook-{self.name}.log"
        return path.read_text() if path.exists() else ""
