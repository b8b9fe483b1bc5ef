# SPDX-License-Identifier: Apache-2.0
#
# `mur deploy check` and `apply` as whoever deploys meets them: what is handed to kubectl and in which order, what stands in the way
# told in one sentence with its remedy, and a Job that is there. The kubectl here says what the real one said to each (the same cases
# on a real API server: tests/real/test_fleet_operator.py).

import json
import stat

import pytest
import yaml

from tests.integration.test_deploy_render import IMAGE, render, writer
from tests.support.control_plane import RULES

FAKE = """#!/bin/sh
here=$(dirname "$0")
printf '%s\\n' "$*" >>"$here/said"
case " $* " in
*" get job "*) [ ! -f "$here/job.json" ] || cat "$here/job.json"; [ ! -f "$here/job.complaint" ] || { cat "$here/job.complaint" >&2; exit 1; } ;;
*" get secret "*) [ ! -f "$here/secret" ] || cat "$here/secret" ;;
*" delete "*) rm -f "$here/job.json" "$here/complaint" ;;
*" apply "*) cat >"$here/objects"; [ ! -f "$here/complaint" ] || { cat "$here/complaint" >&2; exit 1; }; echo "job.batch/mur-writer applied" ;;
esac
"""
ALL = "--namespace=default --request-timeout=30s"
APPLY = f"{ALL} apply --server-side --field-manager=murmur -f -"


class Operator:
    """Somebody with a capsule and a kubectl of these words."""

    def __init__(self, lab):
        self.project, self.folder = writer(lab), lab.directory / "programs"
        self.folder.mkdir()
        fake = self.folder / "kubectl"
        fake.write_text(FAKE)
        fake.chmod(fake.stat().st_mode | stat.S_IXUSR)

    def deploy(self, *words, path=None):
        return self.project.mur("deploy", *words, "--to", "kubernetes", "--image", IMAGE,
                                env={"PATH": path or f"{self.folder}:/usr/bin:/bin"})

    def finds(self, name, text):
        (self.folder / name).write_text(text)

    def said(self):
        """What kubectl was asked since the last time."""
        path = self.folder / "said"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines

    def job(self, *arguments, ended=None):
        """The Job as a render with these arguments made it."""
        text = render(self.project, "--to", "kubernetes", *arguments).ok().stdout
        digest = text.split("murmur.dev/rendered: ")[1].split()[0].strip('"')
        conditions = [{"type": ended, "status": "True"}] if ended else []
        self.finds("job.json", json.dumps({"metadata": {"annotations": {"murmur.dev/rendered": digest}}, "status": {"conditions": conditions}}))


@pytest.fixture
def operator(lab):
    return Operator(lab)


def test_deploy_apply_hands_the_objects_to_kubectl_once_the_server_would_take_all(operator):
    operator.deploy("check").ok()
    assert [line for line in operator.said() if "apply" in line] == [f"{APPLY} --dry-run=server"]
    applied = operator.deploy("apply", "--kubeconfig", "/tmp/some config").ok()
    asked = operator.said()
    assert all(line.startswith("--kubeconfig=/tmp/some config ") for line in asked)
    assert [line.split("config ", 1)[1] for line in asked if "apply" in line] == [f"{APPLY} --dry-run=server", APPLY]
    assert "mur-writer in namespace default: mur ps --fleet --namespace default" in applied.stdout
    text = (operator.folder / "objects").read_text()
    assert text == render(operator.project, "--to", "kubernetes").ok().stdout
    assert text.rindex("kind: ServiceAccount") < text.index("kind: Job"), "a pod finds its account"
    operator.finds("complaint", 'configmaps "mur-writer" is forbidden: User "x" cannot patch resource "configmaps"')
    operator.deploy("apply").failed("E-DEP-006")
    assert [line for line in operator.said() if "apply" in line] == [f"{APPLY} --dry-run=server"], "nothing half-applied"
    assert "install kubectl" in operator.deploy("apply", path="/nowhere").failed("E-DEP-006").stderr
    operator.project.mur("deploy", "apply", "--to", "systemd").failed("E-DEP-005")


