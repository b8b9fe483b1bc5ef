# SPDX-License-Identifier: Apache-2.0
#
# Renames and links under load: what reads the work folder for others (exported files, a component with a folder) is raced by somebody
# who swaps files and folders there for links that lead out, at least ROUNDS times each. Nothing of the host comes out, nothing
# waits at a FIFO.

import shutil
import tempfile
import threading
from pathlib import Path

import pytest

from tests.escape.test_escape import ROUNDS, swapping
from tests.integration.test_door_files import ask, exporting
from tests.support.commands import call, command_agent, run_commands
from tests.support.lab import SLOWER

SECRET = "murmur-secret-word"


@pytest.fixture
def elsewhere():
    """Another file system than the lab's, so that no second name of a file can be made: that one would be the file itself."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="murmur-swap-", dir="/dev/shm"))
    except OSError:
        pytest.skip("no /dev/shm here")
    (folder / "a.txt").write_text(SECRET)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("name, target", [("out/a.txt", "a.txt"), ("out", "."), ("out/sub", ".")])
def test_security_exported_files_under_swaps(lab, elsewhere, name, target):
    work = lab.directory / "work"
    (work / "out/sub").mkdir(parents=True)
    if work.stat().st_dev == elsewhere.stat().st_dev:
        pytest.skip("both lie on one file system")
    for path in ("out/a.txt", "out/sub/a.txt"):
        (work / path).write_text("alpha")
    running = exporting(lab).start("--workdir", work)
    done, seen = 0, set()
    while done < ROUNDS:
        with swapping(work / name, elsewhere / target) as rounds:
            for _ in range(20):
                for path in ("/resources/files", "/resources/files/a.txt", "/resources/files/sub/a.txt"):
                    status, _, body = ask(running, path)
                    assert SECRET.encode() not in body, (path, status)
                    seen.add(status)
        done += rounds[0]
    assert seen <= {200, 403, 404, 409, 500, 503} and 200 in seen, seen
    assert ask(running, "/resources/files/a.txt")[2] == b"alpha"
    running.signal().result(60 * SLOWER)


@pytest.mark.parametrize("name, target", [("a.txt", "a.txt"), ("sub", ".")])
def test_security_a_component_with_a_folder_under_swaps(lab, elsewhere, name, target):
    """The bundled tool for files reads all the time. A FIFO that comes between its look and its open keeps it no moment: every call
    is answered long before the deadline of the session would end one."""
    steps = [{"tool_calls": [call("files", action="read", path=path)["tool_calls"][0] for path in ("a.txt", "sub/a.txt") * 5]}
             for _ in range(2)]
    project = command_agent(lab, steps, shell=(), tools=["std/files@0.1.0"])
    work = project / "work"
    (work / "sub").mkdir()
    if work.stat().st_dev == elsewhere.stat().st_dev:
        pytest.skip("both lie on one file system")
    for path in ("a.txt", "sub/a.txt"):
        (work / path).write_text("alpha")
    is_over, total = threading.Event(), []

    def swap_on():
        while not is_over.is_set() or sum(total) < ROUNDS:
            with swapping(work / name, elsewhere / target) as rounds:
                is_over.wait(1)
            total.append(rounds[0])
    swapper = threading.Thread(target=swap_on)
    swapper.start()
    try:
        session, told = run_commands(project, timeout=400 * SLOWER)
    finally:
        is_over.set()
        swapper.join()
    assert len(told) == 20 and sum(total) >= ROUNDS
    assert not any(SECRET in answer.text for answer in told)
    assert any("alpha" in answer.text for answer in told)
