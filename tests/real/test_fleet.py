# SPDX-License-Identifier: Apache-2.0
#
# The fleet on a real control plane (etcd, kube-apiserver, kube-controller-manager; scripts/fleet-programs), with real capsules on a
# node of the tests' own. Numbers are those of the design's cases.

import base64
import json
import os
import signal
import statistics
import subprocess
import time

import pytest
import yaml

from tests.integration.test_deploy_render import IMAGE, render, serving, team, writer
from tests.integration.test_fleet_formation import *  # noqa: F403  the same formations, over the real control plane
from tests.integration.test_fleet_formation import ALLOWED, kill_referee
from tests.support.control_plane import ControlPlane, missing
from tests.support.delegation import delegate, reads, turn
from tests.support.fleet import Fleet, ask_referee
from tests.support.lab import SLOWER
from tests.support.polling import eventually

pytestmark = pytest.mark.skipif(missing() is not None, reason=missing() or "")

HELLO = [{"text": "hello from afar"}]
SLOW = [{"text": "never said", "delay_ms": 240_000}]
WAITING = {"text": "waiting"}


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    with ControlPlane(tmp_path_factory.mktemp("plane") / "control") as plane:
        yield plane


@pytest.fixture
def started(lab, plane):
    """Starts a fleet with these arguments of the referee; afterwards nothing of it is in the cluster."""
    open_ones = []

    def start(*arguments, **options):
        fleet = Fleet(lab, *arguments, cluster=plane.cluster, **options)
        open_ones.append(fleet)
        return fleet.__enter__()
    yield start
    for fleet in open_ones:
        fleet.__exit__(None, None, None)
    wipe(plane)


@pytest.fixture
def fleet(started):
    return started(*ALLOWED)


def wipe(plane):
    for kind in ("jobs", "pods"):
        for one in plane.api.list(kind):
            plane.api.call("DELETE", plane.api.path(kind, one["metadata"]["name"]),
                           {"propagationPolicy": "Background", "gracePeriodSeconds": 0})
    eventually(lambda: not plane.api.list("jobs") and not plane.api.list("pods"), 60, "nothing is left")


def slow_tree(fleet, levels=1, **root):
    """A root at work above so many levels of sessions that never answer; the Jobs, top down."""
    fleet.publish(f"level-{levels}", SLOW)
    below = [f"local/level-{level}" for level in range(1, levels + 1)]  # a child may start no more than its parent
    for level in range(levels - 1, 0, -1):
        fleet.publish_parent(turn(delegate(f"level-{level + 1}")), WAITING, reads(), name=f"level-{level}", children=below[level:])
    fleet.publish_parent(turn(delegate("level-1")), WAITING, reads(), children=below)
    fleet.start_root(**root)
    return sorted(fleet.at_work(levels, 90), key=lambda job: job["metadata"]["labels"]["murmur.dev/capsule"])


def are_gone(fleet, jobs):
    uids = [fleet.annotation(job, "pod-uid") for job in jobs]
    return all(fleet.api.get("jobs", job["metadata"]["name"]) is None for job in jobs) and all(
        fleet.node.running[uid].poll() is not None for uid in uids)


def root_pod(fleet):
    return fleet.pods_of("root-1")[0]


def test_fleet_8_21_an_answer_comes_home_and_sessions_cannot_read_the_api(started, plane):
    fleet = started()
    fleet.publish("child", HELLO)
    fleet.publish_parent(turn(delegate("child")), WAITING, reads())
    fleet.start_root()
    pod = fleet.wait_end("root-1", 90)
    assert pod["status"]["phase"] == "Succeeded", fleet.logs()
    assert "hello from afar" in fleet.work_file(pod).read_text()
    [job] = fleet.children()
    assert job["metadata"]["ownerReferences"][0]["uid"] == pod["metadata"]["uid"]
    # 5: a namespace of the restricted level takes the child's pod as it is.
    plane.api.call("POST", "/api/v1/namespaces", {"metadata": {"name": "strict", "labels": {
        "pod-security.kubernetes.io/enforce": "restricted"}}})
    plane.api.call("POST", "/api/v1/namespaces/strict/serviceaccounts", {"metadata": {"name": "murmur-session"}})
    status, answer = plane.api.call("POST", "/api/v1/namespaces/strict/pods?dryRun=All", {
        "metadata": {"name": "like-a-child"}, "spec": job["spec"]["template"]["spec"]})
    assert status == 201, answer
    # 21: the token of a session opens nothing there.
    token = (fleet.home_of(pod) / "token").read_text()
    from tests.support.cluster import Api
    theirs = Api(plane.url, token, plane.ca)
    assert {theirs.call("GET", theirs.path(kind))[0] for kind in ("pods", "jobs", "secrets")} <= {401, 403}


