# SPDX-License-Identifier: Apache-2.0
#
# Formations in a lab: members in the store, a roster, `mur run --roster`, and a launcher made by hand for one member.

import base64
import json
import os
import sys

import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from .lab import ROOT
from .spawn import publish_agent

FORMATION = "frm_" + "0" * 31 + "1"
OTHER_FORMATION = "frm_" + "0" * 31 + "2"
BEARER = {"network": {"authentication": {"scheme": "bearer"}}}
SERVES = {"exports": {"peer_tasks": {"accept": True}}, "lifecycle": {"task_acceptance": "queue", "after_task": "sleep"}}
CALLS = {"capabilities": {"network": {"allow": ["localhost"]}}}

# Keeps the first line of each member's channel, then becomes mur; what follows is passed on.
WRAPPER = """#!{python}
import os, sys
name = sys.argv[sys.argv.index("--capsule") + 1].split("/")[1]
fd = int(os.environ["MURMUR_FORMATION_CHANNEL"])
line = b""
while not line.endswith(b"\\n"):
    line += os.read(fd, 1)
with open("{log}/" + name + ".argv", "w") as log:
    log.write("\\n".join(sys.argv[1:]))
with open("{log}/" + name + ".part", "wb") as log:
    log.write(line)
os.rename("{log}/" + name + ".part", "{log}/" + name + ".json")  # whole once it is there
reader, writer = os.pipe()
os.write(writer, line)
if os.fork() == 0:
    os.close(reader)
    os.close(int(os.environ["MURMUR_FORMATION_LIFELINE"]))
    for stream in (0, 1, 2):
        os.close(stream)
    while piece := os.read(fd, 65536):
        os.write(writer, piece)
    os._exit(0)
os.close(writer)
os.dup2(reader, fd, inheritable=True)
os.execv("{mur}", ["{mur}", *sys.argv[1:]])
"""


def b64(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Key:
    """A launcher's key pair."""

    def __init__(self):
        self.private = Ed25519PrivateKey.generate()

    @property
    def public(self):
        return b64(self.private.public_key().public_bytes_raw())

    def token(self, sender, receiver, formation=FORMATION, payload=None):
        segment = b64(json.dumps(payload or {"formation": formation, "from": sender, "to": receiver}).encode())
        signature = self.private.sign(b"murmur-formation-token-v1\x1fmft1\x1f" + segment.encode())
        return f"mft1.{segment}.{b64(signature)}"


def first_line(key, member="coder", calls=(), formation=FORMATION, **more):
    return json.dumps({"formation_id": formation, "member": member, "verify_key": key.public,
                       "calls": [{"name": name, "token": key.token(member, name, formation)} for name in calls], **more})


class Channel:
    """Both pipes of one member, with the test as the launcher."""

    def __init__(self, line):
        self.read_end, self.write_end = os.pipe()
        self.lifeline_read, self.lifeline_write = os.pipe()
        self.tell(line)

    def tell(self, line):
        os.write(self.write_end, (line if line.endswith("\n") else line + "\n").encode())

    def start(self, project, *arguments, formation=FORMATION, env=None):
        running = project.start(*arguments, pass_fds=(self.read_end, self.lifeline_read), env={
            "MURMUR_FORMATION_ID": formation, "MURMUR_FORMATION_CHANNEL": self.read_end,
            "MURMUR_FORMATION_LIFELINE": self.lifeline_read, **(env or {})})
        os.close(self.read_end)
        os.close(self.lifeline_read)
        return running

    def cut(self):
        os.close(self.lifeline_write)

    def close(self):
        os.close(self.write_end)


class Team:
    """A project with a roster; its first member is the entry."""

    def __init__(self, lab, *members, reachability=None, name="team"):
        self.lab = lab
        self.project = lab.project(name)
        rows = [{"name": member, "capsule": f"local/{member}", "version": "0.1.0", **({"entry": True} if i == 0 else {})}
                for i, member in enumerate(members)]
        self.roster = {"roster_version": 1, "members": rows, **({"reachability": reachability} if reachability else {})}
        self.write()

    def write(self):
        self.project.write("roster.yaml", yaml.safe_dump(self.roster, sort_keys=False))

    def member(self, name, steps=({"text": "done"},), **manifest):
        return publish_agent(self.lab, name, list(steps), **manifest)

    def run(self, *arguments, **how):
        return self.project.mur("run", "--roster", *arguments, **how)

    def start(self, *arguments, **how):
        return self.project.start("--roster", *arguments, **how)

    def observed(self):
        """The variables that make every member leave its channel line and its arguments behind."""
        self.log = self.lab.directory / "channels"
        self.log.mkdir(exist_ok=True)
        wrapper = self.lab.directory / "member-wrapper"
        wrapper.write_text(WRAPPER.format(python=sys.executable, log=self.log, mur=self.lab.mur_path))
        wrapper.chmod(0o755)
        return {"MURMUR_MUR_BINARY": str(wrapper)}

    def line_of(self, member):
        return json.loads((self.log / f"{member}.json").read_text())

    def argv_of(self, member):
        return (self.log / f"{member}.argv").read_text().split("\n")

    def sessions(self, formation_id=None):
        """member -> trace events, of every recorded session of the formation."""
        found = {}
        for records in self.lab.records:
            trace = self.lab.session(records.name).trace
            start = trace.events[0]
            if start.get("formation_member") and formation_id in (None, start.get("formation_id")):
                found[start["formation_member"]] = trace
        return found
