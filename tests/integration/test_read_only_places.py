# SPDX-License-Identifier: Apache-2.0
#
# A project that cannot be written: a launch that changes nothing in it runs, one that would pin says that it could not.

import pytest

from tests.support.hosts import with_mounts


def read_only(lab, project, *more):
    with_mounts(lab, " && ".join([f"mount --bind {project.directory} {project.directory}", f"mount -o remount,ro,bind {project.directory}", *more]))


@pytest.fixture
def project(lab):
    made = lab.agent(steps=[{"text": "hi"}])
    (lab.directory / "work").mkdir()
    made.work = lab.directory / "work"
    return made


def test_everyday_a_pinned_project_on_a_read_only_disk_runs(lab, project):
    project.run("--task", "x").ok()
    read_only(lab, project)
    result = project.run("--task", "x", "--workdir", project.work).ok()
    assert "W-REG-004" not in result.stderr


def test_everyday_an_unpinned_project_on_a_read_only_disk_runs_and_says_that_nothing_is_pinned(lab, project):
    (project / "murmur.lock").unlink(missing_ok=True)
    read_only(lab, project)
    result = project.run("--task", "x", "--workdir", project.work).ok()
    assert "warning[W-REG-004]" in result.stderr and "Read-only file system" in result.stderr
    assert not (project / "murmur.lock").exists()
    assert "mounted read-only" in project.mur("install").failed("E-IO-003").stderr


def test_everyday_a_project_without_room_for_its_lock_runs(lab, project):
    (project / "murmur.lock").unlink(missing_ok=True)
    at = project.directory
    with_mounts(lab, f"cp -a {at} {at}.small && mount -t tmpfs -o size=64k,mode=755 none {at} && cp -a {at}.small/. {at}/ && "
                     f"(dd if=/dev/zero of={at}/filler bs=1k status=none || true)")
    result = project.run("--task", "x", "--workdir", project.work).ok()
    assert "warning[W-REG-004]" in result.stderr and "No space left" in result.stderr
    assert "the disk is full" in project.mur("install").failed("E-IO-003").stderr


def test_everyday_a_read_only_project_without_a_work_folder_names_the_flag(lab, project):
    read_only(lab, project)
    told = project.run("--task", "x").failed("E-IO-003").stderr
    assert "workdir" in told and "--workdir <FOLDER>" in told
