# SPDX-License-Identifier: Apache-2.0
#
# The house as a table: which folder of src/ lies above which, and inside a folder which room above which. scripts/lint reads
# includes against it, scripts/symbols the calls of the objects, scripts/rooms-svg draws it; docs/ARCHITECTURE.md shows the
# drawing.

from pathlib import Path

SRC = Path(__file__).resolve().parent.parent / "src"

# A folder may include headers of its own rank and of those below.
RANKS = [
    {"base"},
    {"home", "fs", "mcp"},
    {"engine", "net", "artifact", "manifest"},
    {"sandbox", "host", "trace", "policy", "replay", "deploy"},
    {"session", "door", "spawn", "roost"},
    {"client"},
    {"cli", "lib"},
]
RANK = {folder: rank for rank, folders in enumerate(RANKS) for folder in folders}

# Rows of rooms inside a folder, lowest first: a file may include its own room and rooms on lower rows; rooms on one row do not
# know each other. "" is the folder itself. Folders that are not named have no rooms.
ROOMS = {
    "session": [
        {"conversation"},
        {"state"},
        {"guests", "commands", "handoff"},
        {"model", "servers"},
        {"hooks", "toolbox"},
        {"calls", "task"},
        {"plan", "harness"},
        {"loop"},
        {"served"},
        {"stage"},
        {"launch"},
    ],
    "cli": [{"line"}, {"running", "packages", "records", "health", "deploy"}, {"run"}, {"mcp", "chat", "replay", "top", "ui"}, {""}, {"pages"}],
    "artifact": [{"names"}, {"package"}, {"trust"}, {"store", "registry"}, {"sources"}],
    "replay": [{"tape"}, {"record", "bundle"}, {"play"}, {"tell"}],
    "trace": [{"lines"}, {"read"}, {"tell", "export", "ship"}],
    "manifest": [{"text"}, {"capsule"}, {"settings"}],
    "sandbox": [{"programs"}, {"kernel"}, {"space", "egress"}, {"host"}, {"run"}],
    "door": [{"card"}, {"tasks", "callers"}, {"planes"}, {""}],
    "net": [{""}, {"server", "oauth", "kube", "oci"}],
    "base": [{""}, {"keys"}],
    "roost": [{"front"}, {""}],
    "spawn": [{"child"}, {"report"}, {"formation", "remote"}],
}
ROW = {(folder, room): row for folder, rows in ROOMS.items() for row, rooms in enumerate(rows) for room in rooms}

