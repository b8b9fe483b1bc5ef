# SPDX-License-Identifier: Apache-2.0
#
# The referee over a cluster where something goes wrong or is asked for too much: late starts, partitions, deadlines, bounds, an API
# server that is busy, and ends in the cluster's own words (docs/fleet.md; docs/spec/spawn.md, parts A and B6).

import hashlib
import http.client
import json
import os
import signal
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.support.cluster import Refused
from tests.support.delegation import delegate, reads, turn
from tests.support.fleet import Fleet, ask_referee as ask
from tests.support.lab import SLOWER
from tests.support.otlp import OtlpCollector
from tests.support.polling import eventually

HELLO = [{"text": "hello from afar"}]
SLOW = [{"text": "never said", "delay_ms": 120_000}]
WAITING = {"text": "waiting"}
MERGE = "application/merge-patch+json"


def ago(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - seconds))


def slow_tree(fleet, **child):
    fleet.publish("child", SLOW, **child)
    fleet.publish_parent(turn(delegate("child")), WAITING, reads())
    fleet.start_root()
    [job] = fleet.at_work()
    return job


def held_child(fleet):
    """A child whose Job is there and gets no pod."""
    eventually(lambda: fleet.node.running, 30 * SLOWER, "the root runs")
    fleet.server.is_holding = True
    [job] = eventually(fleet.children, 30 * SLOWER, "the child's Job is there")
    return job["metadata"]["name"]


def test_fleet_14_what_was_queued_for_minutes_registers_when_it_starts(lab):
    with Fleet(lab, "--queue-timeout", "3600") as fleet:
        fleet.publish("child", HELLO)
        fleet.publish_parent(turn(delegate("child")), WAITING, reads())
        fleet.start_root()
        name = held_child(fleet)
        # Ten minutes in its queue, as the cluster's clock has them.
        fleet.api.call("PATCH", fleet.api.path("jobs", name), {"metadata": {"creationTimestamp": ago(600)}}, MERGE)
        fleet.server.is_holding = False
        fleet.api.call("PATCH", fleet.api.path("jobs", name), {"metadata": {"labels": {"released": "yes"}}}, MERGE)
        assert "hello from afar" in fleet.read_by_model(), fleet.logs()


def test_fleet_15_a_pod_that_started_and_stays_silent_is_refused_and_its_job_goes(lab):
    with Fleet(lab) as fleet:
        fleet.publish("child", HELLO)
        fleet.publish_parent(turn(delegate("child")), reads())
        fleet.start_root()
        eventually(lambda: fleet.node.running, 30 * SLOWER, "the root runs")
        fleet.node.is_starting = False
        [job] = eventually(fleet.children, 30 * SLOWER, "the child's Job is there")
        [pod] = eventually(lambda: fleet.pods_of(job["metadata"]["name"]), 20 * SLOWER, "its pod, too")
        token = fleet.server.issue({"spec": {"audiences": ["mur-roost"], "boundObjectRef": pod["metadata"]}})["status"]["token"]
        fleet.api.call("PATCH", fleet.api.path("pods", pod["metadata"]["name"] + "/status"),
                       {"status": {"phase": "Running", "startTime": ago(61)}}, MERGE)
        body = {"session_id": "ses_" + "a" * 12 + "7" + "a" * 3 + "8" + "a" * 15, "name": "local/child", "version": "0.1.0"}
        status, answer = ask(fleet, "POST", "/register", body, x_murmur_pod_token=token)
        assert status == 403 and ("60 s" in answer["error"] or "not valid for this request" in answer["error"]), answer
        assert "its pod started and did not register within 60 s" in fleet.read_by_model(), fleet.logs()
        eventually(lambda: fleet.children() == [], 20 * SLOWER, "its Job is gone")


