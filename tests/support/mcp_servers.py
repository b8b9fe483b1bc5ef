# SPDX-License-Identifier: Apache-2.0
#
# Servers of tools in the store of a lab: the scripted one of mcp_server.py with a behaviour, added as a person would.

import json
import shutil
import zipfile
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent / "mcp_server.py"
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}


def tool(name, description="A tool.", schema=None, **more):
    return {"name": name, "description": description, "inputSchema": schema or TEXT, **more}


def write_server(lab, name="scripted", result=None, **behaviour):
    """The folder of a scripted server."""
    folder = lab.directory / "servers" / name
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(SCRIPT, folder / "server.py")
    (folder / "behaviour.json").write_text(json.dumps(behaviour))
    if result is not None:
        (folder / "result.json").write_text(json.dumps(result))
    return folder


def add(lab, *arguments, name="scripted", args=(), version="0.1.0", **behaviour):
    """Adds it with `mur mcp add`; the finished command."""
    folder = write_server(lab, name, **behaviour)
    return lab.mur("mcp", "add", f"path:{folder}", "--version", version, *arguments, *(["--", *args] if args else []), timeout=120)


def entry(name="scripted", version="0.1.0", mcp=None, **more):
    """Its entry in a manifest."""
    return {"name": f"local/mcp-{name}", "version": version, "runtime": "mcp", **({"mcp": mcp} if mcp else {}), **more}


def drift(lab, name="scripted", **behaviour):
    """From now on the packed server behaves in another way than its package says: it is packed again with the definitions it had."""
    (archive,) = lab.murmur_home.glob(f"artifacts/local/mcp-{name}/**/*.mur.zip")
    changed = lab.directory / archive.name
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(changed, "w") as new:
        for item in old.infolist():
            data = old.read(item)
            if item.filename.endswith("behaviour.json"):
                data = json.dumps({**json.loads(data), **behaviour})
            new.writestr(item, data)
    shutil.rmtree(archive.parent)
    lab.mur("publish", changed).ok()


def trees(lab):
    """The folders packed servers were unpacked into."""
    return [path for path in lab.murmur_home.glob("mcp/*") if path.is_dir()]


def using(lab, steps, *entries, **manifest):
    return lab.agent(steps=[*steps, {"text": "{{fenced}}"}], tools=entries or [entry()], **manifest)


def called(name, **input):
    return {"tool_calls": [{"name": name, "input": input}]}


def run(project, *arguments, **how):
    """The session of one run: its records."""
    result = project.run("--task", "go", *arguments, **how)
    return project.lab.session(result) if hasattr(project, "lab") else result
