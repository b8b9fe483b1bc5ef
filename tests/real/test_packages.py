# SPDX-License-Identifier: Apache-2.0
#
# The packages as their users meet them: the Debian packages in a fresh root, the tar file unpacked anywhere, and what is said
# of their parts.

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.support.debian_root import DebianRoot
from tests.support.pypi import python_with

REPO = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("MURMUR_BUILD", REPO / "build"))
UNITS = REPO / "packaging" / "systemd"


def package(kind, out, tree=None):
    done = subprocess.run([(tree or REPO) / "scripts/package", kind, tree / "build" if tree else BUILD, out], capture_output=True,
                          text=True, env={**os.environ, "DEB_BUILD_OPTIONS": "noautodbgsym"})
    assert done.returncode == 0, done.stderr[-3000:]
    return sorted(path for path in Path(out).iterdir() if not path.name.startswith("."))


@pytest.fixture(scope="module")
def debs(tmp_path_factory):
    for program in ("dh", "dh_apparmor", "dpkg-buildpackage"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed (apt-get install debhelper dh-apparmor dpkg-dev)")
    return package("deb", tmp_path_factory.mktemp("deb"))


@pytest.fixture(scope="module")
def tar(tmp_path_factory):
    return package("tar", tmp_path_factory.mktemp("tar"))[0]


@pytest.fixture
def root(tmp_path):
    return DebianRoot(tmp_path / "root")


def digests(paths):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def newer(deb, folder, change=None):
    """The same package with a higher version; change(tree) may do more to it."""
    tree = folder / deb.stem
    subprocess.run(["dpkg-deb", "-R", deb, tree], check=True)
    control = tree / "DEBIAN/control"
    control.write_text(re.sub(r"0\.1\.0\b", "0.1.1", control.read_text()))
    if change:
        change(tree)
    made = folder / deb.name.replace("0.1.0", "0.1.1")
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, made], check=True, capture_output=True)
    return made


ASK = """
mkdir -p $HOME/work && cd $HOME/work
mur new agent helper >/dev/null && cd helper
mur run --task "hello" --print
cd .. && echo "hi" | mur chat
"""


def test_packages_install_run_upgrade_remove_purge(root, debs, tmp_path):
    root.install(*debs)
    answers = root.sh(ASK).stdout
    assert len(answers.strip().splitlines()) >= 2
    told = json.loads(root.sh("mur self --json").stdout)
    assert told["program"] == "/usr/bin/mur" and told["bundled_store"] == "/usr/share/murmur/artifacts"
    assert root.sh("getent passwd murmur").stdout.split(":")[5] == "/var/lib/murmur"
    assert not root.sh("command -v cc || command -v rustc || true").stdout, "nothing to compile with was brought along"
    root.sh("echo 'MUR_ROOST_OPTIONS=\"--max-depth 2\"' > /etc/default/mur-roost")
    root.install(*(newer(deb, tmp_path) for deb in debs))
    assert "--max-depth 2" in root.sh("cat /etc/default/mur-roost").stdout, "an upgrade keeps what the operator wrote"
    assert root.sh("dpkg-query -W -f '${Version}' mur").stdout == "0.1.1"
    root.sh("apt-get remove -q -y mur mur-roost")
    assert root.sh("test ! -e /usr/bin/mur && cat /etc/default/mur-roost").stdout
    root.sh("apt-get purge -q -y mur mur-roost")
    left = root.sh("find / -xdev \\( -name 'mur*' -o -name '*murmur*' \\) -not -path '/proc/*' -not -path '/root/*' "
                   "-not -path '/var/cache/apt/*' -not -path '/sys/*'").stdout.split()
    assert not left


class ShellsRoot(DebianRoot):
    IMAGE = ("shells", "ca-certificates,bash-completion,zsh,fish")


@pytest.fixture(scope="module")
def used(debs, tmp_path_factory):
    """A system with mur, and somebody who has an account there."""
    root = ShellsRoot(tmp_path_factory.mktemp("used") / "root")
    root.install(next(deb for deb in debs if deb.name.startswith("mur_")))
    # What each shell's own setup for new users says; Debian's .bashrc has it.
    root.sh("useradd -m ann && echo 'autoload -Uz compinit && compinit' > /home/ann/.zshrc && chown ann: /home/ann/.zshrc")
    return root


@pytest.mark.parametrize("shell, prompt", [("bash", r"\w*@\w.*\$ *$"), ("zsh", r"\w% *$"), ("fish", r"~\S*>")])
def test_packages_complete_what_is_typed_in_each_shell(used, lab, shell, prompt):
    person = used.login(lab, "ann", f"/usr/bin/{shell}")
    person.wait_for(prompt)
    person.type("mur r\t\t")
    person.wait_for(r"replay")
    person.type("\x15mur expl\trun-011\r")
    person.wait_for(r"E-RUN-011\s[\s\S]*What to do[\s\S]*" + prompt)
    # An option and its value: what is not completed is refused.
    person.type("mur run --resume-mo\t fu\t --help\r")
    person.wait_for(r"usage: mur run")
    person.type("\x15exit\r")
    assert person.end() == 0


