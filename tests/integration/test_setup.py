# SPDX-License-Identifier: Apache-2.0
#
# The set-up, once it has been done: a second time it installs nothing, says one line, needs no network.

import os
import shutil
import subprocess

import pytest

from tests.support.lab import BUILD, IS_SANITIZED, ROOT

pytestmark = pytest.mark.skipif(IS_SANITIZED, reason="the set-up is the same for every build")


def cached_environment(lab):
    """The lab's home, with the person's own cache: what `make` finds on a machine where it has run before."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return lab.environment({"XDG_CACHE_HOME": cache, "MURMUR_TEST_RUN": None})


def without_network(*command):
    """The command in a network namespace of its own, which has no way out."""
    unshare = shutil.which("unshare")
    flags = ["-n"] if os.geteuid() == 0 else ["-rn"]
    if not unshare or subprocess.run([unshare, *flags, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("this host lets the tests make no network namespace")
    return [unshare, *flags, *map(str, command)]


def test_setup_again_installs_nothing_and_says_one_line(lab):
    done = subprocess.run(
        without_network(ROOT / "scripts/bootstrap", "packages", "tools", "engine", "tokens", "venv"),
        env=cached_environment(lab), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)

    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert done.stderr == "bootstrap: nothing to install (packages tools engine tokens venv)\n"


def test_demo_again_needs_no_network(lab):
    command = without_network("make", "-s", "-C", ROOT, "demo", f"BUILD={BUILD}")
    subprocess.run(command, env=cached_environment(lab), stdin=subprocess.DEVNULL, capture_output=True, timeout=300)

    done = subprocess.run(command, env=cached_environment(lab), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=300)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "Hello! You said" in done.stdout
