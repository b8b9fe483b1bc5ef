# SPDX-License-Identifier: Apache-2.0
#
# Other hosts than this one: what mur finds is taken away or put before it starts, by namespaces and a filter of system calls.

import shlex
import sys
from pathlib import Path

import pytest

from .lab import BUILD, IS_SANITIZED
from .commands import host_offers

PROBE = BUILD / "tests/escape/escape-probe"
# Where the probe lies, for commands that run it.
PROBE_PATH = f"{PROBE.parent}:/usr/local/bin:/usr/bin:/bin"
CLASSES = ["advisory", "scoped", "sealed"]


def needs(lab, wanted):
    """Skips unless this host backs that class."""
    offered = host_offers(lab)
    if CLASSES.index(offered) < CLASSES.index(wanted):
        pytest.skip(f"this host backs {offered}, not {wanted}")


def on_host(lab, script, name="mur-on-that-host"):
    """Makes the lab's mur run after a shell prelude, on a host as it leaves it."""
    path = lab.directory / name
    while path.exists():  # one inside another
        path = path.with_name(path.name + "-within")
    path.write_text(f'#!/bin/sh\n{script}\n')
    path.chmod(0o755)
    lab.mur_path = path


def with_mounts(lab, script):
    """A mount namespace of its own, changed by these commands."""
    on_host(lab, f"exec unshare --user --map-root-user --mount sh -c "
                 f"'{script} && exec {lab.mur_path} \"$@\"' - \"$@\"")


def without_namespaces(lab, name="mur-on-that-host"):
    on_host(lab, f"exec unshare --user --map-root-user sh -c "
                 f"'echo 0 > /proc/sys/user/max_user_namespaces && exec {lab.mur_path} \"$@\"' - \"$@\"", name)


def without_walls(lab):
    """Neither namespaces nor Landlock, which could stand for them."""
    without_landlock(lab)
    without_namespaces(lab, "mur-without-both")


def without_cgroups(lab):
    with_mounts(lab, "mount -t tmpfs none /sys/fs/cgroup")


def without_landlock(lab):
    if IS_SANITIZED:
        pytest.skip("a filter of system calls and the sanitizers do not go together")
    on_host(lab, f'exec {PROBE} without-landlock {lab.mur_path} "$@"')


def without_calls(lab, *names):
    """These system calls are answered with EPERM, clone3 with ENOSYS."""
    if IS_SANITIZED:
        pytest.skip("a filter of system calls and the sanitizers do not go together")
    helper = Path(__file__).with_name("without_call.py")
    on_host(lab, f'exec {shlex.quote(sys.executable)} {helper} {",".join(names)} {lab.mur_path} "$@"', "-".join(["without", *names]))


def with_name_server(lab, *pairs, also="true"):
    """A network of its own where one name server answers these (name=address) and nothing else. `also` is run before mur."""
    server = Path(__file__).with_name("name_server.py")
    (lab.directory / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:5 attempts:1\n")
    ready = lab.directory / "name-server-is-ready"
    on_host(lab, f"exec unshare --user --map-root-user --mount --net sh -c '"
                 f"ip link set lo up && mount --bind {lab.directory}/resolv.conf /etc/resolv.conf && "
                 f"{{ {shlex.quote(sys.executable)} {server} {ready} {' '.join(pairs)} & "
                 f"until [ -e {ready} ]; do sleep 0.02; done; {also}; exec {lab.mur_path} \"$@\"; }}' - \"$@\"", "mur-with-a-name-server")


def with_apparmor(lab, is_restricting):
    """AppArmor is enabled; whether it lets only named programs create user namespaces."""
    with_mounts(lab, "mount -t tmpfs none /sys/module && mkdir -p /sys/module/apparmor/parameters && "
                     "echo Y > /sys/module/apparmor/parameters/enabled && "
                     f"echo {1 if is_restricting else 0} > /sys/module/apparmor/parameters/restrict_unprivileged_userns")


def under_profile(lab, profile):
    """As a container's runtime starts it with that filter of system calls."""
    if IS_SANITIZED:
        pytest.skip("a filter of system calls and the sanitizers do not go together")
    helper = Path(__file__).with_name("under_profile.py")
    on_host(lab, f'exec {shlex.quote(sys.executable)} {helper} {profile} {lab.mur_path} "$@"', "mur-under-a-profile")
