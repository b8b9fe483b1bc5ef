# SPDX-License-Identifier: Apache-2.0
#
# Programs work from wherever they were installed: a prefix of their own, below the host's /tmp, behind links of folders, in a
# virtual environment; and what lies near them stays shut.

import os
import shutil
import socket
import subprocess
import sys

import pytest

from tests.support.commands import answers, call, command_agent, run_commands
from tests.support.hosts import PROBE, needs

PATH = "/usr/local/bin:/usr/bin:/bin"
CLASSES = ["scoped", "sealed"]


def run(lab, tier, calls, shell, path, **capabilities):
    needs(lab, tier)
    project = command_agent(lab, [call(*words) for words in calls], shell=None, name=f"agent-{tier}",
                            capabilities={"containment": tier, "shell": {"allow": list(shell)}, **capabilities})
    return run_commands(project, env={"PATH": f"{path}:{PATH}"})[1]


def program(path, source="/usr/bin/cat"):
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, path)
    return path


@pytest.mark.parametrize("tier", CLASSES)
def test_everyday_a_program_below_tmp_is_found_by_its_links(lab, tier):
    """pytest's own folder lies in the host's temporary folder, which a session covers with its own."""
    program(lab.directory / "store/tool-1.2/bin/tool")
    (lab.directory / "store/current").symlink_to("tool-1.2")
    (lab.directory / "bin").mkdir()
    (lab.directory / "bin/tool").symlink_to("../store/current/bin/tool")
    direct, by_shell, where = run(lab, tier, [("tool", "/etc/os-release"), ("bash", "tool /etc/os-release"),
                                              ("bash", f"[ -L {lab.directory}/store/current ] && [ -L {lab.directory}/bin/tool ] && echo links")],
                                  ("tool", "bash"), lab.directory / "bin")
    assert direct.code == 0 and "NAME=" in direct.stdout, direct
    assert by_shell.code == 0 and "NAME=" in by_shell.stdout, by_shell
    assert where.stdout == "links\n", where


@pytest.mark.parametrize("tier", CLASSES)
def test_everyday_what_lies_beside_the_bin_is_read_and_nothing_further(lab, tier):
    bin_dir = program(lab.directory / "app/bin/reader").parent
    for name in ("app/lib/data", "app/share/data", "app/secret", "secret"):
        (lab.directory / name).parent.mkdir(exist_ok=True)
        (lab.directory / name).write_text(f"{name}\n")
    lib, share, secret, further = run(lab, tier, [("reader", str(lab.directory / name)) for name in
                                                  ("app/lib/data", "app/share/data", "app/secret", "secret")], ("reader",), bin_dir)
    assert (lib.stdout, share.stdout) == ("app/lib/data\n", "app/share/data\n"), (lib, share)
    assert secret.code != 0 and further.code != 0, (secret, further)


@pytest.mark.parametrize("tier", CLASSES)
def test_everyday_a_home_is_no_package(lab, tier):
    program(lab.home / "bin/reader")
    program(lab.home / ".local/bin/local-reader")
    for name in ("share", ".local/share"):
        (lab.home / name).mkdir(parents=True, exist_ok=True)
        (lab.home / name / "private").write_text("private\n")
    refused = run(lab, tier, [("reader", f"{lab.home}/share/private"), ("local-reader", f"{lab.home}/.local/share/private")],
                  ("reader", "local-reader"), f"{lab.home}/bin:{lab.home}/.local/bin")
    assert all(answer.code == 1 and "private\n" not in answer.stdout for answer in refused), refused


@pytest.mark.parametrize("tier", CLASSES)
def test_everyday_python_of_a_virtual_environment_finds_its_packages(lab, tier):
    environment = lab.directory / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    packages = next(environment.glob("lib/python3*/site-packages"))
    (packages / "of_its_own.py").write_text("print('found')\n")
    (environment / "bin/say").write_text(f"#!{environment}/bin/python3\nimport of_its_own\n")
    (environment / "bin/say").chmod(0o755)
    imported, script = run(lab, tier, [("python3", "-c 'import of_its_own'"), ("say", "")], ("python3", "say"), environment / "bin")
    assert imported.stdout == "found\n" and script.stdout == "found\n", (imported, script)


