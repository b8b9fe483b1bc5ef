# SPDX-License-Identifier: Apache-2.0
#
# What stopped or annoyed a newcomer: keys and names typed wrongly, a key that is refused, a report that is too long. Rows are
# those of the list of a newcomer's hour.

import json
import os
import re
import shutil
import signal

import pytest
import yaml

from tests.support.fixtures import own_component
from tests.support.hosts import with_mounts
from tests.support.lab import BUILD
from tests.support.model_server import Reply
from tests.support.polling import eventually
from tests.support.provider_forms import ChatCompletions, Turn
from tests.support.terminal import Terminal

# --- keys and names typed wrongly --------------------------------------------------------------------------------------


@pytest.mark.parametrize("right, wrong", [("artifacts", "artefacts"), ("version", "verison")])
@pytest.mark.parametrize("command", [("run", "--task", "x"), ("run", "--explain-scope"), ("doctor",), ("install",)])
def test_newcomer_B5_a_key_spelled_wrongly_is_said_first_also_where_the_rest_is_refused(lab, right, wrong, command):
    project = lab.agent(steps=[{"text": "hi"}])
    manifest = project / "murmur.yaml"
    manifest.write_text(re.sub(rf"(?m)^{right}:", f"{wrong}:", manifest.read_text()))

    told = project.mur(*command).stderr

    warning = f"unknown key '{wrong}' in the manifest at its top level has no effect; did you mean '{right}'?"
    assert told.count(warning) == 1
    assert "error[" not in told or told.index(warning) < told.index("error[")


@pytest.mark.parametrize("script, told", [
    ({"steps": [{"toolcalls": [{"name": "files"}]}]}, "steps[0]: unknown key 'toolcalls'; did you mean 'tool_calls'?"),
    ({"stpes": [{"text": "x"}]}, "inference.driver.config: unknown key 'stpes'"),
    ({"steps": [{"Text": "x"}]}, "did you mean 'text'?"), ({"steps": [{"text": "x"}, {"txt": "y"}]}, "steps[1]: unknown key 'txt'"),
    ({"steps": [{"tool_calls": [{"nam": "files"}]}]}, "steps[0].tool_calls: unknown key 'nam'; did you mean 'name'?"),
    ({"steps": [{"tool_calls": [{"name": "files", "arguments": {}}]}]}, "unknown key 'arguments'; known are name, input, id"),
    ({"steps": [{"error": {"state": 500}}]}, "steps[0].error: unknown key 'state'"),
    ({"scripts": [{"wen": "x", "steps": [{"text": "x"}]}]}, "did you mean 'when'?"),
    ({"steps": [{"delay-ms": 5, "text": "x"}]}, "did you mean 'delay_ms'?")], ids=json.dumps)
def test_newcomer_B7_an_unknown_key_of_a_script_is_refused_by_name(lab, script, told):
    project = lab.agent(steps=[{"text": "hi"}], inference={"driver": {"artifact": "std/driver-scripted", "config": script}})

    assert told in project.run("--task", "x").failed("E-RUN-040").stderr


def test_newcomer_B7_nor_one_of_a_file(lab):
    project = lab.agent(steps=[{"text": "hi"}], inference={"driver": {"artifact": "std/driver-scripted", "config": {"file": "s.json"}}})
    project.write("work/s.json", json.dumps([{"tekst": "x"}]))

    assert "unknown key 'tekst'" in project.run("--task", "x", "--workdir", "work").failed("E-RUN-040").stderr


@pytest.mark.parametrize("command", [("run", "--task", "x"), ("doctor",)])
def test_newcomer_B8_a_program_that_is_not_there_is_named_with_its_neighbour(lab, command):
    project = lab.agent(steps=[{"text": "hi"}], capabilities={"shell": {"allow": ["gerp", "grep", "no-such-program-at-all"]}})

    told = project.mur(*command).ok().stderr

    assert "capabilities.shell.allow: gerp is not found on this machine; did you mean grep?" in told
    assert "no-such-program-at-all is not found on this machine\n" in told and "allow: grep is" not in told


