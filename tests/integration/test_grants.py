# SPDX-License-Identifier: Apache-2.0
#
# What a manifest grants and refuses, seen from outside: network rules, gateways, scopes, environment names, the report.

import http.server
import json
import threading

import pytest
import yaml

from tests.support.fixtures import own_component


class Upstream:
    """A loopback server that answers every request one way and remembers what came."""

    def __init__(self, status=200, headers=(), body=b"hello"):
        seen = self.seen = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                seen.append((self.path, list(self.headers.items())))
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def upstream():
    servers = []

    def start(*arguments, **how):
        servers.append(Upstream(*arguments, **how))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def ask_tool(lab, lines, entry=None, **manifest):
    """Runs `tool-probe` once; returns the finished run and what the tool answered."""
    reference = lab.publish("tool-probe", own_component("tool-probe"), input_schema={"type": "object"})
    name, version = reference.rsplit("@", 1)
    project = lab.agent(tools=[{"name": name, "version": version, "runtime": "tool", **(entry or {})}], steps=[
        {"tool_calls": [{"name": "tool-probe", "input": {"do": "\n".join(lines)}}]}, {"text": "{{result}}"}], **manifest)
    result = project.run("--task", "try").ok()
    return result, lab.session(result).result_text


def ask_gateway(lab, gate):
    reference = lab.publish("tool-probe", own_component("tool-probe"), input_schema={"type": "object"},
                            upstream_auth={"header": "x-api-key", "value": "{key}"})
    name, version = reference.rsplit("@", 1)
    project = lab.agent(
        tools=[{"name": name, "version": version, "runtime": "tool",
                "gateway": {"endpoint": f"http://{gate.host}", "api_key": "${LAB_KEY}"}}],
        steps=[{"tool_calls": [{"name": "tool-probe", "input": {"do": "fetch http://127.0.0.1:9/start"}}]},
               {"text": "{{result}}"}])
    result = project.run("--task", "try", env={"LAB_KEY": "sk-of-the-lab"}).ok()
    return result, lab.session(result).result_text


def test_containment_23_an_entry_with_a_path_is_refused(lab):
    project = lab.script_capsule(own_component("probe"), capabilities={"network": {"allow": ["https://api.example.com/v1"]}})

    result = project.run("--task", "say x").failed("E-CAP-001")

    assert "https://api.example.com/v1" in result.stderr
    assert project.session_directories == [] and lab.records == []


def test_containment_23_a_star_matches_no_subdomain(lab):
    project = lab.script_capsule(own_component("probe"), capabilities={"network": {"allow": ["*.localhost"]}})

    project.run("--task", "fetch http://a.localhost:1/").ok()

    answer = (project.session_directories[0] / "out/result.txt").read_text()
    assert "denied" in answer.lower()


def test_containment_24_a_tool_outside_its_ceiling_reaches_nothing(lab, upstream):
    server = upstream()
    ceiling = {"network": {"allow": [server.host]}}

    result, answer = ask_tool(lab, [f"fetch http://{server.host}/"], {"capabilities": {"network": {"allow": ["other.example"]}}},
                              capabilities=ceiling)

    assert result.stderr.count("warning[W-SEC-007]") == 1
    assert "denied" in answer.lower() and server.seen == []


@pytest.mark.parametrize("entry, reaches", [({"capabilities": {"network": {"allow": []}}}, False), ({}, True)],
                         ids=["empty list", "no block"])
def test_containment_24_an_empty_list_denies_and_no_block_inherits(lab, upstream, entry, reaches):
    server = upstream()

    _result, answer = ask_tool(lab, [f"fetch http://{server.host}/"], entry,
                               capabilities={"network": {"allow": [server.host]}})

    assert ("hello" in answer) is reaches
    assert bool(server.seen) is reaches


def test_containment_26_a_scope_that_leaves_the_work_folder(lab):
    reference = lab.publish("tool-probe", own_component("tool-probe"), input_schema={"type": "object"})
    name, version = reference.rsplit("@", 1)
    project = lab.agent(steps=[{"text": "x"}], tools=[
        {"name": name, "version": version, "runtime": "tool", "capabilities": {"filesystem": {"scope": "../x"}}}])

    for arguments in (["--task", "x"], ["--explain-scope"]):
        result = project.run(*arguments).failed("E-CAP-002")
        assert '"../x"' in result.stderr or "'../x'" in result.stderr
    assert project.session_directories == []


KEY = "sk-of-the-lab"