# What each folder and room answers: the tables of docs/ARCHITECTURE.md are made of it.
ABOUT = {
    "session/conversation": "messages, records, request text, fence: no session in it",
    "session/state": "what a session holds, and the small words every room uses",
    "session/guests": "stores and variables for components",
    "session/commands": "native processes: confinement, shell, background",
    "session/handoff": "children and members: handing off, waiting, outcomes",
    "session/model": "asking a driver: choices, keys, retries, spend, stream",
    "session/servers": "servers of tools: a process in walls of its own, or a program far away, asked and answered",
    "session/hooks": "who looks on and decides",
    "session/toolbox": "what the model is given: artifacts, files, prompt, pulls",
    "session/calls": "one tool call: gates, router, lines",
    "session/task": "how an attempt ends, what the next is told",
    "session/plan": "steps handed over at once",
    "session/harness": "a program that owns the conversation",
    "session/loop": "which task, which attempt, which turn, and what goes on",
    "session/served": "the session as a server of tools",
    "session/stage": "the ordered steps from request to session",
    "session/launch": "one launch, agent or script: announce, wind down, settle",
    "cli/line": "parser, help, tables of text; the command table comes in from the top",
    "cli/running": "commands about what runs now",
    "cli/packages": "commands that make, share and install",
    "cli/records": "commands about what sessions left behind",
    "cli/health": "commands about this installation",
    "cli/run": "mur run, rosters, mur eval run",
    "cli/mcp": "mur mcp",
    "cli/chat": "mur chat",
    "cli/top": "mur top",
    "cli/ui": "mur ui: the server of the page in web/",
    "cli/": "the command table, main",
    "cli/pages": "the programs that write the manual pages",
    "artifact/names": "names, versions, platforms, WIT",
    "artifact/package": "zip, building, opening, compiling ahead",
    "artifact/registry": "packages in OCI registries",
    "artifact/trust": "keys, signatures of packages, and which of them a user asks for",
    "artifact/store": "stores, the lock file, resolving, admission",
    "artifact/sources": "repositories, indexes, installing",
    "trace/lines": "writing lines and blobs, spans",
    "trace/read": "reading traces back",
    "replay/bundle": "a record as one file: packing, looking, unpacking",
    "replay/tape": "writing what a session is given from outside",
    "replay/record": "a recorded session as what it was given, each thing in its place",
    "replay/play": "serving it, and finding where two runs part",
    "replay/tell": "the report of a replay",
    "cli/replay": "mur replay",
    "roost/front": "what stands before the referee: TLS, and the checks of a start",
    "cli/deploy": "a capsule as a workload of other machines",
    "trace/tell": "what mur trace and mur eval show",
    "trace/ship": "records to a store while a session runs, and home again",
    "trace/export": "traces as spans of OpenTelemetry",
    "manifest/text": "YAML, schema tables, grammars, .env",
    "manifest/capsule": "murmur.yaml of a capsule: reading, and the judges in order",
    "manifest/settings": "configuration, rosters, manifests of artifacts",
    "sandbox/programs": "which programs a command may be, and what they bring",
    "sandbox/kernel": "one mechanism of the kernel a file",
    "sandbox/space": "namespaces of a session",
    "sandbox/egress": "what leaves it: the relay, names, requests of a proxy",
    "sandbox/host": "what this host can do",
    "sandbox/run": "from policy to a running command",
    "door/card": "the agent card and the methods",
    "door/tasks": "all tasks: the loop's side, the door's side, streams",
    "door/callers": "who asks, and how they are refused",
    "door/planes": "files, shared files, control",
    "door/": "the listener, the order of decisions, JSON-RPC",
    "net/": "allow rules, the HTTP client, gateway, guests' HTTP",
    "net/server": "the HTTP server",
    "net/kube": "the API server of a cluster: access, calls, watches",
    "net/oci": "registries of packages: references, who we are to them, manifests and blobs",
    "net/oauth": "logins to servers far away: who gives tokens, asking for one, keeping it fresh",
    "base/": "errors and codes, strings, JSON, ids, clocks, digests, secrets",
    "base/keys": "signatures and tokens",
    "spawn/child": "launching and ending a child, its approval and lifeline",
    "spawn/report": "how a child's end is told",
    "spawn/remote": "a child on another machine, and a seat in a formation of such",
    "spawn/formation": "members that run together",
}

# Folders of which others see only the headers that lie directly in them: their face.
FACED = {"session"}


def room_of(path):
    """("session", "loop") of "session/loop/turn.c"; the room is "" for a file directly in its folder."""
    parts = path.split("/")
    return parts[0], parts[1] if len(parts) > 2 else ""


def may_see(source, target):
    """Why <source> may not use <target>, both below src/; None when it may."""
    folder, room = room_of(source)
    other, its_room = room_of(target)
    if other not in RANK and folder in RANK:
        return None if not SRC.joinpath(other).is_dir() else f"src/{other} has no place in RANKS of scripts/rooms.py: give it one"
    if folder not in RANK:
        return f"src/{folder} has no place in RANKS of scripts/rooms.py: give it one"
    if RANK[other] > RANK[folder]:
        return f"src/{other} lies above src/{folder}: move what is shared down, or hand it in from above"
    if folder != other:
        if other in FACED and its_room:
            return f"src/{other}/{its_room} is a room of its own: other folders see the headers directly in src/{other}"
        return None
    if folder not in ROOMS or room == its_room:
        return None
    for place in (room, its_room):
        if (folder, place) not in ROW and not (folder in FACED and place == ""):
            return f"src/{folder}/{place} has no row in ROOMS of scripts/rooms.py: give it one"
    if folder in FACED and its_room == "":
        return None
    if ROW[folder, its_room] >= ROW.get((folder, room), -1):
        return (f"room {its_room or folder} does not lie below room {room or folder}: move what both need to a lower room, or "
                "let the upper one hand it in")
    return None