def test_packages_chat_and_run_at_a_terminal(used, lab):
    person = used.login(lab, "ann", "/usr/bin/bash")
    person.wait_for(r"\$ *$")
    person.type("mur new agent helper && cd helper\r")
    person.wait_for(r"helper\$ *$")
    person.type("mur run --task hello\r")
    person.wait_for(r"status: +ok")
    person.type("cd && mur chat\r")
    person.wait_for(r"> *$")
    person.type("hi there\r")
    person.wait_for(r"hi there[\s\S]*> *$")
    person.type("\x04")
    person.wait_for(r"\$ *$")
    person.type("exit\r")
    assert person.end() == 0


def test_packages_hold_a_page_for_each_command(used):
    commands, _, _ = used.sh("mur --help").stdout.partition("\nExit status")
    words = set(re.findall(r"^  ([a-z]+)", commands, re.M)) - {"mur", "help"}
    pages = {re.sub(r"mur-(\w+)\.1\.gz", r"\1", name) for name in used.sh("ls /usr/share/man/man1").stdout.split()}
    assert len(words) > 30 and words <= pages


def test_packages_without_the_referee(root, debs):
    root.install(next(deb for deb in debs if deb.name.startswith("mur_")))
    assert root.sh(ASK).stdout.strip()
    assert root.sh("command -v mur-roost", is_ok=False).returncode != 0


def test_packages_lintian_has_nothing_to_say(debs):
    if shutil.which("lintian") is None:
        pytest.skip("lintian is not installed")
    done = subprocess.run(["lintian", "--fail-on", "error,warning", "--allow-root", *debs], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_packages_are_the_same_bytes_twice(debs, tar, tmp_path):
    assert digests(package("deb", tmp_path / "deb")) == digests(debs)
    assert digests(package("tar", tmp_path / "tar")) == digests([tar])


def test_packages_are_the_same_bytes_from_another_place(debs, tar, tmp_path):
    """Compiled anew in another folder, on one core, with another umask, clock and language. The engine is the cache's."""
    if subprocess.run(["git", "status", "--porcelain"], cwd=REPO, capture_output=True, text=True).stdout:
        pytest.skip("the checkout has changes, which no clone of it has")
    place = tmp_path / "elsewhere"
    subprocess.run(["git", "clone", "-q", "--shared", REPO, place], check=True)
    build = f"umask 077; exec taskset -c {min(os.sched_getaffinity(0))} scripts/build build"
    done = subprocess.run(["bash", "-c", build], cwd=place, capture_output=True, text=True,
                          env={**os.environ, "CCACHE_DISABLE": "1", "TZ": "Pacific/Kiritimati", "LC_ALL": "C.UTF-8"})
    assert done.returncode == 0, done.stderr[-3000:]
    assert digests(package("deb", tmp_path / "deb", place)) == digests(debs)
    assert digests(package("tar", tmp_path / "tar", place)) == digests([tar])


def test_tar_works_where_it_is_unpacked(tar, tmp_path):
    place = tmp_path / "some where"
    place.mkdir()
    with tarfile.open(tar) as opened:
        assert all(not member.name.startswith(("/", "..")) and member.uid == 0 for member in opened)
        opened.extractall(place)
    program = next(place.iterdir()) / "bin/mur"
    home = tmp_path / "home"
    home.mkdir()
    done = subprocess.run([program, "chat"], input="hi\n", capture_output=True, text=True, cwd=home,
                          env={"HOME": str(home), "PATH": "/usr/bin:/bin"})
    assert done.returncode == 0 and done.stdout.strip(), done.stderr
    for each in (program, program.with_name("mur-roost")):
        assert subprocess.run([each, "--version"], capture_output=True, env={}).returncode == 0
        needed = subprocess.run(["objdump", "-Tp", each], capture_output=True, text=True, check=True).stdout
        newest = max(tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_(\d+\.\d+)", needed))
        assert newest <= (2, 36)
        libraries = set(re.findall(r"NEEDED\s+(\S+)", needed))
        assert libraries <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}, f"{each.name} asks for {libraries}"


def test_sbom_is_valid_and_names_every_crate(tar, tmp_path):
    with tarfile.open(tar) as opened:
        member = next(name for name in opened.getnames() if name.endswith("/sbom.spdx.json"))
        text = opened.extractfile(member).read()
    (tmp_path / "sbom.spdx.json").write_bytes(text)
    python = python_with("spdx-tools==0.8.3")
    done = subprocess.run([Path(python).parent / "pyspdxtools", "-i", tmp_path / "sbom.spdx.json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    parts = {part["name"] for part in json.loads(text)["packages"]}
    assert {"murmur", "wasmtime", "cranelift-codegen", "tokio", "libjansson-dev", "libmicrohttpd-dev", "wasi-libc"} <= parts
    assert {"rust-std", "preact", "htm"} <= parts and any(name.startswith("libgcc-") for name in parts)
    assert "syn" not in parts, "what only compiles the engine is not in it"


def test_units_are_hardened():
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=19", UNITS / "mur-roost.service"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-300:]
