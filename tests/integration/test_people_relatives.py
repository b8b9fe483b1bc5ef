# SPDX-License-Identifier: Apache-2.0
#
# Relatives of the files that were reported against other tools: the same faults in other places. A number is that of the
# report.

import pytest

from tests.support.model_server import Reply

ANSWER = b'data: {"choices":[{"index":0,"delta":{"content":"finished"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


@pytest.fixture
def keyed(lab, model):
    """A capsule whose provider wants a key, and how it came."""
    project = lab.agent(driver="std/driver-openai@0.1.0", gateway={"endpoint": model.url, "api_key": "${PROBE_KEY}"})
    model.script(Reply(body=ANSWER, content_type="text/event-stream"))

    def run(text, **how):
        if text is not None:
            project.write(".env", text)
        return project.run("--task", "go", **how)
    run.model = model
    yield run


@pytest.mark.parametrize("text", [
    'export PROBE_KEY="abc";\n', "export PROBE_KEY\nPROBE_KEY=abc\n", "PROBE_KEY = abc\n", "PROBE_KEY='abc' ; # mine\n", "PROBE_KEY=`abc`\n",
    "PROBE_KEY=abc\t# mine\n", "probe-key=1\nprobe.key=2\nPROBE_KEY=abc", 'A="x\ny"\r\nPROBE_KEY=abc\r\n', "PROBE_KEY=abc\n".encode("utf-16")])
def test_report_31_more_forms_of_a_key(keyed, text):
    keyed(text).ok()
    assert keyed.model.requests[0].headers["authorization"] == "Bearer abc"


@pytest.mark.parametrize("text, line", [('$env:PROBE_KEY="abc"\n', 1), ("PROBE_KEY: abc=\n", 1), ("\nset PROBE_KEY=abc\n", 2),
                                        ("[section]\nPROBE_KEY=abc\n", 1), ("PROBE_KEY='abc' 'def'\n", 1), ('{"PROBE_KEY": "a="}', 1)])
def test_report_32_what_is_no_env_file_is_refused_by_its_line(keyed, text, line):
    assert f"/.env:{line}: " in keyed(text).failed("E-IO-003").stderr


@pytest.mark.parametrize("text", ['PROBE_KEY="abc\\ndef"\n', "PROBE_KEY='abc\ndef'\n"])
def test_report_31_a_key_that_no_header_can_carry_is_said_before_anything_runs(keyed, text):
    told = keyed(text).failed("E-MAN-003").stderr
    assert "${PROBE_KEY}" in told and "line end" in told and "abc" not in told and keyed.model.requests == []


def test_report_31_nor_one_of_the_environment(keyed):
    assert "line end" in keyed(None, env={"PROBE_KEY": "abc\n"}).failed("E-MAN-003").stderr


def test_report_30_what_is_no_zip_is_told_what_to_do(lab):
    project = lab.project("p", files={"forms/SKILL.md": "# Forms\n", "forms.tar.gz": b"\x1f\x8b\x08\x00", "empty.zip": b""})
    assert "name the folder it lies in" in project.mur("build", "--skill", "x", "forms/SKILL.md").failed("E-IO-003").stderr
    for name in ("forms.tar.gz", "empty.zip"):
        assert "unpack any other archive and name its folder" in project.mur("build", "--skill", "x", name).failed("E-IO-003").stderr