def everything_kept(lab):
    """All bytes below the lab's home, but the driver's and the tool's own."""
    return b"".join(path.read_bytes() for path in lab.murmur_home.rglob("*") if path.is_file() and "artifacts" not in path.parts
                    and "compiled" not in path.parts)


def ask_keyed(lab, gate, lines, more_tools=(), **how):
    reference = lab.publish("tool-probe", own_component("tool-probe"), input_schema={"type": "object"},
                            upstream_auth={"header": "x-api-key", "value": "Key {key}"})
    name, version = reference.rsplit("@", 1)
    project = lab.agent(
        tools=[{"name": name, "version": version, "runtime": "tool",
                "gateway": {"endpoint": f"http://{gate.host}/base/", "api_key": "${LAB_KEY}"}}, *more_tools],
        steps=[*({"tool_calls": [{"name": tool, "input": {"do": "\n".join(script)}}]} for tool, script in lines), {"text": "{{result}}"}], **how)
    result = project.run("--task", "try", env={"LAB_KEY": KEY}).ok()
    return result, lab.session(result)


def test_containment_27_the_upstream_sees_the_key_once_and_nobody_else_ever(lab, upstream):
    gate = upstream()
    result, session = ask_keyed(lab, gate, [("tool-probe", [
        "env", "fetch-with http://127.0.0.1:9/base/one?q=1 X-API-Key forged", "fetch-with http://127.0.0.1:9/base/two Authorization mine",
        "read murmur-runtime/murmur.yaml"])])
    assert [path for path, _ in gate.seen] == ["/base/one?q=1", "/base/two"]
    for _, headers in gate.seen:
        assert [value for name, value in headers if name.lower() == "x-api-key"] == [f"Key {KEY}"]
        assert [value for name, value in headers if name.lower() == "host"] == [gate.host]
    assert [value for name, value in gate.seen[1][1] if name.lower() == "authorization"] == ["mine"]
    text = session.result_text
    assert "MURMUR_GATEWAY_ENDPOINT=http://127.0.0.1:9/base\n" in text and "fetch-with: 200" in text
    for where in (text, result.stdout, result.stderr, session.trace.path.read_text(), everything_kept(lab).decode(errors="replace")):
        assert KEY not in where


def test_containment_27_a_literal_key_is_masked_in_the_manifest_a_tool_can_read(lab, upstream):
    gate = upstream()
    reference = lab.publish("tool-probe", own_component("tool-probe"), input_schema={"type": "object"},
                            upstream_auth={"header": "x-api-key", "value": "{key}"})
    name, version = reference.rsplit("@", 1)
    project = lab.agent(tools=[{"name": name, "version": version, "gateway": {"endpoint": f"http://{gate.host}", "api_key": "literal-of-the-lab"}}],
                        steps=[{"tool_calls": [{"name": "tool-probe", "input": {"do": "read murmur-runtime/murmur.yaml\nfetch http://127.0.0.1:9/"}}]},
                               {"text": "{{result}}"}])
    result = project.run("--task", "try").ok()
    text = lab.session(result).result_text
    assert "***" in text and "literal-of-the-lab" not in text
    assert [value for name, value in gate.seen[0][1] if name.lower() == "x-api-key"] == ["literal-of-the-lab"]
    assert result.stderr.count("warning[W-SEC-027]") == 1 and "literal-of-the-lab" not in result.stderr


def test_containment_29_another_artifact_has_no_way_through_the_gateway(lab, upstream):
    gate = upstream()
    other = lab.publish("tool-other", own_component("tool-probe"), input_schema={"type": "object"}).rsplit("@", 1)[0]
    allowed = lab.publish("tool-allowed", own_component("tool-probe"), input_schema={"type": "object"}).rsplit("@", 1)[0]
    _, session = ask_keyed(lab, gate, [("tool-other", ["env", "fetch http://127.0.0.1:9/base/x"]),
                                       ("tool-allowed", ["fetch http://127.0.0.1:9/base/x"])],
                           [{"name": other, "version": "0.1.0"},
                            {"name": allowed, "version": "0.1.0", "capabilities": {"network": {"allow": ["127.0.0.1:9"]}}}],
                           capabilities={"network": {"allow": ["127.0.0.1:9"]}})
    assert gate.seen == [], "nothing reached the upstream"
    calls = session.trace.all("tool_call")
    assert [call["status"] for call in calls] == ["ok", "ok"] and "200" not in session.result_text
    _, denied = ask_keyed(lab, gate, [("tool-other", ["fetch http://127.0.0.1:9/base/x"])], [{"name": other, "version": "0.1.0"}])
    assert "denied" in denied.result_text.lower() and gate.seen == []


