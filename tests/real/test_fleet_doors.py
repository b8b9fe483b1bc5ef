# SPDX-License-Identifier: Apache-2.0
#
# The door of a fleet's session behind a real gateway (nginx) that rewrites path and host and gives up on what says nothing for half a
# minute. MURMUR_FLEET_STREAM_S says how long an answer may take (600, the design's ten minutes).

import http.client
import json
import os
import shutil
import subprocess
import urllib.request

import pytest

from tests.integration.test_fleet_cases import eventually_open, operator_door
from tests.support.fleet import Fleet, free_port
from tests.support.lab import SLOWER
from tests.support.polling import eventually

NGINX = shutil.which("nginx") or (os.path.exists("/usr/sbin/nginx") and "/usr/sbin/nginx")
pytestmark = pytest.mark.skipif(not NGINX, reason="nginx is not installed (Debian package nginx)")
STREAM_S = int(os.environ.get("MURMUR_FLEET_STREAM_S", "600"))
CONFIG = """
daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 1;
events {{ worker_connections 64; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{port};
    location /writer/ {{
      proxy_pass http://{door}/; proxy_set_header Host agents.example.com; proxy_http_version 1.1; proxy_buffering off; proxy_read_timeout 30s;
    }}
  }}
}}
"""


@pytest.fixture
def gateway(lab):
    """Starts nginx before a door; the port it listens on."""
    running = []

    def start(door):
        folder, port = lab.directory / "gateway", free_port()
        folder.mkdir()
        (folder / "nginx.conf").write_text(CONFIG.format(folder=folder, port=port, door=door))
        running.append(subprocess.Popen([NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf")], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return port
    yield start
    for one in running:
        one.terminate()
        one.wait(20)


def test_fleet_31_a_stream_of_ten_minutes_survives_a_gateway_that_rewrites(lab, gateway):
    with Fleet(lab) as fleet:
        # In two calls of its model: one may take ten minutes at most.
        half = STREAM_S * 500
        steps = [{"tool_calls": [{"name": "delegate-task", "input": {"capsule": "nobody", "version": "1.0.0", "task": "x"}}], "delay_ms": half},
                 {"text": "after a long pause", "delay_ms": half}]
        fleet.publish("parent", steps, capabilities={"spawn": {"allow": ["local/child"]}},
                      lifecycle={"task_acceptance": "queue", "after_task": "sleep"})
        fleet.start_root(task=None, arguments=("--public-url", "https://agents.example.com/writer"))
        eventually(lambda: fleet.annotation(fleet.api.get("jobs", "root-1"), "session"), 30 * SLOWER, "it is registered")
        url, token = operator_door(fleet, "root-1")
        port = gateway(url)

        def card():
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/writer/.well-known/agent-card.json", timeout=20) as answer:
                return json.loads(answer.read())
        assert eventually_open(card)["supportedInterfaces"][0]["url"] == "https://agents.example.com/writer"
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=60 * SLOWER)
        link.request("POST", "/writer/", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": {
            "messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "go"}]}}}), {
                "content-type": "application/json", "a2a-version": "1.0", "accept": "text/event-stream", "authorization": f"Bearer {token}"})
        answer = link.getresponse()
        assert answer.status == 200
        stream = answer.read().decode()
        assert "after a long pause" in stream and "TASK_STATE_COMPLETED" in stream, stream[-2000:]
        assert stream.count("\n:") >= STREAM_S // 20, "it was kept alive by heartbeats alone"
