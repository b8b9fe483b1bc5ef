# SPDX-License-Identifier: Apache-2.0
#
# libmurmur as its users meet it: a C program that uses every function, the same compiled as C++, and what the file exports.

import os
import re
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from tests.integration.test_door_tasks import doing, probe
from tests.support.door_client import SLEEPER
from tests.support.fixtures import own_component
from tests.support.formation import FORMATION, Channel, Key, first_line
from tests.support.hooks import Hook
from tests.support.lab import BUILD, IS_SANITIZED, ROOT, Session
from tests.support.model_server import Reply
from tests.support.polling import eventually, pid_exists
from tests.support.provider_forms import Messages, Turn
from tests.support.roost import publish_capsule
from tests.support.spawn import Family, publish_agent

ANTHROPIC = Messages()
PROGRAM = BUILD / "tests/library/every-function"
HEADERS = ROOT / "include/murmur"
HELLO = [{"text": "hello there"}]
QUEUE = ("after=sleep", "acceptance=queue")
DECLARED = re.compile(r"\b(mur_\w+) \(")

pytestmark = pytest.mark.skipif(IS_SANITIZED, reason="the library is loaded into programs that are not sanitized")


def use(lab, folder, *steps, program=PROGRAM, env=None, stderr=""):
    done = subprocess.run([program, folder, *map(str, steps)], capture_output=True, text=True, timeout=120, cwd=lab.directory,
                          env={**lab.environment(), **(env or {})})
    assert done.returncode == 0 and stderr in done.stderr and bool(stderr) == bool(done.stderr), f"{done.stdout}\n{done.stderr}"
    return done.stdout


def events(output):
    """(kind, text) of each event that was shown on one line."""
    return [(int(kind), text) for kind, text in re.findall(r"^event (\d+) (.*?) (?:TASK_\w+|-) (?:task|-) (?:context|-) (?:json|-)$",
                                                           output, re.M)]


def session_of(lab, said):
    return Session(lab, re.search(r"^launched (ses_\w+)", said, re.M)[1])


def declared():
    found = set()
    for header in HEADERS.glob("*.h"):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        found |= set(DECLARED.findall(text))
    return found - {"mur_credential_fn", "mur_event_fn"}


def gateway_project(lab, model, key="${LIBRARY_KEY}"):
    return lab.agent(driver=ANTHROPIC.driver, gateway={"endpoint": model.url, "api_key": key},
                     inference={"driver": {"artifact": "std/driver-anthropic", "config": {"stream": False}}})


# --- the file ---


def test_library_exports_what_its_headers_declare_and_nothing_else():
    listed = subprocess.run(["nm", "-D", "--defined-only", BUILD / "libmurmur.so"], capture_output=True, text=True, check=True)
    exported = {line.split()[2] for line in listed.stdout.splitlines() if " T " in line}
    assert {name.split("@@")[1] for name in exported} == {"MURMUR_0.1"}
    names = {name.split("@")[0] for name in exported}
    assert names == declared()
    assert sorted(names) == (ROOT / "tests/library/symbols.txt").read_text().split(), \
        "the promise of docs/library.md: what was exported stays; what is new is listed"


def test_library_the_archive_gives_no_other_name_to_a_program():
    """Nor does it want anything of what the library does not use."""
    def names(*which):
        listed = subprocess.run(["nm", "-g", *which, BUILD / "libmurmur.a"], capture_output=True, text=True, check=True).stdout
        return {line.split()[-1] for line in listed.splitlines() if len(line.split()) > 1}
    assert names("--defined-only") == declared()
    assert not [name for name in names("--undefined-only") if name.startswith(("MHD_", "yaml_", "wasm"))]


def test_library_headers_hold_no_structure_of_ours():
    for header in HEADERS.glob("*.h"):
        if header.name != "child.h":  # one argument block, older than the library
            assert not re.search(r"^struct \w+ \{", header.read_text(), re.M), header


