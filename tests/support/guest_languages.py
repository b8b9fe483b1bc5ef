# SPDX-License-Identifier: Apache-2.0
#
# Components of `mur new tool|hook|driver` in each language, built with that language's own tooling and kept by what they were
# made of: a fetched tool chain lies in one folder for all, a package is built again when a source or a tool changed.

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.lab import BUILD, ROOT, base_environment

LANGUAGES = ["c", "python", "javascript", "rust", "go"]
SOURCE = {"c": "{}.c", "python": "{}.py", "javascript": "{}.js", "rust": "src/lib.rs", "go": "{}.go"}
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "murmur" / "languages"
PROGRAMS = {"c": ["clang"], "python": ["python3"], "javascript": ["npm", "node"], "rust": ["cargo"], "go": ["go"]}
FETCHED = {"python": [".tools"], "javascript": ["node_modules"], "rust": ["target", "Cargo.lock"]}
# What the clients say when a registry cannot be asked, or has not what is asked for.
UNREACHABLE = ("ENOTFOUND", "ETIMEDOUT", "EAI_AGAIN", "Could not find a version", "No matching distribution", "failed to get `",
               "Couldn't resolve host", "ensurepip is not")
KEEP_UNUSED_DAYS = 30


def missing(language):
    """Why a component of this language cannot be built here; None when it can."""
    for program in PROGRAMS[language]:
        if not shutil.which(program):
            return f"{program} is not installed"
    if language == "rust":
        told = subprocess.run(["rustc", "--print", "target-libdir", "--target", "wasm32-wasip2"], capture_output=True, text=True)
        if told.returncode != 0 or not Path(told.stdout.strip()).is_dir():
            return "Rust's wasm32-wasip2 target is not installed: rustup target add wasm32-wasip2"
    return None


def environment(folder):
    return {**base_environment(Path.home(), folder), "MURMUR_SOURCE": str(ROOT)}


def mur(folder, *arguments, patience=900):
    return subprocess.run([BUILD / "mur", *arguments], cwd=folder, env=environment(folder.parent), capture_output=True, text=True, timeout=patience)


def fresh(folder, role, name, language):
    folder.mkdir(parents=True, exist_ok=True)
    done = mur(folder, "new", role, name, "--language", language)
    assert done.returncode == 0, done.stderr
    return folder / name


def digest(project, language):
    """Of a fresh project and of what it is built with."""
    total = hashlib.sha256()
    for path in sorted(path for path in project.rglob("*") if path.is_file()):
        total.update(f"{path.relative_to(project)}\0".encode() + path.read_bytes() + b"\0")
    for program in PROGRAMS[language]:
        total.update(subprocess.run([program, "version" if program == "go" else "--version"], capture_output=True).stdout)
    if language in ("c", "go"):
        for path in [ROOT / "scripts/build-guests", *sorted((ROOT / "artifacts/sdk").iterdir())]:
            total.update(path.read_bytes() if path.is_file() else b"")
    return total.hexdigest()[:24]


def built(project):
    done = mur(project, "build")
    if done.returncode != 0 and any(word in done.stderr for word in UNREACHABLE):
        pytest.skip(f"the tooling cannot be had: {done.stderr.strip()[-300:]}")
    assert done.returncode == 0, done.stderr[-3000:]
    return next(project.glob("*.mur.zip"))


def borrow_tools(project, language):
    """What the build command would fetch is taken from one project of the language, which is built once."""
    if language not in FETCHED:
        return
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{language}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = CACHE / f"{language}-{tools_key(project, language)}"
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            built(fresh(folder, "tool", "greet", language))
            (folder / "complete").touch()
    for name in FETCHED[language]:
        if name == "Cargo.lock":
            shutil.copy(folder / "greet" / name, project / name)
        else:
            (project / name).symlink_to(folder / "greet" / name)


def tools_key(project, language):
    """What names the tools: the build command without the component's own names, and the list of packages."""
    lines = [line for line in (project / "murmur.yaml").read_text().splitlines() if "install" in line]
    lists = [re.sub(r'^name = .*', "", path.read_text(), flags=re.M) for name in ("package.json", "Cargo.toml")
             if (path := project / name).exists()]
    program = subprocess.run([PROGRAMS[language][-1], "--version"], capture_output=True, text=True).stdout
    return hashlib.sha256("\n".join([*lines, *lists, program]).encode()).hexdigest()[:12]


def component(tmp_path, role, language, source=None, name=None):
    """The package of a role in a language, of its template as it comes or with `source` in place of the template's own."""
    if missing(language):
        pytest.skip(missing(language))
    project = fresh(tmp_path / f"{role}-{language}", role, name or f"{role}-{language}", language)
    if source:
        shutil.copy(source, project / SOURCE[language].format(role))
        manifest = project / "murmur.yaml"
        manifest.write_text(re.sub(r"^(binding|commit_policy): .*\n", "", manifest.read_text(), flags=re.M))  # it hears of all events
    kept = CACHE / "built" / f"{digest(project, language)}.mur.zip"
    if not kept.exists():
        borrow_tools(project, language)
        os.utime(project / SOURCE[language].format(role))  # cargo takes what is older than the last build of the folder as built
        kept.parent.mkdir(parents=True, exist_ok=True)
        making = kept.with_suffix(f".{os.getpid()}")
        shutil.copy(built(project), making)
        making.rename(kept)
        for old in kept.parent.iterdir():
            if time.time() - old.stat().st_mtime > KEEP_UNUSED_DAYS * 86400:
                old.unlink(missing_ok=True)
    os.utime(kept)
    target = project / f"{project.name}-0.1.0.mur.zip"
    if not target.exists():
        shutil.copy(kept, target)
    return target
