# SPDX-License-Identifier: Apache-2.0
#
# Sessions of a cluster by the same names and commands as those of this machine: followed, sent to, cancelled, looked into
# (docs/fleet.md). A scripted API server; real capsules, doors and referee.

import hashlib
import json
import re

import yaml

from tests.support.cluster import Refused
from tests.support.delegation import delegate, reads, turn
from tests.support.fleet import Fleet, ask_referee as ask
from tests.support.lab import SLOWER
from tests.support.page import Page
from tests.support.polling import eventually

SERVING = {"lifecycle": {"task_acceptance": "queue", "after_task": "sleep"}}
SLOW = [{"text": "never said", "delay_ms": 120_000}]
WAITING = {"text": "waiting"}


def far(fleet, *words):
    """A `mur` command of whoever runs the cluster: no key, no door's token, another home."""
    return fleet.lab.mur(*words, "--fleet", "--kubeconfig", fleet.kubeconfig,
                         env={"HOME": str(fleet.lab.directory / "elsewhere"), "MURMUR_ROOST_URL": ""})


def far_home(lab):
    (lab.directory / "elsewhere").mkdir()


def session_of(fleet, name="root-1"):
    return eventually(lambda: fleet.annotation(fleet.api.get("jobs", name), "session"), 30 * SLOWER, f"{name} registered")


def is_serving(fleet, session):
    return eventually(lambda: far(fleet, "send", session, "--detach", "hello").code == 0, 30 * SLOWER,
                      f"the door of {session} answers: {fleet.logs()}", every_s=0.3)


def test_fleet_send_watch_and_trace_reach_a_session_by_its_name(lab):
    far_home(lab)
    with Fleet(lab) as fleet:
        fleet.publish("parent", [{"text": f"answer {i}"} for i in range(20)], capabilities={"spawn": {"allow": ["local/child"]}}, **SERVING)
        fleet.start_root(task=None)
        session = session_of(fleet)
        is_serving(fleet, session)

        assert re.fullmatch(r"answer \d+\n", far(fleet, "send", session[-8:], "and again").ok().stdout)
        shown = far(fleet, "trace", "show", session).ok().stdout
        assert session in shown and "capsule:    parent" in shown
        watching = lab.start("watch", "--fleet", "root-1", "--kubeconfig", fleet.kubeconfig)
        eventually(lambda: "watching local/parent@0.1.0" in watching.stderr, 20 * SLOWER, "it is followed")
        far(fleet, "send", session, "--detach", "third").ok()

        def words():
            assert re.search(r"answer \d", watching.stdout), (watching.stdout, watching.stderr)
            return True
        eventually(words, 20 * SLOWER, "its words come")
        watching.process.terminate()

        # What opened the door is in no object any more, and no token ever was.
        text = json.dumps(fleet.api.list("jobs"))
        assert "murmur.dev/operator-" not in text and not re.search(r"mf[t]1\.", text)
        far(fleet, "stop", session).ok()


def test_fleet_ps_says_what_a_session_waits_for(lab):
    """Not merely `queued`: the image, a node, a queue, an account; and nothing once it runs."""
    far_home(lab)
    with Fleet(lab) as fleet:
        fleet.publish("parent", [{"text": "done"}])
        fleet.node.is_starting = False
        fleet.start_root()
        [pod] = eventually(lambda: fleet.pods_of("root-1"), 20 * SLOWER, "its pod is there")

        def waits(status):
            fleet.api.call("PATCH", fleet.api.path("pods", pod["metadata"]["name"] + "/status"), {"status": status}, "application/merge-patch+json")
            told = far(fleet, "ps").ok().stderr
            assert told.count("waiting: root-1") <= 1, told
            return told
        assert f"no node has taken its pod yet: kubectl describe pod {pod['metadata']['name']}" in waits({})
        assert "Unschedulable: 0/3 nodes are available" in waits({"conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available: 3 Insufficient memory."}]})
        said = waits({"conditions": [], "containerStatuses": [{"name": "mur", "state": {"waiting": {
            "reason": "ImagePullBackOff", "message": 'Back-off pulling image "murmur:1"\x1b[31m'}}}]})
        assert 'ImagePullBackOff: Back-off pulling image "murmur:1"' in said and "\x1b" not in said
        [found] = json.loads(far(fleet, "ps", "--json").ok().stdout)["sessions"]
        assert found["status"] == "queued" and found["waits_for"].startswith("ImagePullBackOff")
        fleet.api.call("PATCH", fleet.api.path("jobs", "root-1"), {"spec": {"suspend": True}}, "application/merge-patch+json")
        assert "root-1 — its queue has not admitted it" in waits({})
        # One that no referee knows runs all the same, and is no session that could be meant by being the newest.
        fleet.api.call("PATCH", fleet.api.path("jobs", "root-1"), {"spec": {"suspend": None}, "status": {"ready": 1}}, "application/merge-patch+json")
        listed = far(fleet, "ps").ok()
        assert " running " in listed.stdout and "waiting:" not in listed.stderr
        far(fleet, "watch").failed("E-RUN-022")
        # KUBECONFIG may name several files; not all of them need be there.
        several = f"{lab.directory}/none:{fleet.kubeconfig}"
        assert "root-1" in lab.mur("ps", "--fleet", env={"HOME": str(lab.directory / "elsewhere"), "KUBECONFIG": several}).ok().stdout


