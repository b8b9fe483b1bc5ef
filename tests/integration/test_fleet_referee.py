# SPDX-License-Identifier: Apache-2.0
#
# mur-roost over a cluster, against a scripted API server and a node that runs real capsules: a child becomes one Job, its answer
# comes home, and it lives no longer than its parent (docs/fleet.md). tests/real/test_fleet.py has them on the real control plane.

import base64
import json
import os
import re
import signal
import time
import urllib.error
import urllib.request

import pytest

from tests.support.cluster import root_job
from tests.support.delegation import delegate, reads, turn
from tests.support.fleet import Fleet, ask_referee as ask
from tests.support.lab import SLOWER
from tests.support.polling import eventually

HELLO = [{"text": "hello from afar"}]
SLOW = [{"text": "never said", "delay_ms": 120_000}]
WAITING = {"text": "waiting"}


def slow_tree(fleet, *arguments):
    """A root at work whose one child never answers; the child's Job."""
    fleet.publish("child", SLOW)
    fleet.publish_parent(turn(delegate("child")), WAITING, reads())
    fleet.start_root(arguments=arguments)
    [job] = fleet.at_work()
    return job


def gone(fleet, job, within_s=20):
    def is_gone():
        return fleet.api.get("jobs", job["metadata"]["name"]) is None and all(
            process.poll() is not None for uid, process in fleet.node.running.items() if uid == fleet.annotation(job, "pod-uid"))
    eventually(is_gone, within_s * SLOWER, f"{job['metadata']['name']} is gone: {fleet.logs()}")


def kill_referee(fleet):
    os.kill(fleet.roost.process.pid, signal.SIGKILL)
    fleet.roost.process.wait()


def root_process(fleet):
    return fleet.node.process_of(fleet.pods_of("root-1")[0])


