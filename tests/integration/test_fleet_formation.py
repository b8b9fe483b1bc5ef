# SPDX-License-Identifier: Apache-2.0
#
# A formation whose members are Jobs, mur-roost its launcher (docs/fleet.md): against a scripted API server and a node that runs
# real capsules. tests/real/test_fleet_formation.py has it on the real control plane.

import json
import os
import signal

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.integration.test_formations import post
from tests.support.fleet import Fleet, ask_referee as ask
from tests.support.formation import BEARER, CALLS, SERVES, Key, Team
from tests.support.lab import SLOWER
from tests.support.polling import eventually

ALLOWED = [word for name in ("lead", "coder", "tester") for word in ("--spawn-allow", f"local/{name}")]
SLOW = [{"text": "never said", "delay_ms": 240_000}]


def call(member, task="go"):
    return {"tool_calls": [{"name": "call-member", "input": {"member": member, "task": task}}]}


ASKS_CODER = [call("coder", "count"), {"text": "waiting"}, {"text": "told: {{task}}"}]


class SpreadTeam(Team):
    """lead, the entry, may call coder, who may call tester."""

    def __init__(self, fleet, lead=ASKS_CODER, coder=({"text": "coder answers"},), tester=({"text": "tester answers"},), reach=None):
        super().__init__(fleet.lab, "lead", "coder", "tester", reachability=reach or [
            {"from": "lead", "to": ["coder"]}, {"from": "coder", "to": ["tester"]}])
        self.fleet = fleet
        self.member("lead", lead, **BEARER, **CALLS)
        self.member("coder", coder, **BEARER, **SERVES, **CALLS)
        self.member("tester", tester, **BEARER, **SERVES)

    def render(self, *arguments):
        text = self.project.mur("deploy", "render", "--roster", "--placement", "fleet", "--to", "kubernetes", "--image", "murmur:1", "--namespace",
                                "tenant", "--roost-url", self.fleet.roost.url, *arguments).ok().stdout
        return {one["kind"]: one for one in yaml.safe_load_all(text)}

    def deploy(self, *arguments, change=lambda job: None):
        job = self.render("--task", "go", *arguments)["Job"]
        change(job)
        job["spec"]["template"]["spec"]["serviceAccountName"] = "murmur-session"
        status, answer = self.fleet.api.call("POST", self.fleet.api.path("jobs"), job)
        assert status < 300, answer
        return job["metadata"]["name"]

    def peers(self):
        return {self.fleet.annotation(job, "member"): job for job in self.fleet.api.list("jobs") if self.fleet.annotation(job, "grant")}

    def at_work(self):
        """The peers once each is registered and the entry has begun."""
        def all_of_them():
            peers = self.peers()
            entry = self.fleet.api.get("jobs", "mur-lead")
            return peers if len(peers) == 2 and all(self.fleet.annotation(job, "session") for job in [*peers.values(), entry]) else None
        return eventually(all_of_them, 60 * SLOWER, f"the members are at work: {self.fleet.logs()}")

    def answer(self):
        """What the entry answered in the end."""
        pod = self.fleet.wait_end("mur-lead", 90)
        assert pod["status"]["phase"] == "Succeeded", self.fleet.logs()
        [answer] = self.fleet.home_of(pod).glob(".murmur/records/**/out/result.txt")
        return answer.read_text()

    def are_gone(self, peers):
        uids = [self.fleet.annotation(job, "pod-uid") for job in peers.values()]
        return not self.peers() and all(self.fleet.node.running[uid].poll() is not None for uid in uids if uid)

    def gone(self, peers, within_s=40):
        eventually(lambda: self.are_gone(peers), within_s * SLOWER, f"the peers are gone: {self.fleet.logs()}")

    def homes(self, peers):
        return {name: self.fleet.home_of(pod) for name, job in peers.items() for pod in self.fleet.pods_of(job["metadata"]["name"])}

    def process(self, job):
        return self.fleet.node.running[self.fleet.annotation(job, "pod-uid")]

    def entry(self):
        return self.fleet.api.get("jobs", "mur-lead")

    def log(self):
        """What the entry's process said; its pod has ended."""
        pod = self.fleet.wait_end("mur-lead", 90)
        assert pod["status"]["phase"] == "Failed", self.fleet.logs()
        return (self.fleet.home_of(pod) / "log").read_text()


def events(home):
    return [json.loads(line)["event_type"] for trace in home.glob(".murmur/records/**/trace.jsonl") for line in trace.open()]