def test_library_every_function_says_how_threads_may_call_it():
    """In the words of attributes(7), in the comment right above it."""
    told = {}
    for header in HEADERS.glob("*.h"):
        for comment, name in re.findall(r"/\*((?:[^*]|\*(?!/))*)\*/\n[^/;{}]*?\b(mur_\w+) \(", header.read_text()):
            told[name] = re.search(r"\bMT-Safe( env)?(?: race:(\w))?(?:: of several|\.)", re.sub(r"\s+\* ", " ", comment))
    assert {name for name in declared() if not told.get(name)} == set()
    assert {name for name, rule in told.items() if rule and rule[2]} >= {n for n in declared() if n.endswith("_free") or "_set_" in n}


#: what a library may not do to its host: end it, take its signals, change what all of it shares, write to its streams
NOT_A_LIBRARYS = frozenset("""
    abort exit _exit _Exit quick_exit atexit raise signal sigaction sigprocmask alarm setitimer chdir fchdir umask setenv unsetenv putenv
    clearenv setlocale setrlimit prctl setuid setgid setpgid setsid fork vfork wait dup2 system popen printf puts putchar perror
    """.split())
#: function -> what of it that calls all the same
REASONED = {
    "become": NOT_A_LIBRARYS,  # between fork and execve, in the process that is to be another
    "child_start": {"fork"},
    "alloc_out_of_memory": {"abort", "signal", "_exit"},  # docs/library.md says that there is no memory is the end
}
#: what of the library is not its handles': each is made once, or told to nobody
SHARED = {
    "api": "libcurl's functions", "loaded_once": "of libcurl", "load_fault": "of libcurl", "once": "the resolver's begin",
    "last_stamp": "of ids", "sink": "where lines of a child go",
}


def test_library_does_nothing_to_its_host():
    code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", BUILD / "libmurmur.so"], capture_output=True, text=True, check=True).stdout
    calls = set()
    for function, body in re.findall(r"^[0-9a-f]+ <([^>@]+)>:\n((?:.+\n)*)", code, re.M):
        calls |= {(function, name) for name in re.findall(r"\b(?:call|jmp|b|bl)\s+[0-9a-f]+ <(\w+)@plt>", body)}
    assert "pthread_create" in {name for _, name in calls}, "calls are seen"
    assert [(f, name) for f, name in sorted(calls) if name in NOT_A_LIBRARYS and name not in REASONED.get(f, ())] == []
    imported = subprocess.run(["nm", "-D", "--undefined-only", BUILD / "libmurmur.so"], capture_output=True, text=True, check=True).stdout
    assert not re.search(r" (stdout|stderr|stdin)\b", imported)


def test_library_has_no_state_but_its_handles():
    listed = subprocess.run(["nm", "-f", "sysv", BUILD / "libmurmur.so"], capture_output=True, text=True, check=True).stdout
    rows = [[cell.strip() for cell in line.split("|")] for line in listed.splitlines() if line.count("|") == 6]
    written = {row[0] for row in rows if row[6] in (".data", ".bss", ".tdata", ".tbss")}
    assert {name for name in written if not name.startswith(("__", "completed."))} == set(SHARED)


@pytest.fixture(scope="module", params=["C", "C++", "static"])
def program(request, tmp_path_factory):
    """The program that uses every function, in C, in C++ and with the archive: all call what is declared, by their symbol tables."""
    if request.param == "C":
        made = PROGRAM
    elif request.param == "static" and shutil.which("gcc"):
        made = tmp_path_factory.mktemp("static") / "every-function"
        private = re.search(r"^Libs\.private: (.*)", (BUILD / "meson-private/murmur.pc").read_text(), re.M)[1].split()
        subprocess.run(["gcc", "-D_GNU_SOURCE", f"-I{ROOT / 'include'}", ROOT / "tests/library/every_function.c", BUILD / "libmurmur.a",
                        *private, "-o", made], check=True)
        (made.parent / "mur").symlink_to(BUILD / "mur")
    elif shutil.which("g++"):
        made = tmp_path_factory.mktemp("cplusplus") / "every-function"
        subprocess.run(["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", "-x", "c++",
                        ROOT / "tests/library/every_function.c", "-x", "none", BUILD / "libmurmur.so", f"-Wl,-rpath,{BUILD}", "-o", made],
                       check=True)
    else:
        pytest.skip("there is no compiler of that")
    return made


