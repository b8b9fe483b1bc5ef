# SPDX-License-Identifier: Apache-2.0
#
# What the grants report says, tried: every statement of `effective_grants` about commands is checked against what a command
# of that very session can do, on this host, on one that mounts nothing, and on one without Landlock.

import socket
from pathlib import Path

import pytest

from tests.support.commands import answers, command_agent
from tests.support.hosts import CLASSES, needs, without_calls, without_landlock

HOSTS = {"this host": None, "no mounts": lambda lab: without_calls(lab, "mount"), "no Landlock": without_landlock}
PATH = "/usr/local/bin:/usr/bin:/bin"


@pytest.fixture(params=HOSTS)
def host(request, lab):
    needs(lab, "scoped")
    if HOSTS[request.param]:
        HOSTS[request.param](lab)
    return request.param


class Tried:
    """One session: its report, and what each command line of it came to."""

    def __init__(self, lab, lines, workdir=None, arguments=(), env=None, **more):
        steps = [{"tool_calls": [{"name": "bash", "input": {"command": line}}]} for line in lines.values()]
        more.setdefault("shell", ("bash", "cat", "cp", "ls", "env"))
        self.project = command_agent(lab, steps, **more)
        self.work = Path(workdir or self.project / "work")
        self.result = self.project.run("--task", "go", "--workdir", self.work, *arguments, env={"PATH": PATH, **(env or {})}).ok()
        self.session = lab.session(self.result)
        self.grants = self.session.trace.one("session_start")["effective_grants"]
        saved, here = self.project / "work", self.work
        if here != saved:
            (here / "conversation.json").rename(saved / "conversation.json")
        self.answers = dict(zip(lines, answers(self.project)))

    def succeeded(self, name):
        return self.answers[name].code == 0


WRITES = {
    "records file": "echo x > $MURMUR_RECORDS_DIR/zz",
    "records trace": "echo '{\"event_type\":\"intruder\"}' >> $MURMUR_RECORDS_DIR/trace.jsonl",
    "runtime file": "echo x > $MURMUR_RUNTIME_DIR/zz",
    "runtime cut": ": > $MURMUR_RUNTIME_DIR/task.md",
}


def assert_directories_as_told(tried):
    not_protected = " ".join(tried.grants["filesystem_boundary"]["not_protected"])
    for key, name in (("records_dir", "records"), ("runtime_dir", "runtime")):
        told = tried.grants[key]
        wrote = [write for write in WRITES if write.startswith(name) and tried.succeeded(write)]
        assert told["read_only_to_commands"] == (told["enforced_by"] is not None)
        if told["read_only_to_commands"]:
            assert not wrote and told["not_protected_because"] is None, (key, told, wrote)
            assert f"{name} directory" not in not_protected
        else:
            assert told["not_protected_because"], told
            assert f"a command can change the {name} directory: {told['not_protected_because']}" in not_protected
    return tried


def test_T1_the_two_directories_of_a_session_beside_the_work_folder(lab, host):
    tried = assert_directories_as_told(Tried(lab, WRITES))
    enforced = {tried.grants[key]["enforced_by"] for key in ("records_dir", "runtime_dir")}
    assert enforced == ({None} if host == "no Landlock" else {"landlock"})


def inside(lab, below="", arguments=()):
    """A session whose work folder holds the home, or a part of it."""
    work = lab.murmur_home / below if below else lab.home
    work.mkdir(parents=True, exist_ok=True)
    return Tried(lab, WRITES, workdir=work, arguments=arguments)


@pytest.mark.parametrize("below", ["", "records", "sessions"])
def test_T1_home_inside_the_work_folder(lab, host, below):
    tried = assert_directories_as_told(inside(lab, below))
    assert "W-SEC-033" in tried.result.stderr
    told = {name: tried.grants[f"{name}_dir"] for name in ("records", "runtime")}
    is_inside = {"": ("records", "runtime"), "records": ("records",), "sessions": ("runtime",)}[below]
    for name in is_inside:
        if host == "this host":
            assert told[name]["enforced_by"] == "mountns+landlock", told
        else:
            assert told[name]["enforced_by"] is None, told
        if host == "no mounts":
            assert any(tried.succeeded(write) for write in WRITES if write.startswith(name)), (name, told)
            assert str(tried.work) in told[name]["not_protected_because"]
    assert (lab.session(tried.result).trace.types)[-1] == "session_end"


def test_T1_home_inside_the_work_folder_outside_tmp(lab):
    """The same where nothing of it lies below /tmp, which commands have of their own anyway."""
    needs(lab, "scoped")
    import tempfile
    with tempfile.TemporaryDirectory(dir="/var/tmp") as elsewhere:
        work = Path(elsewhere).resolve()
        (work / "home").mkdir()
        lab.env["HOME"] = str(work / "home")
        lab.home = work / "home"
        steps = [{"tool_calls": [{"name": "bash", "input": {"command": line}}]}
                 for line in [*WRITES.values(), "echo kept > $HOME/note && echo kept > /tmp/note"]]
        project = command_agent(lab, steps)
        result = project.run("--task", "go", "--workdir", work).ok()
        (work / "conversation.json").rename(project / "work/conversation.json")
        codes = [answer.code for answer in answers(project)]
        grants = lab.session(result).trace.one("session_start")["effective_grants"]
        assert grants["records_dir"]["enforced_by"] == grants["runtime_dir"]["enforced_by"] == "mountns+landlock"
        assert [code == 0 for code in codes] == [False] * len(WRITES) + [True], [str(answer) for answer in answers(project)]