def kill(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def kill_referee(fleet):
    os.kill(fleet.roost.process.pid, signal.SIGKILL)
    fleet.roost.process.wait()


def token_of(fleet, sender, receiver, formation):
    """As the fleet's referee signs them."""
    key = Key()
    key.private = Ed25519PrivateKey.from_private_bytes(fleet.key_file.read_bytes()[32:])
    return key.token(sender, receiver, formation)


@pytest.fixture
def fleet(lab):
    with Fleet(lab, *ALLOWED) as fleet:
        yield fleet


def test_formation_on_a_fleet_calls_cross_pods_and_its_end_is_everybodys(fleet):
    team = SpreadTeam(fleet, coder=[call("tester", "check"), {"text": "waiting"}, {"text": "coder says: {{task}}"}])
    team.deploy()
    peers = team.at_work()
    written = json.dumps([fleet.api.list("jobs"), fleet.api.list("pods")])
    assert "mft1." not in written and "msc1." not in written and '"--task", "go"' in written
    for job in peers.values():
        [owner] = job["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("Pod", fleet.annotation(team.entry(), "pod-uid"))
        assert fleet.annotation(job, "formation") == fleet.annotation(team.entry(), "formation")
    told = team.answer()
    assert "coder says" in told and "tester answers" in told
    homes = team.homes(peers)
    team.gone(peers)
    for name, home in homes.items():
        assert events(home)[-1] == "session_end" and "formation_ended" in events(home), (name, events(home))


def test_formation_on_a_fleet_doors_know_their_callers(fleet):
    """Who is no callee is refused before anything is sent; a door takes what the referee signed for it, of this formation."""
    team = SpreadTeam(fleet, lead=[call("tester"), *ASKS_CODER], coder=SLOW)
    team.deploy()
    peers = team.at_work()
    formation = fleet.annotation(team.entry(), "formation")
    [pod] = fleet.pods_of(peers["tester"]["metadata"]["name"])
    url = f"http://{pod['status']['podIP']}:8080"
    other = formation[:-1] + ("0" if formation[-1] != "0" else "1")
    given = [None, token_of(fleet, "coder", "tester", formation), token_of(fleet, "coder", "lead", formation), token_of(fleet, "coder", "tester", other)]
    assert [post(url, "ListTasks", token=token)[0] for token in given] == [401, 200, 403, 401]
    lead = fleet.home_of(fleet.pods_of("mur-lead")[0])
    eventually(lambda: "member_call_start" in events(lead), 30 * SLOWER, "coder was called")
    trace = "".join(path.read_text() for path in lead.glob(".murmur/records/**/trace.jsonl"))
    assert trace.count('"member_call_start"') == 1 and "tester" in trace
    assert pod["status"]["podIP"] not in trace and "mft1." not in trace


def test_formation_on_a_fleet_13_a_second_pod_of_a_member_has_no_seat(fleet):
    team = SpreadTeam(fleet, coder=SLOW)
    team.deploy()
    job = team.at_work()["tester"]
    [pod] = fleet.pods_of(job["metadata"]["name"])
    genuine = (fleet.home_of(pod) / "token").read_text()
    assert ask(fleet, "POST", "/formation", {}, x_murmur_pod_token=genuine)[1]["state"] == "member"
    second = {"metadata": {**{key: pod["metadata"][key] for key in ("labels", "ownerReferences")}, "name": pod["metadata"]["name"] + "-2"},
              "spec": {key: value for key, value in pod["spec"].items() if key != "nodeName"}, "status": {"phase": "Pending"}}
    fleet.node.is_starting = False
    made = fleet.api.call("POST", fleet.api.path("pods"), second)[1]
    _status, token = fleet.api.call("POST", fleet.api.path("serviceaccounts", "murmur-session/token"), {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": ["mur-roost"], "boundObjectRef": {
            "kind": "Pod", "apiVersion": "v1", "name": made["metadata"]["name"], "uid": made["metadata"]["uid"]}}})
    body = {"session_id": "ses_" + "9" * 32, "name": "local/tester", "version": "0.1.0"}
    refused = [ask(fleet, "POST", "/formation", {}, x_murmur_pod_token=token["status"]["token"]),
               ask(fleet, "POST", "/register", body, x_murmur_pod_token=token["status"]["token"]),
               ask(fleet, "POST", "/formation", {}, x_murmur_pod_token="forged")]
    assert {status for status, _answer in refused} == {403} and len({json.dumps(answer) for _status, answer in refused}) == 1


def test_formation_on_a_fleet_22_its_entry_killed_ends_it(fleet):
    team = SpreadTeam(fleet, coder=SLOW)
    team.deploy()
    peers = team.at_work()
    kill(team.process(team.entry()))
    team.gone(peers)


def test_formation_on_a_fleet_23_the_garbage_collector_alone_ends_it(fleet):
    team = SpreadTeam(fleet, coder=SLOW)
    team.deploy()
    peers = team.at_work()
    kill_referee(fleet)
    [pod] = fleet.pods_of("mur-lead")
    fleet.api.call("DELETE", fleet.api.path("jobs", "mur-lead"), {"propagationPolicy": "Background"})
    team.gone(peers, 60)
    assert fleet.api.get("pods", pod["metadata"]["name"]) is None


