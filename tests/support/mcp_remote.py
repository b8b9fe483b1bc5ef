# SPDX-License-Identifier: Apache-2.0
#
# A server of tools far away, scripted: streamable HTTP of both eras on loopback, with TLS by a test authority where it is asked
# for. What it does can be changed while it runs; what it was sent is kept.

import json
import subprocess
import ssl
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODERN, LEGACY = "2026-07-28", "2025-11-25"
META = "io.modelcontextprotocol/"
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}


def tool(name, description="A tool.", schema=None, **more):
    return {"name": name, "description": description, "inputSchema": schema or TEXT, **more}


def authority(folder):
    """A certificate of 127.0.0.1 and localhost that is its own authority; the context, and the file to trust."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", folder / "key.pem", "-out",
                    folder / "cert.pem", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"],
                   check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context, folder / "cert.pem"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_arguments):
        pass

    # --- answers ---

    def reply(self, status, body=b"", **headers):
        if isinstance(body, (dict, list)):
            body, headers = json.dumps(body).encode(), {"content_type": "application/json", **headers}
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def open_stream(self, **headers):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True

    def event(self, message, id=None, retry=None):
        text = (f"id: {id}\n" if id else "") + (f"retry: {retry}\n" if retry is not None else "")
        self.wfile.write((text + "data: " + (json.dumps(message) if message != "" else "") + "\n\n").encode())
        self.wfile.flush()

    def result(self, request, result, **headers):
        far = self.server.far
        if self.modern(request):
            result = {"resultType": "complete", **result}
            result["_meta"] = {META + "serverInfo": {"name": "far", "version": "1"}, **result.get("_meta", {})}
        message = {"jsonrpc": "2.0", "id": request["id"], "result": result}
        if far.streams:
            self.open_stream(**headers)
            self.event(message)
        else:
            self.reply(200, message, **headers)

    def error(self, request, status, code, message, **more):
        self.reply(status, {"jsonrpc": "2.0", "id": request.get("id"), "error": {"code": code, "message": message, **more}})

    # --- what it serves ---

    @staticmethod
    def modern(request):
        return META + "protocolVersion" in (request.get("params") or {}).get("_meta", {})

    def refuse_headers(self, request):
        """What of a modern request's headers is not as its body says."""
        wanted = {"mcp-protocol-version": request["params"]["_meta"][META + "protocolVersion"], "mcp-method": request["method"]}
        if request["method"] == "tools/call":
            wanted["mcp-name"] = request["params"]["name"]
        wrong = [name for name, value in wanted.items() if self.headers[name] != value]
        if wrong:
            self.error(request, 400, -32020, f"wrong headers: {wrong}")
        return bool(wrong)

    def do_POST(self):
        far = self.server.far
        body = self.rfile.read(int(self.headers["content-length"]))
        far.seen.append(("POST", self.path, dict(self.headers.items()), body))
        if far.other("POST", self, body):
            return
        request = json.loads(body)
        if far.token is not None and self.headers["authorization"] != f"Bearer {far.token}":
            return self.reply(401, www_authenticate=far.challenge())
        odd = far.odd.get(request.get("method"))
        if odd and odd(self, request) is not False:
            return
        if "id" not in request or "method" not in request:
            far.notices.append(request)
            return self.reply(202)
        if self.modern(request):
            if far.era == "legacy":
                return self.reply(400, b"Bad Request: no valid session", content_type="text/plain")
            return self.refuse_headers(request) or self.serve(request)
        if far.era == "modern":
            return self.error(request, 404, -32601, "no such method")
        if request["method"] == "initialize":
            headers = {}
            if far.sessions:
                far.session = uuid.uuid4().hex
                headers["mcp_session_id"] = far.session
            return self.result(request, {"protocolVersion": LEGACY, "capabilities": far.capabilities, "serverInfo": {"name": "far", "version": "1"},
                                         "instructions": far.instructions}, **headers)
        if far.sessions and self.headers["mcp-session-id"] != far.session:
            return self.error(request, 404 if self.headers["mcp-session-id"] else 400, -32001, "Session not found")
        return self.serve(request)

    def serve(self, request):
        far = self.server.far
        if request["method"] == "server/discover":
            return self.result(request, {"supportedVersions": [MODERN], "capabilities": far.capabilities, "ttlMs": 0, "cacheScope": "private"})
        if request["method"] == "tools/list":
            return self.result(request, {"tools": far.tools})
        if request["method"] == "subscriptions/listen":
            self.open_stream()
            self.event({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {}})
            return far.closed.wait(30)
        if request["method"] != "tools/call":
            return self.error(request, 404, -32601, "no such method")
        far.calls.append(request["params"])
        answer = far.answers.get(request["params"]["name"])
        text = json.dumps(request["params"].get("arguments", {}).get("text", ""))
        return self.result(request, answer(request["params"]) if answer else {"content": [{"type": "text", "text": "far: " + text}]})

    def do_GET(self):
        far = self.server.far
        far.seen.append(("GET", self.path, dict(self.headers.items()), b""))
        if far.other("GET", self, b"") or (far.on_get and far.on_get(self)):
            return
        self.reply(405)

    def do_DELETE(self):
        self.server.far.seen.append(("DELETE", self.path, dict(self.headers.items()), b""))
        self.reply(200)


class Remote:
    """with Remote(...) as far: far.url is its address."""

    def __init__(self, era="modern", tls=None, tools=None, token=None, streams=False, sessions=False):
        self.era, self.tools, self.token, self.streams, self.sessions = era, tools or [tool("echo", "Says it again.")], token, streams, sessions
        self.session, self.instructions, self.capabilities, self.on_get = None, "", {"tools": {}}, None
        self.odd, self.answers, self.seen, self.notices, self.calls, self.routes = {}, {}, [], [], [], {}
        self.closed = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads, self.server.far = True, self
        self.server.handle_error = lambda *_arguments: None
        self.scheme = "http"
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
            self.scheme = "https"
        self.origin = f"{self.scheme}://127.0.0.1:{self.server.server_address[1]}"
        self.url = self.origin + "/mcp"

    def challenge(self):
        return "Bearer"

    def other(self, method, handler, body):
        """Answers what is not the server's own path; True when it did."""
        route = self.routes.get((method, handler.path.partition("?")[0]))
        if route:
            route(handler, body)
        elif handler.path.partition("?")[0] != "/mcp":
            handler.reply(404)
        else:
            return False
        return True

    def sent(self, method):
        """The headers and message of every request of that method."""
        found = []
        for verb, _, headers, body in self.seen:
            message = json.loads(body) if verb == "POST" and body[:1] == b"{" else {}
            if message.get("method") == method:
                found.append(({name.lower(): value for name, value in headers.items()}, message))
        return found

    def __enter__(self):
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_arguments):
        self.closed.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(5)
