# SPDX-License-Identifier: Apache-2.0
#
# The Python package as it is installed: a wheel of this build in an environment of its own, its own tests there, its types, and
# many launches one after another.

import os
import subprocess
import venv
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("MURMUR_BUILD", REPO / "build"))
TESTS = REPO / "python" / "tests"


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The Python of an environment with the wheel, pytest and mypy."""
    out = tmp_path_factory.mktemp("wheel")
    made = subprocess.run([REPO / "scripts/package", "wheel", BUILD, out], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[-3000:]
    base = tmp_path_factory.mktemp("environment")
    venv.create(base, with_pip=True)
    done = subprocess.run([base / "bin/python", "-m", "pip", "install", "-q", "pytest", "mypy", *out.glob("*.whl")],
                          capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"pytest and mypy cannot be installed: {done.stderr.strip()[-200:]}")
    return base / "bin/python"


def run(python, *arguments, **env):
    done = subprocess.run([python, "-m", *arguments], capture_output=True, text=True, cwd=TESTS.parent,
                          env={**os.environ, **env}, timeout=1500)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    return done.stdout


def test_python_package_passes_its_own_tests(python):
    assert " passed" in run(python, "pytest", "-q", "-p", "no:cacheprovider", TESTS)


def test_python_package_is_typed(python):
    run(python, "mypy", "--strict", "--cache-dir", os.devnull, REPO / "python/src/murmur")


def test_python_a_thousand_launches_leave_nothing(python):
    if os.environ.get("CI"):
        pytest.skip("a minute and more: run by hand")
    run(python, "pytest", "-q", "-p", "no:cacheprovider", "-k", "memory", TESTS, MURMUR_LAUNCHES="1000")


