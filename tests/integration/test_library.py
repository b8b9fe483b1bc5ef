# SPDX-License-Identifier: Apache-2.0
#
# libmurmur as its users meet it: a C program that uses every function, the same compiled as C++, and what the file exports.

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.integration.test_door_tasks import doing, probe
from tests.support.door_client import SLEEPER
from tests.support.fixtures import own_component
from tests.support.lab import BUILD, IS_SANITIZED, ROOT
from tests.support.model_server import Reply
from tests.support.polling import eventually, pid_exists
from tests.support.provider_forms import Messages, Turn

ANTHROPIC = Messages()
PROGRAM = BUILD / "tests/library/every-function"
HEADERS = ROOT / "include/murmur"
HELLO = [{"text": "hello there"}]
QUEUE = ("after=sleep", "acceptance=queue")
DECLARED = re.compile(r"\b(mur_\w+) \(")

pytestmark = pytest.mark.skipif(IS_SANITIZED, reason="the library is loaded into programs that are not sanitized")


def use(lab, folder, *steps, program=PROGRAM, env=None):
    done = subprocess.run([program, folder, *map(str, steps)], capture_output=True, text=True, timeout=120, cwd=lab.directory,
                          env={**lab.environment(), **(env or {})})
    assert done.returncode == 0 and done.stderr == "", f"{done.stdout}\n{done.stderr}"
    return done.stdout


def events(output):
    """(kind, text) of each event that was shown on one line."""
    return [(int(kind), text) for kind, text in re.findall(r"^event (\d+) (.*?) (?:TASK_\w+|-) (?:task|-) (?:context|-) (?:json|-)$",
                                                           output, re.M)]


def declared():
    found = set()
    for header in HEADERS.glob("*.h"):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        found |= set(DECLARED.findall(text))
    return found - {"mur_credential_fn"}


# --- the file ---


def test_library_exports_what_its_headers_declare_and_nothing_else():
    listed = subprocess.run(["nm", "-D", "--defined-only", BUILD / "libmurmur.so"], capture_output=True, text=True, check=True)
    exported = {line.split()[2] for line in listed.stdout.splitlines() if " T " in line}
    assert {name.split("@@")[1] for name in exported} == {"MURMUR_0.1"}
    names = {name.split("@")[0] for name in exported}
    assert names == declared()
    assert sorted(names) == (ROOT / "tests/library/symbols.txt").read_text().split(), \
        "the promise of docs/library.md: what was exported stays; what is new is listed"


def test_library_headers_hold_no_structure_of_ours():
    for header in HEADERS.glob("*.h"):
        if header.name != "child.h":  # one argument block, older than the library
            assert not re.search(r"^struct \w+ \{", header.read_text(), re.M), header


def test_library_every_function_is_used_by_the_program():
    text = (ROOT / "tests/library/every_function.c").read_text()
    assert {name for name in declared() if not name.startswith("mur_child_")} <= set(re.findall(r"\bmur_\w+", text))


def test_library_in_cplusplus(lab, tmp_path):
    if not shutil.which("g++"):
        pytest.skip("there is no C++ compiler")
    program = tmp_path / "every-function"
    subprocess.run(["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", "-x", "c++",
                    ROOT / "tests/library/every_function.c", "-x", "none", BUILD / "libmurmur.so", f"-Wl,-rpath,{BUILD}", "-o", program],
                   check=True)
    project = lab.agent(steps=HELLO)
    said = use(lab, project.directory, *QUEUE, "launch", "send=hi", "wait=8", "end", program=program)
    assert (7, "hello there") in events(said) and said.endswith("ended\n")