@pytest.mark.parametrize("tier", CLASSES)
def test_everyday_a_package_of_node_starts_the_programs_beside_it(lab, tier):
    if not shutil.which("node"):
        pytest.skip("node is not installed")
    modules = lab.directory / "prefix/lib/node_modules"
    (modules / "front/bin").mkdir(parents=True)
    program(modules / "@made/for-linux/bin/inner", "/usr/bin/echo")
    (modules / "front/bin/front.js").write_text(
        "#!/usr/bin/env node\nconst inner = require('path').join(__dirname, '../../@made/for-linux/bin/inner');\n"
        "console.log(require('child_process').execFileSync(inner, ['from', 'inside']).toString());\n")
    (modules / "front/bin/front.js").chmod(0o755)
    (lab.directory / "prefix/bin").mkdir()
    (lab.directory / "prefix/bin/front").symlink_to("../lib/node_modules/front/bin/front.js")
    (answer,) = run(lab, tier, [("front", "")], ("front",), f"{lab.directory}/prefix/bin:{os.path.dirname(shutil.which('node'))}")
    assert answer.stdout == "from inside\n\n", answer


def test_everyday_sockets_of_a_program_that_needs_them_reach_none_of_the_host(lab):
    """tmux cannot work without sockets: at scoped it has a root of its own, and the host's are not in it."""
    needs(lab, "sealed")
    if not shutil.which("tmux"):
        pytest.skip("tmux is not installed")
    here = lab.directory / "outside"
    here.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(here / "host.sock"))
        listener.listen()
        probe = program(lab.directory / "probe/escape-probe", PROBE)
        calls = [call("escape-probe", "preflight"), call("escape-probe", f"unix {here}/host.sock"), call("escape-probe", "bind-here mine.sock")]
        project = command_agent(lab, calls, shell=("escape-probe", "tmux"), capabilities={"containment": "scoped"})
        project.run("--task", "go", "--workdir", project / "work", env={"PATH": f"{probe.parent}:{PATH}"}).ok()
    ready, host, own = answers(project)
    assert ready.stdout == "ok the probe runs\n", ready
    assert host.stdout.startswith("refused ENOENT"), host
    assert own.stdout.startswith("ok"), own


@pytest.mark.parametrize("tier", CLASSES)
def test_everyday_interfaces_are_told_to_programs_that_need_them_and_to_no_other(lab, tier):
    if not shutil.which("node"):
        pytest.skip("node is not installed")
    netlink = "-c 'import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, {})'"
    (alone,) = run(lab, tier, [("python3", netlink.format(0))], ("python3",), "/usr/bin")
    assert "PermissionError: [Errno 13]" in alone.stderr, alone
    shown, other = run(lab, tier, [("node", "-p 'Object.keys(os.networkInterfaces()).join()'"), ("python3", netlink.format(4))],
                       ("node", "python3"), os.path.dirname(shutil.which("node")))
    assert shown.stdout == "lo\n", shown
    assert "PermissionError: [Errno 13]" in other.stderr, "netlink of another kind is refused as ever"


def test_everyday_a_starter_brings_what_its_text_plainly_starts(lab):
    """A script of a shell that hands over to one program is that program; what it only might start stays out."""
    inner = program(lab.directory / "parts/inner")
    named = program(lab.directory / "bin/named")
    other = program(lab.directory / "parts/other")
    for name, line in (("by-path", f'ACE="$1"\nexec "{inner}" "$ACE"'), ("by-name", 'exec named "$1"'),
                       ("by-word", f'exec "{other.parent}/$(basename {named.parent}/other)" "$1"')):
        (lab.directory / "bin" / name).write_text(f"#!/bin/sh\n# exec {other}\n{line}\n")
        (lab.directory / "bin" / name).chmod(0o755)
    path, name, word = run(lab, "scoped", [(tool, "/etc/os-release") for tool in ("by-path", "by-name", "by-word")],
                           ("by-path", "by-name", "by-word"), lab.directory / "bin")
    assert path.code == 0 and "NAME=" in path.stdout, path
    assert name.code == 0 and "NAME=" in name.stdout, name
    assert word.code in (126, 127), word


@pytest.mark.parametrize("tier", CLASSES)
def test_everyday_every_folder_of_installed_packages_can_be_listed(lab, tier):
    """pip lists each of them before it installs anything, and what an administrator installed lies in one below /usr/local."""
    code = "import os, sys, site; print([p for p in sorted({*sys.path[1:], *site.getsitepackages()}) if os.path.isdir(p) and os.listdir(p) is not None])"
    python = shutil.which("python3", path=f"/usr/bin:{PATH}")
    if not python:
        pytest.skip("python3 is not installed")
    outside = subprocess.run([python, "-sc", code], capture_output=True, text=True, check=True, env={"PATH": PATH}).stdout
    (inside,) = run(lab, tier, [("python3", f'-sc "{code}"')], ("python3",), "/usr/bin")
    assert inside.code == 0, inside
    assert inside.stdout == outside