def test_fleet_25_a_partition_ends_nobody_and_a_parent_that_died_in_it_takes_its_child_along(lab):
    with Fleet(lab) as fleet:
        job = slow_tree(fleet)
        uid = fleet.annotation(job, "pod-uid")
        root = fleet.node.process_of(fleet.pods_of("root-1")[0])
        child = fleet.node.running[uid]

        def lost(method, path):
            raise ConnectionError
        fleet.server.before = lost
        os.kill(fleet.roost.process.pid, signal.SIGSTOP)
        time.sleep(5)
        assert root.poll() is None and child.poll() is None, fleet.logs()
        os.killpg(root.pid, signal.SIGKILL)
        root.wait()
        time.sleep(1)
        assert child.poll() is None
        os.kill(fleet.roost.process.pid, signal.SIGCONT)
        fleet.server.before = lambda method, path: None
        eventually(lambda: child.poll() is not None and fleet.children() == [], 60 * SLOWER, lambda: f"it winds down: {fleet.logs()}")


def test_fleet_26_a_delegation_past_its_deadline_is_terminated_and_its_job_goes(lab):
    with Fleet(lab) as fleet:
        fleet.node.environment = {"MURMUR_DELEGATION_TIMEOUT_SECS": "2"}
        fleet.publish("child", SLOW)
        fleet.publish_parent(turn(delegate("child")), WAITING, reads())
        fleet.start_root()
        text = fleet.read_by_model()
        assert "ended terminated" in text and "2s" in text, text
        eventually(lambda: fleet.children() == [], 20 * SLOWER, "its Job is gone")


@pytest.mark.parametrize("status, said", [
    ({"phase": "Failed", "containerStatuses": [{"name": "mur", "image": "x", "imageID": "x", "ready": False, "restartCount": 0, "state": {
        "terminated": {"exitCode": 137, "reason": "OOMKilled", "message": "the last line it wrote"}}}]},
     ("exit code 137", "OOMKilled", "the last line it wrote")),
    ({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."},
     ("Evicted", "The node was low on resource: memory.")),
    ({"phase": "Failed", "reason": "DeadlineExceeded", "message": "Pod was active on the node longer than the specified deadline"},
     ("DeadlineExceeded", "longer than the specified deadline")),
], ids=["out_of_memory", "evicted", "deadline"])
def test_fleet_27_an_end_is_told_in_the_clusters_words(lab, status, said):
    with Fleet(lab) as fleet:
        job = slow_tree(fleet)
        [pod] = fleet.pods_of(job["metadata"]["name"])
        fleet.api.call("PATCH", fleet.api.path("pods", pod["metadata"]["name"] + "/status"), {"status": status}, MERGE)
        os.killpg(fleet.node.running[pod["metadata"]["uid"]].pid, signal.SIGKILL)
        text = fleet.read_by_model()
        assert "crashed" in text and all(words in text for words in said), text


# --- doors ---------------------------------------------------------------------------------------------------------


def call_door(url, token, method="ListTasks", headers=()):
    request = urllib.request.Request(f"http://{url}/", json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}}).encode(),
                                     headers={"content-type": "application/json", "a2a-version": "1.0", "authorization": f"Bearer {token}",
                                              **dict(headers)})
    try:
        with urllib.request.urlopen(request, timeout=20 * SLOWER) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as refused:
        return refused.code, json.loads(refused.read())


def operator_door(fleet, job):
    """As whoever may write the Job is given it."""
    secret = os.urandom(32).hex()
    digest = hashlib.sha256(secret.encode()).hexdigest()
    fleet.api.call("PATCH", fleet.api.path("jobs", job), {"metadata": {"annotations": {f"murmur.dev/operator-{digest[:16]}": digest}}}, MERGE)
    status, answer = ask(fleet, "POST", "/doors", {"job": job}, x_murmur_operator=secret)
    assert status == 200, answer
    return answer["url"], answer["token"]


