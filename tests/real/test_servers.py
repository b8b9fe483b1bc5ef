# SPDX-License-Identifier: Apache-2.0
#
# A real model server: llama.cpp's, from PyPI, with a model made on the spot whose every word is known. It speaks the forms of
# all three drivers.

import os
import subprocess
from dataclasses import dataclass

import pytest

from tests.support.lab import ROOT, SLOWER
from tests.support.polling import eventually
from tests.support.pypi import python_with

PACKAGES = ("xllamacpp==2026.10.11549", "gguf==0.19.0")
SAID = "Hello from a real server, é漢"
FORMS = pytest.mark.parametrize("driver", ["openai", "anthropic", "responses"])


@dataclass
class Server:
    url: str
    process: subprocess.Popen


def start(folder, context):
    python = python_with(*PACKAGES)
    with open(folder / "server.out", "w+") as out, open(folder / "server.err", "w") as errors:
        process = subprocess.Popen([python, ROOT / "tests/support/tiny_model.py", folder, str(context)], stdout=out, stderr=errors,
                                   stdin=subprocess.DEVNULL, env={"PATH": os.environ["PATH"], "HOME": str(folder)})

    def address():
        if process.poll() is not None:
            pytest.skip(f"the server does not run here: {(folder / 'server.err').read_text()[-300:]}")
        lines = (folder / "server.out").read_text()
        return lines.split("address: ", 1)[1].strip() if lines.endswith("\n") and "address: " in lines else None
    return Server(eventually(address, 120 * SLOWER), process)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    started = start(tmp_path_factory.mktemp("server"), 32768)
    yield started
    started.process.kill()
    started.process.wait()


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The same with room for next to nothing."""
    started = start(tmp_path_factory.mktemp("small"), 512)
    yield started
    started.process.kill()
    started.process.wait()


def agent(lab, server, driver, inference=None, config=None, **more):
    project = lab.agent(driver=f"std/driver-{driver}@0.1.0", gateway={"endpoint": server.url, "keyless": True},
                        tools=[{"name": "std/files", "version": "0.1.0"}], inference={
                            "model": "tiny", "max_tokens": 200, "driver": {"artifact": f"std/driver-{driver}", "config": config or {}},
                            **(inference or {})}, **more)
    project.write("work/a.txt", "x")
    return project


def run(project, task, *arguments):
    return project.run(*arguments, "--task", task, "--workdir", project / "work", timeout=120)


@FORMS
@pytest.mark.parametrize("stream", [True, False])
def test_servers_an_answer_with_its_counts(lab, server, driver, stream):
    session = lab.session(run(agent(lab, server, driver, config={"stream": stream}), "hi").ok())
    line = session.trace.one("inference")
    assert session.result_text.strip() == SAID
    assert line["stop_reason"] == "end_turn" and line["output_tokens_actual"] == 8
    assert line["input_tokens_actual"] + line.get("cached_tokens", 0) > 50


@FORMS
@pytest.mark.parametrize("stream", [True, False])
def test_servers_a_call_is_made_and_its_result_read(lab, server, driver, stream):
    session = lab.session(run(agent(lab, server, driver, config={"stream": stream}), "list the files").ok())
    call = session.trace.one("tool_call")
    assert (call["tool_name"], call["status"], call["input"]) == ("files", "ok", {"action": "list"})
    assert session.result_text.strip() == SAID and len(session.trace.all("inference")) == 2


# Its Responses form calls an answer that was cut "completed".
@pytest.mark.parametrize("driver", ["openai", "anthropic"])
def test_servers_an_answer_that_the_cap_cuts_is_said_so(lab, server, driver):
    result = run(agent(lab, server, driver, inference={"max_tokens": 3}), "hi").ok()
    assert "W-RUN-001" in result.stderr and lab.session(result).result_text.strip().startswith("Hello from a")


@FORMS
def test_servers_what_does_not_fit_is_said_once_in_the_servers_words(lab, small, driver):
    result = run(agent(lab, small, driver, inference={"retry": {"initial_delay_ms": 1}}), "hi " * 800).failed("E-RUN-040")
    session = lab.session(result)
    assert "exceeds the available context size (512 tokens)" in result.stderr
    assert len(session.trace.all("inference")) <= 1 and "inference_retry" not in session.trace.types


@FORMS
def test_servers_a_conversation_goes_on(lab, server, driver):
    project = agent(lab, server, driver, lifecycle={"conversation": "threaded"})
    first = run(project, "list the files").ok()
    again = run(project, "list them again", "--resume", first.session_id).ok()
    assert lab.session(again).result_text.strip() == SAID
    assert lab.session(again).trace.one("tool_call")["status"] == "ok"


@FORMS
def test_servers_a_path_that_is_none_is_said_in_a_sentence(lab, server, driver):
    told = run(agent(lab, server, driver, config={"path": "/nowhere"}), "hi").failed("E-RUN-040").stderr
    assert "the provider answered 404" in told
