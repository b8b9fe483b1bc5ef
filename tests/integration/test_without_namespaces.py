# SPDX-License-Identifier: Apache-2.0
#
# scoped where a host makes no namespaces, as a pod of Kubernetes or a container with the usual defaults: Landlock lets commands
# connect to the egress relay alone, the filter gives them TCP sockets that no packet leaves the host by, and no others.

import json
import os
import shutil
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.escape.attempts import listener
from tests.support.commands import answers, call, command_agent
from tests.support.hosts import PROBE_PATH, needs, on_host, without_calls, without_namespaces
from tests.support.landlock import landlock_abi

pytestmark = pytest.mark.skipif(landlock_abi() < 4, reason="Landlock of this kernel does not judge the network")


@contextmanager
def web():
    class Answer(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            body = f"{self.path} {self.headers.get('Host')} {self.headers.get('Connection')} {self.headers.get('Proxy-Connection')}".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[::-1])

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def agent(lab, lines, *hosts, shell=("bash", "cat", "curl", "python3", "escape-probe"), **network):
    return command_agent(lab, lines, shell=shell, capabilities={"network": {"allow": list(hosts), **network}, "containment": "scoped"})


def run(project, *arguments, **how):
    return project.run("--task", "go", "--workdir", project / "work", *arguments, env={"PATH": PROBE_PATH}, **how).ok()


SOCKETS = """
import errno, socket
def tell(name, work):
    try:
        work()
        print(name, 'ok')
    except OSError as e:
        print(name, errno.errorcode.get(e.errno, 'ETIMEDOUT'))
S = socket.socket
tell('tcp', lambda: S(socket.AF_INET, socket.SOCK_STREAM))
tell('udp', lambda: S(socket.AF_INET, socket.SOCK_DGRAM))
tell('raw', lambda: S(socket.AF_INET, socket.SOCK_RAW, 1))
tell('mptcp', lambda: S(socket.AF_INET, socket.SOCK_STREAM, 262))
tell('sctp', lambda: S(socket.AF_INET, socket.SOCK_STREAM, 132))
tell('inet6', lambda: S(socket.AF_INET6, socket.SOCK_STREAM))
tell('netlink', lambda: S(socket.AF_NETLINK, socket.SOCK_RAW, 0))
tell('packet', lambda: S(socket.AF_PACKET, socket.SOCK_RAW))
tell('vsock', lambda: S(socket.AF_VSOCK, socket.SOCK_STREAM))
tell('unix', lambda: S(socket.AF_UNIX, socket.SOCK_STREAM))
tell('pair', socket.socketpair)
tell('bind', lambda: S().bind(('127.0.0.1', 0)))
tell('listen', lambda: S().listen())
tell('unbind', lambda: S().setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b''))
tell('fast', lambda: S().sendto(b'x', 0x20000000, ('127.0.0.1', OTHER)))
tell('other', lambda: S().connect(('127.0.0.1', OTHER)))
def elsewhere():
    import os, urllib.parse
    s = S()
    s.settimeout(0.5)
    s.connect(('198.51.100.7', urllib.parse.urlsplit(os.environ['http_proxy']).port))
tell('elsewhere', elsewhere)
def again():
    s = S()
    import ctypes
    ctypes.CDLL(None).connect(s.fileno(), bytes(16), 16)
    tell('unbind-again', lambda: s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b''))
again()
"""


def test_fleet_33_commands_have_no_socket_but_to_the_relay(lab):
    needs(lab, "scoped")
    without_namespaces(lab)
    with web() as port, listener(socket.AF_INET) as (other, seen):
        script = SOCKETS.replace("OTHER", str(other if isinstance(other, int) else other[1]))
        project = agent(lab, ["cat > s.py <<'EOF'\n" + script + "EOF\npython3 s.py"], f"http://127.0.0.1:{port}")
        result = run(project)
        assert not seen
    told = dict(line.split() for line in answers(project)[0].stdout.splitlines())
    assert told.pop("elsewhere") in ("EHOSTUNREACH", "ENETUNREACH", "ETIMEDOUT", "EAGAIN", "EINVAL"), told
    assert told == {"tcp": "ok", "udp": "EACCES", "raw": "EACCES", "mptcp": "EPERM", "sctp": "EPERM", "inet6": "EAFNOSUPPORT",
                    "netlink": "EACCES", "packet": "EACCES", "vsock": "EPERM", "unix": "EACCES", "pair": "ok", "bind": "EACCES",
                    "listen": "EPERM", "unbind": "EPERM", "unbind-again": "EPERM", "fast": "EPERM", "other": "EACCES"}
    grants = lab.session(result).trace.one("session_start")["effective_grants"]
    assert grants["achieved_containment"] == "scoped" and grants["without_namespaces"] and "unconfined" not in grants