def test_fleet_31_a_childs_card_names_its_pod_and_its_door_opens_to_tokens_alone(lab):
    with Fleet(lab) as fleet:
        job = slow_tree(fleet)
        [pod] = fleet.pods_of(job["metadata"]["name"])
        [container] = pod["spec"]["containers"]
        door = f"{pod['status']['podIP']}:8080"
        probe = container["readinessProbe"]["httpGet"]
        assert {one["name"]: one["containerPort"] for one in container["ports"]}[probe["port"]] == 8080

        # The probe asks without a token, as a kubelet does, and is answered.
        with urllib.request.urlopen(f"http://{door}{probe['path']}", timeout=30 * SLOWER) as answer:
            card = json.loads(answer.read())

        assert [one["url"] for one in card["supportedInterfaces"]] == [f"http://{door}"]
        assert set(card["securitySchemes"]) == {"bearer"} and card["securityRequirements"]
        assert {call_door(door, token)[0] for token in ("", "mft1.e30.AAAA", "mdt1.e30.AAAA", "anything")} == {401}
        assert call_door(*operator_door(fleet, job["metadata"]["name"]))[0] == 200


def test_fleet_1_what_deploy_renders_of_a_capsule_that_delegates_is_a_root(lab):
    with Fleet(lab) as fleet:
        fleet.publish("child", HELLO)
        fleet.publish_parent(turn(delegate("child")), WAITING, reads())
        task = "cost: $5, $(HOME) and $$"
        fleet.deploy_root("--task", task)

        pod = fleet.wait_end("mur-parent", 60)

        assert pod["status"]["phase"] == "Succeeded", fleet.logs()
        [job] = fleet.children()
        assert job["metadata"]["labels"]["murmur.dev/root"] == "mur-parent"
        heard = fleet.work_file(pod).read_text()
        assert "hello from afar" in heard and task in heard, "a cluster fills in what looks like a variable; here it is none"


def test_fleet_32_a_token_opens_one_door_and_parts_of_a_trace_are_whole_lines(lab):
    with Fleet(lab) as fleet:
        fleet.publish("child", SLOW)
        fleet.publish_parent(turn(delegate("child", call_id="a"), delegate("child", call_id="b")), WAITING, reads())
        fleet.start_root()
        first, second = (operator_door(fleet, job["metadata"]["name"]) for job in fleet.at_work(2))
        fleet.publish("other", SLOW)
        assert call_door(*first)[0] == 200 and call_door(*second)[0] == 200
        # Another session of the same tree: genuine, and not for this door.
        assert call_door(first[0], second[1])[0] == 403 and call_door(second[0], first[1])[0] == 403
        head, payload, mark = first[1].split(".")
        assert call_door(first[0], f"{head}.{payload}.{mark[:-4]}AAAA")[0] == 401
        assert call_door(first[0], "")[0] == 401

        host, port = first[0].split(":")

        def part(method="GET", at=0, token=first[1]):
            link = http.client.HTTPConnection(host, int(port), timeout=20 * SLOWER)
            link.request(method, f"/trace?from={at}", headers={"authorization": f"Bearer {token}"})
            answer = link.getresponse()
            return answer.status, answer.headers.get("x-murmur-next"), answer.read()
        status, onward, body = part()
        assert status == 200 and int(onward) == len(body) and body.endswith(b"\n")
        assert all(json.loads(line) for line in body.splitlines())
        middle = body.index(b"\n") + 1
        assert part(at=middle)[2].startswith(body[middle:])
        assert part(at=10**12)[2] == b"" and part("POST")[0] == 405 and part(token=second[1])[0] == 403