def test_library_every_function_is_used_by_the_program(program):
    listed = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r" [UT] (mur_\w+)", listed)) == declared()


def test_library_a_session_in_c_and_in_cplusplus(lab, program):
    project = lab.agent(steps=HELLO)
    said = use(lab, project.directory, *QUEUE, "launch", "send=hi", "wait=8", "end", program=program)
    assert (7, "hello there") in events(said) and said.endswith("ended\n")


def test_library_a_session_of_an_evaluation(lab):
    """Its case and data set reach the hooks that score, and the data set is the manifest's where none is named."""
    hook = Hook(lab, name="score", on={"on-session-end": {"env": ["MURMUR_CASE_ID", "MURMUR_DATASET_ID"]}})
    project = lab.agent(steps=HELLO, tools=[hook.entry], observability={"eval": {"dataset_id": "of-the-manifest", "scorers": []}})
    seen = []
    for steps in (["case=c 1", "dataset=ours"], ["case=c2"], []):
        said = use(lab, project.directory, *steps, "task=go", "launch", "over", "free")
        seen += hook.seen(session_of(lab, said), "on-session-end")
    assert [(one.get("MURMUR_CASE_ID"), one.get("MURMUR_DATASET_ID")) for one in seen] == [
        ("c 1", "ours"), ("c2", "of-the-manifest"), (None, "of-the-manifest")]


def test_library_a_session_that_is_a_member_of_a_formation(lab):
    project = lab.agent(steps=[HELLO[0]])
    channel = Channel(first_line(Key()))
    env = {"MURMUR_FORMATION_ID": FORMATION, "MURMUR_FORMATION_CHANNEL": str(channel.read_end),
           "MURMUR_FORMATION_LIFELINE": str(channel.lifeline_read)}
    host = subprocess.Popen([PROGRAM, project.directory, *QUEUE, "member", "launch", "over", "totals"], stdout=subprocess.PIPE, text=True,
                            env={**lab.environment(), **env}, pass_fds=(channel.read_end, channel.lifeline_read))
    os.close(channel.read_end)
    os.close(channel.lifeline_read)
    launched = host.stdout.readline() + host.stdout.readline()
    assert "launched ses_" in launched
    channel.cut()
    said, _ = host.communicate(timeout=120)
    channel.close()
    assert "over formation_ended " in said
    assert session_of(lab, launched).trace.one("session_start")["formation_id"] == FORMATION


@pytest.mark.parametrize("env, code", [({}, "E-RUN-046"), ({"MURMUR_FORMATION_CHANNEL": "no"}, "E-RUN-046"),
                                       ({"MURMUR_FORMATION_CHANNEL": "99", "MURMUR_FORMATION_LIFELINE": "98"}, "E-RUN-046"),
                                       ({"MURMUR_FORMATION_CHANNEL": "0", "MURMUR_FORMATION_LIFELINE": "0",
                                         "MURMUR_FORMATION_ID": "frm_0"}, "E-RUN-044")])
def test_library_no_member_without_a_place(lab, env, code):
    said = use(lab, lab.agent(steps=HELLO).directory, "member", "launch", env=env)
    assert f"error {code} " in said and "launched" not in said


