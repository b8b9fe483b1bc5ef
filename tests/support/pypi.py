# SPDX-License-Identifier: Apache-2.0
#
# Python packages of a kind that the tests' own environment must not hold: each in an environment of its own in the user's cache.

import os
import subprocess
import venv
from pathlib import Path

import pytest


def python_with(*packages, timeout=300):
    """The Python of an environment that holds exactly these packages ("name==version"), made once; the test is skipped where it cannot be had."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "murmur" / "real" / "-".join(packages).replace("==", "-")
    python = base / "bin/python"
    if not (base / "done").exists():
        venv.create(base, with_pip=True, clear=True)
        done = subprocess.run([python, "-m", "pip", "install", "-q", *packages], capture_output=True, text=True, timeout=timeout)
        if done.returncode != 0:
            pytest.skip(f"{' '.join(packages)} cannot be installed: {done.stderr.strip().splitlines()[-1]}")
        (base / "done").touch()
    return python
