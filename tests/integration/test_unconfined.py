# SPDX-License-Identifier: Apache-2.0
#
# The operator's stance --unconfined: where a host makes no namespaces, as a container with the usual defaults, commands run
# under Landlock, the system call filter and limits alone; nobody but the operator chooses it, and no child inherits it.

import os
import shutil
import socket
import subprocess

import pytest

from tests.escape.attempts import listener
from tests.support.commands import answers, call, command_agent
from tests.support.hosts import PROBE, PROBE_PATH, needs, on_host, without_calls, without_landlock, without_namespaces, without_walls
from tests.support.landlock import landlock_abi

PATH = "/usr/local/bin:/usr/bin:/bin"
WORDS = "--unconfined"


def agent(lab, lines, **more):
    return command_agent(lab, lines, shell=("bash", "cat", "id", "git"), **more)


def run(project, *arguments, **how):
    return project.run("--task", "go", "--workdir", project / "work", *arguments, env={"PATH": PATH}, **how)


def test_unconfined_commands_run_where_no_namespace_can_be_made(lab):
    needs(lab, "scoped")
    secret = lab.home / "secret"
    secret.write_text("the home's\n")
    without_namespaces(lab)
    project = agent(lab, [f"cat {secret}", "id -un; git init -q && git status --short; echo $?", "cat /etc/shadow"])

    result = run(project, WORDS).ok()

    assert result.stderr.count("warning[W-SEC-034]") == 1 and "W-SEC-005" not in result.stderr
    read, works, shadow = answers(project)
    assert "Permission denied" in read.stderr and "Permission denied" in shadow.stderr, "Landlock needs no namespace"
    assert works.code == 0 and works.stdout.endswith("0\n"), works
    grants = lab.session(result).trace.one("session_start")["effective_grants"]
    assert grants["unconfined"] and grants["achieved_containment"] == "advisory"
    assert grants["enforcement_tier"] == "landlock+seccomp"
    report = project.run("--explain-scope", WORDS, env={"PATH": PATH}).ok().stdout
    assert "commands run without namespaces (--unconfined): they reach every address" in report


@pytest.mark.parametrize("stance", [(), (WORDS,)])
def test_security_commands_start_where_a_filter_knows_no_clone3(lab, stance):
    """Docker's profile answers ENOSYS to it: the older call does what is asked."""
    needs(lab, "scoped")
    if stance:
        without_namespaces(lab)
    without_calls(lab, "clone3")
    project = agent(lab, ["id -u; echo made > here; cat here", "cat /etc/shadow"])
    run(project, *stance).ok()
    made, shadow = answers(project)
    assert made.stdout.endswith("made\n"), made.text
    assert "Permission denied" in shadow.stderr


def test_security_unconfined_commands_reach_no_abstract_socket_of_the_host(lab):
    """They are in the host's network, where such names are everybody's; their own still work."""
    needs(lab, "scoped")
    if landlock_abi() < 6:
        pytest.skip("Landlock of this kernel does not know sockets")
    name = f"murmur-{os.getpid()}"
    without_namespaces(lab)
    with listener(socket.AF_UNIX, "\0" + name) as (_, seen):
        own = ("import socket; s = socket.socket(socket.AF_UNIX); s.bind('\\0own'); s.listen(); "
               "socket.socket(socket.AF_UNIX).connect('\\0own'); print('met')")
        project = command_agent(lab, [call("escape-probe", f"unix @{name}"), f'python3 -c "{own}"'], shell=("bash", "python3", "escape-probe"),
                                capabilities={"network": {"unix_sockets": True}})
        project.run("--task", "go", "--workdir", project / "work", WORDS, env={"PATH": PROBE_PATH}).ok()
        assert subprocess.run([PROBE, "unix", "@" + name], capture_output=True, text=True).stdout == "ok\n"
        seen.clear()
    told, met = answers(project)
    assert told.stdout == "refused EPERM\n" and met.stdout == "met\n", (told.text, met.text)


def test_unconfined_without_landlock_the_filter_is_left(lab):
    without_walls(lab)
    project = agent(lab, ["id -u"])
    refused = run(project).failed("E-CAP-005")
    assert WORDS in refused.stderr, "the refusal names the stance"
    result = run(project, WORDS).ok()
    assert answers(project)[0].stdout == f"{os.geteuid()}\n"
    assert lab.session(result).trace.one("session_start")["effective_grants"]["enforcement_tier"] == "seccomp-only"


def test_unconfined_meets_no_floor_above_advisory(lab):
    without_namespaces(lab)
    project = agent(lab, ["id -u"], capabilities={"containment": "scoped"})
    result = run(project, WORDS).failed("E-CAP-003")
    assert "commands that run without them (--unconfined) are 'advisory' at most" in result.stderr


def test_unconfined_changes_nothing_where_namespaces_can_be_made(lab):
    needs(lab, "scoped")
    project = agent(lab, ["echo walls"])
    result = run(project, WORDS).ok()
    assert "W-SEC-034" not in result.stderr
    grants = lab.session(result).trace.one("session_start")["effective_grants"]
    assert grants["achieved_containment"] == "scoped" and "unconfined" not in grants


def test_unconfined_is_the_users_configuration_and_no_projects(lab):
    without_walls(lab)
    project = agent(lab, ["id -u"])
    project.write(".murmur/config.yaml", "unconfined: true\n")
    result = run(project)
    result.failed("E-CAP-005")
    lab.murmur_home.mkdir(exist_ok=True)
    (lab.murmur_home / "config.yaml").write_text("unconfined: true\n")
    assert "W-SEC-034" in run(project).ok().stderr
    refused = run(project, "--contained-launch")
    assert refused.code != 0 and "W-SEC-034" not in refused.stderr, "a delegated launch has no stance of its launcher"
    (lab.murmur_home / "config.yaml").write_text("unconfined: perhaps\n")
    assert "unconfined must be true or false" in run(project).failed().stderr


def test_unconfined_is_no_word_of_a_manifest(lab):
    project = lab.agent(steps=[{"text": "x"}], capabilities={"unconfined": True})
    result = project.run("--task", "x")
    assert "W-SEC-019" in result.stderr and "unconfined" in result.stderr


def test_unconfined_in_a_container_whose_filter_refuses_namespaces(lab):
    """What bubblewrap makes without a way to nest is what a rootless container of the usual defaults is."""
    if not shutil.which("bwrap"):
        pytest.skip("bubblewrap is not installed")
    needs(lab, "scoped")
    container = ["bwrap", "--unshare-user", "--unshare-pid", "--disable-userns", "--bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
    if subprocess.run([*container, "true"], capture_output=True).returncode:
        pytest.skip("bubblewrap cannot make a container here")
    on_host(lab, f"exec {' '.join(container)} {lab.mur_path} \"$@\"", "mur-in-a-container")
    lab.murmur_home.mkdir(exist_ok=True)
    (lab.murmur_home / "config.yaml").write_text("resources: {cgroup: optional}\n")
    project = agent(lab, ["id -u; echo made > here; cat here", "cat /etc/shadow"])
    result = run(project, WORDS).ok()
    made, shadow = answers(project)
    assert made.stdout.endswith("made\n") and "Permission denied" in shadow.stderr
    assert lab.session(result).trace.one("session_start")["effective_grants"]["unconfined"]