def test_formation_on_a_fleet_is_seen_and_ended_by_its_name(fleet):
    team = SpreadTeam(fleet, coder=SLOW)
    team.deploy()
    peers = team.at_work()
    formation = fleet.annotation(team.entry(), "formation")

    def mur(*words):
        return fleet.lab.mur(*words, "--fleet", "--kubeconfig", fleet.kubeconfig, "--namespace", "tenant").ok().stdout
    listed = json.loads(mur("ps", "--json"))["sessions"]
    assert {(one["member"], one["formation_id"]) for one in listed} == {(name, formation) for name in ("lead", "coder", "tester")}
    assert all(one["root"] == "mur-lead" for one in listed) and "  coder" in mur("ps")
    assert fleet.annotation(peers["tester"], "session") in mur("trace", "show", f"{formation}/tester")
    tree = mur("trace", "show", "--tree", formation)
    assert all(f"=== local/{name} (Job " in tree for name in ("lead", "coder", "tester"))
    assert "stopped" in mur("stop", formation)
    team.gone(peers)


def test_formation_on_a_fleet_a_peer_that_died_is_told_to_its_caller(fleet):
    team = SpreadTeam(fleet, coder=SLOW)
    team.deploy()
    peers = team.at_work()
    [home] = [home for name, home in team.homes(peers).items() if name == "coder"]
    eventually(lambda: "task_start" in events(home), 30 * SLOWER, "coder is at it")
    kill(team.process(peers["coder"]))
    assert "unreachable" in team.answer()


def test_formation_on_a_fleet_20_goes_on_with_a_new_referee(fleet):
    team = SpreadTeam(fleet, coder=[{"text": "coder answers", "delay_ms": int(5000 * SLOWER)}])
    team.deploy()
    peers = team.at_work()
    kill_referee(fleet)
    fleet.start_roost()
    assert "coder answers" in team.answer()
    assert fleet.roost.process.poll() is None and {name: job["metadata"]["uid"] for name, job in team.peers().items()}.items() <= {
        name: job["metadata"]["uid"] for name, job in peers.items()}.items(), "nobody was started again"
    team.gone(peers)


def test_formation_on_a_fleet_26_its_deadline_ends_it(fleet):
    team = SpreadTeam(fleet, coder=SLOW)
    team.deploy("--deadline", str(int(12 * SLOWER)))
    peers = team.at_work()
    pod = fleet.wait_end("mur-lead", 90)
    assert "deadline_reached" in events(fleet.home_of(pod)), fleet.logs()
    team.gone(peers)


def test_formation_on_a_fleet_what_does_not_come_up_is_named(fleet):
    team = SpreadTeam(fleet)

    def other_bytes(job):
        notes = job["metadata"]["annotations"]
        notes["member.murmur.dev/coder"] = "local/coder@0.1.0 sha256:" + "0" * 64
    team.deploy(change=other_bytes)
    told = team.log()
    assert "error[E-RUN-047]" in told and "member 'coder'" in told and not team.peers()


def test_formation_on_a_fleet_each_member_is_allowed_by_name(lab):
    with Fleet(lab, *ALLOWED[:4]) as fleet:
        team = SpreadTeam(fleet)
        team.deploy()
        told = team.log()
        assert "error[E-RUN-045]" in told and "member 'tester'" in told and "--spawn-allow local/tester" in told and not team.peers()


def test_formation_on_a_fleet_a_peer_that_cannot_start_ends_the_launch(fleet):
    team = SpreadTeam(fleet, coder=SLOW)
    fleet.node.places["local/tester"] = "local/other"  # its container runs something else
    team.deploy()
    told = team.log()
    assert "error[E-RUN-045]" in told and "member 'tester' (local/tester@0.1.0)" in told
    eventually(lambda: not team.peers(), 40 * SLOWER, f"the rest is gone: {fleet.logs()}")
    assert "task_start" not in events(fleet.home_of(fleet.pods_of("mur-lead")[0]))


def test_formation_on_a_fleet_is_rendered_as_its_entry_alone(fleet):
    team = SpreadTeam(fleet)
    found = team.render("--deadline", "900", "--task", "go")
    job = found["Job"]
    notes = job["metadata"]["annotations"]
    assert yaml.safe_load(notes["murmur.dev/roster"]) == team.roster and notes["murmur.dev/deadline"] == "900"
    [container] = job["spec"]["template"]["spec"]["containers"]
    arguments = container["args"]
    assert arguments[arguments.index("--capsule-sha256") + 1] == notes["member.murmur.dev/lead"].split("sha256:")[1]
    assert "--fleet-member" in arguments and "--deadline" not in arguments and job["spec"]["activeDeadlineSeconds"] == 960
    assert set(found["ConfigMap"]["data"]) == {"config.yaml"}
    waiting = team.render()["Job"]
    assert "activeDeadlineSeconds" not in waiting["spec"], "without a task it waits for some"
    render = ("deploy", "render", "--to", "kubernetes", "--image", "murmur:1")
    assert "--roost-url" in team.project.mur(*render, "--roster", "--placement", "fleet").failed("E-DEP-005").stderr
    assert "--placement fleet" in team.project.mur(*render, "--roster", "--task", "go", "--roost-url", "https://r").failed("E-DEP-005").stderr
