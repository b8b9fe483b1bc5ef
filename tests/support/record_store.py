# SPDX-License-Identifier: Apache-2.0
#
# A records store of our own, scripted: it keeps what is PUT and gives it by GET, and fails as a test asks.

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_arguments):
        pass

    def reply(self, status, body=b""):
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer(self):
        store = self.server.store
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        with store.lock:
            store.requests.append((self.command, self.path, self.headers.get("authorization")))
            harm = store.harms.pop(0) if store.harms else store.harm
        key = self.path.removeprefix("/team/")
        if harm == "cut":
            self.close_connection = True
            return self.connection.close()
        if isinstance(harm, int):
            return self.reply(harm, b"no")
        if harm == "silent":
            store.released.wait(60)
            return self.reply(200)
        if self.command == "PUT":
            if harm != "lies":
                store.objects[key] = data
            return self.reply(201)
        return self.reply(200, store.objects[key]) if key in store.objects else self.reply(404)

    do_GET = do_PUT = answer


class Store:
    """`harm`: what each request meets (a status, "cut", "silent", "lies"); `harms`: the next ones, each once."""

    def __init__(self):
        self.lock, self.released = threading.Lock(), threading.Event()
        self.objects, self.requests, self.harms, self.harm = {}, [], [], None
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.store = self
        self.url = f"http://127.0.0.1:{self.server.server_port}/team"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()

    def put_keys(self):
        return [path.removeprefix("/team/") for method, path, _who in self.requests if method == "PUT"]

    def close(self):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
