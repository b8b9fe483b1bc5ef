# SPDX-License-Identifier: Apache-2.0
#
# Programs built from Go modules by name, once each, in the user's cache: their versions and sums stand in tests/real/receivers.

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[1] / "real" / "receivers"
MINUTES = 60


def built(name, package="."):
    """The program of receivers/<name>; the test is skipped where its modules cannot be had."""
    source = SOURCES / name
    files = sorted(path for path in source.iterdir() if path.is_file())
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()[:16]
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "murmur" / "real"
    program = base / f"{name}-{digest}"
    if program.exists():
        return program
    if not shutil.which("go"):
        pytest.skip("go is not installed")
    base.mkdir(parents=True, exist_ok=True)
    with open(base / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            build(source, package, program)
    return program


def installed(package):
    """The program of "module/path@version", whose own go.mod pins what it is made of."""
    path, version = package.split("@")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "murmur" / "real" / f"{path.rsplit('/', 1)[1]}-{version}"
    program = base / path.rsplit("/", 1)[1]
    if program.exists():
        return program
    if not shutil.which("go"):
        pytest.skip("go is not installed")
    base.mkdir(parents=True, exist_ok=True)
    with open(base / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(["go", "install", "-ldflags=-s -w", package], capture_output=True, text=True, timeout=40 * MINUTES, env={
            **os.environ, "GOBIN": str(base), "GOFLAGS": "-buildvcs=false", "GOWORK": "off", "CGO_ENABLED": "0"})
        if done.returncode != 0:
            pytest.skip(f"{package} cannot be had: {done.stderr.strip()[-200:]}")
    return program


def build(source, package, program):
    fresh = program.with_suffix(".new")
    command = ["go", "build", "-mod=readonly", "-ldflags=-s -w", "-o", str(fresh), package]
    env = {**os.environ, "GOFLAGS": "-buildvcs=false", "GOWORK": "off"}
    done = subprocess.run(command, cwd=source, env=env, capture_output=True, text=True, timeout=40 * MINUTES)
    out_of_reach = [line for line in done.stderr.splitlines() if "dial tcp" in line or "403" in line or "proxy" in line]
    if done.returncode != 0 and out_of_reach:
        pytest.skip(f"the modules of {source.name} cannot be had: {out_of_reach[0]}")
    assert done.returncode == 0, done.stderr[-3000:]
    fresh.rename(program)
