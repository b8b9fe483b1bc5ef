# SPDX-License-Identifier: Apache-2.0
#
# Components in each language of `mur new tool|hook|driver`, built with that language's own tooling: the tools of all five can do
# the same, the hooks refuse the same, the drivers ask the same server.

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.agent_provider import AgentProvider
from tests.support.door_client import SLEEPER, Door
from tests.support.guest_languages import LANGUAGES, component

SOURCES = Path(__file__).parent / "languages"
QUESTIONS = [
    ({"name": "Ada"}, "Hello, Ada!"),
    ({"name": "Zoë 木 \U0001f600"}, "Hello, Zoë 木 \U0001f600!"),
    ({"name": "x" * 20_000}, "Hello, " + "x" * 20_000 + "!"),
    ({"name": ""}, "Hello, !"),
    ({"name": 'quo"te\\ and\nline'}, 'Hello, quo"te\\ and\nline!'),
]
SUFFIX = {"c": "c", "python": "py", "javascript": "js", "rust": "rs", "go": "go"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_languages_answer_alike(lab, tmp_path, language):
    lab.mur("publish", component(tmp_path, "tool", language, name="greet"), timeout=300).ok()
    for number, (question, answer) in enumerate([*QUESTIONS, ({"name": "again"}, "Hello, again!")]):
        project = lab.agent(f"asks-{number}", steps=[{"tool_calls": [{"name": "greet", "input": question}]}, {"text": "{{result}}"}],
                            tools=["local/greet@0.1.0"])
        said = project.run("--task", "x", "--print", timeout=300).ok().stdout
        assert answer in said, (question, said[:300])


class Told(BaseHTTPRequestHandler):
    """Answers GET with a long text and a header, POST with what was asked."""

    def do_GET(self):
        self.say(200, ("wörd " * 30_000).encode(), [("x-told", "yes")])

    def do_POST(self):
        text = self.rfile.read(int(self.headers.get("content-length") or -1)) if "content-length" in self.headers else self.chunks()
        self.say(201, f"{self.headers['x-asked']} {len(text)}".encode())

    def chunks(self):
        whole = b""
        while size := int(self.rfile.readline(), 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    def say(self, status, body, headers=()):
        self.send_response(status)
        for name, value in [*headers, ("content-length", str(len(body)))]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    serving = ThreadingHTTPServer(("127.0.0.1", 0), Told)
    serving.daemon_threads = True
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{serving.server_port}"
    serving.shutdown()
    serving.server_close()


def orders_of(url):
    """(order, what comes of it): a text, or None where only that it failed is the same in all languages."""
    text = 'Zoë 木 \U0001f600 quo"te\\ and\nline'
    return [
        ({"do": "log", "text": "a line for the log"}, "ok: logged"),
        ({"do": "write", "path": "note.txt", "text": text}, "ok: written"),
        ({"do": "read", "path": "note.txt"}, f"ok: {text}"),
        ({"do": "write", "path": "long.txt", "text": "x" * 20_000}, "ok: written"),
        ({"do": "read", "path": "long.txt"}, "ok: " + "x" * 20_000),
        ({"do": "list", "path": "."}, "ok: long.txt note.txt"),
        ({"do": "read", "path": "absent.txt"}, None),
        ({"do": "read", "path": "../outside.txt"}, None),
        ({"do": "read", "path": "/etc/passwd"}, None),
        ({"do": "read", "path": "state/kept.txt"}, None),
        ({"do": "write", "path": "state/kept.txt", "text": "kept"}, "ok: written"),
        ({"do": "env", "text": "MURMUR_CAPSULE_NAME"}, "ok: conforms"),
        ({"do": "env", "text": "HOME_OF_NOBODY"}, "ok: unset"),
        ({"do": "config", "text": "colour"}, "ok: blue"),
        ({"do": "progress", "text": "half way"}, "ok: shown"),
        ({"do": "clock"}, "ok: later"),
        ({"do": "random"}, "ok: differs"),
        ({"do": "get", "url": f"{url}/a?b=c"}, "ok: 200 yes " + "wörd " * 30_000),
        ({"do": "post", "url": url, "header": "h", "text": "y" * 10_000}, "ok: 201 h 10000"),
        ({"do": "get", "url": "http://127.0.0.1:9/"}, None),
        ({"do": "get", "url": "http://elsewhere.example/"}, None),
    ]


def called(tool, orders):
    return {"tool_calls": [{"name": tool, "input": {"name": orders if isinstance(orders, str) else json.dumps(orders)}}]}


@pytest.mark.parametrize("language", LANGUAGES)
def test_languages_tools_conform(lab, tmp_path, server, language):
    tool = f"tool-{language}"
    lab.mur("publish", component(tmp_path, "tool", language, SOURCES / f"tool.{SUFFIX[language]}"), timeout=300).ok()
    orders = orders_of(server)
    tasks = {"do all": [order for order, _ in orders], "ask": [{"do": "ask", "text": "which one?"}], "fail": '"fail"',
             "tell more": '"meta"', "go wrong": '"break"', "what was kept": [{"do": "read", "path": "state/kept.txt"}]}
    scripts = [{"when": word, "steps": [called(tool, what), {"text": "{{result}}"}]} for word, what in tasks.items()]
    entry = {"name": f"local/{tool}", "version": "0.1.0", "config": {"colour": "blue"}, "capabilities": {
        "network": {"allow": [server.removeprefix("http://")]}, "filesystem": {"scope": "notes"}, "state": {"store": "kept"}}}
    project = lab.agent("conforms", tools=[entry], lifecycle=SLEEPER,
                        inference={"driver": {"artifact": "std/driver-scripted", "config": {"scripts": scripts}}},
                        capabilities={"network": entry["capabilities"]["network"]})
    (project.directory / "work/notes").mkdir(parents=True)
    (project.directory / "work/outside.txt").write_text("not yours")
    running = project.start("--workdir", "work")
    running.wait_for("murmur: url", within_s=200)  # a component with a whole language in it is compiled first
    door = Door(running)

    def answer(task):
        return door.wait_for(task["id"], "COMPLETED", within_s=120)["artifacts"][0]["parts"][0]["text"]

    with door.stream("murmur.WatchSession") as watch:
        outcomes = answer(door.send_at_once("do all"))
        assert outcomes.startswith("["), outcomes[:2000]
        outcomes = json.loads(outcomes)
        for (order, wanted), outcome in zip(orders, outcomes, strict=True):
            assert outcome.startswith("error: ") if wanted is None else outcome == wanted, (order, outcome[:300])
        watch.until(lambda w: any("half way" in str(event) for event in w.events))
    assert (project.directory / "work/notes/note.txt").exists()

    asked = door.send("ask")
    assert asked["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    door.send_at_once("the second", taskId=asked["id"], contextId=asked["contextId"])
    assert json.loads(answer(asked)) == ["ok: the second"]
    assert "a summary" in answer(door.send_at_once("fail"))
    assert "with metadata" in answer(door.send_at_once("tell more"))
    assert json.loads(answer(door.send_at_once("what was kept?"))) == ["ok: kept"]
    wrong = answer(door.send_at_once("go wrong"))
    assert wrong.startswith(f"tool {tool}: ") and f"<untrusted-content source=tool:{tool}>" in wrong and "broke on purpose" in wrong
    running.signal()
    running.result(60)
    trace = lab.session(running).trace
    statuses = [line["status"] for line in trace.all("tool_call")]
    assert statuses == ["ok", "ok", "error", "ok", "ok", "error"]
    told = trace.all("tool_call")[3]
    assert (told["resource_id"], told["state_effect"]) == ("r-1", "read")


@pytest.mark.parametrize("language", LANGUAGES)
def test_languages_hooks_refuse_and_count_alike(lab, tmp_path, language):
    lab.mur("publish", component(tmp_path, "hook", language), timeout=300).ok()
    texts = ["plain", "the password", "passwords", "the end"]
    writes = [{"tool_calls": [{"name": "files", "input": {"action": "write", "path": "note.txt", "content": text}}]} for text in texts]
    entry = {"name": f"local/hook-{language}", "version": "0.1.0", "runtime": "hook", "config": {"words": ["sesame", "password"]}}
    project = lab.agent("hooked", steps=[*writes, {"text": "{{result}}"}], tools=["std/files@0.1.0", entry])
    (project.directory / "work").mkdir()
    result = project.run("--task", "write", "--workdir", "work", timeout=300).ok()
    trace = lab.session(result).trace
    reasons = [line["reason"] for line in trace.all("call_denied")]
    assert reasons == ["no call may hold password (refusal 1)", "no call may hold password (refusal 2)"]
    assert (project.directory / "work/note.txt").read_text() == "the end"
    assert not trace.all("hook_dispatch_error")


HEARD = """\
stage sh
start hears 0.1.0 36
no input: no-task
task task_md 4
turn 0 tool_call files N
called files ok true
turn 1 tool_call sh N
called sh ok true
ran /usr/bin/dash 0 3
turn 2 end_turn - N
end ok
tokens 2 0
input work true
output the answer true
conversation 6 assistant,tool,assistant,tool,assistant,user
refused true
inferred the opinion true
over 3 2 1 ok
"""


@pytest.mark.parametrize("language", LANGUAGES)
def test_languages_hooks_conform(lab, tmp_path, language):
    """Each event as it comes, and all that a hook may ask for."""
    lab.mur("publish", component(tmp_path, "hook", language, SOURCES / f"hook.{SUFFIX[language]}"), timeout=300).ok()
    steps = [{"tool_calls": [{"name": "files", "input": {"action": "write", "path": "a.txt", "content": "x"}}]},
             {"tool_calls": [{"name": "sh", "input": {"command": "echo hi"}}]},
             {"text": "the answer"}]
    scripts = [{"when": "say it", "steps": [{"text": "the opinion"}]}, {"when": "work", "steps": steps}]
    entry = {"name": f"local/hook-{language}", "version": "0.1.0", "runtime": "hook", "capabilities": {
        "filesystem": {"records": True}, "task_io": {"read": True}, "conversation": {"read": True}}}
    project = lab.agent("hears", tools=["std/files@0.1.0", entry], capabilities={"shell": {"allow": ["sh"]}},
                        inference={"driver": {"artifact": "std/driver-scripted", "config": {"scripts": scripts}}})
    (project.directory / "work").mkdir()
    result = project.run("--task", "work", "--workdir", "work", timeout=300).ok()
    heard = "".join(line + "\n" for line in re.findall(r"^heard: (.*)$", result.stderr, re.M))
    assert re.sub(r"^(turn .*) [1-9][0-9]*$", r"\1 N", heard, flags=re.M) == HEARD, heard
    assert not lab.session(result).trace.all("hook_dispatch_error")


@pytest.mark.parametrize("language", LANGUAGES)
def test_languages_drivers_ask_alike(lab, tmp_path, language):
    lab.mur("publish", component(tmp_path, "driver", language), timeout=300).ok()
    driver = f"local/driver-{language}@0.1.0"
    write = {"tool": "files", "input": {"action": "write", "path": "note.txt", "content": 'Zoë "木"\n'}}
    with AgentProvider(write, {"text": "written: 木"}, {"status": 500}) as provider:
        project = lab.agent("driven", driver=driver, tools=["std/files@0.1.0"], gateway={"endpoint": provider.url, "api_key": "${OWN_KEY}"},
                            inference={"retry": {"max_retries": 0}})
        (project.directory / "work").mkdir()
        result = project.run("--task", "write it", "--workdir", "work", "--print", timeout=300, env={"OWN_KEY": "sk-own"}).ok()
        assert result.stdout.strip() == "written: 木"
        assert (project.directory / "work/note.txt").read_text() == 'Zoë "木"\n'
        assert provider.keys == {"Bearer sk-own"} and len(provider.results) == 1
        first = provider.requests[0][2]
        assert first["messages"][0]["role"] == "system" and first["messages"][-1] == {"role": "user", "content": "write it"}
        assert [tool["function"]["name"] for tool in first["tools"]].count("files") == 1
        usage = lab.session(lab.records[0].name).trace.all("inference")[0]
        assert (usage["input_tokens_actual"], usage["output_tokens_actual"]) == (16, 9)
        failed = project.run("--task", "again", "--workdir", "work", timeout=60, env={"OWN_KEY": "sk-own"})
        assert failed.status != 0 and "HTTP 500" in failed.stderr + failed.stdout


GO_GROWS = """package main

import (
	"fmt"
	"os"
)

// Touches 60 MB, calling the host in between: neither may write into the other's memory.
func respond(input string) Result {
	var all [][]byte
	for i := 0; i < 60; i++ {
		block := make([]byte, 1<<20)
		for j := range block {
			block[j] = byte(i)
		}
		all = append(all, block)
		if err := os.WriteFile("notes.txt", block[:10], 0o644); err != nil {
			return Failed(err.Error())
		}
		Progress("more")
	}
	for i, block := range all {
		for _, b := range block {
			if b != byte(i) {
				return Failed("spoilt")
			}
		}
	}
	text, err := os.ReadFile("notes.txt")
	return Passed(fmt.Sprint("whole ", len(text), err))
}
"""


def test_languages_go_memory_and_files_hold(lab, tmp_path):
    source = tmp_path / "grow.go"
    source.write_text(GO_GROWS)
    lab.mur("publish", component(tmp_path, "tool", "go", source, "grow")).ok()
    project = lab.agent("grows", steps=[{"tool_calls": [{"name": "grow", "input": {"name": "x"}}]}, {"text": "{{result}}"}],
                        tools=["local/grow@0.1.0"])
    assert "whole 10 <nil>" in project.run("--task", "x", "--print", timeout=120).ok().stdout