def test_fleet_30_a_tree_over_several_pods_is_one_trace_of_spans(lab):
    with OtlpCollector() as collector, Fleet(lab) as fleet:
        observed = {"observability": {"otel": {"endpoint": collector.endpoint}}}
        fleet.publish("leaf", HELLO, **observed)
        fleet.publish_parent(turn(delegate("leaf")), WAITING, {"text": "the middle's answer"}, name="middle", children=("local/leaf",), **observed)
        fleet.publish_parent(turn(delegate("middle")), WAITING, reads(), children=("local/middle", "local/leaf"), **observed)
        fleet.start_root()
        assert "the middle's answer" in fleet.read_by_model(90), fleet.logs()

        def agents():
            return {span.resource["service.name"]: span for span in collector.named("invoke_agent") if span.kind == 1}
        eventually(lambda: set(agents()) == {"parent", "middle", "leaf"}, 30 * SLOWER, lambda: f"all spans came: {agents()}")
        found = agents()
        assert len({span.trace for span in found.values()}) == 1
        assert (found["leaf"].parent, found["middle"].parent) == (found["middle"].id, found["parent"].id)


class Rewriting:
    """A gateway with a name and a path of its own: /writer/... there is /... here, under another Host."""

    def __init__(self, host, port):
        class Handler(BaseHTTPRequestHandler):
            def pass_on(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                link = http.client.HTTPConnection(host, port, timeout=60 * SLOWER)
                heads = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
                link.request(self.command, self.path.removeprefix("/writer") or "/", body or None, {**heads, "host": "agents.example.com"})
                answer = link.getresponse()
                self.send_response(answer.status)
                self.send_header("content-type", answer.headers.get("content-type", "application/json"))
                self.send_header("connection", "close")
                self.end_headers()
                while piece := answer.read1(65536):
                    self.wfile.write(piece)
                    self.wfile.flush()
                self.close_connection = True

            do_GET = do_POST = pass_on

            def log_message(self, *_arguments):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.port = self.server.server_address[1]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def test_fleet_31_behind_a_gateway_that_rewrites_a_card_is_found_and_a_quiet_stream_goes_on(lab):
    with Fleet(lab) as fleet:
        fleet.publish("parent", [{"text": "after a pause", "delay_ms": 16_500}], capabilities={"spawn": {"allow": ["local/child"]}},
                      lifecycle={"task_acceptance": "queue", "after_task": "sleep"})
        fleet.start_root(task=None, arguments=("--public-url", "https://agents.example.com/writer"))
        eventually(lambda: fleet.annotation(fleet.api.get("jobs", "root-1"), "session"), 30 * SLOWER, "it is registered")
        url, token = operator_door(fleet, "root-1")
        gateway = Rewriting(*url.split(":"))
        try:
            def card():
                with urllib.request.urlopen(f"http://127.0.0.1:{gateway.port}/writer/.well-known/agent-card.json", timeout=20) as answer:
                    return json.loads(answer.read())
            found = eventually_open(card)
            assert found["supportedInterfaces"][0]["url"] == "https://agents.example.com/writer"
            link = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60 * SLOWER)
            link.request("POST", "/writer", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": {
                "messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "go"}]}}}), {
                    "content-type": "application/json", "a2a-version": "1.0", "accept": "text/event-stream", "authorization": f"Bearer {token}"})
            answer = link.getresponse()
            assert answer.status == 200
            stream = answer.read().decode()
            # Nothing is said for longer than the shortest idle time of gateways but heartbeats, and the end arrives.
            assert "\n:" in stream and "after a pause" in stream and "TASK_STATE_COMPLETED" in stream, stream
        finally:
            gateway.close()


def eventually_open(ask_for):
    def once():
        try:
            return ask_for()
        except OSError:
            return None
    return eventually(once, 30 * SLOWER, "the door is open", every_s=0.2)


# --- every invariant of delegation -----------------------------------------------------------------------------------