def test_fleet_8_a_child_is_one_job_with_its_fields_and_its_answer_comes_home(lab):
    with Fleet(lab) as fleet:
        fleet.publish("child", HELLO, capabilities={"env": {"allow": ["COLOUR", "SHAPE"]}})
        fleet.publish_parent(turn(delegate("child")), WAITING, reads(), capabilities={"env": {"allow": ["COLOUR", "SHAPE", "SIZE"]}})
        fleet.start_root()

        pod = fleet.wait_end("root-1")

        assert pod["status"]["phase"] == "Succeeded", fleet.logs()
        [job] = fleet.children()
        meta, spec = job["metadata"], job["spec"]
        inner = spec["template"]["spec"]
        [container] = inner["containers"]
        assert meta["name"] == "mur-" + fleet.annotation(job, "delegation")[-16:]
        assert meta["labels"] == {"murmur.dev/root": "root-1", "murmur.dev/parent": "root-1", "murmur.dev/capsule": "child",
                                  "murmur.dev/depth": "2"}
        [owner] = meta["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("Pod", pod["metadata"]["uid"], False)
        assert (spec["backoffLimit"], spec["ttlSecondsAfterFinished"], inner["restartPolicy"]) == (0, 600, "Never")
        assert 600 < spec["activeDeadlineSeconds"] <= 600 + 60 + 600
        assert inner["automountServiceAccountToken"] is False and container["securityContext"]["readOnlyRootFilesystem"] is True
        names = {one["name"]: one for one in container["env"]}
        assert set(names) == {"COLOUR", "SHAPE", "HOME", "MURMUR_POD_IP", "MURMUR_ROOST_URL", "MURMUR_SPAWNER"}
        assert names["COLOUR"]["valueFrom"]["configMapKeyRef"] == {"name": "murmur-env", "key": "COLOUR", "optional": True}
        # Its keys are the files of its own Secret, where there is one.
        secret, = [one["secret"] for one in inner["volumes"] if one["name"] == "keys"]
        assert (secret["secretName"], secret["optional"]) == ("mur-child", True)
        keys, = [one for one in container["volumeMounts"] if one["name"] == "keys"]
        assert keys["readOnly"] and container["args"][container["args"].index("--secrets-dir") + 1] == keys["mountPath"]
        # No token is in any object but the grant, which is nobody's to use.
        assert not re.search(r"ms[c]1\.|mct1\.|mft1\.|mdt1\.", json.dumps(job))
        assert json.loads(fleet.annotation(job, "outcome"))["status"] == "ok"
        assert "hello from afar" in fleet.work_file(pod).read_text()
        # Brought home: the record and the answer are in the parent's own records.
        [record] = fleet.home_of(pod).glob(".murmur/records/**/completion.json")
        found = json.loads(record.read_text())
        assert (found["status"], found["reported_by"], found["delegation_id"]) == ("ok", "child", fleet.annotation(job, "delegation"))
        assert (record.parent / "out/result.txt").read_text().strip() == "hello from afar"


def test_fleet_9_13_19_a_repeat_and_a_restart_make_no_second_job_and_no_second_session(lab):
    with Fleet(lab) as fleet:
        lost = []

        def lose_the_first_answer(method, path):
            if method == "POST" and path.endswith("/jobs") and lost == ["armed"]:
                lost[:] = ["lost"]
                kill_referee(fleet)

        fleet.publish("child", SLOW)
        fleet.publish_parent(turn(delegate("child")), WAITING, reads())
        fleet.server.before = lose_the_first_answer
        fleet.start_root()
        lost.append("armed")
        # The referee is killed while the Job is being created; the parent repeats its ask at the next one.
        eventually(lambda: fleet.roost.process.poll() is not None, 30 * SLOWER, f"the referee was killed: {fleet.logs()}")
        fleet.start_roost()
        [job] = fleet.registered()
        assert fleet.server.creations == 2, "one root, one child"
        status = eventually(lambda: ask(fleet, "GET", f"/status/{fleet.annotation(job, 'parent-session')}")[1], 20, "known again")
        assert (status["live_children"], status["live_capsules"]) == (1, 2)

        # 13: another pod of the same Job presents a genuine token of its own.
        name = job["metadata"]["name"]
        with fleet.server.lock:
            other = fleet.server.create("pods", {"metadata": {"name": "second", "labels": {"job-name": name}, "ownerReferences": [
                {"kind": "Job", "name": name, "uid": job["metadata"]["uid"], "controller": True}]},
                "spec": {"containers": [{"args": ["--version"]}]}, "status": {"phase": "Unknown"}})
        token = fleet.server.issue({"spec": {"audiences": ["mur-roost"], "boundObjectRef": other["metadata"]}})["status"]["token"]
        body = {"session_id": "ses_" + "a" * 12 + "7" + "a" * 3 + "8" + "a" * 15, "name": "local/child", "version": "0.1.0"}
        refusals = [ask(fleet, "POST", "/register", body, x_murmur_pod_token=token),
                    ask(fleet, "POST", "/register", body, x_murmur_pod_token="forged"),
                    ask(fleet, "GET", f"/children/{fleet.annotation(job, 'delegation')}?wait=0", x_murmur_child_ticket="mct1.e30.e30")]
        # 12: one refusal for every fault of identity.
        assert {(status, answer["error"]) for status, answer in refusals} == {
            (403, "the credential presented is not valid for this request")}


@pytest.mark.parametrize("end", ["parent_killed", "pod_deleted", "stopped"])
def test_fleet_22_23_a_child_ends_with_its_parent(lab, end):
    with Fleet(lab) as fleet:
        job = slow_tree(fleet)
        pod = fleet.pods_of("root-1")[0]
        if end == "parent_killed":
            os.killpg(root_process(fleet).pid, signal.SIGKILL)
        elif end == "pod_deleted":  # with the referee away: the cluster's own garbage collector
            kill_referee(fleet)
            fleet.api.call("DELETE", fleet.api.path("pods", pod["metadata"]["name"]), {"gracePeriodSeconds": 0})
        else:
            session = fleet.annotation(fleet.api.get("jobs", "root-1"), "session")
            told = lab.mur("stop", "--fleet", session[-8:], "--kubeconfig", fleet.kubeconfig).ok().stdout
            assert told == f"stopped: {session} (Job root-1)\n"
        gone(fleet, job)


def test_fleet_local_first_children_stay_in_the_pod(lab):
    with Fleet(lab, placement="local-first") as fleet:
        fleet.publish("child", HELLO)
        fleet.publish_parent(turn(delegate("child")), WAITING, reads())
        fleet.start_root()
        pod = fleet.wait_end("root-1")
        assert "hello from afar" in fleet.work_file(pod).read_text(), fleet.logs()
        assert fleet.children() == []


def test_fleet_a_referee_that_is_told_to_end_keeps_nobody_waiting(lab):
    with Fleet(lab) as fleet:
        slow_tree(fleet)
        began = time.monotonic()
        assert fleet.roost.stop() == 0
        assert time.monotonic() - began < 15 * SLOWER, "a parent's long question did not hold it"


def test_fleet_17_a_full_quota_is_a_refusal_that_names_it_and_leaves_nothing(lab):
    with Fleet(lab) as fleet:
        fleet.publish("child", HELLO)
        fleet.publish_parent(turn(delegate("child")), reads())
        fleet.server.job_quota = 1
        fleet.start_root()
        pod = fleet.wait_end("root-1")
        assert "ResourceQuota allows no further child" in fleet.work_file(pod).read_text(), fleet.logs()
        assert fleet.children() == []


def test_fleet_16_11_10_what_waits_too_long_or_was_edited_is_refused_and_goes(lab):
    with Fleet(lab, "--queue-timeout", "1") as fleet:
        fleet.publish("child", HELLO)
        fleet.publish_parent(turn(delegate("child")), turn(delegate("nobody")), reads())
        fleet.start_root()
        eventually(lambda: fleet.node.running, 20 * SLOWER, "the root runs")
        fleet.server.is_holding = True
        pod = fleet.wait_end("root-1")
        request = fleet.work_file(pod).read_text()
        assert "no place for it was free within 1 s (--queue-timeout)" in request, fleet.logs()
        assert "nobody is not in capabilities.spawn.allow of local/parent, which lists: local/child" in request
        assert fleet.children() == []

        # 11: the depth on the Job is the referee's word, not the editor's.
        fleet.server.is_holding = False
        job = root_job("forged", "local/child", "0.1.0", roost_url=fleet.roost.url)
        job["metadata"]["annotations"]["murmur.dev/grant"] = "msa1.e30.e30"
        job["metadata"]["annotations"]["murmur.dev/delegation"] = "dlg_" + "0" * 32
        fleet.api.call("POST", fleet.api.path("jobs"), job)
        ended = fleet.wait_end("forged")
        assert ended["status"]["phase"] == "Failed"
        assert "the credential presented is not valid" in fleet.node.logs[ended["metadata"]["name"]].read_text()


def test_fleet_20_27_32_the_referee_may_be_away_and_an_end_is_told_in_words(lab):
    with Fleet(lab) as fleet:
        job = slow_tree(fleet)
        listed = json.loads(lab.mur("ps", "--fleet", "--json", "--kubeconfig", fleet.kubeconfig).ok().stdout)["sessions"]
        assert [(one["job"], one["status"], one["root"]) for one in listed] == [
            ("root-1", "running", "root-1"), (job["metadata"]["name"], "running", "root-1")]
        assert listed[1]["spawned_by"] == listed[0]["session_id"]
        assert "local/child@0.1.0" in lab.mur("ps", "--fleet", "--kubeconfig", fleet.kubeconfig).ok().stdout
        kill_referee(fleet)
        time.sleep(1)
        uid = fleet.annotation(job, "pod-uid")
        assert fleet.node.running[uid].poll() is None and root_process(fleet).poll() is None
        fleet.start_roost()

        # 32: the child's door lets nobody in without a token made for it.
        [pod] = fleet.pods_of(job["metadata"]["name"])
        request = urllib.request.Request(f"http://{pod['status']['podIP']}:8080/", b'{"jsonrpc":"2.0","id":1,"method":"ListTasks"}',
                                         headers={"content-type": "application/json", "a2a-version": "1.0"})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=20 * SLOWER)
        assert refused.value.code == 401

        os.killpg(fleet.node.running[uid].pid, signal.SIGKILL)
        root = fleet.wait_end("root-1")
        text = fleet.work_file(root).read_text()
        assert "crashed" in text and "exit code 137" in text, text


