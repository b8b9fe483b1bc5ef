# SPDX-License-Identifier: Apache-2.0
#
# Components and programs built by others, for tests of compatibility.
#
# `published_component` hands out components of the published package of the reference, fetched through cargo into a
# CARGO_HOME of the tests' own; only files below its tests/fixtures are touched. `peer` is another build of `mur` to run the
# same work on, named by MUR_PEER. Both skip with the reason printed when they cannot be had.

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from .lab import BUILD, ROOT

PACKAGE, VERSION = "murmur-cli", "0.8.0"


def _cache():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "murmur" / "published-fixtures"


def _find():
    for path in _cache().glob(f"cargo/registry/src/*/{PACKAGE}-{VERSION}/tests/fixtures"):
        if (path / "run/components/echo-tool.wasm").is_file():
            return path
    return None


def _cargo():
    """cargo and what it needs of the environment; rustup's folder is said because CARGO_HOME is moved."""
    script = 'source scripts/lib.sh && find_cargo && printf "%s\\n%s\\n" "$cargo" "${RUSTUP_HOME:-$HOME/.rustup}"'
    told = subprocess.run(["bash", "-c", script], cwd=ROOT, capture_output=True, text=True)
    return told.stdout.split("\n")[:2] if told.returncode == 0 else None


def published_fixtures():
    """The directory of the published package's test fixtures; skips the test when it cannot be fetched."""
    found = _find()
    if found:
        return found
    cache = _cache()
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = _find()
        if found:
            return found
        failure = cache / ".failure"
        told = _cargo()
        if told is None:
            pytest.skip("the published components cannot be fetched: no cargo")
        cargo, rustup_home = told
        # Outside any workspace: cargo would otherwise read that one's configuration.
        fetched = subprocess.run(
            [cargo, "info", f"{PACKAGE}@{VERSION}"], cwd=cache, capture_output=True, text=True, timeout=180,
            env={**os.environ, "CARGO_HOME": str(cache / "cargo"), "RUSTUP_HOME": rustup_home}, stdin=subprocess.DEVNULL)
        found = _find()
        if not found:
            reason = (fetched.stderr.strip().splitlines() or ["no reason given"])[-1]
            failure.write_text(reason)
            pytest.skip(f"the published components cannot be fetched: {reason}")
    return found


def published_component(name):
    """Path of one published test component: "run/components/echo-tool.wasm", or just "echo-tool" for those."""
    directory = published_fixtures()
    path = directory / (name if name.endswith(".wasm") else f"run/components/{name}.wasm")
    assert path.is_file(), f"the published package has no {name}"
    return path


def own_component(name):
    """Path of one of our own test components (tests/guests), built by scripts/build-guests."""
    path = BUILD / "guests" / f"{name}.wasm"
    assert path.is_file(), f"{path} is missing: run scripts/build {BUILD}"
    return path


def peer_path():
    """The other build of `mur`; skips the test when MUR_PEER does not name one."""
    path = os.environ.get("MUR_PEER")
    if not path:
        pytest.skip("MUR_PEER is not set: there is no other build to compare with")
    found = shutil.which(path)
    if not found:
        pytest.skip(f"MUR_PEER={path} is not a program")
    return Path(found)
