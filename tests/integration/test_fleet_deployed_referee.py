# SPDX-License-Identifier: Apache-2.0
#
# The referee as it is deployed (docs/fleet.md): `mur deploy referee` prints it, mur-roost ends TLS itself, and an address of a records
# store that no pod could use is refused at its start.

import http.client
import json
import os
import socket
import ssl
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.integration.test_deploy_render import IMAGE, render, writer
from tests.support.fleet import Fleet
from tests.support.polling import eventually
from tests.support.roost import ROOST

GOLDEN = Path(__file__).parents[1] / "golden/deploy/referee.txt"


def make_certificate(folder, name="roost"):
    folder.mkdir(exist_ok=True)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "made.key", "-out", "made.crt", "-days", "2",
                    "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1"], cwd=folder, check=True, capture_output=True)
    (folder / "made.key").replace(folder / "tls.key")
    (folder / "made.crt").replace(folder / "tls.crt")
    return folder


def referee(lab, *arguments):
    return lab.mur("deploy", "referee", "--namespace", "tenant", *arguments)


def test_fleet_1_2_4_the_referee_has_the_golden_bytes_and_no_secret(lab):
    words = ("--image", IMAGE, "--queue", "nightly", "--ca", "team-ca", "--records-store", "s3://team/x?region=r", "--records-role", "arn:aws:iam::1:role/r",
             "--max-live-capsules", "200", "local/lead", "local/other")
    said = referee(lab, *words).ok()
    if os.environ.get("MURMUR_GOLDEN") == "write":
        GOLDEN.write_text(said.stdout)
    assert said.stdout == GOLDEN.read_text()
    assert "kubectl create secret generic mur-roost --namespace tenant" in said.stderr
    objects = list(yaml.safe_load_all(said.stdout))
    assert "Secret" not in {one["kind"] for one in objects}
    assert objects[-1]["kind"] == "Deployment" and "https://mur-roost.tenant.svc" in said.stdout
    # A file an object, though two are accounts.
    out = lab.directory / "objects"
    paths = referee(lab, *words, "--out", out).ok().stdout.split()
    assert len(paths) == len(set(paths)) == len(objects) == len(list(out.iterdir()))


@pytest.mark.parametrize("words, code, said", [
    (("--image", IMAGE, "--roost-url", "http://roost", "local/lead"), "E-DEP-005", "is not https"),
    (("--image", IMAGE, "--records-store", "s3://team/x", "local/lead"), "E-DEP-005", "neither region nor server"),
    (("--image", IMAGE, "--records-store", "team/x", "local/lead"), "E-DEP-005", "--records-store"),
    (("--image", IMAGE, "--records-role", "arn", "local/lead"), "E-DEP-005", "--records-role is of"),
    (("--image", IMAGE, "--max-depth", "two", "local/lead"), "E-DEP-005", "--max-depth: two"),
])
def test_fleet_3_a_referee_that_could_not_work_is_refused_by_name(lab, words, code, said):
    assert said in referee(lab, *words).failed(code).stderr


def test_fleet_3_an_authority_of_the_clusters_own_is_mounted_and_a_role_takes_no_keys(lab):
    text = render(writer(lab), "--to", "kubernetes", "--ca", "team-ca", "--records-store", "s3://team/x?region=r", "--records-role", "arn:r").ok().stdout
    by_kind = {one["kind"]: one for one in yaml.safe_load_all(text)}
    pod = by_kind["Job"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert {"name": "MURMUR_CA_FILE", "value": "/var/run/secrets/murmur.dev/ca/ca.crt"} in container["env"]
    assert {"name": "ca", "configMap": {"name": "team-ca", "items": [{"key": "ca.crt", "path": "ca.crt"}]}} in pod["volumes"]
    assert "AWS_" not in text and by_kind["ServiceAccount"]["metadata"]["annotations"] == {"eks.amazonaws.com/role-arn": "arn:r"}
    with_keys = render(writer(lab, "other"), "--to", "kubernetes", "--records-store", "s3://team/x?region=r").ok().stdout
    [keys] = [one for one in yaml.safe_load_all(with_keys) if one["kind"] == "Job"][0]["spec"]["template"]["spec"]["volumes"][-1:]
    login, token = [one["secret"] for one in keys["projected"]["sources"]]
    assert "optional" not in login and token["optional"] and [item["key"] for item in token["items"]] == ["AWS_SESSION_TOKEN"]
    assert "take --to kubernetes" in render(writer(lab, "third"), "--to", "nomad", "--ca", "x").failed("E-DEP-005").stderr


def port_of(fleet):
    return int(eventually(lambda: next((line.split("TLS on port ")[1].split()[0] for line in fleet.roost.lines if "TLS on port" in line), None), 20,
                          lambda: fleet.roost.lines))


def over_tls(port, authority, path="/health", body=None, **headers):
    wire = http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=ssl.create_default_context(cafile=str(authority)))
    try:
        wire.request("POST" if body else "GET", path, body and json.dumps(body),
                     {"content-type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}})
        answer = wire.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        wire.close()


def test_fleet_12_over_tls_it_answers_who_trusts_its_certificate_and_nobody_is_a_root_without_a_pod(lab):
    folder = make_certificate(lab.directory / "tls")
    with Fleet(lab, "--tls", folder, "--tls-port", "0") as fleet:
        fleet.publish_parent({"text": "x"})
        port, first = port_of(fleet), (folder / "tls.crt").read_bytes()
        (lab.directory / "first.crt").write_bytes(first)
        assert over_tls(port, lab.directory / "first.crt") == (200, {})
        who = {"session_id": "ses_0198c0000000700080000000000000aa", "name": "local/parent", "version": "0.1.0"}
        status, refused = over_tls(port, lab.directory / "first.crt", "/register", who)
        assert status == 403 and "credential" not in refused
        with pytest.raises((ssl.SSLError, OSError)):
            ssl.create_default_context().wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="127.0.0.1")
        # One that was replaced holds from the next connection on; what cannot be used changes nothing.
        make_certificate(folder, "renewed")
        assert over_tls(port, folder / "tls.crt") == (200, {})
        kept = lab.directory / "second.crt"
        kept.write_bytes((folder / "tls.crt").read_bytes())
        (folder / "tls.crt").write_text("no certificate")
        assert over_tls(port, kept) == (200, {})
        eventually(lambda: any("--tls: cannot use" in line for line in fleet.roost.lines), 20, lambda: fleet.roost.lines)


@pytest.mark.parametrize("store, said", [
    ("s3://team/records", "says neither region nor server"),
    ("ftp://records/team", "records-store"),
    ("file:///mnt/records", "is a folder of one machine"),
    ("https://records/team?x=1", "holds more than scheme, host, port and path"),
])
def test_fleet_29_a_store_no_pod_could_use_is_refused_before_anything_starts(lab, store, said):
    refused = subprocess.run([ROOST, "--backend", "kubernetes", "--image", "i", "--roost-url", "https://roost", "--records-store", store],
                             env=lab.environment(), capture_output=True, text=True, timeout=60)
    assert refused.returncode == 1 and said in refused.stderr and "hint: " in refused.stderr


def test_fleet_29_a_store_nobody_answers_at_is_a_warning(lab):
    with Fleet(lab, "--records-store", "http://127.0.0.1:1/team") as fleet:
        eventually(lambda: any("nobody answers from here" in line for line in fleet.roost.lines) and
                   any("that address is the pod itself" in line for line in fleet.roost.lines), 20, lambda: fleet.roost.lines)