NOT_YOU = (403, "the credential presented is not valid for this request")


def test_fleet_12_whoever_is_no_pod_of_a_session_hears_the_one_refusal(lab):
    """A token for another audience, one of a plain account, of a pod that is gone, of a pod of no Job, none at all: nothing tells them apart."""
    with Fleet(lab) as fleet:
        fleet.publish("parent", SLOW)
        fleet.start_root()
        [pod] = eventually(lambda: fleet.pods_of("root-1"), 20 * SLOWER, "its pod is there")
        eventually(lambda: fleet.annotation(fleet.api.get("jobs", "root-1"), "session"), 30 * SLOWER, "it is registered")
        server = fleet.server

        def issue(meta, audience="mur-roost"):
            return server.issue({"spec": {"audiences": [audience], "boundObjectRef": meta}})["status"]["token"]
        with server.lock:
            stray = server.create("pods", {"metadata": {"name": "stray", "labels": {}}, "spec": {}, "status": {"phase": "Unknown"}})
            server.tokens["of-an-account"] = (None, None, ["mur-roost"])
        tokens = {"audience": issue(pod["metadata"], "another"), "account": "of-an-account", "gone": issue({"name": "was-here", "uid": "1"}),
                  "uid": issue({"name": pod["metadata"]["name"], "uid": "another"}), "stray": issue(stray["metadata"]), "again": issue(pod["metadata"]),
                  "forged": "x.y.z"}
        body = {"session_id": "ses_" + "a" * 12 + "7" + "a" * 3 + "8" + "a" * 15, "name": "local/parent", "version": "0.1.0"}
        heard = {name: ask(fleet, "POST", "/register", body, x_murmur_pod_token=token) for name, token in tokens.items()}
        heard["none"] = ask(fleet, "POST", "/register", body)
        assert {name: (status, answer.get("error")) for name, (status, answer) in heard.items()} == {name: NOT_YOU for name in heard}
        assert ask(fleet, "GET", f"/status/{body['session_id']}")[0] == 404


def test_fleet_11_a_grant_whose_depth_was_edited_registers_nobody(lab):
    """The label is for people; what counts is the grant, and that holds its own depth under the referee's MAC."""
    with Fleet(lab) as fleet:
        fleet.publish("child", HELLO)
        fleet.publish_parent(turn(delegate("child")), reads())
        create = fleet.server.create

        def edited(kind, body):
            grant = body["metadata"].get("annotations", {}).get("murmur.dev/grant") if kind == "jobs" else None
            if grant:
                kind_of, payload, mac = grant.split(".")
                said = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
                said["depth"] += 1
                payload = base64.urlsafe_b64encode(json.dumps(said, separators=(",", ":")).encode()).decode().rstrip("=")
                body["metadata"]["annotations"]["murmur.dev/grant"] = f"{kind_of}.{payload}.{mac}"
            return create(kind, body)
        fleet.server.create = edited
        fleet.start_root()
        assert "hello from afar" not in fleet.read_by_model(90)
        assert any(NOT_YOU[1] in text for name, text in fleet.logs().items() if name.startswith("mur-")), fleet.logs()