COMPLAINTS = {
    "namespace": ('Error from server (NotFound): namespaces "default" not found\n' * 4, "E-DEP-006", "there is no namespace default", "create namespace"),
    "rights": ('Error from server (Forbidden): configmaps "mur-writer" is forbidden: User "x" cannot patch resource "configmaps" in API group ""',
               "E-DEP-006", "this login may not do that in namespace default", "networkpolicies"),
    "no_kubeconfig": ("The connection to the server localhost:8080 was refused - did you specify the right host or port?", "E-DEP-006",
                      "found no kubeconfig", "--kubeconfig"),
    "no_file": ("error: stat /tmp/none: no such file or directory", "E-DEP-006", "a file of the login is not there", "KUBECONFIG"),
    "no_context": ("Error in configuration: context was not found for specified context: y", "E-DEP-006", "a context it does not have", "get-contexts"),
    "broken": ('error: error loading config file "/tmp/bad": yaml: line 1: did not find expected node content', "E-DEP-006", "cannot be read", "YAML"),
    "unreachable": ('E1201 1 memcache.go:265] "Unhandled Error" err="dial tcp 10.0.0.1:6443: connect: connection refused"\n'
                    "The connection to the server 10.0.0.1:6443 was refused - did you specify the right host or port?", "E-DEP-006",
                    "the API server cannot be reached", "cluster-info"),
    "no_name": ('Unable to connect to the server: dial tcp: lookup api.example on 10.0.0.2:53: no such host', "E-DEP-006", "its name is not known here", "VPN"),
    "silent": ("Unable to connect to the server: net/http: request canceled (Client.Timeout exceeded while awaiting headers)", "E-DEP-006",
               "did not answer in time", "VPN"),
    "certificate": ("Unable to connect to the server: tls: failed to verify certificate: x509: certificate signed by unknown authority", "E-DEP-006",
                    "certificate is not the one", "certificate-authority"),
    "expired": ("error: You must be logged in to the server (Unauthorized)", "E-DEP-006", "has expired", "kubectl create token"),
    "no_login_program": ('Unable to connect to the server: getting credentials: exec: executable gke-gcloud-auth-plugin not found', "E-DEP-006",
                         "the program that logs in is not installed", "kubeconfig"),
    "kind": ('error: resource mapping not found for name: "mur-writer" namespace: "" from "STDIN": no matches for kind "HTTPRoute" in version "v1"',
             "E-DEP-006", "does not know one of the kinds", "Gateway API"),
    "quota": ('jobs.batch "mur-writer" is forbidden: exceeded quota: sessions, requested: count/jobs.batch=1, used: count/jobs.batch=1', "E-DEP-006",
              "a ResourceQuota of namespace default allows no more", "describe resourcequota"),
    "race": ("The Job \"mur-writer\" is invalid: spec.template: Invalid value: " + "{\"Volumes\":null}" * 200 + ": field is immutable", "E-DEP-007",
             "made of something else", "--replace"),
    "other_hands": ('error: Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using v1: .data.config.yaml', "E-DEP-007",
                    "somebody else has set the same fields", "--show-managed-fields"),
    "unknown": ("error: the moon is full", "E-DEP-006", "kubectl says why", ""),
}


@pytest.mark.parametrize("name", COMPLAINTS)
def test_deploy_what_stands_in_the_way_is_told_with_its_remedy(operator, name):
    complaint, code, message, remedy = COMPLAINTS[name]
    operator.finds("complaint", complaint)
    told = operator.deploy("apply").failed(code).stderr
    assert message in told and remedy in told, told
    # kubectl's own words stand before it: each line once, its log of tries not at all, and never a whole pod.
    lines = [line for line in told.splitlines() if not line.startswith(("error[", "  hint:"))]
    assert len(lines) == len(set(lines)) and max(map(len, lines)) < 500 and "Unhandled Error" not in told, told


def test_deploy_a_job_that_is_there_is_never_started_twice_nor_replaced_unasked(operator):
    operator.job()
    again = operator.deploy("apply").ok()
    assert "is there already and has not ended; nothing was changed" in again.stdout
    assert [line for line in operator.said() if "apply" in line or "delete" in line] == []
    # The capsule was changed meanwhile.
    other = operator.deploy("apply", "--task", "another").failed("E-DEP-007").stderr
    assert "has not ended, and is made of something else" in other and "--replace" in other
    operator.job(ended="Complete")
    assert "has ended, and would not run again" in operator.deploy("apply").failed("E-DEP-007").stderr
    assert "has ended" in operator.deploy("check").failed("E-DEP-007").stderr
    assert [line for line in operator.said() if "apply" in line or "delete" in line] == []
    operator.finds("complaint", 'The Job "mur-writer" is invalid: spec.template: Invalid value: {}: field is immutable')
    replaced = operator.deploy("apply", "--replace", "--task", "another").ok()
    assert "immutable" not in replaced.stderr
    assert [line.removeprefix(ALL + " ").split()[0] for line in operator.said() if "apply" in line or "delete" in line] == ["apply", "delete", "apply"]


def test_deploy_replace_takes_nothing_away_when_the_server_would_refuse_what_comes(operator):
    operator.job()
    operator.finds("complaint", 'Error from server (Forbidden): configmaps "mur-writer" is forbidden: User "x" cannot patch resource "configmaps"\n'
                   'The Job "mur-writer" is invalid: spec.template: Invalid value: {}: field is immutable')
    assert "this login may not" in operator.deploy("apply", "--replace", "--task", "another").failed("E-DEP-006").stderr
    assert not any("delete" in line for line in operator.said())


def test_deploy_who_may_not_look_may_still_apply_and_missing_keys_are_told(operator):
    operator.finds("job.complaint", 'Error from server (Forbidden): jobs.batch "mur-writer" is forbidden: User "x" cannot get resource "jobs"\n')
    applied = operator.deploy("apply").ok()
    assert "Forbidden" not in applied.stderr
    assert "kubectl create secret generic mur-writer --namespace default --from-file=WRITER_KEY=FILE" in applied.stderr
    operator.finds("secret", "OTHER\nWRITER_KEY\n")
    assert "waits for keys" not in operator.deploy("check").ok().stderr


def test_deploy_the_rights_of_what_is_printed_are_those_the_tests_give_the_referee(lab):
    """And sessions have none."""
    printed = lab.mur("deploy", "referee", "--image", "i@sha256:" + "a" * 64, "local/lead").ok().stdout
    found = list(yaml.safe_load_all(printed))
    assert [one["rules"] for one in found if one["kind"] == "Role"] == [RULES]
    bound = {subject["name"] for one in found for subject in one.get("subjects", [])}
    assert bound == {"mur-roost"} and {one["metadata"]["name"] for one in found if one["kind"] == "ServiceAccount"} == {"mur-roost", "murmur-session"}
