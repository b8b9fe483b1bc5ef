# SPDX-License-Identifier: Apache-2.0
#
# What the walls refuse is a line of the trace: each thing once a call, with how often, the rule and the remedy.

from tests.support.approvals import Asker, state
from tests.support.commands import call


def ran(lab, calls, shell, **capabilities):
    one = Asker(lab, calls, None, shell=shell, tools=(), capabilities=capabilities)
    one.start()
    assert state(one.begin()) == "completed"
    one.end()
    return one.trace


def test_network_refused_names_the_host_once_with_a_count(lab):
    script = "for n in 1 2 3; do curl -sS -m 2 http://198.51.100.7/; done; curl -sS -m 2 http://elsewhere.example/"
    trace = ran(lab, [script], ["sh", "curl"], network={"allow": ["http://127.0.0.1:9"]})
    lines = {line["host"]: line for line in trace.all("network_refused")}
    name = lines["elsewhere.example"]
    assert name["target"] == "sh" and name["port"] is None and name["count"] >= 1
    assert "network.allow" in name["rule"] and name["remedy"] == "capabilities.network.allow: [elsewhere.example]"
    assert len(lines) == len(trace.all("network_refused"))


def test_network_refused_of_a_component(lab):
    step = {"tool_calls": [{"name": "fetch", "input": {"url": "http://198.51.100.7/"}}]}
    one = Asker(lab, [step, step], None, tools=("std/fetch@0.1.0",), capabilities={"network": {"allow": ["http://127.0.0.1:9"]}})
    one.start()
    one.begin()
    one.end()
    assert [(line["host"], line["port"], line["target"]) for line in one.trace.all("network_refused")] == [("198.51.100.7", 80, "fetch")] * 2


def test_command_refused_names_what_the_rule_and_the_remedy(lab):
    trace = ran(lab, ["for n in 1 2; do /usr/bin/base64 /dev/null; done"], ["sh"])
    line = trace.one("command_refused")
    assert line["binary"] == "sh" and "base64" in line["what"]
    assert line["rule"] == "shell.allow" and line["remedy"] == "shell.allow: [base64]"


def test_task_received_names_the_principal(lab):
    one = Asker(lab, [], None, shell=["sh"], tools=(), network={"authentication": {"scheme": "bearer", "credentials": {
        "reviewer": {"scopes": ["SendMessage", "GetTask"]}}}})
    one.start()
    one.door.token = lab.mur("token", "--credential", "reviewer").ok().stdout.strip()
    one.begin()
    one.end()
    assert one.trace.one("a2a_task_received")["principal"] == "reviewer"
