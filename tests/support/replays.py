# SPDX-License-Identifier: Apache-2.0
#
# Sessions that are recorded and run again.

import hashlib
import json

import yaml

CONTENT = {"capture": "content"}
FULL = {"capture": "replay"}


def replay(project, *arguments, session=None, expect=None, **how):
    """`mur replay --json` of a session (default: the newest); checks the verdict when one is expected. Returns the report."""
    address = [session.id if hasattr(session, "id") else session] if session else []
    result = project.mur("replay", *address, "--json", *arguments, **how)
    assert result.stdout, str(result)
    report = result.json
    assert result.code == (1 if report["verdict"] == "diverged" else 0), str(result)
    if expect:
        assert report["verdict"] == expect, f"{json.dumps(report, indent=1)}\n{result.stderr}"
    return report


def same(project, *arguments, **how):
    report = replay(project, *arguments, expect="same", **how)
    assert report["first"] is None and report["network_attempts"] == 0 and report["live_calls"] == 0
    return report


def diverges(project, *arguments, part, cause, turn=0, **how):
    report = replay(project, *arguments, expect="diverged", **how)
    first = report["first"]
    assert (first["part"], first["turn"]) == (part, turn) and cause in first["cause"], json.dumps(first, indent=1)
    return first


def edit_manifest(project, change):
    """Rewrites murmur.yaml by change(manifest)."""
    path = project / "murmur.yaml"
    manifest = yaml.safe_load(path.read_text())
    change(manifest)
    path.write_text(yaml.safe_dump(manifest, sort_keys=False))


def edit_trace(session, change):
    """Rewrites each line of a trace by change(line), which may return another one."""
    path = session.records / "trace.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    changed = [change(line) or line for line in lines]
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in changed))


def put_blob(session, data):
    """Stores a body under its digest; returns the digest."""
    sha = hashlib.sha256(data).hexdigest()
    (session.records / "blobs" / sha).write_bytes(data)
    return sha


def tree_digest(directory, but=()):
    """What every file below a directory is, by path."""
    found = {}
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        if any(name == left or name.startswith(left + "/") for left in but):
            continue
        found[name] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else "-"
    return found