def test_fleet_cancel_and_the_trace_of_a_tree(lab):
    far_home(lab)
    with Fleet(lab) as fleet:
        fleet.publish("child", SLOW, **SERVING)
        fleet.publish_parent(turn(delegate("child")), WAITING, reads())
        fleet.start_root()
        [job] = fleet.at_work()
        child, root = fleet.annotation(job, "session"), session_of(fleet)

        tree = far(fleet, "trace", "show", "--tree", root).ok().stdout
        assert tree.index("=== local/parent (Job root-1, running) ===") < tree.index(
            f"=== local/child (Job {job['metadata']['name']}, running, started by Job root-1) ===")
        assert root in tree and child in tree
        [task] = re.findall(r"tsk_[0-9a-f]{32}", "".join(
            path.read_text() for pod in fleet.pods_of(job["metadata"]["name"])
            for path in fleet.home_of(pod).glob(".murmur/records/**/trace.jsonl")))[:1]
        told = far(fleet, "cancel", child, task).ok().stdout
        assert f"task:    {task}" in told and "canceled" in told.lower(), told


def test_fleet_a_door_is_given_to_who_may_write_the_job_and_nobody_else(lab):
    far_home(lab)
    with Fleet(lab) as fleet:
        fleet.publish("parent", SLOW, **SERVING)
        fleet.start_root()
        session = session_of(fleet)
        secret = "a" * 64
        digest = hashlib.sha256(secret.encode()).hexdigest()
        refused = (403, "the credential presented is not valid for this request")

        def door(value, job="root-1"):
            status, answer = ask(fleet, "POST", "/doors", {"job": job}, **({"x_murmur_operator": value} if value else {}))
            return status, answer.get("error")
        assert {door(None), door(secret), door("short"), door(secret, "other"), door(secret, "../pods")} == {refused}
        for note, value in (("operator-" + digest[:16], "b" * 64), ("operator-" + "0" * 16, digest)):
            fleet.api.call("PATCH", fleet.api.path("jobs", "root-1"), {"metadata": {"annotations": {"murmur.dev/" + note: value}}},
                           "application/merge-patch+json")
            assert door(secret) == refused
        fleet.api.call("PATCH", fleet.api.path("jobs", "root-1"), {"metadata": {"annotations": {
            "murmur.dev/operator-" + digest[:16]: digest}}}, "application/merge-patch+json")
        assert door(secret) == (200, None)

        # A cluster that lets nothing be written says so, and no door is asked for.
        def no_patch(method, path):
            if method == "PATCH":
                raise Refused(403, "Forbidden", "you may not patch jobs")
        fleet.server.before = no_patch
        told = far(fleet, "watch", session)
        assert told.code == 1 and "error[E-KUB-002]" in told.stderr and "you may not patch jobs" in told.stderr, told.stderr
        assert "whoever may patch a session's Job is given its door" in told.stderr
        fleet.server.before = lambda method, path: None
        assert "error[E-RUN-022]" in far(fleet, "watch", "ffffffff").stderr


