# SPDX-License-Identifier: Apache-2.0
#
# Records at a server of S3 that others wrote and that verifies signatures: versitygw, built from its Go module.

import socket
import subprocess

import pytest

from tests.support.go_programs import installed
from tests.support.lab import SLOWER
from tests.support.polling import eventually

KEYS = {"AWS_ACCESS_KEY_ID": "AKIDREAL", "AWS_SECRET_ACCESS_KEY": "sEcReT/wItH+oDd=cHaRs"}


def listens(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def port(tmp_path):
    program = installed("github.com/versity/versitygw/cmd/versitygw@v1.8.0")
    (tmp_path / "data/team").mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen([program, "--access", KEYS["AWS_ACCESS_KEY_ID"], "--secret", KEYS["AWS_SECRET_ACCESS_KEY"], "--port",
                                    f"127.0.0.1:{port}", "posix", tmp_path / "data"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        eventually(lambda: listens(port), 60 * SLOWER, "the server listens")
        yield port
    finally:
        process.terminate()
        process.wait()


@pytest.mark.parametrize("prefix", ["", "/records", "/a prefix/~x%25+é"])
def test_s3_records_go_there_and_come_home(lab, port, prefix):
    url = f"s3://team{prefix}?endpoint=http://127.0.0.1:{port}"
    project = lab.agent("writer", steps=[{"text": "a long answer"}], trace={"capture": "content"})
    result = project.mur("run", "--task", "write", "--records-store", url, env=KEYS).ok()
    assert "W-RUN-011" not in result.stderr
    home = lab.directory / "elsewhere"
    home.mkdir()
    said = lab.mur("trace", "fetch", url, result.session_id, cwd=home, env={**KEYS, "HOME": str(home)}).ok().stdout
    assert "ended ok" in said
    found = next((home / ".murmur/records").rglob(result.session_id))
    assert (found / "trace.jsonl").read_bytes() == (lab.session(result).records / "trace.jsonl").read_bytes()


def test_s3_what_is_refused_is_told(lab, port):
    def fetch(bucket="team", more="", **keys):
        return lab.mur("trace", "fetch", f"s3://{bucket}?endpoint=http://127.0.0.1:{port}{more}", "ses_" + "0" * 32, env={**KEYS, **keys})
    fetch().failed("E-TRC-002")
    assert "AWS_SECRET_ACCESS_KEY is not the one" in fetch(AWS_SECRET_ACCESS_KEY="another").failed("E-IO-003").stderr
    assert "its region is us-east-1" in fetch(more="&region=eu-west-1").failed("E-IO-003").stderr
    assert "make the bucket first" in fetch(bucket="elsewhere").failed("E-IO-003").stderr
    fetch(AWS_ACCESS_KEY_ID="nobody").failed("E-IO-003")
