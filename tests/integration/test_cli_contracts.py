# SPDX-License-Identifier: Apache-2.0
#
# Acceptance cases 1 to 5 of spec/cli.md: usage errors, refusing streams, the readiness line.

import json
import os
import subprocess

from tests.support.polling import tree_of

READINESS_KEYS = ["name", "pid", "records_dir", "session_id", "url", "version", "workdir"]


def test_cli_01_mur_alone_is_a_usage_error(lab):
    result = lab.mur().failed(exit_status=2)
    assert "Usage" in result.stderr or "usage" in result.stderr
    assert result.stdout == ""


def test_cli_01_a_reader_that_is_gone_is_no_failure(lab):
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        assert lab.mur("--version", stdout=write_end).code == 0
    finally:
        os.close(write_end)


def test_cli_01_a_full_device_is_a_failure_that_says_so(lab):
    with open("/dev/full", "wb", buffering=0) as full:
        result = lab.mur("--help", stdout=full).failed("E-IO-003")
    assert "No space left on device" in result.stderr


def test_cli_01_version_and_help_go_to_stdout(lab):
    version = lab.mur("--version").ok()
    assert version.stdout.startswith("murmur-cli ") and version.stdout.count("\n") == 1
    assert lab.mur("help", "run").ok().stdout == lab.mur("run", "--help").ok().stdout
    lab.mur("run", "--version").failed(exit_status=2)


def test_cli_02_an_unknown_command_is_a_usage_error(lab):
    result = lab.mur("frobnicate").failed(exit_status=2)
    assert result.stdout == ""
    assert "frobnicate" in result.stderr


def test_cli_02_an_unknown_registry_flag_gets_a_hint(lab):
    result = lab.mur("install", "--registry", "x").failed(exit_status=2)
    assert result.stdout == ""
    assert "  hint: " in result.stderr


def test_cli_03_run_without_a_manifest_refuses_and_creates_nothing(lab):
    folder = lab.directory / "empty"
    folder.mkdir()

    result = lab.mur("run", cwd=folder).failed("E-IO-001")

    assert result.stdout == "status:  failed\n"
    assert tree_of(folder) == []
    assert lab.mur("run", "--json", cwd=folder).failed("E-IO-001").stdout == ""


def test_cli_04_json_prints_one_line_with_its_seven_keys_in_order(lab):
    project = lab.agent(steps=[{"text": "hi yourself"}])

    result = project.run("--json", "--task", "hi").ok()

    assert result.stdout.count("\n") == 1
    line = json.loads(result.stdout)
    assert list(line) == READINESS_KEYS
    assert (line["name"], line["version"]) == ("agent", "0.1.0")
    assert line["url"].startswith("localhost:")
    assert os.path.isabs(line["records_dir"]) and os.path.isabs(line["workdir"])
    with open(os.path.join(line["records_dir"], "out/result.txt"), encoding="utf-8") as text:
        assert text.read() == "hi yourself"


def test_cli_05_lines_a_stream_refuses_during_a_session_are_kept_in_its_log(lab):
    project = lab.agent(steps=[{"text": "cut", "stop_reason": "max_tokens", "delay_ms": 300}])
    read_end, write_end = os.pipe()
    with subprocess.Popen([lab.mur_path, "run", "--task", "hi"], cwd=project.directory, env=lab.environment(),
                          stdin=subprocess.DEVNULL, stdout=write_end, stderr=write_end) as process:
        os.close(write_end)
        with os.fdopen(read_end, "rb") as reader:
            while not reader.readline().startswith(b"session: "):
                pass
        assert process.wait(60) == 0

    (records,) = lab.records
    log = (records / "logs/bootstrap.log").read_text()
    assert "W-RUN-001" in log
    assert (records / "out/result.txt").is_file()


# --- texts of others in our lines ---


def test_a_manifest_cannot_steer_the_terminal_of_who_reads_its_warnings(lab):
    project = lab.agent(steps=[{"text": "hi"}], **{"a\x1b[2J\x9b2Jb\x7f": 1})
    result = project.run("--task", "x").ok()
    assert "unknown key 'a\\x1b[2J\\x9b2Jb\\x7f'" in result.stderr
    assert not set(result.stderr) & set("\x1b\x9b\x7f")


def test_a_task_file_without_end_is_refused_before_anything_starts(lab):
    project = lab.agent(steps=[{"text": "hi"}])
    result = project.run("--task", "/dev/zero").failed("E-IO-003")
    assert "--task: /dev/zero is larger than 16777216 bytes" in result.stderr
    assert tree_of(project.directory) == ["murmur.yaml"]
