# SPDX-License-Identifier: Apache-2.0
#
# Programs of npm packages, installed once by exact version into the user's cache; a test that needs one is skipped with the
# reason where it cannot be had.

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "murmur" / "npm"


def npm_programs(*packages):
    """The folder with the programs of "name@version" packages."""
    if not shutil.which("npm"):
        pytest.skip("npm is not installed")
    folder = CACHE / hashlib.sha256("\n".join(packages).encode()).hexdigest()[:16]
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f".{folder.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".complete").exists():
            done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", folder, *packages],
                                  capture_output=True, text=True, timeout=600)
            if done.returncode != 0:
                shutil.rmtree(folder, ignore_errors=True)
                pytest.skip(f"npm cannot install {' '.join(packages)}: {done.stderr.strip()[-200:]}")
            (folder / ".complete").touch()
    return folder / "node_modules" / ".bin"
