# SPDX-License-Identifier: Apache-2.0
#
# An MCP client over the standard streams of a program, as bare as the protocol is: what a test of serving sends and reads.

import json
import os
import threading

from .lab import SLOWER

VERSION, CAPS = "io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities"
MODERN, LEGACY = "2026-07-28", "2025-11-25"


def meta(version=MODERN, capabilities=None, **more):
    return {VERSION: version, CAPS: capabilities or {}, **more}


class StdioClient:
    """One running `mur mcp serve`; answers are found by id, everything else is in `notices`."""

    def __init__(self, lab, *arguments, cwd=None, era="modern", capabilities=None):
        read_end, write_end = os.pipe()
        self.running = lab.start("mcp", "serve", *arguments, cwd=cwd, stdin=True, stdout=write_end)
        os.close(write_end)
        self.process, self.output = self.running.process, os.fdopen(read_end, "rb")
        self.era, self.next_id, self.answers, self.notices, self.raw = era, 0, {}, [], []
        self._news = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()
        if era != "modern":
            self.opened = self.ask("initialize", protocolVersion=era, capabilities=capabilities or {}, clientInfo={"name": "t", "version": "1"})
            self.notify("notifications/initialized")

    def _read(self):
        for line in self.output:
            message = json.loads(line)
            with self._news:
                self.raw.append(message)
                if "method" in message:
                    self.notices.append(message)
                else:
                    self.answers[json.dumps(message["id"])] = message
                self._news.notify_all()
        with self._news:
            self.raw.append(None)
            self._news.notify_all()

    def write(self, text):
        self.process.stdin.write(text if isinstance(text, bytes) else text.encode())
        self.process.stdin.flush()

    def notify(self, method, **params):
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}) + "\n")

    def send(self, method, id=None, capabilities=None, token=None, **params):
        """Sends a request; its id."""
        if id is None:
            self.next_id += 1
            id = self.next_id
        if self.era == "modern":
            params.setdefault("_meta", meta(capabilities=capabilities))
        elif capabilities is not None:
            params["capabilities"] = capabilities
        if token is not None:
            params.setdefault("_meta", {})["progressToken"] = token
        self.write(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}) + "\n")
        return id

    def wait_until(self, fact, within_s=20):
        with self._news:
            assert self._news.wait_for(fact, within_s * SLOWER), f"not within {within_s} s: {self.raw[-3:]}\n{self.running.stderr}"

    def answer(self, id, within_s=20):
        key = json.dumps(id)
        self.wait_until(lambda: key in self.answers or None in self.raw, within_s)
        assert key in self.answers, f"no answer to {id}; it ended:\n{self.running.stderr}"
        return self.answers[key]

    def ask(self, method, within_s=20, **how):
        answer = self.answer(self.send(method, **how), within_s)
        assert "error" not in answer, answer
        return answer["result"]

    def fails(self, method, **how):
        return self.answer(self.send(method, **how))["error"]

    def call(self, name, arguments=None, **how):
        return self.ask("tools/call", name=name, arguments=arguments or {}, **how)

    def text(self, name, arguments=None, **how):
        result = self.call(name, arguments, **how)
        assert not result.get("isError"), result
        return result["content"][0]["text"]

    def close(self):
        """Ends the client's side; the exit status."""
        self.process.stdin.close()
        return self.process.wait(10 * SLOWER)
