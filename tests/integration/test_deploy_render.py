# SPDX-License-Identifier: Apache-2.0
#
# `mur deploy`: the same input gives the same bytes, each target's are those of tests/golden/deploy, what a target cannot keep is
# refused by name, and no key is in any of it. MURMUR_GOLDEN=write writes the golden files anew.

import os
import re
from pathlib import Path

import pytest
import yaml

from tests.support.formation import BEARER, CALLS, SERVES, Team

GOLDEN = Path(__file__).parents[1] / "golden/deploy"
IMAGE = "registry.example.com/agents/writer@sha256:" + "a" * 64
KEY = "sk-never-in-an-object"


def writer(lab, name="writer", lifecycle=None, network=None, containment="scoped", key="${WRITER_KEY}"):
    manifest = {
        "name": name, "version": "1.2.0",
        "artifacts": [{"name": "std/driver-anthropic", "version": "0.1.0", "runtime": "driver",
                       "gateway": {"endpoint": "https://api.example.com", "api_key": key}}],
        "inference": {"model": "m", "max_tokens": 1024, "driver": {"artifact": "std/driver-anthropic"}},
        "capabilities": {"containment": containment, "shell": {"allow": ["bash"]}},
        "lifecycle": lifecycle or {}, **({"network": network} if network else {})}
    return lab.project(name, {key: value for key, value in manifest.items() if value})


def serving(lab, **more):
    return writer(lab, lifecycle={"after_task": "sleep"}, network={"internal_port": 8080}, **more)


SHAPES = [
    ("kubernetes-job", False, ("--to", "kubernetes", "--task", "Write: \"a\" & 100%\nb", "--namespace", "team")),
    ("kubernetes-route", True, ("--to", "kubernetes", "--door", "route", "--public-url", "https://writer.example.com/")),
    ("kubernetes-fleet", False, ("--to", "kubernetes", "--roost-url", "https://roost.team.svc", "--namespace", "team", "--task", "go")),
    ("kueue", False, ("--to", "kueue", "--queue", "nightly")),
    ("systemd", True, ("--to", "systemd",)),
    ("systemd-job", False, ("--to", "systemd", "--task", "Write: \"a\" & 100% $HOME")),
    ("quadlet", True, ("--to", "quadlet", "--door", "service")),
    ("sandbox", True, ("--to", "sandbox", "--door", "service")),
    ("kagent", True, ("--to", "kagent", "--door", "service")),
    ("nomad", False, ("--to", "nomad",)),
]


def render(project, *arguments, **how):
    return project.mur("deploy", "render", "--image", IMAGE, *arguments, **how)


@pytest.mark.parametrize("name, serves, arguments", SHAPES, ids=[shape[0] for shape in SHAPES])
def test_fleet_1_2_4_each_target_has_the_golden_bytes_and_no_key(lab, name, serves, arguments):
    project = (serving if serves else writer)(lab)
    text = render(project, *arguments, env={"WRITER_KEY": KEY}).ok().stdout
    assert render(project, *arguments, env={"TZ": "Asia/Tokyo", "LC_ALL": "C"}).ok().stdout == text
    assert KEY not in text and "WRITER_KEY" in text or name in ("kagent", "nomad"), "a key is named, its value nowhere"
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("MURMUR_GOLDEN") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


def objects(text):
    return {one["kind"]: one for one in yaml.safe_load_all(text)}


