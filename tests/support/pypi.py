# SPDX-License-Identifier: Apache-2.0
#
# Python packages of a kind that the tests' own environment must not hold: each in an environment of its own in the user's cache.

import os
import subprocess
import venv
from pathlib import Path

import pytest


def python_with(package, timeout=300):
    """The Python of an environment that holds exactly this package, made once; the test is skipped where it cannot be had."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "murmur" / "real" / package.replace("==", "-")
    python = base / "bin/python"
    if not (base / "done").exists():
        venv.create(base, with_pip=True, clear=True)
        done = subprocess.run([python, "-m", "pip", "install", "-q", package], capture_output=True, text=True, timeout=timeout)
        if done.returncode != 0:
            pytest.skip(f"{package} cannot be installed: {done.stderr.strip().splitlines()[-1]}")
        (base / "done").touch()
    return python