def test_containment_28_a_redirect_is_the_guest_s_to_see(lab, upstream):
    target = upstream()
    gate = upstream(302, [("Location", f"http://{target.host}/elsewhere")], b"moved")

    _result, answer = ask_gateway(lab, gate)

    assert "302" in answer
    assert len(gate.seen) == 1 and target.seen == []


def test_containment_30_a_credential_name_is_refused_before_anything(lab):
    project = lab.agent(steps=[{"text": "x"}], capabilities={"env": {"allow": ["GITHUB_TOKEN"]}})

    result = project.run("--task", "x", env={"GITHUB_TOKEN": "ghp_secret"}).failed("E-CAP-016")

    assert "'GITHUB_TOKEN'" in result.stderr and "ghp_secret" not in result.stderr
    assert lab.records == []


def test_containment_30_a_credential_shaped_name_warns_once(lab):
    project = lab.agent(steps=[{"text": "x"}], capabilities={"env": {"allow": ["DB_PASSWORD", "KEYBOARD_LAYOUT"]}})

    result = project.run("--task", "x").ok()

    assert result.stderr.count("warning[W-SEC-024]") == 1
    assert "DB_PASSWORD" in result.stderr and "KEYBOARD_LAYOUT" not in result.stderr


def test_cli_08_an_unmet_floor_is_reported_and_nothing_is_made(lab):
    project = lab.agent(steps=[{"text": "x"}],
                        capabilities={"containment": "scoped", "filesystem": {"workdir_exec": True}})

    result = project.run("--explain-scope", "--json").ok()

    assert result.stdout.count("\n") == 1
    report = json.loads(result.stdout)
    keys = list(report)
    assert report["floor_met"] is False
    assert keys[keys.index("floor_met") + 1] == "shortfall_reason"
    assert not (project / "workdir").exists() and not (project / "murmur.lock").exists() and lab.records == []


def package(project, **manifest):
    project.write("murmur.yaml", yaml.safe_dump({"name": "thing", "version": "0.1.0", "runtime": "tool", **manifest}))
    return project


def test_cli_22_a_package_without_payload_or_with_a_path_outside(lab):
    project = lab.project("package")

    package(project).mur("build", ".").failed("E-BLD-003")
    package(project, requires_files=["../x"]).mur("build", ".").failed("E-BLD-002")
    assert not list(project.directory.glob("*.mur.zip"))


def test_cli_22_a_moving_version_is_not_published(lab):
    project = package(lab.project("package"), version="latest", requires_files=["a.wasm"])
    project.write("a.wasm", own_component("echo").read_bytes())
    project.mur("build", ".").ok()

    result = project.mur("publish").failed("E-REG-004")

    assert "latest" in result.stderr
    assert not list(lab.murmur_home.rglob("*.mur.zip"))


def test_cli_23_what_install_refuses(lab):
    project = lab.project("empty", {"name": "empty", "version": "0.1.0"})
    lab.publish("echo", own_component("echo"))
    stored, = lab.murmur_home.rglob("echo-0.1.0*.mur.zip")
    stored.write_bytes(stored.read_bytes() + b"x")

    assert '"tool"' in project.mur("install", "tool@1").failed("E-REG-007").stderr
    assert "other" in project.mur("install", "other/tool@1").failed("E-REG-008").stderr
    project.mur("install", "local/echo@0.1.0").failed("E-REG-002")


def test_containment_2_1_only_a_tool_without_a_scope_sees_the_runtime_directory(lab):
    look = ["list murmur-runtime", "read murmur-runtime/task.md", "write murmur-runtime/x no", "remove murmur-runtime/task.md"]
    result, answer = ask_tool(lab, look)
    lines = answer.splitlines()
    assert "task.md" in lines and "murmur.yaml" in lines and "tools/" in lines and "try" in lines
    assert [line.split(":")[1] for line in lines if line.startswith(("write:", "remove:"))] == [" error", " error"]
    prompt = lab.session(result).trace.one("session_start")
    assert prompt["effective_grants"]["preopens"][1]["runtime_dir_reach"] == "murmur-runtime"
    for scope in ("sub", "."):
        _, answer = ask_tool(lab, look, {"capabilities": {"filesystem": {"scope": scope}}})
        assert answer.splitlines()[0].startswith("list: error") and "try" not in answer.splitlines()
