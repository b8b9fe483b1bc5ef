# SPDX-License-Identifier: Apache-2.0
#
# A fresh Debian 12 in a folder, made by mmdebstrap, with packages of ours installed in it by apt.

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from .terminal import Terminal

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "murmur" / "debian-root"
NEEDED = ("mmdebstrap", "unshare", "chroot")

# In namespaces of its own: what it mounts and starts is gone with it.
NAMESPACES = ("unshare", "--mount", "--pid", "--fork", "--propagation", "private", "bash", "-ec")
ENTER = """
mount -t proc proc "$ROOT/proc"
mount --rbind /dev "$ROOT/dev"
exec chroot "$ROOT" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin """
INSIDE = ENTER + 'HOME=/root DEBIAN_FRONTEND=noninteractive sh -ec "$1"'


def base_image(name="minbase", packages="ca-certificates", needed=NEEDED):
    """The tar of a minimal system, made once for a release; skips where it cannot be made."""
    for program in needed:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed (apt-get install mmdebstrap systemd-container)")
    if os.geteuid() != 0:
        pytest.skip("a fresh root is made and entered by root alone")
    image = CACHE / f"bookworm-{name}.tar"
    if not image.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        fresh = CACHE / f".{os.getpid()}.tar"
        made = subprocess.run(["mmdebstrap", "--variant=minbase", f"--include={packages}", "bookworm", str(fresh)],
                              capture_output=True, text=True)
        if made.returncode != 0:
            fresh.unlink(missing_ok=True)
            pytest.skip(f"mmdebstrap could not make a root: {made.stderr.strip()[-200:]}")
        fresh.rename(image)
    return image


class DebianRoot:
    IMAGE = ()

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        subprocess.run(["tar", "--exclude=./dev/*", "-xf", base_image(*self.IMAGE), "-C", folder], check=True)
        shutil.copy("/etc/resolv.conf", folder / "etc/resolv.conf")
        # How this machine reaches the archive is its own business; a root made on it goes the same way.
        for settings in Path("/etc/apt/apt.conf.d").glob("*proxy*"):
            shutil.copy(settings, folder / "etc/apt/apt.conf.d")

    def sh(self, script, is_ok=True):
        done = subprocess.run([*NAMESPACES, INSIDE, "bash", script], env={**os.environ, "ROOT": str(self.folder)},
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if is_ok:
            assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done

    def login(self, lab, user, shell):
        """A terminal at which a user of the system has logged in."""
        enter = f'{ENTER} TERM=xterm-256color runuser -l {user} -s "$1"'
        return Terminal(lab, *NAMESPACES[1:], enter, "bash", shell, program=NAMESPACES[0], env={"ROOT": str(self.folder)}, columns=100)

    def install(self, *packages):
        for package in packages:
            shutil.copy(package, self.folder / "root")
        names = " ".join(f"/root/{Path(package).name}" for package in packages)
        return self.sh(f"apt-get update -q && apt-get install -q -y --no-install-recommends {names}").stdout