def signed(plane, claims):
    """A token of the cluster's own issuer, as its API server would sign it."""
    def part(data):
        return base64.urlsafe_b64encode(data).decode().rstrip("=")
    head = ".".join(part(json.dumps(one).encode()) for one in ({"alg": "RS256", "typ": "JWT"}, claims))
    mac = subprocess.run(["openssl", "dgst", "-sha256", "-sign", "sa.key"], input=head.encode(), cwd=plane.directory, capture_output=True, check=True).stdout
    return f"{head}.{part(mac)}"


def test_fleet_12_a_token_that_is_expired_of_another_audience_or_of_no_pod_is_refused_alike(started, plane):
    fleet = started()
    fleet.publish("parent", SLOW)
    fleet.start_root()
    [pod] = eventually(lambda: fleet.pods_of("root-1"), 30 * SLOWER, "its pod is there")
    eventually(lambda: fleet.annotation(fleet.api.get("jobs", "root-1"), "session"), 60 * SLOWER, "it is registered")
    account = plane.api.get("serviceaccounts", "murmur-session")["metadata"]
    now = int(time.time())

    def token(audience="mur-roost", ends=now + 600, of_pod=True):
        bound = {"pod": {"name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}} if of_pod else {}
        return signed(plane, {"iss": "https://fleet.test", "aud": [audience], "exp": ends, "iat": now - 3600, "nbf": now - 3600,
                              "sub": "system:serviceaccount:tenant:murmur-session", "kubernetes.io": {
                                  "namespace": "tenant", "serviceaccount": {"name": "murmur-session", "uid": account["uid"]}, **bound}})

    def is_believed(text):
        return plane.api.call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": text, "audiences": ["mur-roost"]}})[1]["status"].get("authenticated", False)
    tokens = {"expired": token(ends=now - 60), "audience": token("another"), "account": token(of_pod=False), "again": token()}
    assert {name: is_believed(text) for name, text in tokens.items()} == {"expired": False, "audience": False, "account": True, "again": True}
    body = {"session_id": "ses_" + "a" * 12 + "7" + "a" * 3 + "8" + "a" * 15, "name": "local/parent", "version": "0.1.0"}
    heard = {name: ask_referee(fleet, "POST", "/register", body, x_murmur_pod_token=text) for name, text in tokens.items()}
    assert {(status, answer["error"]) for status, answer in heard.values()} == {(403, "the credential presented is not valid for this request")}, heard


RENDERS = {
    "job": (False, "--to", "kubernetes", "--task", "Write: \"a\" & 100%\nb"),
    "door": (True, "--to", "kubernetes", "--door", "service", "--public-url", "https://writer.example.com/"),
    "route": (True, "--to", "kubernetes", "--door", "route", "--public-url", "https://writer.example.com/"),
    "image-and-store": (False, "--to", "kubernetes", "--capsule-image", f"registry.example.com/agents/capsule@sha256:{'b' * 64}",
                        "--records-store", "https://records.example.com/team"),
    "profile": (False, "--to", "kubernetes", "--seccomp-profile", "profiles/murmur.json"),
    "delegating": (False, "--to", "kubernetes", "--roost-url", "https://roost.tenant.svc"),
    "kueue": (False, "--to", "kueue", "--queue", "nightly"),
    "roster": (None, "--to", "kubernetes", "--roster", "--task", "go", "--deadline", "900"),
    "sandbox": (True, "--to", "sandbox", "--door", "service"),
}
COLLECTIONS = {"ConfigMap": "/api/v1/namespaces/{}/configmaps", "Service": "/api/v1/namespaces/{}/services", "Secret": "/api/v1/namespaces/{}/secrets",
               "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts", "Job": "/apis/batch/v1/namespaces/{}/jobs",
               "Deployment": "/apis/apps/v1/namespaces/{}/deployments", "Pod": "/api/v1/namespaces/{}/pods",
               "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies"}
OWN_KINDS = {"HTTPRoute", "Sandbox"}  # of the Gateway API and of the sandbox operator, which this control plane does not have


def test_fleet_5_the_api_server_takes_the_printed_referee(lab, plane):
    """Each object as it is, and its pod in a namespace of the restricted level, with every right the tests' own referee has."""
    plane.api.call("POST", "/api/v1/namespaces", {"metadata": {"name": "referees", "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}})
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    places = {**COLLECTIONS, "Role": f"{rbac}/namespaces/{{}}/roles", "RoleBinding": f"{rbac}/namespaces/{{}}/rolebindings",
              "ClusterRoleBinding": f"{rbac}/clusterrolebindings"}
    text = lab.mur("deploy", "referee", "--namespace", "referees", "--image", IMAGE, "--ca", "team-ca", "local/lead").ok().stdout
    for one in yaml.safe_load_all(text):
        status, answer = plane.api.call("POST", f"{places[one['kind']].format('referees')}?fieldValidation=Strict", one)
        assert status == 201, (one["kind"], answer)
    template = one["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "like-it", "namespace": "referees"}, "spec": template["spec"]}
    status, answer = plane.api.call("POST", f"{places['Pod'].format('referees')}?dryRun=All&fieldValidation=Strict", pod)
    assert status == 201, answer
    # What its account may do, as the API server judges it.
    for group, resource, verb, is_allowed in [("batch", "jobs", "create", True), ("", "pods", "delete", True), ("", "secrets", "get", False),
                                              ("", "pods/exec", "create", False), ("authentication.k8s.io", "tokenreviews", "create", True)]:
        asked = {"spec": {"user": "system:serviceaccount:referees:mur-roost", "resourceAttributes": {
            "namespace": "referees" if "tokenreviews" not in resource else "", "group": group, "resource": resource.split("/")[0],
            "subresource": (resource.split("/") + [""])[1], "verb": verb}}}
        _status, said = plane.api.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", asked)
        assert said["status"]["allowed"] is is_allowed, (resource, said)


@pytest.mark.parametrize("name", RENDERS)
def test_fleet_5_the_api_server_takes_what_is_rendered(lab, plane, name):
    """Each object as it is, unknown and doubled fields refused; each pod in a namespace of the restricted level."""
    serves, *arguments = RENDERS[name]
    plane.api.call("POST", "/api/v1/namespaces", {"metadata": {"name": "renders", "labels": {
        "pod-security.kubernetes.io/enforce": "restricted"}}})
    project = team(lab).project if serves is None else (serving if serves else writer)(lab)
    text = render(project, "--namespace", "renders", *arguments).ok().stdout
    pods = 0
    for one in yaml.safe_load_all(text):
        template = one["spec"].get("template") or one["spec"].get("podTemplate") if "spec" in one else None
        asked = [] if one["kind"] in OWN_KINDS else [one]
        if one["kind"] in OWN_KINDS | {"Job", "Deployment"} and template:
            asked.append({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "like-it", "namespace": "renders"}, "spec": template["spec"]})
            # The account is another object of the same render; a dry run leaves none behind.
            plane.api.call("POST", COLLECTIONS["ServiceAccount"].format("renders"),
                           {"metadata": {"name": template["spec"].get("serviceAccountName", "default")}})
            pods += 1
        for body in asked:
            status, answer = plane.api.call("POST", f"{COLLECTIONS[body['kind']].format('renders')}?dryRun=All&fieldValidation=Strict", body)
            assert status == 201 or answer.get("reason") == "AlreadyExists", (body["kind"], status, answer)
    assert pods == 1


@pytest.mark.parametrize("more", [(), ("--queue", "nightly", "--seccomp-profile", "murmur.json", "--records-store", "s3://records/team?region=eu-central-1")],
                         ids=["plain", "all"])
def test_fleet_5_the_api_server_takes_a_childs_job_as_it_is_sent(lab, plane, more):
    """A scripted server keeps what the referee sends; the real one stores no field it does not know."""
    with Fleet(lab, *more) as fleet:
        fleet.publish("child", HELLO)
        fleet.publish_parent(turn(delegate("child")), WAITING, reads())
        fleet.start_root()
        [job] = eventually(fleet.children, 60 * SLOWER, f"a child: {fleet.logs()}")
        with fleet.server.lock:
            body = {key: json.loads(json.dumps(job[key])) for key in ("apiVersion", "kind", "metadata", "spec")}
    for name in ("uid", "creationTimestamp", "resourceVersion"):
        del body["metadata"][name]
    status, answer = plane.api.call("POST", f"{plane.api.path('jobs')}?dryRun=All&fieldValidation=Strict", body)
    assert status == 201, answer
    [container] = answer["spec"]["template"]["spec"]["containers"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/.well-known/agent-card.json"


def test_fleet_17_a_full_quota_is_named_and_leaves_nothing(started, plane):
    fleet = started()
    fleet.publish("child", HELLO)
    fleet.publish_parent(turn(delegate("child")), reads())
    quotas = "/api/v1/namespaces/tenant/resourcequotas"
    assert plane.api.call("POST", quotas, {"metadata": {"name": "sessions"}, "spec": {"hard": {"count/jobs.batch": "1"}}})[0] == 201
    try:
        eventually(lambda: plane.api.call("GET", f"{quotas}/sessions")[1].get("status", {}).get("hard"), 30, "the quota is known")
        fleet.start_root()
        pod = fleet.wait_end("root-1", 90)
        assert "ResourceQuota allows no further child" in fleet.work_file(pod).read_text(), fleet.logs()
        assert fleet.children() == []
    finally:
        plane.api.call("DELETE", f"{quotas}/sessions")


def test_fleet_22_three_levels_end_with_their_root(started, figures):
    fleet = started()
    jobs = slow_tree(fleet, 3)
    began = time.monotonic()
    os.killpg(fleet.node.process_of(root_pod(fleet)).pid, signal.SIGKILL)
    eventually(lambda: are_gone(fleet, jobs[:1]), 20 * SLOWER, f"the first level is gone: {fleet.logs()}")
    eventually(lambda: are_gone(fleet, jobs), 60 * SLOWER, f"all levels are gone: {fleet.logs()}")
    figures["three levels gone after the root's SIGKILL, s"] = round(time.monotonic() - began, 2)
    figures["orphans after a parent's death"] = 0


@pytest.mark.parametrize("what", ["pod", "job"])
def test_fleet_23_24_the_garbage_collector_alone_ends_children(started, figures, what):
    fleet = started()
    jobs = slow_tree(fleet)
    kill_referee(fleet)
    began = time.monotonic()
    name = root_pod(fleet)["metadata"]["name"] if what == "pod" else "root-1"
    fleet.api.call("DELETE", fleet.api.path(f"{what}s", name), {"propagationPolicy": "Background", "gracePeriodSeconds": 0})
    eventually(lambda: are_gone(fleet, jobs), 60 * SLOWER, f"its children are gone: {fleet.logs()}")
    figures[f"child gone after the {what} of its parent, referee dead, s"] = round(time.monotonic() - began, 2)
    figures[f"orphans after the {what}'s deletion (node death)"] = 0


def test_fleet_19_20_a_dead_referee_ends_nothing_and_counts_once_when_it_is_back(started, figures):
    fleet = started()
    [job] = slow_tree(fleet)
    kill_referee(fleet)
    time.sleep(2)
    assert not are_gone(fleet, [job]) and fleet.node.process_of(root_pod(fleet)).poll() is None
    fleet.start_roost()
    os.killpg(fleet.node.process_of(root_pod(fleet)).pid, signal.SIGKILL)
    eventually(lambda: are_gone(fleet, [job]), 30 * SLOWER, f"the new referee ends the child: {fleet.logs()}")
    figures["orphans after a referee's death"] = 0


def test_fleet_control_plane_dies_and_returns(started, plane, figures):
    fleet = started()
    [job] = slow_tree(fleet)
    plane.stop("kube-apiserver")
    time.sleep(2)
    assert fleet.node.process_of(root_pod_process(fleet)).poll() is None
    os.killpg(fleet.node.process_of(root_pod_process(fleet)).pid, signal.SIGKILL)
    plane.start_server()
    eventually(lambda: are_gone(fleet, [job]), 60 * SLOWER, "the child of a parent that died meanwhile is ended")
    figures["orphans after the control plane's death"] = 0


def test_fleet_25_a_partition_of_15_s_ends_nobody(started, plane):
    """Neither the referee nor the API server can be heard, by anybody."""
    fleet = started()
    [job] = slow_tree(fleet)
    silent = [plane.processes["kube-apiserver"].pid, fleet.roost.process.pid]
    root, child = fleet.node.process_of(root_pod_process(fleet)), fleet.node.running[fleet.annotation(job, "pod-uid")]
    try:
        for pid in silent:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(15)
        assert root.poll() is None and child.poll() is None
    finally:
        for pid in silent:
            os.kill(pid, signal.SIGCONT)
    time.sleep(10)
    assert root.poll() is None and child.poll() is None and fleet.api.get("jobs", job["metadata"]["name"]), fleet.logs()


def test_fleet_25_a_child_whose_node_hears_nothing_winds_down_in_60_s_of_its_parents_death(started, figures):
    """Its pod's deletion never reaches it: it asks the referee itself."""
    fleet = started()
    [job] = slow_tree(fleet)
    uid = fleet.annotation(job, "pod-uid")
    child = fleet.node.running[uid]
    fleet.node.deaf.add(uid)
    began = time.monotonic()
    os.killpg(fleet.node.process_of(root_pod(fleet)).pid, signal.SIGKILL)
    eventually(lambda: child.poll() is not None, 60 * SLOWER, lambda: f"it winds down: {fleet.logs()}")
    figures["a child cut off ends after its parent's death, s"] = round(time.monotonic() - began, 1)
    assert "the launcher is gone: winding down" in next(path.read_text() for name, path in fleet.node.logs.items()
                                                        if name.startswith(job["metadata"]["name"]))
    fleet.node.deaf.clear()


def root_pod_process(fleet):
    """The root's pod as the node knows it: the API server is not asked."""
    uid = next(uid for uid in fleet.node.running)
    return {"metadata": {"uid": uid}}


def test_fleet_26_27_a_deadline_and_a_crash_are_told(started):
    fleet = started()
    [job] = slow_tree(fleet)
    os.killpg(fleet.node.running[fleet.annotation(job, "pod-uid")].pid, signal.SIGKILL)
    root = fleet.wait_end("root-1", 60)
    text = fleet.work_file(root).read_text()
    assert "crashed" in text and "exit code 137" in text, text


def test_fleet_from_outside_a_tree_is_looked_into_and_stopped(started, lab, plane):
    fleet = started()
    [job] = slow_tree(fleet)
    (lab.directory / "elsewhere").mkdir()

    def far(*words, config="admin"):
        return lab.mur(*words, "--fleet", "--kubeconfig", plane.directory / f"{config}.json", env={"HOME": str(lab.directory / "elsewhere")})
    root, child = (fleet.annotation(one, "session") for one in (fleet.api.get("jobs", "root-1"), job))
    tree = far("trace", "show", "--tree", root).ok().stdout
    assert root in tree and child in tree and "started by Job root-1" in tree
    assert "murmur.dev/operator-" not in json.dumps(fleet.api.list("jobs"))
    # Whoever may not write Jobs there is given no door.
    plane.kubeconfig("nobody", "nobody")
    assert "error[E-KUB-002]" in far("watch", root, config="nobody").stderr
    far("stop", root).ok()
    eventually(lambda: are_gone(fleet, [job]), 60 * SLOWER, "all are gone")


def test_fleet_figures_of_starting(started, figures):
    """How long a child takes from the model's call to its registration, one after another."""
    fleet = started("--max-concurrent", "8", "--max-live-capsules", "64")
    fleet.publish("child", HELLO)
    count = 12
    fleet.publish_parent(*[turn(delegate("child", call_id=f"c{i}")) for i in range(count)], WAITING, reads())
    fleet.start_root()
    pod = fleet.wait_end("root-1", 180)
    [trace] = [path for path in fleet.home_of(pod).glob(".murmur/records/**/trace.jsonl")]
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    calls = sorted(line["duration_ms"] for line in lines if line["event_type"] == "tool_call")
    figures["delegate-task to readiness, ms, p50"] = statistics.median(calls)
    figures["delegate-task to readiness, ms, p99"] = calls[-1]
    [size] = {len(json.dumps(job)) for job in fleet.children()[:1]}
    figures["bytes of a finished Job in the store (JSON)"] = size


@pytest.fixture(scope="module")
def figures():
    """What was measured, printed at the end."""
    found = {}
    yield found
    print()
    for name, value in found.items():
        print(f"{name:70} {value}")