def test_library_a_child_in_c_and_in_cplusplus(lab, program):
    publish_agent(lab, "child-agent", HELLO)
    publish_capsule(lab, "suite-parent", capabilities={"spawn": {"allow": ["local/child-agent"]}})
    (lab.directory / "records").mkdir()
    with Family(lab) as family:
        words = ("local/child-agent", lab.directory / "records", family.roost.url)
        said = use(lab, lab.directory, f"child={','.join(map(str, (family.approval(words[0]), *words)))}", program=program,
                   env={"MURMUR_MUR_BINARY": str(BUILD / "mur")}, stderr="asked to stop: winding down")
    assert re.search(r"child run ses_[0-9a-f]{32} at http://\S+, /.*, /.*, 1 and 1\n", said), said
    assert re.search(r"formation - token - snapshot - first \w+=.* pid 1\nbeing ended\nexited with 0, told\n", said), said


@pytest.fixture
def guide(lab, tmp_path):
    """Runs a program of the guide, as it stands, with these lines of input."""
    if not shutil.which("gcc"):
        pytest.skip("there is no C compiler")
    lab.mur("new", "agent", "helper").ok()
    texts = re.findall(r"```c\n(.*?)```", (ROOT / "docs/library.md").read_text(), re.S)

    def run(number, lines=""):
        (tmp_path / "guide.c").write_text(texts[number])
        subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", tmp_path / "guide.c", BUILD / "libmurmur.so",
                        f"-Wl,-rpath,{BUILD}", "-o", tmp_path / "guide"], check=True)
        done = subprocess.run([tmp_path / "guide"], cwd=lab.directory, env=lab.environment(), capture_output=True, text=True, timeout=120,
                              input=lines)
        assert done.returncode == 0 and done.stderr == "", done.stderr
        return done.stdout
    return run


def test_library_the_guides_program_runs_as_it_stands(guide):
    assert "You said: What is here?" in guide(0)


def test_library_the_guides_batch_runs_eight_at_a_time(guide):
    said = guide(1, "".join(f"task {number}\n" for number in range(20)))
    assert sorted(re.findall(r"ok: You said: task (\d+)", said), key=int) == [str(number) for number in range(20)]


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


def test_library_a_first_task_is_begun_at_once(lab):
    project = lab.agent(steps=[{"text": "You said: {{task}}"}])
    said = use(lab, project.directory, "task=over standard input", "launch", "wait=11", "totals")
    assert (7, "You said: over standard input") in events(said)
    assert "result You said: over standard input, error -, token of ci -" in said and "over ok turns 1" in said


def test_library_a_first_task_waits_for_its_watcher(lab):
    """Nothing of it is missed, however quick it is: ten sessions, each over in a few milliseconds."""
    project = lab.agent(steps=HELLO)
    said = use(lab, project.directory, "task=x", *(["launch", "wait=11", "free"] * 10), "explain")
    assert events(said).count((7, "hello there")) == 10 and events(said).count((8, "task completed")) == 10
    assert "declared_containment" in said


def test_library_events_by_callback(lab):
    project = lab.agent(steps=[doing("ask which one?"), {"text": "thanks"}], tools=[probe(lab)], lifecycle=SLEEPER)
    said = use(lab, project.directory, "events", "task=go", "launch", "over", "free")
    assert (6, "which one?") in events(said) and (7, "thanks") in events(said)
    assert said.index("called back: answered") < said.index("called back: ended") < said.index("event 11 ok")


