# SPDX-License-Identifier: Apache-2.0
#
# A records store at s3:// (docs/spec/records.md 15): requests are signed, the key goes nowhere, and what is refused is told with what
# helps.

import json

import pytest

from tests.support.s3 import KEY, KEY_ID, S3, Tokens

KEYS = {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": KEY}
TOKEN = "session/token+with=odd//chars"


@pytest.fixture
def s3():
    one = S3()
    yield one
    one.close()


def writer(lab, name="writer"):
    return lab.agent(name, steps=[{"text": "a long answer"}], trace={"capture": "content"})


def folder_of(lab, keys, name="keys"):
    folder = lab.directory / name
    folder.mkdir()
    for key, value in keys.items():
        (folder / key).write_text(value + "\n")
    return folder


def configure(lab, credentials):
    (lab.murmur_home / "config.yaml").write_text(json.dumps({"credentials": credentials}))
    (lab.murmur_home / "config.yaml").chmod(0o600)


def ship(lab, url, *arguments, env=None, name="writer"):
    return writer(lab, name).mur("run", "--task", "write", "--records-store", url, *arguments, env=env).ok()


def everything(lab):
    return b"".join(path.read_bytes() for path in lab.murmur_home.rglob("*") if path.is_file())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_fleet_s3_all_of_a_session_goes_there_and_comes_home(lab, s3, host):
    url = s3.url("/a prefix/~x%y", host=host, more="&region=us-east-1")
    keys = folder_of(lab, KEYS)
    result = ship(lab, url, "--secrets-dir", keys)
    assert s3.refused == [] and "W-RUN-011" not in result.stderr
    assert s3.hosts == {f"{host}:{s3.port}"}
    complete = json.loads(s3.objects[f"a prefix/~x%y/{result.session_id}/complete.json"])
    assert complete["status"] == "ok"
    home = lab.directory / "elsewhere"
    home.mkdir()
    said = lab.mur("trace", "fetch", url, result.session_id, "--secrets-dir", keys, cwd=home, env={"HOME": str(home)}).ok().stdout
    assert "ended ok" in said
    found = next((home / ".murmur/records").rglob(result.session_id))
    assert (found / "trace.jsonl").read_bytes() == (lab.session(result).records / "trace.jsonl").read_bytes()
    assert KEY.encode() not in everything(lab) + b"".join(s3.objects.values()) + (result.stdout + result.stderr).encode()


def test_fleet_s3_the_keys_come_from_files_the_configuration_or_the_environment_all_from_one_place(lab, s3):
    assert f"{ship(lab, s3.url(), env=KEYS).session_id}/complete.json" in s3.objects
    # An entry of the configuration wins over the environment, a file over both.
    configure(lab, KEYS)
    wrong = {name: "wrong" for name in KEYS}
    assert f"{ship(lab, s3.url(), env=wrong, name='second').session_id}/complete.json" in s3.objects
    configure(lab, wrong)
    files = folder_of(lab, KEYS)
    # The token of the environment's login is of another one.
    result = ship(lab, s3.url(), "--secrets-dir", files, env={**wrong, "AWS_SESSION_TOKEN": "of another login"}, name="third")
    assert f"{result.session_id}/complete.json" in s3.objects and s3.refused == []


def profiles(path, **of):
    path.parent.mkdir(exist_ok=True)
    path.write_text("# kept by hand\n" + "".join(f"\n[{name}]\n" + "".join(f"{key} = {value}\n" for key, value in values.items()) for name, values in of.items()))
    return path


def test_fleet_s3_a_profile_of_the_credentials_file_is_the_last_place(lab, s3):
    ours, wrong = {name.lower(): value for name, value in KEYS.items()}, {name.lower(): "wrong" for name in KEYS}
    profiles(lab.home / ".aws/credentials", default=ours, other=wrong)
    assert f"{ship(lab, s3.url()).session_id}/complete.json" in s3.objects and s3.refused == []
    elsewhere = profiles(lab.directory / "keys.ini", default=wrong, team=ours)
    env = {"AWS_SHARED_CREDENTIALS_FILE": str(elsewhere), "AWS_PROFILE": "team"}
    assert f"{ship(lab, s3.url(), env=env, name='second').session_id}/complete.json" in s3.objects and s3.refused == []
    said = ship(lab, s3.url(), env={**env, "AWS_PROFILE": "nobody"}, name="third").stderr
    assert "they are nowhere" in said and f"profile nobody of {elsewhere}" in said


def test_fleet_s3_a_role_is_taken_once_for_the_token_of_a_pod(lab, s3):
    """As a cluster of Amazon's gives one to a service account: a file and two names, no key anywhere."""
    s3.token = TOKEN
    given = lab.directory / "token"
    given.write_text(Tokens.TOKEN + "\n")
    tokens = Tokens(TOKEN)
    env = {"AWS_ROLE_ARN": tokens.ROLE, "AWS_WEB_IDENTITY_TOKEN_FILE": str(given), "AWS_ENDPOINT_URL_STS": tokens.url}
    try:
        result = ship(lab, s3.url(), env=env)
        assert f"{result.session_id}/complete.json" in s3.objects and s3.refused == [] and len(tokens.asked) == 1
        assert Tokens.TOKEN.encode() not in everything(lab) + b"".join(s3.objects.values()) + (result.stdout + result.stderr).encode()
        # Keys that are given win; what is not believed is said with what helps.
        s3.token = None
        assert f"{ship(lab, s3.url(), env={**env, **KEYS}, name='second').session_id}/complete.json" in s3.objects and len(tokens.asked) == 1
        given.write_text("another")
        said = ship(lab, s3.url(), env=env, name="third").stderr
        assert f"127.0.0.1 does not give the role {tokens.ROLE}: 400 InvalidIdentityToken" in said and "trust policy" in said
        said = ship(lab, s3.url(), env={**env, "AWS_ENDPOINT_URL_STS": "http://sts.example"}, name="fourth").stderr
        assert "is sent over https alone" in said
    finally:
        tokens.close()


def test_fleet_s3_keys_of_a_role_that_end_soon_are_taken_anew(lab, s3):
    s3.token = TOKEN
    given = lab.directory / "token"
    given.write_text(Tokens.TOKEN)
    tokens = Tokens(TOKEN, life_s=60)
    try:
        result = ship(lab, s3.url(), env={"AWS_ROLE_ARN": tokens.ROLE, "AWS_WEB_IDENTITY_TOKEN_FILE": str(given), "AWS_ENDPOINT_URL_STS": tokens.url})
        assert f"{result.session_id}/complete.json" in s3.objects and len(tokens.asked) > 1
    finally:
        tokens.close()


def test_fleet_s3_a_session_token_is_signed_and_goes_over_https_or_to_this_machine_alone(lab, s3):
    s3.token = TOKEN
    files = folder_of(lab, {**KEYS, "AWS_SESSION_TOKEN": TOKEN})
    result = ship(lab, s3.url(), "--secrets-dir", files)
    assert s3.refused == [] and f"{result.session_id}/complete.json" in s3.objects
    assert TOKEN not in result.stdout + result.stderr and TOKEN.encode() not in everything(lab)
    refused = lab.mur("trace", "fetch", "s3://x/y?endpoint=http://minio.example.com:9000", result.session_id, "--secrets-dir", files)
    assert "AWS_SESSION_TOKEN is sent over https alone" in refused.failed("E-IO-003").stderr and TOKEN not in refused.stderr


REFUSALS = {
    "an unknown key": ({"AWS_ACCESS_KEY_ID": "AKIDOTHER", "AWS_SECRET_ACCESS_KEY": KEY}, {}, {}, "AWS_ACCESS_KEY_ID is none of"),
    "another secret": ({"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": "other"}, {}, {}, "AWS_SECRET_ACCESS_KEY is not the one"),
    "no secret": ({"AWS_ACCESS_KEY_ID": KEY_ID}, {}, {}, "the second is missing where the first is"),
    "no keys": ({}, {}, {}, "they are nowhere"),
    "no bucket": (KEYS, {"bucket": "elsewhere"}, {}, "make the bucket first"),
    "another region": (KEYS, {"more": "&region=eu-west-1"}, {}, "its region is us-east-1"),
    "an old token": ({**KEYS, "AWS_SESSION_TOKEN": "old"}, {}, {}, "has expired"),
    "a clock behind": (KEYS, {}, {"ahead_s": 3600}, "seconds behind the one of"),
    "a clock ahead": (KEYS, {}, {"ahead_s": -7200}, "seconds ahead of the one of"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_fleet_s3_a_refusal_says_what_helps(lab, s3, name):
    keys, where, server, words = REFUSALS[name]
    for attribute, value in server.items():
        setattr(s3, attribute, value)
    refused = lab.mur("trace", "fetch", s3.url(**where), "ses_" + "0" * 32, "--secrets-dir", folder_of(lab, keys)).failed("E-IO-003")
    assert words in refused.stderr and KEY not in refused.stderr and KEY_ID not in refused.stderr, refused.stderr
    if "clock" in name:
        seconds = int(refused.stderr.split(" seconds ")[0].rsplit(" ", 1)[1])
        assert abs(seconds - abs(s3.ahead_s)) < 60


def test_fleet_s3_a_session_warns_once_and_says_the_same(lab, s3):
    result = ship(lab, s3.url(), env={**KEYS, "AWS_SECRET_ACCESS_KEY": "other"})
    assert result.stderr.count("warning[W-RUN-011]") == 1 and "AWS_SECRET_ACCESS_KEY is not the one" in result.stderr


def test_fleet_s3_nothing_there_is_no_fault(lab, s3):
    lab.mur("trace", "fetch", s3.url(), "ses_" + "0" * 32, env=KEYS).failed("E-TRC-002")


@pytest.mark.parametrize("url, words", [
    ("s3://", "names no bucket"), ("s3:///prefix", "names no bucket"), ("s3://a b/x", "names no bucket"),
    ("s3://bucket", "has no region"), ("s3://bucket?region=eu/../x", "a region that is none"), ("s3://bucket?style=other&region=x", "another style"),
    ("s3://bucket?endpoint=minio:9000", "no plain address"), ("s3://bucket?endpoint=https://u:p@host", "no plain address"),
    ("s3://bucket?key=AKID", "a word after")])
def test_fleet_s3_an_address_that_is_none_is_refused_before_anything(lab, url, words):
    refused = writer(lab).mur("run", "--task", "write", "--records-store", url, env=KEYS).failed("E-IO-003")
    assert words in refused.stderr and "s3://BUCKET/PREFIX?region=" in refused.stderr


def test_fleet_s3_a_deployment_mounts_the_keys_and_names_none(lab):
    text = writer(lab).mur("deploy", "render", "--to", "kubernetes", "--image", "i@sha256:" + "a" * 64, "--records-store",
                           "s3://team/x?region=eu-central-1", env=KEYS).ok().stdout
    assert "port: 9000" not in text
    other = writer(lab, "other").mur("deploy", "render", "--to", "kubernetes", "--image", "i@sha256:" + "a" * 64, "--records-store",
                                     "s3://team/x?endpoint=http://minio.team.svc:9000&region=r").ok().stdout
    assert "port: 9000" in other, "the pod may speak to its store"
    assert "key: AWS_ACCESS_KEY_ID" in text and "key: AWS_SECRET_ACCESS_KEY" in text and KEY not in text and KEY_ID not in text
