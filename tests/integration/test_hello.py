# SPDX-License-Identifier: Apache-2.0
#
# What a newcomer does first: the demo, the example it runs, the README's own capsule; and the example's parts in another build.

import os
import re
import shutil
import subprocess

import yaml

from tests.support.fixtures import own_component
from tests.support.lab import BUILD, ROOT, SLOWER

EXAMPLE = BUILD / "examples/hello"


def hello(lab, change=None):
    """A project that is a copy of the example; `change` may edit its manifest."""
    manifest = yaml.safe_load((EXAMPLE / "murmur.yaml").read_text())
    if change:
        change(manifest)
    return lab.project("hello", manifest)


def test_demo_shows_the_answer_the_trace_and_what_it_says(lab):
    # A copy of what the demo needs, so that nothing is written into the build folder.
    build = lab.directory / "build"
    for name in ("mur", "artifacts", "cl100k.tokens"):
        if (BUILD / name).exists():
            (build / name).parent.mkdir(exist_ok=True)
            (build / name).symlink_to(BUILD / name)
    shutil.copytree(EXAMPLE, build / "examples/hello", ignore=shutil.ignore_patterns("workdir", "murmur.lock"))

    for _ in range(2):
        shown = subprocess.run([ROOT / "scripts/demo", build], env=lab.environment(), capture_output=True, text=True,
                               stdin=subprocess.DEVNULL, timeout=60 * SLOWER)
        assert shown.returncode == 0, shown.stdout + shown.stderr
        assert "Hello! You said: Hi, I am new." in shown.stdout
        assert re.search(r"status:\s+ok", shown.stdout)
        assert "files" in re.search(r"Tool calls.*", shown.stdout, re.DOTALL).group(0)
        path = re.search(r"^ *(/\S+/trace\.jsonl)$", shown.stdout, re.MULTILINE).group(1)
        assert os.path.isfile(path)


def test_hello_needs_no_network_and_only_its_work_folder_changes(lab):
    project = hello(lab)

    result = project.run("--task", "Hi!").ok()

    session = lab.session(result)
    assert session.result_text.startswith("Hello! You said: Hi!")
    assert [event["status"] for event in session.trace.all("tool_call")] == ["ok", "ok"]
    assert [path.name for path in project.session_directories] == [session.id]
    assert os.listdir(project.session_directories[0]) == ["welcome.txt"]
    assert sorted(os.listdir(project.directory)) == ["murmur.lock", "murmur.yaml", "workdir"]


def test_readme_first_capsule_runs_as_it_is_printed(lab):
    readme = (ROOT / "README.md").read_text()
    manifest = re.search(r"```yaml\n(.*?)```", readme, re.DOTALL).group(1)
    assert len(manifest.splitlines()) <= 10
    project = lab.project("my-first", manifest)

    result = project.run("--task", "What is here?").ok()

    assert lab.session(result).result_text.startswith("I see:")
    assert "my-first" in project.mur("trace", "show").ok().stdout
    assert project.run("--explain-scope").ok().stdout


def test_hello_parts_run_in_another_build(peer_lab):
    """The example's driver and tool, published there: same answer, same calls."""
    driver = peer_lab.publish("driver-scripted", own_component("driver-scripted"), "driver",
                              upstream_auth={"header": "x-api-key", "value": "{key}"},
                              models={"scripted": {"max_output_tokens": 8192, "context_window": 200000}})
    packed = yaml.safe_load((ROOT / "artifacts/std/files/murmur.yaml").read_text())
    tool = peer_lab.publish("files", own_component("files"), description=packed["description"],
                            input_schema=packed["input_schema"])

    def to_local(manifest):
        manifest["artifacts"] = [
            {"name": driver.split("@")[0], "version": "0.1.0", "runtime": "driver",
             "gateway": {"endpoint": "http://127.0.0.1:9", "keyless": True}},
            {"name": tool.split("@")[0], "version": "0.1.0"}]
        manifest["inference"]["driver"]["artifact"] = driver.split("@")[0]

    project = hello(peer_lab, to_local)

    result = project.run("--task", "Hi!").ok()

    session = peer_lab.session(result)
    assert session.result_text.startswith("Hello! You said: Hi!")
    assert "It may touch its work folder" in session.result_text
    assert [event["tool_name"] for event in session.trace.all("tool_call")] == ["files", "files"]
