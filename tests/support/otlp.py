# SPDX-License-Identifier: Apache-2.0
#
# A collector that speaks both encodings of OTLP over HTTP, as a test sees it: every request with its head, the spans
# and metrics in it decoded by OpenTelemetry's own classes.

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest, ExportMetricsServiceResponse)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse

MESSAGES = {"/v1/traces": ExportTraceServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}
ANSWERS = {"/v1/traces": ExportTraceServiceResponse, "/v1/metrics": ExportMetricsServiceResponse}
IDS = ("traceId", "spanId", "parentSpanId")


def decode(path, body, content_type):
    """A request's body as the JSON form says it, ids as hex digits, whichever way it came."""
    if content_type.startswith("application/json"):
        return json.loads(body)
    message = MESSAGES[path]()
    message.ParseFromString(body)
    return with_hex_ids(json_format.MessageToDict(message, use_integers_for_enums=True))


def with_hex_ids(value):
    import base64
    if isinstance(value, list):
        return [with_hex_ids(item) for item in value]
    if isinstance(value, dict):
        return {key: base64.b64decode(item).hex() if key in IDS else with_hex_ids(item) for key, item in value.items()}
    return value


class OtlpCollector:
    """`answer(path, count)` gives (status, headers, body or None) for the count-th request of a path. A context manager."""

    def __init__(self, answer=None, tls=None):
        self.requests = []  # (path, headers, raw body)
        self.answer = answer or (lambda path, count: (200, {}, None))
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                before = sum(1 for path, _, _ in collector.requests if path == self.path)
                collector.requests.append((self.path, dict(self.headers.items()), body))
                status, headers, said = collector.answer(self.path, before)
                said = said if said is not None else b""
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.endpoint = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def bodies(self, path):
        return [decode(path, body, headers.get("Content-Type", headers.get("content-type", "")))
                for at, headers, body in self.requests if at == path]

    @property
    def spans(self):
        return [Span(span, values(resource["resource"]["attributes"])) for body in self.bodies("/v1/traces")
                for resource in body["resourceSpans"] for scope in resource["scopeSpans"] for span in scope["spans"]]

    def named(self, start):
        return [span for span in self.spans if span.name == start or span.name.startswith(start + " ")]

    def one(self, start):
        span, = self.named(start)
        return span

    @property
    def metrics(self):
        """The last state of each metric."""
        return {metric["name"]: metric for body in self.bodies("/v1/metrics")[-1:] for resource in body["resourceMetrics"]
                for scope in resource["scopeMetrics"] for metric in scope["metrics"]}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Span:
    def __init__(self, span, resource):
        self.raw, self.resource = span, resource
        self.name, self.trace, self.id, self.parent = span["name"], span["traceId"], span["spanId"], span.get("parentSpanId")
        self.kind, self.attributes = span["kind"], values(span.get("attributes", []))
        self.start, self.end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
        self.has_failed = span.get("status", {}).get("code") == 2
        self.events = [(event["name"], values(event.get("attributes", []))) for event in span.get("events", [])]


def value_of(value):
    (kind, inner), = value.items()
    if kind == "intValue":
        return int(inner)
    if kind == "arrayValue":
        return [value_of(item) for item in inner["values"]]
    return inner


def values(attributes):
    return {attribute["key"]: value_of(attribute["value"]) for attribute in attributes}