def test_newcomer_B11_an_agent_is_told_how_it_is_packed(lab):
    project = lab.agent(steps=[{"text": "hi"}])
    manifest = project / "murmur.yaml"
    assert "runtime: capsule and execution: static" in project.mur("build").failed("E-MAN-001").stderr
    manifest.write_text(manifest.read_text() + "runtime: capsule\n")
    assert "add the line execution: static" in project.mur("build").failed("E-BLD-003").stderr
    manifest.write_text(manifest.read_text() + "execution: static\n")
    project.mur("build").ok()


def test_newcomer_B11_what_is_no_agent_is_told_what_may_be_packed(lab):
    project = lab.project("p", files={"murmur.yaml": "name: p\nversion: 0.1.0\n"})

    assert "runtime: tool, driver, hook, skill or capsule" in project.mur("build").failed("E-MAN-001").stderr


def test_newcomer_B12_the_page_of_keys_has_those_of_what_is_packed(lab):
    page = (lab.mur_path.parent.parent / "docs/manifest.md").read_text()

    assert page.count("## A manifest that is packed") == 1
    assert all(f"\n| `{key}` | " in page.split("## A manifest that is packed")[1] for key in
               ("runtime", "execution", "requires_files", "input_schema", "description", "implementation"))


# --- what a person reads -----------------------------------------------------------------------------------------------


def test_newcomer_B17_a_doctor_at_a_terminal_is_short(lab):
    project = lab.agent(steps=[{"text": "hi"}])
    terminal = Terminal(lab, "doctor", cwd=project.directory)
    terminal.wait_for("mur doctor --verbose")
    shown = terminal.text
    assert len(shown.splitlines()) < 25 and "All checks passed." in shown and "Landlock\n  kernel ABI" not in shown
    whole = Terminal(lab, "doctor", "--verbose", cwd=project.directory, rows=200)
    whole.wait_for("All checks passed")
    assert "kernel ABI" in whole.text and "kernel ABI" in project.mur("doctor").ok().stdout


def test_newcomer_B17_what_is_wrong_is_shown_whole(lab):
    project = lab.agent(steps=[{"text": "hi"}], tools=["std/files@9.9.9"])
    terminal = Terminal(lab, "doctor", cwd=project.directory, columns=120)
    terminal.wait_for("mur doctor --verbose")
    assert "std/files@9.9.9" in terminal.text and "Fix: " in terminal.text


@pytest.mark.parametrize("kept", ["environment", "configuration"])
def test_newcomer_B22_a_refused_key_is_told_where_it_came_from(lab, model, kept):
    project = lab.agent(driver="std/driver-openai@0.1.0", gateway={"endpoint": model.url, "api_key": "${SOME_KEY}"},
                        inference={"model": "m", "max_tokens": 100})
    model.script(repeat=Reply(status=401, body=b'{"error":{"message":"no such key"}}'))
    if kept == "configuration":
        lab.mur("config", "set", "-g", "credentials.SOME_KEY", "sk-wrong").ok()

    told = project.run("--task", "x", env={} if kept == "configuration" else {"SOME_KEY": "sk-wrong"}).failed("E-RUN-040").stderr

    place = "the configuration's credentials" if kept == "configuration" else "the environment or .env"
    assert f"after it was read again: SOME_KEY, of {place}" in told and "sk-wrong" not in told
    assert "mur config set -g credentials.SOME_KEY KEY" in told and "no such key" in told


def test_newcomer_B25_a_package_is_no_source_and_a_text_is_a_skill(lab):
    lab.publish("echo", own_component("echo"), "tool")
    packed = next((lab.directory / "packages").rglob("*.mur.zip"))
    project = lab.agent(steps=[{"tool_calls": [{"name": "how", "input": {}}]}, {"text": "{{result}}"}],
                        tools=[{"name": "how", "source": "how.zip", "local_source": True}])
    shutil.copy(packed, project / "how.zip")
    told = project.run("--task", "x").failed("E-IO-001").stderr
    assert "how.zip is no skill text" in told and "mur publish" in told
    (project / "how.zip").write_text("# How things are done here\n")
    assert "How things are done here" in project.run("-p", "--task", "x").ok().stdout


