# SPDX-License-Identifier: Apache-2.0
#
# Programs of every day work inside, granted by their names alone: each job at scoped and at sealed. A program this machine
# lacks is a skip; what the bare machine cannot do is no fault of the walls.

import os
import re
import shutil

import pytest

from tests.support.commands import call, command_agent, run_commands
from tests.support.everyday import COMPILED, GIT, NODE, ONLY_BUILTIN, PYTHON
from tests.support.everyday_combined import COMBINED
from tests.support.everyday_families import FAMILIES
from tests.support.everyday_more import MORE
from tests.support.everyday_starters import STARTERS
from tests.support.everyday_tools import SHELLS, TOOLS
from tests.support.hosts import needs
from tests.support.lab import IS_SANITIZED

JOBS = [*GIT, *NODE, *PYTHON, *COMPILED, *SHELLS, *TOOLS, *MORE, *FAMILIES, *STARTERS, *COMBINED]


def manifest_of(job, tier):
    block = {"containment": tier, "shell": {"allow": list(job.allow)}}
    if job.walled:
        block["filesystem"] = {"workdir_exec": "walled"}
    # The one thing beside names, at scoped alone and for an interpreter's own scripts: the host's sockets have paths there. A
    # composed root holds none of the host's; programs that cannot work without sockets bring one.
    if job.unix_sockets and tier == "scoped":
        block["network"] = {"unix_sockets": True}
    return block


def host_environment():
    """Version managers find their versions by these; a person's own environment has them, the lab's has not."""
    return {name: os.environ[name] for name in ("PYENV_ROOT", "RUSTUP_HOME", "CARGO_HOME", "NVM_DIR") if name in os.environ}


def missing(job):
    for name in (*job.allow, *job.needs):
        if name == "man-pages-of-ls":
            if not any(os.path.exists(f"/usr/share/man/man1/ls.1{end}") for end in ("", ".gz")):
                return "the manual pages are not installed"
        elif name not in ONLY_BUILTIN and not shutil.which(name):
            return f"{name} is not installed"
    return None


@pytest.mark.parametrize("tier", ["scoped", "sealed"])
@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.id)
def test_everyday(lab, job, tier):
    needs(lab, tier)
    if reason := missing(job):
        pytest.skip(reason)
    if job.is_heavy and IS_SANITIZED:
        pytest.skip("a compiler's work shows nothing of our memory")
    project = command_agent(lab, [call(tool, command) for tool, command in job.calls], shell=None,
                            capabilities=manifest_of(job, tier), lifecycle={"shell_grace_secs": 100})
    for name, content in job.files.items():
        project.write(f"work/{name}", content)
        if "/.bin/" in name:
            (project / "work" / name).chmod(0o755)

    session, told = run_commands(project, timeout=120, env={**host_environment(), "PATH": os.environ["PATH"]})

    for (tool, command), answer in zip(job.calls, told):
        assert answer.code == 0, f"{tool} {command}\n{answer}"
    assert re.search(job.says, told[-1].stdout.rstrip("\n")), told[-1]
    assert session.trace.one("session_start")["effective_grants"]["achieved_containment"] == tier


def test_everyday_there_are_enough_jobs():
    assert len({job.id for job in JOBS}) == len(JOBS) >= 80