def test_fleet_5_the_default_render_asks_for_no_more_than_restricted(lab):
    job = objects(render(writer(lab), "--to", "kubernetes").ok().stdout)["Job"]
    spec = job["spec"]
    assert (spec["backoffLimit"], spec["completions"], spec["parallelism"], spec["podReplacementPolicy"]) == (0, 1, 1, "Failed")
    pod = spec["template"]["spec"]
    assert pod["restartPolicy"] == "Never" and pod["automountServiceAccountToken"] is False and pod["enableServiceLinks"] is False
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    container, = pod["containers"]
    assert container["name"] == "mur" and container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["resources"]["requests"]["memory"] == container["resources"]["limits"]["memory"]
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod) and all("hostPath" not in v for v in pod["volumes"])
    queued = objects(render(writer(lab, "queued"), "--to", "kueue").ok().stdout)["Job"]
    assert queued["spec"]["suspend"] and queued["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "murmur"


@pytest.mark.parametrize("target", ["kubernetes", "kueue", "quadlet", "sandbox", "kagent", "nomad"])
def test_fleet_3_a_floor_the_target_cannot_keep_is_refused_by_name(lab, target):
    project = writer(lab, containment="sealed")
    refused = render(project, "--to", target).failed("E-DEP-001")
    assert target in refused.stderr and "'sealed'" in refused.stderr and refused.stdout == ""
    assert "ExecStart" in render(project, "--to", "systemd").ok().stdout


def test_fleet_3_what_else_is_refused(lab):
    project = writer(lab)
    assert "--image" in project.mur("deploy", "render", "--to", "kubernetes").failed("E-DEP-002").stderr
    assert "internal_port" in render(project, "--to", "kubernetes", "--door", "service").failed("E-DEP-003").stderr
    assert "--public-url" in render(serving(lab, name="serving"), "--to", "kubernetes", "--door", "route").failed("E-DEP-003").stderr
    literal = writer(lab, "literal", key=KEY)
    refused = render(literal, "--to", "kubernetes").failed("E-DEP-004")
    assert KEY not in refused.stderr + refused.stdout
    assert "kubernetes, kueue" in render(project, "--to", "swarm").failed("E-DEP-005").stderr


def test_fleet_1_with_out_each_object_is_a_file(lab):
    project = serving(lab)
    written = render(project, "--to", "kubernetes", "--door", "service", "--out", "objects").ok().stdout.split()
    assert written == [f"objects/{kind}.yaml" for kind in ("configmap", "networkpolicy", "service", "serviceaccount", "deployment")]
    assert all((project / path).is_file() for path in written)


def test_fleet_records_a_deployment_names_the_store_and_where_its_token_lies(lab):
    pod = objects(render(writer(lab), "--to", "kubernetes", "--records-store", "https://records.example.com/team").ok().stdout)["Job"]["spec"]["template"]["spec"]
    arguments = pod["containers"][0]["args"]
    assert arguments[arguments.index("--records-store") + 1] == "https://records.example.com/team"
    keys, = [volume["secret"] for volume in pod["volumes"] if volume["name"] == "keys"]
    assert [item["key"] for item in keys["items"]] == ["MUR_RECORDS_TOKEN", "WRITER_KEY"]


def test_deploy_a_session_of_a_fleet_is_a_job_with_a_door_and_a_token_for_the_referee_alone(lab):
    """Whatever it does after its task: a referee knows Jobs, and registers each session once."""
    found = objects(render(serving(lab), "--to", "kueue", "--roost-url", "https://roost.team.svc", "--door", "service").ok().stdout)
    job, policy = found["Job"], found["NetworkPolicy"]
    pod = job["spec"]["template"]["spec"]
    container, = pod["containers"]
    arguments = container["args"]
    assert arguments[arguments.index("--fleet-token") + 1] == "/var/run/secrets/murmur/token" and "--port" not in arguments
    assert {"name": "MURMUR_ROOST_URL", "value": "https://roost.team.svc"} in container["env"]
    token, = [volume["projected"]["sources"][0]["serviceAccountToken"] for volume in pod["volumes"] if volume["name"] == "token"]
    assert token["audience"] == "mur-roost" and pod["automountServiceAccountToken"] is False
    assert "activeDeadlineSeconds" not in job["spec"] and found["Service"]["spec"]["ports"][0]["port"] == 8080
    assert {"to": [{"podSelector": {"matchLabels": {"murmur.dev/fleet": "session"}}}]} in policy["spec"]["egress"]
    # A port nobody declared is the fleet's.
    arguments = objects(render(writer(lab, "plain"), "--to", "kubernetes", "--roost-url", "https://roost.team.svc").ok().stdout)["Job"][
        "spec"]["template"]["spec"]["containers"][0]["args"]
    assert arguments[arguments.index("--port") + 1] == "8080" and arguments[arguments.index("--bind") + 1] == "0.0.0.0"
    assert "--roost-url" in render(writer(lab, "small"), "--to", "nomad", "--roost-url", "https://roost").failed("E-DEP-005").stderr
    assert "--roost-url" in render(writer(lab, "wrong"), "--to", "kubernetes", "--roost-url", "roost").failed("E-DEP-005").stderr


# --- a formation in one pod --------------------------------------------------------------------------------------------------

KEYED = {"gateway": {"endpoint": "https://api.example.com", "api_key": "${CODER_KEY}"}}


def team(lab, floor="scoped", key=None):
    """lead, the entry, may call coder, whose driver has a key."""
    made = Team(lab, "lead", "coder", reachability=[{"from": "lead", "to": ["coder"]}])
    made.member("lead", [{"text": "lead says {{task}}"}], **BEARER, **CALLS)
    made.member("coder", [{"text": "coder answers"}], artifacts=[
        {"name": "std/driver-anthropic", "version": "0.1.0", "runtime": "driver", **(key or KEYED)}],
        inference={"model": "m", "driver": {"artifact": "std/driver-anthropic"}}, **BEARER, **SERVES, capabilities={"containment": floor})
    return made


ROSTERS = [("kubernetes-roster", ("--to", "kubernetes", "--namespace", "team", "--deadline", "900", "--records-store", "https://records.example.com/team")),
           ("kueue-roster", ("--to", "kueue", "--capsule-image", "registry.example.com/teams/one@sha256:" + "b" * 64))]


@pytest.mark.parametrize("name, arguments", ROSTERS, ids=[name for name, _arguments in ROSTERS])
def test_fleet_1_2_4_a_roster_is_one_pod_with_golden_bytes_and_no_key(lab, name, arguments):
    project = team(lab).project
    before = sorted(project.directory.iterdir())
    text = render(project, "--roster", "--task", "Build $it", *arguments, env={"CODER_KEY": KEY}).ok().stdout
    assert render(lab, "--roster", project.directory, "--task", "Build $it", *arguments, env={"TZ": "Asia/Tokyo"}).ok().stdout == text
    assert KEY not in text and "CODER_KEY" in text and sorted(project.directory.iterdir()) == before
    text = re.sub("(?!(.)\\1{63})[0-9a-f]{64}", "<digest>", text)  # what a compressor has a say in
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("MURMUR_GOLDEN") == "write":
        path.write_text(text)
    assert text == path.read_text()


def test_fleet_4_5_a_rosters_pod_has_its_members_by_digest_and_no_more_rights(lab):
    made = team(lab)
    found = objects(render(made.project, "--roster", "--to", "kubernetes", "--task", "go").ok().stdout)
    assert set(found) == {"ConfigMap", "Job", "NetworkPolicy", "ServiceAccount"}
    data, job = found["ConfigMap"]["data"], found["Job"]
    assert yaml.safe_load(data["roster.yaml"]) == made.roster
    pins = {one["name"]: one["sha256"]["any"] for one in yaml.safe_load(data["murmur.lock"])["artifacts"]}
    notes = job["metadata"]["annotations"]
    for name in ("lead", "coder"):
        assert notes[f"member.murmur.dev/{name}"] == f"local/{name}@0.1.0 sha256:{pins[f'local/{name}']}"
    pod = job["spec"]["template"]["spec"]
    container, = pod["containers"]
    assert container["args"][:3] == ["run", "--roster", "/formation"] and "--workdir" not in container["args"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]} and pod["securityContext"]["runAsNonRoot"]
    image, = [volume["image"] for volume in pod["volumes"] if "image" in volume]
    assert image["reference"] == IMAGE, "the store is a volume of the image that holds it"
    alone = objects(render(lab.agent("alone", steps=[]), "--to", "kubernetes").ok().stdout)["Job"]
    of_one = alone["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"]
    assert container["resources"]["limits"]["memory"] == f"{2 * int(of_one.removesuffix('Mi'))}Mi", "each member's share"


