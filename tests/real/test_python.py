# SPDX-License-Identifier: Apache-2.0
#
# The Python package as it is installed: a wheel of this build in an environment of its own, its own tests there, its types, and
# many launches one after another.

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("MURMUR_BUILD", REPO / "build"))
TESTS = REPO / "python" / "tests"


USES = """
import asyncio
import murmur


async def answer(event: murmur.Event) -> str:
    return event.text or ""


async def main() -> str | None:
    async with murmur.launch("helper/", task="x", deadline=1.5, credentials={"A": "b"}) as session:
        async for event in session.stream("y"):
            if event.kind is murmur.Kind.TEXT:
                print(event.text)
        said: str = await session.ask("z", answer=answer)
    kept: murmur.AsyncSession = await murmur.launch("helper/")
    await kept.close()
    options: murmur.Options = {"model": "m", "env": {"A": None}}
    with murmur.launch("helper/", **options) as plain:
        totals: dict[str, int] = plain.totals
        print(totals, said, plain.error and plain.error.hint)
    return kept.status


asyncio.run(main())
"""
MISUSES = "import murmur\nmurmur.launch('x', modle='y')\nmurmur.launch('x').start().ask(1)\n"


def pythons():
    """Every Python this is for that is here, those of pyenv, too: it is one package for all."""
    found = {}
    kept = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    places = os.pathsep.join([*map(str, sorted(kept.glob("3.*/bin"))), os.environ["PATH"]])
    for minor in range(11, 20):
        asked = subprocess.run(["sh", "-c", f"python3.{minor} -c 'import sys; print(sys.executable)'"], capture_output=True, text=True,
                               env={**os.environ, "PATH": places})
        if asked.returncode == 0:
            found[f"3.{minor}"] = asked.stdout.strip()
    return found


PYTHONS = pythons() or {"this": sys.executable}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp("wheel")
    made = subprocess.run([REPO / "scripts/package", "wheel", BUILD, out], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[-3000:]
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module", params=PYTHONS)
def python(request, wheel, tmp_path_factory):
    """The Python of an environment with the wheel, pytest, mypy and pyright."""
    base = tmp_path_factory.mktemp("environment")
    subprocess.run([PYTHONS[request.param], "-m", "venv", base], check=True)
    done = subprocess.run([base / "bin/python", "-m", "pip", "install", "-q", "pytest", "mypy", "pyright", wheel],
                          capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"pytest, mypy and pyright cannot be installed: {done.stderr.strip()[-200:]}")
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


def test_python_package_types_what_its_users_write(python, tmp_path):
    (tmp_path / "uses.py").write_text(USES)
    run(python, "mypy", "--strict", "--cache-dir", os.devnull, tmp_path / "uses.py")
    (tmp_path / "misuses.py").write_text(MISUSES)
    done = subprocess.run([python, "-m", "mypy", "--strict", "--cache-dir", os.devnull, tmp_path / "misuses.py"], capture_output=True,
                          text=True)
    assert done.returncode == 1 and "modle" in done.stdout and 'expected "str"' in done.stdout, done.stdout


def test_python_package_types_what_its_users_write_for_pyright_too(python, tmp_path):
    (tmp_path / "uses.py").write_text(USES)
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    if subprocess.run([python, "-m", "pyright", "--version"], capture_output=True).returncode != 0:
        pytest.skip("pyright's program of npm cannot be had")
    done = subprocess.run([python, "-m", "pyright", "--pythonpath", python, "-p", tmp_path], capture_output=True, text=True)
    assert done.returncode == 0 and "0 errors" in done.stdout, done.stdout
    (tmp_path / "uses.py").write_text(MISUSES)
    done = subprocess.run([python, "-m", "pyright", "--pythonpath", python, "-p", tmp_path], capture_output=True, text=True)
    assert done.returncode == 1 and "modle" in done.stdout and '"str"' in done.stdout, done.stdout


def test_python_a_thousand_launches_leave_nothing(python):
    if os.environ.get("CI"):
        pytest.skip("a minute and more: run by hand")
    run(python, "pytest", "-q", "-p", "no:cacheprovider", "-k", "memory", TESTS, MURMUR_LAUNCHES="1000")