def test_fleet_the_page_shows_sessions_of_the_cluster_and_stops_them(lab):
    with Fleet(lab) as fleet:
        fleet.publish("child", SLOW)
        fleet.publish_parent(turn(delegate("child")), WAITING, reads())
        with Page(lab, "--fleet", "--kubeconfig", fleet.kubeconfig) as page:
            fleet.start_root()
            [job] = fleet.at_work()
            root, child = session_of(fleet), fleet.annotation(job, "session")

            def both():
                assert page.session(root) and page.session(child), page.get("sessions")
                return True
            eventually(both, 30 * SLOWER, "both are listed", every_s=0.2)
            assert page.session(child)["spawned_by"] == root
            eventually(lambda: "delegate-task" in json.dumps(page.get(f"session/{root}/rows")), 20 * SLOWER, "its trace is read")
            assert page.act(root, "stop") == (200, {"status": 0, "is_late": False, "errors": "",
                                                    "output": f"stopped: {root} (Job root-1)\n"})
            eventually(lambda: fleet.api.get("jobs", "root-1") is None and fleet.children() == [], 30 * SLOWER, "all are gone")

            def over():
                assert page.session(root)["state"] not in ("works", "waits", "asks"), page.session(root)
                return True
            eventually(over, 20 * SLOWER, "the page knows", every_s=0.2)


def test_fleet_a_capsule_that_stays_is_listed_and_stopped_by_its_name(lab):
    """As a Deployment, which nobody registers: `ps` says what it waits for, `stop` ends it, and who wants its door is told the way."""
    far_home(lab)
    project = lab.project("writer", {"name": "writer", "version": "1.2.0", "lifecycle": {"after_task": "sleep"}, "network": {"internal_port": 8080},
                                     "artifacts": [{"name": "std/driver-scripted", "version": "0.1.0", "runtime": "driver"}],
                                     "inference": {"model": "m", "max_tokens": 10, "driver": {"artifact": "std/driver-scripted", "config": {"steps": [{"text": "x"}]}}}})
    text = project.mur("deploy", "render", "--to", "kubernetes", "--image", "i", "--namespace", "tenant", "--door", "service").ok().stdout
    [deployment] = [one for one in yaml.safe_load_all(text) if one["kind"] == "Deployment"]
    with Fleet(lab) as fleet:
        fleet.node.is_starting = False
        assert "note: no sessions in namespace tenant" in far(fleet, "ps").ok().stderr
        assert fleet.api.call("POST", fleet.api.path("deployments"), deployment)[0] == 201

        def told():
            return far(fleet, "ps").ok()
        assert "writer@1.2.0" in told().stdout and "it has no pod yet: kubectl describe deployment mur-writer" in told().stderr
        warning = {"metadata": {"name": "w"}, "involvedObject": {"name": "mur-writer-1"}, "type": "Warning", "reason": "FailedMount",
                   "message": 'secret "mur-writer" not found'}
        pod = {"metadata": {"name": "mur-writer-1", "uid": "x", "labels": {"murmur.dev/root": "mur-writer"}}, "spec": {"nodeName": "here"},
               "status": {"phase": "Pending"}}
        fleet.server.objects["pods"]["mur-writer-1"] = pod
        fleet.server.objects["events"]["w"] = warning
        assert 'FailedMount: secret "mur-writer" not found — a Secret or ConfigMap its pod mounts is not there' in told().stderr
        pod["status"] = {"phase": "Running", "containerStatuses": [{"name": "mur", "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}}]}
        assert "CrashLoopBackOff: back-off — it ends as soon as it starts: kubectl logs says why" in told().stderr
        fleet.api.call("PATCH", fleet.api.path("deployments", "mur-writer"), {"status": {"readyReplicas": 1}}, "application/merge-patch+json")
        [found] = json.loads(far(fleet, "ps", "--json").ok().stdout)["sessions"]
        assert (found["kind"], found["job"], found["status"], found["waits_for"]) == ("Deployment", "mur-writer", "running", None)
        refused = far(fleet, "watch", "mur-writer").failed("E-RUN-022").stderr
        assert "is a Deployment" in refused and "kubectl port-forward --namespace tenant deployment/mur-writer" in refused
        assert far(fleet, "stop", "mur-writer").ok().stdout == "stopped: - (Deployment mur-writer)\n"
        assert fleet.api.list("deployments") == []


def test_fleet_a_login_the_cluster_does_not_take_is_told_with_its_remedy(lab):
    far_home(lab)
    with Fleet(lab) as fleet:
        def refuse(status, reason):
            def before(_method, path):
                if "/jobs" in path:
                    raise Refused(status, reason, f"{reason}: no")
            fleet.server.before = before
        refuse(401, "Unauthorized")
        assert "its token is wrong or has expired" in far(fleet, "ps").failed("E-KUB-002").stderr
        refuse(403, "Forbidden")
        assert "needs list of jobs and pods in namespace tenant" in far(fleet, "ps").failed("E-KUB-002").stderr
        fleet.server.before = lambda method, path: None