def test_newcomer_B25_a_driver_does_not_come_from_a_path(lab):
    project = lab.agent(steps=[{"text": "hi"}], tools=[{"name": "watcher", "source": "w.md", "local_source": True, "runtime": "hook"}])
    project.write("w.md", "text\n")

    assert "a source holds a skill, and this is declared as a hook" in project.run("--task", "x").failed("E-IO-001").stderr


# --- polish ------------------------------------------------------------------------------------------------------------


def test_newcomer_C2_a_watch_follows_the_width_of_its_terminal(lab):
    words = " ".join(f"word{number:02}" for number in range(40))
    project = lab.agent(steps=[{"text": f"one {words}"}, {"text": f"two {words}"}],
                        lifecycle={"task_acceptance": "queue", "after_task": "sleep"})
    running = project.start()
    running.wait_for("^session: ")
    watch = Terminal(lab, "watch", columns=80)
    watch.wait_for("Ctrl-C ends the watch")
    lab.mur("send", "hello").ok()
    watch.wait_for("word39")
    before = len(watch.text)
    watch.resize(50, 24)
    lab.mur("send", "again").ok()
    eventually(lambda: "word39" in watch.text[before:])
    flowed = [line for line in watch.text[before:].splitlines() if "word" in line]
    assert len(flowed) > 5 and all(len(line) <= 50 for line in flowed)


@pytest.mark.parametrize("key, code", [(True, 130), (False, 1)])
def test_newcomer_C6_ctrl_c_is_told_from_a_failure(lab, key, code):
    project = lab.agent(steps=[{"text": "late", "delay_ms": 60_000}])
    run = Terminal(lab, "run", "--task", "x", cwd=project.directory)
    run.wait_for("session: ")
    eventually(lambda: json.loads(lab.mur("ps", "--json").ok().stdout)["capsules"])
    run.type("\x03") if key else run.signal(signal.SIGINT)
    assert run.end() == code, run.text


def test_newcomer_C4_a_terminal_without_the_characters_gets_others(lab):
    lab.agent(steps=[{"text": "hi"}]).run("--task", "x").ok()
    for locale, has in (("C", False), ("de_DE.ISO-8859-1", False), ("C.UTF-8", True)):
        terminal = Terminal(lab, "doctor", cwd=lab.directory / "agent", env={"LC_ALL": locale})
        terminal.wait_for("mur doctor --verbose")
        assert ("\u2713" in terminal.text) is has
        assert all(ord(letter) < 128 for letter in terminal.text) or has
    assert "\u2713" in lab.mur("doctor", cwd=lab.directory / "agent", env={"LC_ALL": "C"}).ok().stdout


def test_newcomer_C11_configuration_is_read_back_and_secrets_are_not_shown(lab):
    project = lab.project("p")
    project.mur("config", "set", "-g", "registry.index_url", "https://all.example/i.json").ok()
    project.mur("config", "set", "registry.index_url", "https://own.example/i.json").ok()
    project.mur("config", "set", "-g", "credentials.SOME_KEY", "sk-secret").ok()
    listed = project.mur("config", "list").ok().stdout
    assert [line.split()[0] for line in listed.splitlines()] == ["registry.index_url"] * 2 + ["credentials.SOME_KEY"]
    assert project.mur("config", "get", "registry.index_url").ok().stdout == "https://own.example/i.json\n"
    shown = project.mur("config", "get", "credentials.SOME_KEY").ok()
    assert shown.stdout == "" and "is set in" in shown.stderr
    assert "sk-secret" not in listed + shown.stderr
    paths = project.mur("config", "path").ok().stdout.splitlines()
    assert len(paths) == 2 and paths[0] == f"{project.directory}/.murmur/config.yaml"
    project.mur("config", "unset", "registry.index_url").ok()
    assert project.mur("config", "get", "registry.index_url").ok().stdout == "https://all.example/i.json\n"
    project.mur("config", "unset", "-g", "credentials.SOME_KEY").ok()
    project.mur("config", "get", "credentials.SOME_KEY").failed("E-CFG-002")
    project.mur("config", "unset", "nope").failed("E-CFG-002")


