# SPDX-License-Identifier: Apache-2.0
#
# Guides whose commands run as they stand.

import os
import re
import shutil
import socket
import subprocess
import sys

from tests.support.lab import BUILD, ROOT, SLOWER


def shell_blocks(name):
    return "\n".join(re.findall(r"^```sh\n(.*?)^```", (ROOT / "docs" / name).read_text(), re.MULTILINE | re.DOTALL))


def run_guide(lab, page, folder, after="", **variables):
    """Runs every command of a page in that folder."""
    folder.mkdir(exist_ok=True)
    return subprocess.run(
        ["bash", "-euxc", shell_blocks(page) + after], cwd=folder, capture_output=True, text=True, timeout=120 * SLOWER,
        stdin=subprocess.DEVNULL, env=lab.environment({"PATH": f"{lab.mur_path.parent}:{os.environ['PATH']}", **variables}))


def test_docs_the_packaging_guide_runs_as_it_stands(lab):
    folder = lab.directory / "guide"
    done = run_guide(lab, "packaging.md", folder, COMPONENT=BUILD / "guests/echo.wasm")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All checks passed." in done.stdout and "status:  ok" in done.stdout
    assert (folder / "release/artifacts-index.json").is_file()


def test_docs_the_guide_to_the_door_runs_as_it_stands(lab):
    folder = lab.directory / "door"
    folder.mkdir()
    python = re.search(r"^```python\n(.*?)^```", (ROOT / "docs/talk-to-a-capsule.md").read_text(), re.MULTILINE | re.DOTALL).group(1)
    (folder / "client.py").write_text(python)
    script = shell_blocks("talk-to-a-capsule.md").replace("mur ps\n", f"DOOR=$DOOR {sys.executable} client.py\nmur ps\n")
    done = subprocess.run(
        ["bash", "-euxc", script + "\nwait"], cwd=folder, capture_output=True, text=True, timeout=120 * SLOWER,
        stdin=subprocess.DEVNULL, env=lab.environment({"PATH": f"{lab.mur_path.parent}:{os.environ['PATH']}"}))
    told = done.stdout + done.stderr
    assert "helper@0.1.0" in done.stdout and "stopped: ses_" in done.stdout, told
    assert "nothing to cancel: the task had already ended" in done.stdout, told
    assert done.stdout.count("TASK_STATE_COMPLETED") >= 4 and "TASK_STATE_CANCELED" in done.stdout, told
    assert "All is well." in (folder / "watched.txt").read_text(), told


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def test_docs_the_delegation_guide_runs_as_it_stands(lab):
    folder = lab.directory / "team"
    shutil.copytree(ROOT / "examples/team", folder)
    done = run_guide(lab, "delegation.md", folder, ROOST_PORT=free_port())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "status:  ok" in done.stdout and "The reader is done:" in done.stdout
    assert "water the plants" in done.stdout and "child trace:" in done.stdout


def test_docs_the_mcp_guide_runs_as_it_stands(lab):
    folder = lab.directory / "mcp"
    done = run_guide(lab, "mcp.md", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "You asked: what is there?" in done.stdout and (folder / "notes/.vscode/mcp.json").is_file()
    assert "notes" in done.stdout, done.stdout


def test_docs_the_formation_guide_runs_as_it_stands(lab):
    folder = lab.directory / "formation"
    done = run_guide(lab, "formations.md", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Together we say:" in done.stdout and "There are three." in done.stdout, done.stdout + done.stderr
    assert "lead → worker  completed" in done.stdout, done.stdout + done.stderr


def test_docs_the_guide_to_exports_and_control_runs_as_it_stands(lab):
    folder = lab.directory / "shelf"
    done = run_guide(lab, "exports-and-control.md", folder, after="\nwait")
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert '"path":"sub/b.txt"' in done.stdout and "for you" in done.stdout, told
    assert "its key OTHER_KEY is one a controller supplies" in done.stderr, told
    assert done.stdout.count("value:    other") == 1 and "stopped: ses_" in done.stdout, told


def test_docs_the_evaluation_guide_runs_as_it_stands(lab):
    folder = lab.directory / "cases"
    done = run_guide(lab, "evaluation.md", folder)
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert re.search(r"check +1/1 pass", done.stdout) and re.search(r"check +2/2 pass +0/2 pass", done.stdout), told


def test_docs_the_guide_to_plans_runs_as_it_stands(lab):
    folder = lab.directory / "plan"
    done = run_guide(lab, "plans.md", folder)
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert "2 succeeded, 1 failed, 0 skipped" in done.stdout and "2 attempts" in done.stdout, told
    assert (folder / "work/log").read_text() == "failed\n" and (folder / "work/report.txt").is_file(), told