def test_library_the_guides_program_runs_as_it_stands(lab, tmp_path):
    if not shutil.which("gcc"):
        pytest.skip("there is no C compiler")
    text = re.search(r"```c\n(.*?)```", (ROOT / "docs/library.md").read_text(), re.S).group(1)
    (tmp_path / "guide.c").write_text(text)
    subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", tmp_path / "guide.c", BUILD / "libmurmur.so",
                    f"-Wl,-rpath,{BUILD}", "-o", tmp_path / "guide"], check=True)
    lab.mur("new", "agent", "helper").ok()
    done = subprocess.run([tmp_path / "guide"], cwd=lab.directory, env=lab.environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "You said: What is here?" in done.stdout, done.stderr


# --- a session ---


def test_library_a_session_from_launch_to_totals(lab):
    project = lab.agent(steps=[{"text": "one"}])
    said = use(lab, project.directory, *QUEUE, "launch", "send=a", "wait=8", "totals", "send=b", "wait=8", "end", "wait=11", "wait=1",
               "totals")
    assert re.search(r"launched ses_[0-9a-f]{32} at localhost:\d+, /.*, /.*, fd open", said)
    assert [text for kind, text in events(said) if kind == 7] == ["one", "one"]
    assert "running - turns 0" in said and re.search(r"over ok turns 2 in \d+ out \d+ ms \d+", said)
    assert events(said)[-1] == (11, "ok") and "nothing more" in said


def test_library_sessions_one_after_another_leave_nothing(lab):
    project = lab.agent(steps=HELLO)
    said = use(lab, project.directory, *QUEUE, *(["launch", "send=a", "wait=8", "free"] * 5))
    assert said.count("launched ses_") == 5 and said.count("8 task completed") == 5
    assert list((lab.murmur_home / "running").glob("*")) == []


def test_library_a_task_that_asks(lab):
    project = lab.agent(steps=[doing("ask which one?"), {"text": "thanks"}], tools=[probe(lab)], lifecycle=SLEEPER)
    said = use(lab, project.directory, "launch", "send=go", "wait=6", "answer=this one", "wait=8", "answer=late", "end")
    assert (6, "which one?") in events(said) and "answered" in said and (7, "thanks") in events(said)
    assert "error E-RUN-040" in said and "asks nothing" in said


def test_library_cancel(lab):
    project = lab.agent(steps=[doing("ask which one?"), {"text": "thanks"}], tools=[probe(lab)], lifecycle=SLEEPER)
    said = use(lab, project.directory, "launch", "send=go", "wait=6", "cancel", "wait=8", "cancel", "end")
    assert "cancelled" in said and "TASK_STATE_CANCELED" in said
    assert "error E-IO-003" in said


def test_library_settings_reach_the_session(lab):
    project = lab.agent(steps=[{"text": "ok", "save_request": "request.json"}])
    work = project / "elsewhere"
    work.mkdir()
    said = use(lab, project.directory, f"workdir={work}", "system=Be brief.", "no-env-file", "conversation=threaded", "context=ctx_" + "0" * 31 + "a",
               "deadline=60", "containment=advisory", *QUEUE, "launch", "send=a", "wait=8", "end")
    assert f"{work}" in said and "Be brief." in next(work.rglob("request.json")).read_text()
    session = re.search(r"ses_[0-9a-f]{32}", said).group()
    again = use(lab, project.directory, f"workdir={work}", f"resume={session}", *QUEUE, "launch", "send=b", "wait=8", "end")
    assert "8 task completed" in again


def test_library_manifest_from_memory(lab):
    project = lab.agent(steps=HELLO)
    text = (project / "murmur.yaml").read_text()
    (project / "murmur.yaml").unlink()
    said = use(lab, project.directory, f"text={text}", *QUEUE, "launch", "send=a", "wait=8", "end")
    assert (7, "hello there") in events(said)
    assert "error E-MAN-" in use(lab, project.directory, "text=name: [", "launch")


def test_library_a_script_ends_by_itself(lab):
    project = lab.script_capsule(own_component("capsule-bare"))
    said = use(lab, project.directory, "launch", "wait=11", "send=a", "totals")
    assert " at ," in said and "it has no door" in said and "over ok" in said


def test_library_explain(lab):
    project = lab.agent(steps=HELLO)
    said = use(lab, project.directory, "explain")
    assert '"declared_containment":"advisory"' in said
    assert not (lab.murmur_home / "sessions").exists()
    assert "error E-IO-001" in use(lab, lab.directory / "nowhere", "explain")


def test_library_errors_have_code_message_and_hint(lab):
    said = use(lab, lab.directory / "nowhere", "launch")
    assert "error E-IO-001 the manifest: cannot read" in said and " | run it in a project's folder" in said
    said = use(lab, lab.directory, "program=/no/such/mur", "launch")
    assert "error E-IO-003 cannot run /no/such/mur: No such file or directory" in said
    project = lab.agent(steps=HELLO)
    assert "error E-" in use(lab, project.directory, "containment=iron", "launch")


def environments():
    """Of every mur that runs now, as far as they can be read."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.path.basename(os.readlink(folder / "exe")) == "mur":
                found.append((folder / "environ").read_bytes())
        except OSError:
            pass
    return found


def test_library_keys_by_callback_are_in_no_environment(lab, model):
    seen, with_key = [], []

    def answer(request):
        with_key.append(request.headers.get("x-api-key"))
        seen.extend(environments())
        return Reply(body=ANTHROPIC.whole(Turn(text="hi")), content_type="application/json")

    model.script(answer)
    project = lab.agent(driver=ANTHROPIC.driver, gateway={"endpoint": model.url, "api_key": "${LIBRARY_KEY}"},
                        inference={"driver": {"artifact": "std/driver-anthropic", "config": {"stream": False}}})
    said = use(lab, project.directory, *QUEUE, "keys", "launch", "send=a", "wait=8", "end")
    assert (7, "hi") in events(said) and with_key == ["sk-from-the-callback"]
    assert seen and not any(b"sk-from-the-callback" in one for one in seen)
    assert not any(b"sk-from-the-callback" in path.read_bytes() for path in lab.directory.rglob("*") if path.is_file())
    assert "error E-" in use(lab, project.directory, *QUEUE, "launch")


def test_library_a_host_that_dies_takes_its_session_along(lab):
    project = lab.agent(steps=HELLO)
    process = subprocess.Popen([PROGRAM, project.directory, *QUEUE, "launch", "wait=11"], stdout=subprocess.PIPE, text=True,
                               env=lab.environment())
    try:
        process.stdout.readline()
        session = re.search(r"ses_[0-9a-f]{32}", process.stdout.readline()).group()
        record = lab.murmur_home / "running" / f"{session}.json"
        pid = int(re.search(r'"pid":\s*(\d+)', record.read_text()).group(1))
        process.send_signal(signal.SIGKILL)
        process.wait()
        eventually(lambda: not pid_exists(pid), 30, "the session is gone")
    finally:
        process.kill()
        process.stdout.close()
        process.wait()