def test_newcomer_C11_a_change_keeps_every_other_key(lab):
    lab.mur("config", "set", "-g", "inference.model", "m").ok()
    path = next(lab.directory.rglob(".murmur/config.yaml"))
    path.write_text("containment: scoped\nunconfined: false\nobservability: {locked: true}\nresources: {cgroup: optional}\n")
    lab.mur("config", "set", "-g", "inference.model", "m").ok()
    assert yaml.safe_load(path.read_text()) == {"inference": {"model": "m"}, "containment": "scoped", "unconfined": False,
                                                "observability": {"locked": True}, "resources": {"cgroup": "optional"}}


def test_newcomer_C14_a_conversation_shows_what_was_said_and_not_its_mark(lab):
    project = lab.agent(steps=[{"tool_calls": [{"name": "files", "input": {"action": "read", "path": "a.txt"}}]},
                               {"text": "first line\nsecond line\nthird"}], tools=["std/files@0.1.0"], context={"record": "on"},
                        lifecycle={"conversation": "threaded"})
    project.write("work/a.txt", "what the file says\nand more\n")
    session = lab.session(project.run("--task", "look", "--workdir", "work").ok())
    context = session.trace.one("task_start")["context_id"]
    shown = lab.mur("conversation", "show", context).ok().stdout
    assert "untrusted-content" not in shown and "what the file says" in shown and "first line  (2 more lines)" in shown
    whole = lab.mur("conversation", "show", context, "--full").ok().stdout
    assert re.search(r"assistant  first line\n {17}second line\n {17}third\n", whole) and "untrusted-content" not in whole


def test_newcomer_C15_a_folder_that_holds_an_index_is_one(lab):
    folder = lab.directory / "release"
    folder.mkdir()
    lab.publish("echo", own_component("echo"), "tool", description="answers with its input")
    shutil.copy(next((lab.directory / "packages").rglob("*.mur.zip")), folder)
    lab.mur("index", folder, "--repo", "acme/tools", "--release", "v1", "-o", folder / "artifacts-index.json").ok()
    for index in (folder, folder / "artifacts-index.json"):
        assert "acme/echo" in lab.mur("search", "echo", "--index", index).ok().stdout
    assert "artifacts-index.json" in lab.mur("search", "echo", "--index", lab.directory).failed("E-IO-003").stderr


def test_newcomer_C16_help_says_what_the_columns_are(lab):
    assert "DETACHED" in lab.mur("ps", "--help").ok().stdout


# --- a conversation ----------------------------------------------------------------------------------------------------


def at_prompt(lab, *arguments, **how):
    terminal = Terminal(lab, "chat", *arguments, columns=100, **how)
    terminal.wait_for(r"^> ")
    return terminal


def test_chat_resume_lists_conversations_and_takes_a_number_or_the_beginning_of_an_id(lab):
    chat = at_prompt(lab)
    chat.type("about apples\n")
    chat.wait_for("You said: about apples")
    chat.type("/resume\n")
    first = chat.wait_for(r"This conversation is (ctx_\w+)\. There is no earlier one").group(1)
    chat.type("/new\nabout pears\n")
    chat.wait_for("You said: about pears")
    chat.type("/resume\n")
    chat.wait_for(r"  1  .* messages  ctx_\w+  about apples")
    chat.type("/resume 1\n")
    chat.wait_for(f"The next message goes on with {first}")
    chat.type("/resume nonsense\n")
    chat.wait_for("No single conversation of this capsule is meant by nonsense")
    chat.type("/new\n/resume " + first[:-4] + "\n")
    eventually(lambda: chat.text.count(f"goes on with {first}") == 2)
    chat.type("more\n")
    chat.wait_for("More than this is not in my script")
    chat.type("/quit\n")
    assert chat.end() == 0


