# SPDX-License-Identifier: Apache-2.0
#
# A fresh Debian 12 that is booted: its systemd is process 1 of a container of systemd-nspawn, on the host's network.

import os
import shlex
import subprocess

import pytest

from tests.support.debian_root import NEEDED, DebianRoot
from tests.support.polling import eventually

# A container may do what a machine may: the walls are to be those of the units alone.
NSPAWN = ("systemd-nspawn", "--quiet", "--boot", "--keep-unit", "--register=no", "--console=read-only", "--capability=all",
          "--resolv-conf=off")
AS_A_MACHINE = {"SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1", "SYSTEMD_NSPAWN_API_VFS_WRITABLE": "1", "SYSTEMD_SECCOMP": "0"}
# nspawn covers these two (with its own boot id), and the kernel gives no new /proc to a namespace that sees a part of one.
UNCOVER = "umount /proc/kmsg /proc/sys/kernel/random/boot_id"
STEP = "srv/step.sh"
STATES = ("running", "degraded")
RUN = ("systemd-run", "--wait", "--pipe", "--quiet", "--collect", "--setenv=HOME=/root", "--setenv=DEBIAN_FRONTEND=noninteractive")


class SystemdRoot(DebianRoot):
    """With systemd in it, not booted."""
    IMAGE = ("systemd", "ca-certificates,systemd,systemd-sysv,dbus,procps", (*NEEDED, "systemd-nspawn", "nsenter"))


class BootedRoot(SystemdRoot):
    def __init__(self, folder):
        super().__init__(folder)
        self.log = folder.with_suffix(".boot.log")
        with open(self.log, "w") as log:
            self.container = subprocess.Popen([*NSPAWN, "-D", folder], env={**os.environ, **AS_A_MACHINE}, stdin=subprocess.DEVNULL,
                                              stdout=log, stderr=log, start_new_session=True)
        try:
            eventually(self.is_up, within_s=60)
        except AssertionError:
            self.stop()
            pytest.skip(f"systemd does not boot in a container here: {self.log.read_text()[-300:]}")

    def uncover_proc(self):
        """Lets user namespaces mount a /proc of their own; systemctl status finds no lines of the journal from then on."""
        self.sh(UNCOVER)

    def leader(self):
        """Process 1 of the container, as the host numbers it."""
        children = f"/proc/{self.container.pid}/task/{self.container.pid}/children"
        return open(children).read().split()[0]

    def is_up(self):
        if self.container.poll() is not None:
            pytest.skip(f"systemd-nspawn cannot start a container here: {self.log.read_text()[-300:]}")
        try:
            leader = self.leader()
        except (IndexError, OSError):
            return False
        done = subprocess.run(["nsenter", "-a", "-t", leader, "systemctl", "is-system-running"], capture_output=True, text=True)
        return done.stdout.strip() in STATES

    def sh(self, script, is_ok=True):
        """A unit of the booted system runs it, as root."""
        (self.folder / STEP).write_text(script)  # a file: systemd would read each $ of an argument
        done = subprocess.run(["nsenter", "-a", "-t", self.leader(), *RUN, "sh", "-e", f"/{STEP}"], capture_output=True,
                              text=True, stdin=subprocess.DEVNULL)
        if is_ok:
            assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done

    def as_murmur(self, script, is_ok=True):
        """The same as the user the units run as."""
        return self.sh(f"cd / && exec runuser -u murmur -- env HOME=/var/lib/murmur sh -ec {shlex.quote(script)}", is_ok)

    def stop(self):
        if self.container.poll() is None:
            try:
                subprocess.run(["nsenter", "-a", "-t", self.leader(), "systemctl", "poweroff"], capture_output=True)
                self.container.wait(30)
            except (IndexError, OSError, subprocess.TimeoutExpired):
                self.container.kill()
                self.container.wait()

