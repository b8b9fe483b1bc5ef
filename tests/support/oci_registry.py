# SPDX-License-Identifier: Apache-2.0
#
# An OCI registry of our own, scripted: it keeps what it is given, answers as the distribution specification says, and does
# harm where a test asks it to. Every request it got is kept.

import base64
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"


def digest_of(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_arguments):
        pass

    def reply(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, status, code):
        self.reply(status, json.dumps({"errors": [{"code": code, "message": code.lower()}]}).encode(),
                   content_type="application/json")

    def body(self):
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def answer(self):
        registry = self.server.registry
        data = self.body()
        path = urlsplit(self.path)
        with registry.lock:
            registry.requests.append((self.command, self.path, dict(self.headers)))
        if path.path == "/token":
            return self.give_token(registry, data, parse_qs(path.query))
        if registry.wants_token and self.headers.get("authorization") != f"Bearer {registry.token}":
            return self.reply(401, b"{}", www_authenticate=f'Bearer realm="{registry.realm}",service="reg",scope="repository:x:pull"')
        if registry.wants_basic and not self.is_basic(registry):
            return self.reply(401, b"{}", www_authenticate='Basic realm="reg"')
        for pattern, handler in registry.scripted:
            if re.search(pattern, f"{self.command} {self.path}"):
                return handler(self)
        match = re.fullmatch(r"/v2/(.+)/(manifests|blobs|tags|referrers)/(.*)", path.path)
        if not match:
            return self.refuse(404, "NAME_UNKNOWN")
        name, kind, rest = match.groups()
        return getattr(self, f"on_{kind}")(registry, name, rest, data, parse_qs(path.query))

    do_GET = do_HEAD = do_PUT = do_POST = answer

    def is_basic(self, registry):
        user, password = registry.account
        return self.headers.get("authorization") == "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    def give_token(self, registry, data, query):
        registry.token_requests.append((dict(self.headers), query, data.decode()))
        if registry.account and not self.is_basic(registry) and "refresh_token=kept" not in data.decode():
            return self.reply(401, b"{}")
        registry.tokens_given += 1
        registry.token = f"t{registry.tokens_given}"
        return self.reply(200, json.dumps({"token": registry.token}).encode(), content_type="application/json")

    def on_tags(self, registry, name, _rest, _data, _query):
        tags = [tag for repository, tag in registry.manifests if repository == name and not tag.startswith("sha256:")]
        return self.reply(200, json.dumps({"name": name, "tags": tags}).encode(), content_type="application/json")

    def on_referrers(self, registry, name, digest, _data, _query):
        if not registry.keeps_referrers:
            return self.refuse(404, "NOT_FOUND")
        listed = []
        for (repository, reference), (kind, data) in registry.manifests.items():
            manifest = json.loads(data)
            if repository == name and reference.startswith("sha256:") and manifest.get("subject", {}).get("digest") == digest:
                listed.append({"mediaType": kind, "digest": reference, "size": len(data), "artifactType": manifest["artifactType"]})
        return self.reply(200, json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": listed}).encode(),
                          content_type=INDEX)

    def on_manifests(self, registry, name, reference, data, _query):
        if self.command == "PUT":
            kind = self.headers["content-type"]
            for key in (reference, digest_of(data)):
                registry.manifests[name, key] = (kind, data)
            subject = json.loads(data).get("subject") if registry.keeps_referrers else None
            return self.reply(201, docker_content_digest=digest_of(data), **({"oci_subject": subject["digest"]} if subject else {}))
        found = registry.manifests.get((name, reference))
        if not found:
            return self.refuse(404, "MANIFEST_UNKNOWN")
        return self.reply(200, found[1], content_type=found[0], docker_content_digest=digest_of(found[1]))

    def on_blobs(self, registry, name, rest, data, query):
        if self.command == "POST":
            return self.reply(202, location=f"/v2/{name}/blobs/uploads/one?state=x")
        if self.command == "PUT":
            digest = query["digest"][0]
            if digest_of(data) != digest:
                return self.refuse(400, "DIGEST_INVALID")
            registry.blobs[digest] = data
            return self.reply(201, docker_content_digest=digest)
        if rest not in registry.blobs:
            return self.refuse(404, "BLOB_UNKNOWN")
        return self.reply(200, registry.blobs[rest], content_type="application/octet-stream")


class Registry:
    """`scripted` holds (pattern over "METHOD /path", handler) pairs that answer instead."""

    def __init__(self):
        self.lock = threading.Lock()
        self.manifests, self.blobs, self.requests, self.scripted = {}, {}, [], []
        self.wants_token = self.wants_basic = self.keeps_referrers = False
        self.account = self.token = None
        self.tokens_given, self.token_requests = 0, []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.registry = self
        self.host = f"127.0.0.1:{self.server.server_port}"
        self.realm = f"http://{self.host}/token"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def put(self, name, tag, manifest, kind=MANIFEST):
        """Keeps a manifest under a tag and its digest; gives the digest."""
        data = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
        self.manifests[name, tag] = self.manifests[name, digest_of(data)] = (kind, data)
        return digest_of(data)

    def paths(self, method=None):
        return [path for how, path, _headers in self.requests if method in (None, how)]
