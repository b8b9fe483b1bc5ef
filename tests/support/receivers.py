# SPDX-License-Identifier: Apache-2.0
#
# Real receivers of OpenTelemetry, started as their users start them, and what each says over its own interface of what it got.

import json
import os
import socket
import subprocess
import urllib.parse
import urllib.request

from tests.support.go_programs import built
from tests.support.lab import SLOWER
from tests.support.polling import eventually
from tests.support.pypi import python_with

PHOENIX = "arize-phoenix==20.26.1"


def free_ports(count):
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def ask(url, body=None, headers=None):
    request = urllib.request.Request(url, data=json.dumps(body).encode() if body is not None else None,
                                     headers={"content-type": "application/json", **(headers or {})})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read() or b"null")


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError as problem:
        return hasattr(problem, "code")  # an HTTP answer, whatever it says


class Receiver:
    """A process with an endpoint for OTLP over HTTP. As a context manager."""

    def start(self, folder, command, alive, **env):
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / "log"
        clean = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")}
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(command, cwd=folder, env={**clean, **env}, stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL)
        try:
            eventually(lambda: self.is_over() or answers(alive), 180 * SLOWER, "it is up")
        except BaseException:
            self.close()
            raise
        assert not self.is_over(), self.log.read_text()[-3000:]

    def is_over(self):
        return self.process.poll() is not None

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class RealCollector(Receiver):
    """OpenTelemetry's collector: what it took, as it hands it on."""

    def __init__(self, folder):
        port, health = free_ports(2)
        folder.mkdir(parents=True, exist_ok=True)
        self.endpoint, self.out = f"http://127.0.0.1:{port}", folder / "out.jsonl"
        (folder / "config.yaml").write_text(json.dumps({
            "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{port}"}}}},
            "exporters": {"file": {"path": str(self.out)}},
            "service": {"pipelines": {kind: {"receivers": ["otlp"], "exporters": ["file"]} for kind in ("traces", "metrics")},
                        "telemetry": {"metrics": {"level": "none"}}}}))
        self.start(folder, [built("collector"), "--config", str(folder / "config.yaml")], self.endpoint)

    def _lines(self):
        text = self.out.read_text() if self.out.exists() else ""
        return [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]  # the last may be half written

    @property
    def spans(self):
        return [{**span, "resource": resource["resource"], "attributes": plain(span.get("attributes", []))}
                for line in self._lines() for resource in line.get("resourceSpans", [])
                for scope in resource["scopeSpans"] for span in scope["spans"]]

    @property
    def metrics(self):
        return {metric["name"]: metric for line in self._lines() for resource in line.get("resourceMetrics", [])
                for scope in resource["scopeMetrics"] for metric in scope["metrics"]}


def plain(attributes):
    found = {}
    for attribute in attributes:
        (kind, value), = attribute["value"].items()
        found[attribute["key"]] = int(value) if kind == "intValue" else value
    return found


class Jaeger(Receiver):
    """Jaeger with its storage in memory."""

    def __init__(self, folder):
        otlp, query, query_grpc, health = free_ports(4)
        folder.mkdir(parents=True, exist_ok=True)
        self.endpoint, self.url = f"http://127.0.0.1:{otlp}", f"http://127.0.0.1:{query}"
        (folder / "config.yaml").write_text(json.dumps({
            "extensions": {
                "healthcheckv2": {"use_v2": True, "http": {"endpoint": f"127.0.0.1:{health}"}},
                "jaeger_storage": {"backends": {"store": {"memory": {"max_traces": 10000}}}},
                "jaeger_query": {"storage": {"traces": "store"}, "http": {"endpoint": f"127.0.0.1:{query}"},
                                 "grpc": {"endpoint": f"127.0.0.1:{query_grpc}"}}},
            "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{otlp}"}}}},
            "exporters": {"jaeger_storage_exporter": {"trace_storage": "store"}},
            "service": {"extensions": ["healthcheckv2", "jaeger_storage", "jaeger_query"],
                        "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["jaeger_storage_exporter"]}},
                        "telemetry": {"metrics": {"level": "none"}}}}))
        program = built("jaeger", "github.com/jaegertracing/jaeger/cmd/jaeger")
        self.start(folder, [program, "--config", str(folder / "config.yaml")], self.url + "/api/services")

    def traces(self, service):
        return ask(f"{self.url}/api/traces?service={urllib.parse.quote(service)}&limit=100")["data"] or []


class Phoenix(Receiver):
    """Arize Phoenix with its database in a folder. It takes protobuf alone, and no metrics."""

    def __init__(self, folder):
        port, grpc = free_ports(2)
        self.endpoint = self.url = f"http://127.0.0.1:{port}"
        python = python_with(PHOENIX, timeout=1500)
        self.start(folder, [python, "-m", "phoenix.server.main", "serve"], self.url + "/healthz",
                   PHOENIX_WORKING_DIR=str(folder), PHOENIX_HOST="127.0.0.1", PHOENIX_PORT=str(port),
                   PHOENIX_GRPC_PORT=str(grpc), PHOENIX_TELEMETRY_ENABLED="false", HOME=str(folder))

    def query(self, text, **variables):
        answer = ask(self.url + "/graphql", {"query": text, "variables": variables})
        assert not answer.get("errors"), answer
        return answer["data"]

    def project(self, name):
        text = """{ projects { edges { node { name id traceCount tokenCountTotal
                    sessions(first: 100) { edges { node { sessionId firstInput { value } lastOutput { value } numTraces } } }
                    spans(first: 100) { edges { node { name spanKind statusCode parentId tokenCountTotal tokenCountPrompt
                                           tokenCountCompletion } } } } } } }"""
        found = [edge["node"] for edge in self.query(text)["projects"]["edges"] if edge["node"]["name"] == name]
        return found[0] if found else None
