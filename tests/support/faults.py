# SPDX-License-Identifier: Apache-2.0
#
# Runs one command of the lab again and again, each time failing or being killed at its next change of the file system,
# until it comes through: the caller says what must hold after each.

import os
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("faults.c")


def library(directory):
    """The preloaded library, built into `directory`."""
    path = Path(directory) / "faults.so"
    if not path.exists():
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", path, SOURCE, "-ldl"], check=True)
    return path


def fault_at_every_change(lab, prepare, command, check, kind, **more):
    """`prepare()` gives (cwd, arguments' own state) anew; `command(state)` gives (arguments, cwd); `check(state, failed)`.

    Returns how many changes the undisturbed command makes.
    """
    if os.environ.get("MURMUR_SANITIZED") == "1":
        pytest.skip("a sanitizer's runtime must be the first library")
    preload = library(lab.directory)
    report = lab.directory / "changes"
    for number in range(1, 400):
        state = prepare(number)
        arguments, cwd = command(state)
        env = {"LD_PRELOAD": preload, "FAULT_AT": number, "FAULT_KIND": kind, "FAULT_REPORT": report, **more}
        report.unlink(missing_ok=True)
        result = lab.mur(*arguments, cwd=cwd, env=env)
        through = report.exists() and int(report.read_text()) < number
        check(state, result, through)
        if through:
            return number - 1
    raise AssertionError("the command never comes through")