def test_chat_a_ctrl_d_typed_while_an_answer_ends_leaves(lab):
    lab.agent("slow", steps=[{"text": "at last", "delay_ms": 400}])
    chat = at_prompt(lab, "slow")
    chat.type("hello\n")
    chat.wait_for("turn 1")
    chat.type("\x04")
    assert chat.end() == 0
    assert "at last" in chat.text


def test_chat_model_switches_the_model_of_a_provider_and_the_conversation_goes_on(lab, model):
    form = ChatCompletions()
    model.script(repeat=Reply(body=form.stream(Turn(text="here I am")), content_type="text/event-stream"))
    chat = at_prompt(lab, "--with", model.url, "--model", "small")
    chat.type("remember apples\n")
    chat.wait_for("here I am")
    chat.type("/model large\n")
    chat.wait_for("large answers from now on")
    chat.type("/model\n")
    chat.wait_for(r"^large$")
    chat.type("and now?\n")
    eventually(lambda: chat.text.count("here I am") == 2)
    chat.type("/quit\n")
    assert chat.end() == 0
    asked = [request.json for request in model.requests if request.json.get("messages")]
    assert [request["model"] for request in asked][-1] == "large" and "remember apples" in json.dumps(asked[-1]["messages"])


def test_chat_model_that_cannot_be_switched_says_why_and_what_does(lab):
    lab.agent("talker", steps=[{"text": "hi"}])
    chat = at_prompt(lab, "talker")
    chat.type("/model other\n")
    chat.wait_for("Not changed. A manifest says who may answer")
    chat.type("/quit\n")
    assert chat.end() == 0


# --- what is written in a manifest by mistake --------------------------------------------------------------------------


HEAD = 'name: p\nversion: "0.1.0"\n'


@pytest.mark.parametrize("text, hint", [
    ("lifecycle: {after_task: sleeep}\n", "did you mean sleep?"),
    ("capabilities: {network: {allow: api.example.com}}\n", "a list: allow: [api.example.com]"),
    ("capabilities: {shell: [bash]}\n", "its keys are allow, "), ("capabilities: {shell: true}\n", "its keys are allow, "),
    (" inference:\n  model: m\n", "is this line indented like its neighbours?"), ("x: 'open\n", "a quote is not closed"),
    ("inference: {driver: {artifact: std/driver-scripted}}\n", "model: NAME")])
def test_newcomer_a_wrong_form_is_told_the_right_one(lab, text, hint):
    project = lab.project("p", files={"murmur.yaml": HEAD + text})

    result = project.run("--task", "x")

    assert result.code == 1 and re.search(r"  hint: .*" + re.escape(hint), result.stderr)


@pytest.mark.parametrize("word, ours", [("plugins", "artifacts"), ("prompt", "inference"), ("permissions", "capabilities")])
def test_newcomer_words_of_other_programs_are_told_ours(lab, word, ours):
    project = lab.agent(steps=[{"text": "hi"}], **{word: "x"})

    assert f"unknown key '{word}' in the manifest at its top level has no effect; did you mean '{ours}'?" in project.run("--task", "x").stderr


def test_newcomer_words_without_quotes_are_told_of_them(lab):
    assert 'a text of several words is quoted: mur send "hello ..."' in lab.mur("send", "hello", "there").failed("E-RUN-022").stderr


def test_newcomer_a_capsule_that_goes_on_says_so_at_a_terminal(lab):
    project = lab.agent(steps=[{"text": "hi"}], lifecycle={"task_acceptance": "queue", "after_task": "sleep"})
    terminal = Terminal(lab, "run", "--task", "x", cwd=project.directory, columns=160)

    terminal.wait_for(r'waiting for tasks; send one with: mur send ses_\w+')