def test_library_what_a_person_may_say_to_mur_run_can_be_said(lab):
    project = lab.agent(steps=[{"text": "ok"}], network={"authentication": {
        "scheme": "bearer", "credentials": {"ci": {"scopes": ["SendMessage"]}}}})
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    store, secrets = lab.directory / "store", lab.directory / "secrets"
    store.mkdir()
    secrets.mkdir(mode=0o700)
    said = use(lab, project.directory, "model=other", "max-tokens=100000", "bind=127.0.0.1", f"port={port}",
               "public-url=https://agents.example.com", f"secrets-dir={secrets}", f"records-store=file://{store}", *QUEUE, "launch",
               "send=a", "wait=8", "end", "totals")
    assert f":{port}" in said and "with a token" in said and "token of ci there" in said
    trace = next(lab.murmur_home.rglob("trace.jsonl")).read_text()
    assert '"other"' in trace and list(store.rglob("*"))
    session = re.search(r"ses_[0-9a-f]{32}", said).group()
    assert "compact" in use(lab, project.directory, f"resume={session}", "resume-mode=compact", *QUEUE, "launch")
    context = f"context=ctx_{'0' * 31}a"
    assert "error E-IO-003 --forget-session needs --context as well\n" in use(lab, project.directory, "forget", "launch")
    assert "error E-RUN-039 --forget-session" in use(lab, project.directory, "forget", context, "launch")
    assert "launched" in use(lab, project.directory, "unconfined", *QUEUE, "launch", "end")


@pytest.mark.parametrize("ending, code, setting", [("max_turns_reached", "E-RUN-040", "max-tokens=100000"),
                                                   ("deadline_reached", "E-RUN-053", "deadline=1"),
                                                   ("spend_ceiling_reached", "E-RUN-0", "max-tokens=1")])
def test_library_why_a_session_ended(lab, ending, code, setting):
    project = lab.agent(steps=[doing("sleep 60000" if ending == "deadline_reached" else "say hi")] * 3, tools=[probe(lab)],
                        inference={"max_turns": 2})
    said = use(lab, project.directory, setting, "task=go", "launch", "wait=11", "totals")
    assert f"over {ending} " in said and f"error {code}" in said, said


def test_library_a_session_that_never_was_ready_is_none(lab):
    """Its port is taken: that is found after its staging, and its one line is that of its end."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        project = lab.agent(steps=HELLO)
        said = use(lab, project.directory, f"port={taken.getsockname()[1]}", *QUEUE, "launch")
    assert "error E-RUN-" in said and "launched" not in said


# --- hosts of every kind ---

HARD = BUILD / "tests/library/hard-host"


@pytest.mark.parametrize("case", ["signals", "reaping", "descriptors", "forks", "freed-by-callback", "freed-during-callback", "threads",
                                  "wrong-calls", "no-handles", "few-descriptors", "small-files", "moved", "busy-forks"])
def test_library_in_a_host_with(lab, case):
    project = lab.agent(steps=HELLO)
    assert use(lab, case, project.directory, program=HARD) == "ok\n"


@pytest.mark.parametrize("case", ["ended-by-key", "freed-by-key"])
def test_library_in_a_host_whose_callback_for_keys_ends_the_session(lab, model, case):
    model.script(repeat=Reply(body=ANTHROPIC.whole(Turn(text="hi")), content_type="application/json"))
    project = gateway_project(lab, model, key="${A_KEY}")
    assert use(lab, case, project.directory, program=HARD) == "ok\n"


def test_library_what_the_hosts_own_launcher_told_it_reaches_no_session(lab):
    project = lab.agent(steps=HELLO)
    said = use(lab, project.directory, *QUEUE, "keys", "launch", "send=a", "wait=8", "end",
               env={"MURMUR_SPAWNER_LIFELINE": "77", "MURMUR_CREDENTIALS_FD": "78", "MURMUR_SPAWNER": "{}"})
    assert (7, "hello there") in events(said)


def test_library_the_key_of_a_session_that_died_kills_no_host(lab, model):
    """Its pipe has no reader any more: no SIGPIPE."""
    model.script(repeat=Reply(body=ANTHROPIC.whole(Turn(text="hi")), content_type="application/json"))
    project = gateway_project(lab, model)
    said = use(lab, project.directory, *QUEUE, "keys", "launch", "send=a", "free", "launch", "free")
    assert said.count("launched") == 2


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
    project = gateway_project(lab, model)
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
