# SPDX-License-Identifier: Apache-2.0
#
# A real full disk: runs one command on a tmpfs of every size from nothing to enough, then again with room.
#
# `on_every_size` starts this file as a program in a mount namespace of its own; nothing is mounted outside it.

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def on_every_size(lab, directory, command, sizes_kib, files=(), env=None):
    """Runs `command` with a tmpfs of each size mounted over `directory`, `files` ({name: bytes}) copied in beforehand when
    they fit, and once more with 64 MiB. Gives one dict for each size: {size_kib, code, stderr, left, again, again_stderr,
    stored}, where `left` are hidden files after the first run and `stored` all files after the second with their content's
    digest; sizes too small for `files` are left out."""
    spool = lab.directory / "spool"
    shutil.rmtree(spool, ignore_errors=True)
    spool.mkdir()
    for name, content in dict(files).items():
        (spool / name).write_bytes(content)
    spec = {"directory": str(directory), "command": [str(lab.mur_path), *map(str, command)], "spool": str(spool),
            "sizes": list(sizes_kib), "cwd": str(directory if files else lab.directory)}
    done = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", sys.executable, __file__, json.dumps(spec)],
                          env=lab.environment(env), capture_output=True, text=True, timeout=300)
    if "NO_MOUNT" in done.stderr or "unshare failed" in done.stderr or "unshare: " in done.stderr:
        pytest.skip("this host mounts nothing for tests")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def run(spec):
    done = subprocess.run(spec["command"], cwd=spec["cwd"], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def hidden_files(directory):
    return sorted(str(path.relative_to(directory)) for path in Path(directory).rglob(".*") if path.is_file())


def try_size(spec, size_kib):
    import hashlib
    directory = spec["directory"]
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_kib}k,mode=700", "tmpfs", directory]).returncode:
        sys.exit("NO_MOUNT")
    try:
        for path in Path(spec["spool"]).iterdir():
            shutil.copy(path, directory)
    except OSError:
        subprocess.run(["umount", directory], check=True)
        return
    code, stdout, stderr = run(spec)
    left = hidden_files(directory)
    subprocess.run(["mount", "-o", "remount,size=64m", directory], check=True)
    again, _, again_stderr = run(spec)
    stored = {str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
              for path in sorted(Path(directory).rglob("*")) if path.is_file()}
    texts = {name: (Path(directory) / name).read_text() for name in stored if name.endswith((".sha256", ".lock", ".json"))}
    subprocess.run(["umount", directory], check=True)
    print(json.dumps({"size_kib": size_kib, "code": code, "stdout": stdout, "stderr": stderr, "left": left, "again": again,
                      "again_stderr": again_stderr, "stored": stored, "texts": texts}))


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    os.makedirs(asked["directory"], exist_ok=True)
    for size in asked["sizes"]:
        try_size(asked, size)