def test_fleet_spawn_depth_and_envelope_are_the_referees_as_on_one_machine(lab):
    with Fleet(lab, "--max-depth", "2") as fleet:
        # The root may be two levels above the last; the middle's child would be a third.
        fleet.publish("deepest", HELLO)
        fleet.publish_parent(turn(delegate("deepest")), reads(), name="middle", children=("local/deepest",))
        fleet.publish("wide", HELLO, capabilities={"network": {"allow": ["https://elsewhere.example"]}})
        fleet.publish_parent(turn(delegate("wide")), turn(delegate("middle")), WAITING, reads(),
                             children=("local/middle", "local/deepest", "local/wide"))
        fleet.start_root()
        text = fleet.read_by_model(90)
        assert "capabilities.network.allow" in text and "https://elsewhere.example" in text, text
        depths = [job["metadata"]["labels"]["murmur.dev/depth"] for job in fleet.children()]
        assert sorted(depths) in (["1"], ["0", "1"]), depths
        assert not any(job["metadata"]["annotations"]["murmur.dev/name"] == "local/wide" for job in fleet.children())


@pytest.mark.parametrize("bound, said", [("--max-concurrent", "this session has 1 live children and --max-concurrent 1"),
                                         ("--max-live-capsules", "live capsules and --max-live-capsules 2 allows no more")])
def test_fleet_spawn_bounds_are_told_to_the_model_and_nothing_is_left(lab, bound, said):
    with Fleet(lab, bound, "1" if bound == "--max-concurrent" else "2") as fleet:
        fleet.publish("child", SLOW)
        fleet.publish_parent(turn(delegate("child", call_id="a"), delegate("child", call_id="b")), reads())
        fleet.start_root()
        [pod] = eventually(lambda: fleet.pods_of("root-1"), 20 * SLOWER, "the root's pod")
        request = eventually(lambda: fleet.work_file(pod).is_file() and fleet.work_file(pod), 60 * SLOWER, "its model was asked again")
        text = request.read_text()
        assert said in text, text
        assert fleet.server.creations == 2, "the root, and one child"


def test_fleet_spawn_a_deadline_is_inherited_and_bounds_the_job(lab):
    with Fleet(lab) as fleet:
        fleet.publish("child", SLOW)
        fleet.publish_parent(turn(delegate("child")), WAITING, reads())
        fleet.start_root(arguments=("--deadline", "300"))
        [job] = fleet.at_work()
        arguments = job["spec"]["template"]["spec"]["containers"][0]["args"]
        left_s = int(arguments[arguments.index("--inherited-deadline") + 1]) / 1000 - time.time()
        assert 200 < left_s <= 300
        assert job["spec"]["activeDeadlineSeconds"] <= 300 + 60 + 600
        [pod] = fleet.pods_of(job["metadata"]["name"])
        [trace] = fleet.home_of(pod).glob(".murmur/records/**/trace.jsonl")
        start = json.loads(trace.read_text().splitlines()[0])
        assert start["deadline"]["source"] == "inherited", start["deadline"]


@pytest.mark.parametrize("trouble", ["busy", "lost", "answer_lost", "broken", "taken"])
def test_fleet_spawn_nothing_is_started_twice_whatever_the_api_server_says(lab, trouble):
    is_refused = trouble in ("broken", "taken", "lost")
    with Fleet(lab) as fleet:
        fleet.publish("child", HELLO)
        fleet.publish_parent(turn(delegate("child")), *([] if is_refused else [WAITING]), reads())
        times = []

        def at_creation(method, path):
            if method != "POST" or not path.endswith("/jobs") or not fleet.node.running:
                return
            times.append(path)
            if len(times) > 1:
                return
            if trouble == "busy":
                raise Refused(429, "TooManyRequests", "too many requests, please try again later")
            if trouble == "broken":
                raise Refused(500, "InternalError", "etcdserver: request timed out")
            if trouble == "taken":
                raise Refused(409, "AlreadyExists", "jobs.batch already exists")
            raise ConnectionError
        fleet.start_root()
        eventually(lambda: fleet.node.running, 30 * SLOWER, "the root runs")
        if trouble == "answer_lost":
            fleet.server.after = at_creation
        else:
            fleet.server.before = at_creation
        text = fleet.read_by_model()
        assert times, "the child's Job was asked for"
        assert ("hello from afar" in text) == (not is_refused), text
        if trouble == "broken":
            assert "etcdserver: request timed out" in text
        assert len(fleet.children()) == (0 if is_refused else 1)
        assert fleet.server.creations == (1 if is_refused else 2)