def test_newcomer_C17_empty_work_folders_of_before_go(lab):
    project = lab.agent(steps=[{"text": "done"}])
    sleeper = lab.agent("agent", steps=[{"text": "done"}], lifecycle={"task_acceptance": "queue", "after_task": "sleep"}).start()
    sleeper.wait_for("^session: ")
    folder = project.directory / "workdir"
    old, full, young, other = (folder / f"ses_{n * 32}" for n in "1234")
    for path in (old, full, young):
        path.mkdir()
    (folder / "notes").mkdir()
    (full / "result.txt").write_text("kept")
    other.symlink_to(old.name)
    for path in (old, full, folder / "notes", folder / sleeper.session_id):
        os.utime(path, (1, 1))
    first = project.run("--task", "x", "--lifecycle-after-task", "exit").ok()
    assert {path.name for path in folder.iterdir()} == {full.name, young.name, other.name, "notes", sleeper.session_id, first.session_id}
    lab.mur("stop", sleeper.session_id).ok()


def test_newcomer_C13_every_command_has_a_page_of_its_own(lab):
    top = (BUILD / "src/cli/mur.1").read_text()
    assert ".SH ENVIRONMENT" in top and ".SH EXIT STATUS" in top
    words = set(re.findall(r"^  ([a-z]+) ", lab.mur("--help").ok().stdout.split("Options:")[0], re.MULTILINE)) - {"help"}
    assert len(words) > 25
    for word in words:
        page = (BUILD / f"src/cli/mur-{word}.1").read_text()
        assert f"mur\\-{word} (1)" in top and ".SH SEE ALSO" in page and f"mur {word}" in page.replace("\\-", "-"), word


def test_newcomer_a_folder_or_a_manifest_in_the_wrong_place_is_told_its_option(lab):
    project = lab.agent("worker", steps=[{"text": "hi"}])
    for word, meant in ((".", "./murmur.yaml"), ("worker/", "worker/murmur.yaml"), ("worker", "worker/murmur.yaml"), ("other.yaml", "other.yaml")):
        assert f"  hint: a capsule is named by its manifest: --manifest {meant}\n" in lab.mur("run", word).failed(exit_status=2).stderr
    assert 'did you mean --task "hello"?' in project.mur("run", "hello").failed(exit_status=2).stderr


@pytest.mark.parametrize("typed, meant", [("--verson", "--version"), ("-v", "--version"), ("--hlep", "--help")])
def test_newcomer_an_option_of_mur_itself_is_told_its_neighbour(lab, typed, meant):
    assert f"  hint: did you mean '{meant}'?\n" in lab.mur(typed).failed(exit_status=2).stderr


def test_newcomer_B16_a_person_has_the_machine_looked_at_without_a_project(lab):
    doctor = Terminal(lab, "doctor")
    assert doctor.end() == 0
    assert "Landlock" in doctor.text and "only this machine was looked at" in doctor.text and "limits of models" not in doctor.text


def test_chat_help_breaks_no_word_where_it_is_narrow(lab):
    lab.agent("worker", steps=[{"text": "hi"}])
    chat = Terminal(lab, "chat", "worker", columns=40)
    chat.wait_for(r"^> ")
    chat.type("/help\n")
    chat.wait_for("the prompt, leaves")
    lines = [line for line in chat.text.split("/help\n", 1)[1].splitlines() if line.startswith("  ")]
    assert len(lines) > 13 and max(map(len, lines)) <= 40
    chat.type("/quit\n")
    assert chat.end() == 0


def test_newcomer_C7_codes_are_listed_by_family_and_by_word(lab):
    def names(*typed):
        return [line.split()[0] for line in lab.mur("explain", *typed).ok().stdout.splitlines()]
    every = names()
    assert names("sec") == [name for name in every if name[1:].startswith("-SEC-")] != []
    assert names("E-RUN") == [name for name in every if name.startswith("E-RUN-")]
    assert "E-RUN-003" in names("lock") and len(names("lock")) < len(every)
    lab.mur("explain", "E-RUN-999").failed("E-IO-001")
    lab.mur("explain", "nonsenseword").failed("E-IO-001")


