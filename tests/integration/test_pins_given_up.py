# SPDX-License-Identifier: Apache-2.0
#
# What comes with mur has other bytes in another build of it: what happened is said, and one command accepts it.

import re

from tests.support.fixtures import own_component

OTHER = "a" * 64


def pinned(project):
    return dict(re.findall(r"name: (\S+)\n(?:.*\n)*?    any: (\w{64})", (project / "murmur.lock").read_text()))


def repin(project, name):
    lock = project / "murmur.lock"
    lock.write_text(lock.read_text().replace(pinned(project)[name], OTHER))


def test_everyday_an_update_of_mur_is_accepted_by_one_command(lab):
    tool = lab.publish("mine", own_component("files"))
    project = lab.agent(steps=[{"text": "hi"}], tools=["std/files@0.1.0", tool])
    project.run("--task", "x").ok()
    before = pinned(project)
    repin(project, "std/files")

    refused = project.run("--task", "x").failed("E-REG-002").stderr
    assert "it comes with mur, and another build of mur pinned it: `mur install --update`" in refused
    assert "mur install --update" in project.mur("doctor").stdout
    assert "mur install --update std/files" in project.mur("install", "std/files@0.1.0").failed("E-REG-005").stderr

    told = project.mur("install", "--update").ok().stderr
    assert f"std/files: murmur.lock pinned 0.1.0 (sha256 {OTHER[:12]}); what is found now is pinned instead" in told
    assert pinned(project) == before
    project.run("--task", "x").ok()


def test_everyday_an_update_of_mur_gives_up_no_pin_of_others(lab):
    tool = lab.publish("mine", own_component("files"))
    project = lab.agent(steps=[{"text": "hi"}], tools=[tool])
    project.run("--task", "x").ok()
    before = pinned(project)
    repin(project, "local/mine")

    assert project.mur("install", "--update").code == 1
    assert pinned(project)["local/mine"] == OTHER
    assert "mur install --update local/mine" in project.run("--task", "x").failed("E-REG-002").stderr

    project.mur("install", "--update", "local/mine@0.1.0").ok()
    assert pinned(project) == before
    project.run("--task", "x").ok()


def test_an_update_of_pins_goes_with_a_name_of_a_project(lab):
    project = lab.agent(steps=[{"text": "hi"}])
    assert project.mur("install", "--update", "./x.mur.zip").code == 1
    assert project.mur("install", "--update", "-g", "std/files@0.1.0").code == 2