def test_fleet_18_a_child_of_a_queued_session_stands_in_the_queue_itself(lab):
    with Fleet(lab, "--queue", "nightly") as fleet:
        fleet.publish("child", HELLO)
        fleet.publish_parent(turn(delegate("child")), WAITING, reads())
        fleet.start_root()
        [job] = eventually(fleet.children, 30 * SLOWER, "the child's Job is there")
        name = job["metadata"]["name"]
        assert job["spec"]["suspend"] is True and job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "nightly"
        # Kueue passes over a Job whose controller is queued: nobody is the controller of this one.
        assert [owner["controller"] for owner in job["metadata"]["ownerReferences"]] == [False]
        assert fleet.pods_of(name) == []
        fleet.api.call("PATCH", fleet.api.path("jobs", name), {"spec": {"suspend": False}}, MERGE)
        assert "hello from afar" in fleet.read_by_model(), fleet.logs()


def test_fleet_spawn_a_snapshot_is_refused_before_anything_is_asked(lab):
    with Fleet(lab) as fleet:
        fleet.publish("child", HELLO)
        fleet.publish("parent", [turn(delegate("child")), reads()], capabilities={"spawn": {
            "allow": ["local/child"], "workdir_snapshot": ["local/child"]}})
        fleet.start_root()
        text = fleet.read_by_model()
        assert "workdir_snapshot" in text, text
        assert fleet.server.creations == 1


def test_fleet_spawn_a_long_answer_is_cut_and_says_so(lab):
    with Fleet(lab) as fleet:
        fleet.node.files = {"steps.json": json.dumps({"steps": [{"text": "word " * 20_000}]})}
        fleet.publish("child", [], inference={"driver": {"artifact": "std/driver-scripted", "config": {"file": "steps.json"}}})
        fleet.publish_parent(turn(delegate("child")), WAITING, reads())
        fleet.start_root()
        pod = fleet.wait_end("root-1", 60)
        answers = [one.read_text() for one in fleet.home_of(pod).glob(".murmur/records/**/out/result.txt")]
        [text] = [one for one in answers if "word word" in one]
        assert len(text) < 70_000 and "cut: the whole answer has 100000 bytes" in text, text[-200:]


@pytest.mark.parametrize("status, said", [
    ({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available: 3 Insufficient memory."}]},
     "no place for it was free within 5 s (--queue-timeout): Unschedulable: 0/3 nodes are available"),
    ({"startTime": ago(61), "containerStatuses": [{"name": "mur", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image x"}}}]},
     "its pod started and did not register within 60 s: ImagePullBackOff: Back-off pulling image x"),
], ids=["no room", "no image"])
def test_fleet_15_16_what_kept_a_child_from_beginning_is_told_to_the_model(lab, status, said):
    with Fleet(lab, "--queue-timeout", "5") as fleet:
        fleet.publish("child", HELLO)
        fleet.publish_parent(turn(delegate("child")), reads())
        fleet.start_root()
        eventually(lambda: fleet.node.running, 30 * SLOWER, "the root runs")
        fleet.node.is_starting = False
        [job] = eventually(fleet.children, 30 * SLOWER, "the child's Job is there")
        [pod] = eventually(lambda: fleet.pods_of(job["metadata"]["name"]), 20 * SLOWER, "its pod, too")
        fleet.api.call("PATCH", fleet.api.path("pods", pod["metadata"]["name"] + "/status"), {"status": {"phase": "Pending", **status}}, MERGE)
        assert said in fleet.read_by_model(), fleet.logs()
        eventually(lambda: fleet.children() == [], 20 * SLOWER, "its Job is gone")