def test_fleet_3_what_is_refused_of_a_roster(lab):
    made = team(lab, floor="sealed")
    project = made.project
    def refused(code, *arguments):
        result = render(project, "--roster", *arguments).failed(code)
        assert result.stdout == ""
        return result.stderr
    told = refused("E-DEP-001", "--to", "kubernetes", "--task", "go")
    assert "member 'coder'" in told and "'sealed'" in told
    assert render(project, "--roster", "--to", "kubernetes", "--task", "go", "--seccomp-profile", "murmur.json").ok()
    assert "--task" in refused("E-DEP-003", "--to", "kubernetes")
    assert "doors" in refused("E-DEP-003", "--to", "kubernetes", "--task", "go", "--door", "service")
    for target in ("systemd", "quadlet", "sandbox", "kagent", "nomad"):
        assert target in refused("E-DEP-005", "--to", target, "--task", "go")
    assert "--roost-url" in render(project, "--roster", "--to", "kubernetes", "--task", "go", "--roost-url", "https://r").failed("E-DEP-005").stderr
    made.roster["reachability"] = [{"from": "coder", "to": ["lead"]}]
    made.write()
    refused("E-ROS-008", "--to", "kubernetes", "--task", "go")


def test_fleet_4_a_key_in_a_members_manifest_goes_nowhere(lab):
    made = team(lab, key={"gateway": {"endpoint": "https://api.example.com", "api_key": KEY}})
    told = render(made.project, "--roster", "--to", "kubernetes", "--task", "go").failed("E-DEP-004")
    assert "member 'coder'" in told.stderr and KEY not in told.stderr + told.stdout
