# SPDX-License-Identifier: Apache-2.0
#
# Packages made byte by byte, sound and hostile, and a GitHub that serves them: what tests of artifacts put before `mur`.
#
# `component` is a component of names alone: enough for every reader of contracts, nothing an engine would run.

import hashlib
import io
import json
import re
import struct
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PREAMBLE = b"\x00asm\x0d\x00\x01\x00"
CORE_MODULE = b"\x00asm\x01\x00\x00\x00"
TOOL_EXPORT = "murmur:tool/run@0.1.0"


def leb(value):
    out = b""
    while True:
        byte, value = value & 0x7F, value >> 7
        out += bytes([byte | (0x80 if value else 0)])
        if not value:
            return out


def _name(text):
    return b"\x00" + leb(len(text)) + text.encode()


def _section(number, entries):
    body = leb(len(entries)) + b"".join(entries)
    return bytes([number]) + leb(len(body)) + body


def component(exports=(TOOL_EXPORT,), imports=()):
    return (PREAMBLE + _section(10, [_name(name) + b"\x05\x00" for name in imports])
            + _section(11, [_name(name) + b"\x05\x00\x00" for name in exports]))


def zip_of(entries, compression=zipfile.ZIP_DEFLATED):
    """Bytes of a zip; `entries` is a dict or a list of pairs (a list may repeat a name)."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, content in (entries.items() if isinstance(entries, dict) else entries):
            archive.writestr(zipfile.ZipInfo(name), content, compression)
    return out.getvalue()


def manifest(name, version="0.1.0", runtime="tool", **more):
    lines = [f"name: {name}", f"version: {json.dumps(version)}", f"runtime: {runtime}"]
    lines += [f"{key}: {json.dumps(value)}" for key, value in more.items()]
    return "\n".join(lines) + "\n"


def tool_package(name, version="0.1.0", wasm=None, **more):
    return zip_of({"murmur.yaml": manifest(name, version, **more), "tool.wasm": wasm or component()})


def skill_package(name, version="0.1.0", text="# A skill\n"):
    return zip_of({"murmur.yaml": manifest(name, version, "skill"), "skill.md": text})


def native_package(name, version="0.1.0", program=b"#!/bin/sh\necho hi\n", **more):
    return zip_of({"murmur.yaml": manifest(name, version, "tool", implementation="native", **more),
                   f"bin/{name}": program})


def elf(machine):
    """The head of an ELF64 image: machine 0x3E is x86_64, 0xB7 aarch64."""
    head = bytearray(64)
    head[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<H", head, 18, machine)
    return bytes(head)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def declare_size(archive, size):
    """The same archive, its last directory record declaring another uncompressed size."""
    changed = bytearray(archive)
    at = archive.rindex(b"PK\x01\x02")
    struct.pack_into("<I", changed, at + 24, size)
    return bytes(changed)


# --- an index ----------------------------------------------------------------------------------------------------------


def index_version(bare, version, assets, release="v1", interfaces=(TOOL_EXPORT,), level=1):
    """`assets`: {platform or None: bytes or a hash}."""
    listed = []
    for platform, content in assets.items():
        suffix = f"-{platform}" if platform else ""
        asset = {"file": f"{bare}-{version}{suffix}.mur.zip"}
        if platform:
            asset["platform"] = platform
        asset["sha256"] = content if isinstance(content, str) else sha256(content)
        listed.append(asset)
    return {"version": version, "release": release, "built_at_level": level, "interfaces": sorted(interfaces),
            "assets": sorted(listed, key=lambda asset: asset["file"])}


def index_artifact(name, versions, runtime="tool", tags=("tool",), **more):
    return {"name": name, "runtime": runtime, **more, "tags": list(tags), "versions": versions}


def index_of(scope, *artifacts):
    return json.dumps({"schema_version": 2, "scope": scope,
                       "artifacts": sorted(artifacts, key=lambda artifact: artifact["name"])}).encode()


# --- GitHub ------------------------------------------------------------------------------------------------------------


class GitHub:
    """The four API calls a source asks, from repositories set up by a test. Every request is kept in `requests`."""

    def __init__(self):
        self.repositories = {}
        self.requests = []
        self.failures = {}
        self._assets = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments):
                pass

            def do_GET(self):
                outer.requests.append((self.path, dict(self.headers)))
                status, headers, body = outer.answer(self.path)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        class Server(ThreadingHTTPServer):
            daemon_threads = True

        self.server = Server(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    @property
    def base(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    @property
    def env(self):
        return {"MUR_GITHUB_API_BASE": self.base + "/"}

    @property
    def paths(self):
        return [path for path, _headers in self.requests]

    def repository(self, full_name, owner_id=4242):
        self.repositories[full_name] = {"owner": owner_id, "releases": []}
        return self

    def release(self, full_name, tag, assets):
        """`assets`: {file name: bytes}. The release added last is the latest."""
        listed = []
        for name, content in assets.items():
            self._assets.append(content)
            listed.append({"id": len(self._assets), "name": name})
        self.repositories[full_name]["releases"].append({"tag_name": tag, "assets": listed})
        return self

    def serve(self, full_name, *artifacts, scope=None, owner_id=4242, tag="v1", payloads=()):
        """A repository with one release: its index, and payload bytes under their file names."""
        self.repository(full_name, owner_id)
        scope = scope or full_name.split("/")[0].lower()
        return self.release(full_name, tag, {"artifacts-index.json": index_of(scope, *artifacts), **dict(payloads)})

    def answer(self, path):
        for pattern, failure in self.failures.items():
            if re.search(pattern, path):
                return failure
        found = re.fullmatch(r"/repos/([^/]+/[^/]+)(/.*)?", path)
        repository = self.repositories.get(found.group(1)) if found else None
        if repository is None:
            return 404, {}, b'{"message": "Not Found"}'
        rest = found.group(2) or ""
        if not rest:
            return self._json({"owner": {"id": repository["owner"]}})
        releases = repository["releases"]
        if rest == "/releases/latest":
            return self._json(releases[-1]) if releases else (404, {}, b"{}")
        if rest.startswith("/releases/tags/"):
            for release in releases:
                if release["tag_name"] == rest.removeprefix("/releases/tags/"):
                    return self._json(release)
        if rest.startswith("/releases/assets/"):
            return 200, {"content-type": "application/octet-stream"}, self._assets[int(rest.rsplit("/", 1)[1]) - 1]
        return 404, {}, b"{}"

    @staticmethod
    def _json(value):
        return 200, {"content-type": "application/json"}, json.dumps(value).encode()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(5)