def test_newcomer_B19_a_capsule_without_a_version_is_the_newest_that_is_installed(lab):
    for version in ("0.9.0", "0.10.0"):
        source = lab.agent("bot", steps=[{"text": f"I am {version}"}], version=version, runtime="capsule", execution="static")
        source.mur("build").ok()
        lab.mur("publish", source.directory / f"bot-{version}.mur.zip").ok()

    newest = lab.mur("run", "-p", "--capsule", "local/bot", "--task", "hi", cwd=lab.directory).ok()
    older = lab.mur("run", "--capsule", "local/bot", "--capsule-version", "0.9.0", "-p", "--task", "hi", cwd=lab.directory).ok()
    none = lab.mur("run", "--capsule", "local/nobody", "--task", "hi", cwd=lab.directory).failed(exit_status=2)

    assert "I am 0.10.0" in newest.stdout and "local/bot@0.10.0: the newest version" in newest.stderr
    assert "I am 0.9.0" in older.stdout and "newest" not in older.stderr
    assert "no version of local/nobody is installed" in none.stderr and "mur list" in none.stderr
    both = lab.mur("run", "--capsule", "local/bot@0.9.0", cwd=lab.directory).failed(exit_status=2)
    assert "--capsule local/bot --capsule-version 0.9.0" in both.stderr


@pytest.mark.parametrize("version, says", [("1", True), ("1.10", True), ("0x10", True), ("true", True), ("'1'", False), ("1.0.0", False), ("v1", False)])
@pytest.mark.parametrize("command", [("run", "--task", "x"), ("doctor",)])
def test_newcomer_C10_a_version_that_is_a_number_is_said_with_its_remedy(lab, version, says, command):
    project = lab.agent(steps=[{"text": "hi"}])
    manifest = project / "murmur.yaml"
    manifest.write_text(re.sub(r"(?m)^version:.*", f"version: {version}", manifest.read_text()))

    told = project.mur(*command).ok().stderr

    assert (f'version: {version} is taken as the text "{version}"' in told) == says
    assert says == (f'version: "{version}"' in told)


@pytest.mark.parametrize("command", [("build",), ("publish",), ("run", "--task", "x"), ("doctor",), ("mcp", "connect", "vscode"), ("mcp", "serve")])
def test_newcomer_a_folder_without_a_manifest_says_where_one_is_or_how_one_is_made(lab, command):
    folder = lab.directory / "around"
    folder.mkdir()
    assert "mur new agent hello" in lab.mur(*command, cwd=folder).failed("E-IO-001").stderr
    for name in ("b", "deep/a"):
        (folder / name).mkdir(parents=True)
        (folder / name / "murmur.yaml").write_text("name: x\n")
    told = lab.mur(*command, cwd=folder).failed("E-IO-001").stderr
    assert "; b, deep/a have a murmur.yaml" in told and "mur new" not in told


def test_newcomer_publishing_a_folder_says_what_is_published(lab):
    assert ".mur.zip that mur build writes" in lab.mur("publish", ".", cwd=lab.directory).failed("E-IO-003").stderr


READ_ONLY = [("run", "--task", "x"), ("chat",), ("ps",), ("stop", "@1"), ("token",), ("config", "set", "-g", "credentials.X", "y")]


@pytest.mark.parametrize("command", READ_ONLY, ids=" ".join)
def test_newcomer_a_home_that_cannot_be_written_is_said_with_its_remedy(lab, command):
    project = lab.agent(steps=[{"text": "hi"}])
    shutil.rmtree(lab.murmur_home, ignore_errors=True)
    with_mounts(lab, f"mount --bind {lab.home} {lab.home} && mount -o remount,ro,bind {lab.home}")
    told = project.mur(*command, stdin="hi\n").failed().stderr
    assert str(lab.home) in told and ("Read-only file system" in told or "does not let entries be created in it" in told)
    assert "set HOME to another place" in told and "No such file" not in told
