# SPDX-License-Identifier: Apache-2.0
#
# What a launch asks of components before it runs them: a driver's interfaces, judged on its bytes, and nothing of a tool's.

import re

import pytest

from tests.support.packages import PREAMBLE, TOOL_EXPORT, leb, manifest, native_package, zip_of


AUTH = {"header": "x-api-key", "value": "{key}"}


def section(number, entries):
    body = leb(len(entries)) + b"".join(entries)
    return bytes([number]) + leb(len(body)) + body


def component(imports=(), exports=()):
    """A component an engine compiles: imports of empty instances, exports that hand the first one on."""
    def name(text):
        return b"\x00" + leb(len(text)) + text.encode()
    imports = list(imports) or ["lab:nothing/at-all@0.1.0"]
    return (PREAMBLE + section(7, [b"\x42\x00"]) + section(10, [name(text) + b"\x05\x00" for text in imports])
            + section(11, [name(text) + b"\x05\x00\x00" for text in exports]))


def with_driver(lab, imports=(), exports=(TOOL_EXPORT,)):
    package = zip_of({"murmur.yaml": manifest("driver-odd", "0.1.0", "driver", upstream_auth=AUTH),
                      "driver.wasm": component(imports, exports)})
    path = lab.directory / "driver-odd.mur.zip"
    path.write_bytes(package)
    lab.mur("publish", path).ok()
    return lab.agent(driver="local/driver-odd@0.1.0", gateway={"endpoint": "http://127.0.0.1:9", "keyless": True})


def refused(project, code):
    result = project.run("--task", "x").failed(code)
    assert project.lab.records == [] and not (project / "murmur.lock").exists()
    return result.stderr


def test_artifacts_36_an_import_no_level_has(lab):
    told = refused(with_driver(lab, ["murmur:text/chunks@0.1.0"]), "E-WIT-LEVEL-001")
    assert "murmur:text/chunks@0.1.0" in told and "level 1" in told and "no version of murmur:text" in told


def test_artifacts_a_stream_of_another_version_is_of_another_level(lab):
    told = refused(with_driver(lab, ["murmur:stream/events@0.2.0"]), "E-WIT-LEVEL-001")
    assert "murmur:stream@0.1.0" in told


def test_artifacts_a_stream_interface_that_is_not_served(lab):
    assert "murmur:stream/frames@0.1.0" in refused(with_driver(lab, ["murmur:stream/frames@0.1.0"]), "E-RUN-029")


def test_artifacts_a_process_driver_under_transport_http(lab):
    told = refused(with_driver(lab, exports=["murmur:driver/process@0.3.0"]), "E-RUN-030")
    assert "murmur:driver/process@0.3.0" in told


def test_artifacts_the_level_beats_every_other_fault_of_a_driver(lab):
    refused(with_driver(lab, ["murmur:text/chunks@0.1.0"], ["murmur:driver/process@0.3.0"]), "E-WIT-LEVEL-001")


@pytest.mark.parametrize("how", [{"exports": ["murmur:tool/run@9.9.9"]}, {"imports": ["murmur:text/chunks@0.1.0"]}])
def test_artifacts_a_tool_of_another_level_fails_at_its_call_alone(lab, how):
    package = zip_of({"murmur.yaml": manifest("odd", input_schema={"type": "object"}), "tool.wasm": component(**how)})
    path = lab.directory / "odd.mur.zip"
    path.write_bytes(package)
    lab.mur("publish", path).ok()
    project = lab.agent(tools=["local/odd@0.1.0"],
                        steps=[{"tool_calls": [{"name": "odd", "input": {}}]}, {"text": "went on"}])
    session = lab.session(project.run("--task", "x").ok())
    assert session.trace.one("tool_call")["status"] == "error" and session.result_text == "went on"


def test_artifacts_a_native_tool_without_a_platform_is_warned_about(lab):
    path = lab.directory / "plain.mur.zip"
    path.write_bytes(native_package("plain"))
    lab.mur("publish", path).ok()
    for file in (lab.murmur_home / "artifacts/local/plain/0.1.0").iterdir():
        file.rename(re.sub(r"-linux-\w+?\.", ".", str(file)))
    result = lab.agent(tools=["local/plain@0.1.0"], steps=[{"text": "x"}]).run("--task", "x")
    assert result.stderr.count("warning[W-REG-001]") == 1 and "local/plain@0.1.0" in result.stderr