def test_T1_the_explained_scope_says_the_same_as_the_record(lab, host):
    tried = inside(lab)
    told = tried.project.run("--explain-scope", "--json", "--workdir", tried.work, env={"PATH": PATH}).ok().json
    for key in ("records_dir", "runtime_dir", "filesystem_boundary", "temp_dir", "enforcement_tier"):
        assert told[key] == tried.grants[key], key
    text = tried.project.run("--explain-scope", "--workdir", tried.work, env={"PATH": PATH}).ok().stdout
    for key in ("records_dir", "runtime_dir"):
        said = tried.grants[key]
        assert (f"commands:  read only ({said['enforced_by']})" if said["enforced_by"] else
                f"commands:  can change it — {said['not_protected_because']}") in text


def test_T1_what_the_report_says_of_files_and_programs(lab, host):
    outside = lab.directory / "outside.txt"
    outside.write_text("outside")
    target = lab.directory / "made-outside"
    lines = {
        "read outside": f"cat {outside}",
        "write outside": f"echo x > {target}",
        "temp": "echo mine > ${TMPDIR:-/tmp}/note; echo told $TMPDIR; echo x > /tmp/murmur-report-note; cat ${TMPDIR:-/tmp}/note",
        "not allowed": "head -c1 note",
        "own program": "cp /bin/true ./mine; ./mine",
        "read only": "echo x > kept/file",
        "environment": "env",
        "unix socket": "exec 3<>/dev/tcp/127.0.0.1/1",
    }
    try:
        tried = Tried(lab, lines, capabilities={"filesystem": {"read_only": ["kept"]}}, files=None)
        grants = tried.grants
    finally:
        host_note = Path("/tmp/murmur-report-note")
        was_on_host = host_note.exists()
        host_note.unlink(missing_ok=True)
    restriction = grants["filesystem_boundary"]["restriction"]
    if restriction == "advisory":
        assert tried.succeeded("read outside") or grants["temp_dir"]["tmp_mapped"], tried.answers
    else:
        assert not tried.succeeded("read outside") and not target.exists(), tried.answers
    # The temporary folder.
    temp = grants["temp_dir"]
    assert f"told {temp['tmpdir'].replace('<session-id>', tried.session.id)}" in tried.answers["temp"].stdout
    assert (tried.session.records / "tmp/note").read_text() == "mine\n"
    assert temp["tmp_mapped"] == (temp["mapped_by"] is not None) == (temp["not_mapped_because"] is None)
    if temp["tmp_mapped"]:
        assert not was_on_host
    # Programs.
    assert not tried.succeeded("own program") if not grants["workdir_exec"] and restriction != "advisory" else True
    if restriction != "advisory":
        assert not tried.succeeded("not allowed")
    # Protected paths are kept whatever the class.
    assert grants["read_only_paths"] == ["kept"] and not tried.succeeded("read only")
    names = {line.split("=", 1)[0] for line in tried.answers["environment"].stdout.splitlines()}
    assert "MURMUR_RECORDS_DIR" in names and "MURMUR_ROOST_URL" not in names


def test_T1_what_the_report_says_of_the_network(lab, host):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        tried = Tried(lab, {"connect": f"exec 3<>/dev/tcp/127.0.0.1/{port}"})
        assert tried.grants["network_allow"] == [] and not tried.succeeded("connect")
        open_one = Tried(lab, {"connect": f"exec 3<>/dev/tcp/127.0.0.1/{port}"}, name="open",
                         capabilities={"network": {"allow": [f"127.0.0.1:{port}"]}})
        assert open_one.grants["network_allow"] == [f"127.0.0.1:{port}"]
        # What is listed is reached through the session's own relay.
        assert open_one.succeeded("connect"), open_one.answers


def test_T1_the_class_that_is_told_is_the_one_that_is_kept(lab):
    for wanted in CLASSES:
        needs(lab, wanted)
        tried = Tried(lab, {"read": "cat /etc/shadow", "see": "ls -d /root /home", "name": "ls -d /opt"}, name=f"agent-{wanted}",
                      capabilities={"containment": wanted})
        said = tried.grants["filesystem_boundary"]["restriction"]
        assert CLASSES.index(tried.grants["achieved_containment"]) >= CLASSES.index(wanted)
        assert not tried.succeeded("read"), tried.answers["read"]
        if said == "absent":
            assert not tried.succeeded("see") and "No such file" in tried.answers["see"].stderr, tried.answers["see"]
        else:
            # Denied is not absent, as `not_protected` says.
            assert said == "enforced" and tried.succeeded("name"), tried.answers["name"]