def test_fleet_33_listed_hosts_are_reached_through_the_relay(lab):
    needs(lab, "scoped")
    without_calls(lab, "unshare", "mount", "clone3")
    with web() as port, web() as other:
        project = agent(lab, [
            f"curl -sS http://127.0.0.1:{port}/direct",
            f"curl -sS http://localhost:{port}/named?a=b",
            f"curl -sS -p http://localhost:{port}/tunnel",
            f"(curl -sS -d abc http://localhost:{port}/; wait)",
            f"curl -sS -w '%{{http_code}}' http://localhost:{other}/; curl -sS -p http://localhost:{other}/",
            "curl -sS -w '%{http_code}' http://example.invalid/; curl -sS --noproxy '*' http://localhost:1/; "
            "python3 -c 'import socket; socket.getaddrinfo(\"example.com\", 80)'",
        ], f"http://127.0.0.1:{port}", f"http://localhost:{port}")
        result = run(project)
    direct, named, tunnel, posted, unlisted, unknown = answers(project)
    assert direct.stdout == f"/direct 127.0.0.1:{port} None None", direct.text
    assert named.stdout == f"/named?a=b localhost:{port} close None", named.text
    assert tunnel.stdout == f"/tunnel localhost:{port} None None", tunnel.text
    assert posted.stdout == "cba", posted.text
    assert unlisted.stdout == f"murmur: localhost:{other} is not in capabilities.network.allow\n403"
    assert "403" in unlisted.stderr and f"localhost:{other}" in unlisted.text, unlisted.text
    assert unknown.stdout.endswith("403") and "gaierror" in unknown.stderr, unknown.text
    assert "example.invalid" in json.dumps(lab.session(result).trace.lines), "the refusal is told"


def test_fleet_33_without_listed_hosts_there_is_no_socket(lab):
    needs(lab, "scoped")
    without_namespaces(lab)
    project = agent(lab, ["env | grep -i proxy; python3 -c 'import socket; socket.socket()'", call("escape-probe", "socket 1 1")])
    run(project)
    tcp, unix = answers(project)
    assert tcp.stdout == "" and "PermissionError" in tcp.stderr and unix.stdout == "refused EACCES\n"


def test_fleet_33_files_signals_and_calls_stay_walled(lab):
    needs(lab, "scoped")
    secret = lab.home / "secret"
    secret.write_text("the home's\n")
    without_namespaces(lab)
    calls = [f"cat {secret}; cat /etc/shadow; cat /proc/1/environ", call("escape-probe", "ptrace 1"), call("escape-probe", "clone 10000000"),
             call("escape-probe", "call bpf"), call("escape-probe", "signal-everybody 9"), call("escape-probe", f"kill {os.getpid()}")]
    project = agent(lab, calls)
    run(project)
    read, *refused = answers(project)
    assert read.stderr.count("Permission denied") == 3 and not read.stdout
    expected = ["refused EPERM"] * 5 if landlock_abi() >= 6 else ["refused EPERM"] * 4
    assert [one.stdout.strip() for one in refused][:len(expected)] == expected


def test_fleet_33_the_report_and_doctor_say_what_is_left(lab):
    needs(lab, "scoped")
    without_namespaces(lab)
    project = agent(lab, ["true"])
    report = project.run("--explain-scope").ok().stdout
    assert "commands run without namespaces: they reach hosts of network.allow through a proxy alone" in report
    assert "read_only paths are judged by the words of a command alone" in report
    assert project.run("--explain-scope", "--json").ok().json["without_namespaces"] is True
    assert "without namespaces: scoped;" in project.mur("doctor").ok().stdout


def test_fleet_33_a_container_of_the_usual_defaults_runs_commands(lab):
    if not shutil.which("bwrap"):
        pytest.skip("bubblewrap is not installed")
    needs(lab, "scoped")
    container = "bwrap --unshare-user --unshare-pid --disable-userns --bind / / --proc /proc --dev /dev"
    if os.system(f"{container} true 2>/dev/null"):
        pytest.skip("bubblewrap cannot make a container here")
    on_host(lab, f"exec {container} {lab.mur_path} \"$@\"", "mur-in-a-container")
    lab.murmur_home.mkdir(exist_ok=True)
    (lab.murmur_home / "config.yaml").write_text("resources: {cgroup: optional}\n")
    project = agent(lab, ["echo made > here; cat here", "cat /etc/shadow"])
    run(project)
    made, shadow = answers(project)
    assert made.stdout == "made\n" and "Permission denied" in shadow.stderr
