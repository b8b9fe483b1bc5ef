# SPDX-License-Identifier: Apache-2.0
#
# Launching real children through include/murmur/child.h, as an embedder does: S1-S8, S10, S11, S13-S18 of spec/spawn.md. The
# parent is a small program around the library; daemon, children and store are real. S9 is in test_delegated_session.py, S12 a
# unit test, S19 with the snapshot.

import json
import os
import re
import stat
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.fixtures import own_component
from tests.support.lab import IS_SANITIZED, SLOWER
from tests.support.polling import descriptor_count, eventually, pid_exists, threads_of, tree_of
from tests.support.roost import publish_capsule
from tests.support.spawn import CONTEXT, DELEGATION, PARENT, Family, Launcher, handle, publish_agent, send_task

FORMATION = "frm_" + "1" * 32
HELLO = [{"text": "hello"}]
IN_ORDER = ["PATH", "HOME", "LOGNAME", "USER", "MURMUR_ROOST_URL", "MURMUR_HOST_WARNINGS_REPORTED", "MURMUR_SPAWNER_LIFELINE"]
CHILDREN = ["child-agent", "child-a", "child-b", "child-echo", "child-script", "child-sealed", "child-repeat", "child-files"]


def probe(*lines):
    """An agent's two turns: the probe runs the lines, then it ends."""
    return [{"tool_calls": [{"name": "probe", "input": {"do": "\n".join(lines)}}]}, {"text": "done"}]


def tool_agent(lab, name, lines, env=()):
    artifact, version = lab.publish("probe", own_component("tool-probe"), input_schema={"type": "object"}).split("@")
    return publish_agent(lab, name, probe(*lines), artifacts=[{"name": artifact, "version": version, "runtime": "tool"}],
                         capabilities={"env": {"allow": list(env)}}, trace={"capture": "content"})


@pytest.fixture
def family(lab):
    publish_agent(lab, "child-agent", HELLO)
    publish_capsule(lab, "child-script")
    publish_agent(lab, "child-a", HELLO, capabilities={"env": {"allow": ["WORKER_A_ONLY"]}})
    publish_agent(lab, "child-b", HELLO, capabilities={"env": {"allow": ["WORKER_B_ONLY"]}})
    publish_agent(lab, "child-sealed", HELLO, capabilities={"containment": "sealed"})
    publish_capsule(lab, "suite-parent", capabilities={
        "env": {"allow": ["WORKER_A_ONLY", "WORKER_B_ONLY", "WORKER_TOKEN"]},
        "spawn": {"allow": [f"local/{name}" for name in CHILDREN]}})
    with Family(lab) as family:
        yield family


@pytest.fixture
def start(lab, family):
    """Starts launchers; what they hold is dropped with the test."""
    started = []

    def start_one(**env):
        started.append(Launcher(lab, family, env))
        return started[-1]
    yield start_one
    for launcher in started:
        launcher.close()


def place(child, name, text):
    with open(f"{child.workdir}/{name}", "w", encoding="ascii") as placed:
        placed.write(text)


def run_task(child):
    """Hands a task over and waits for its end; what the probe answered."""
    send_task(child.url)
    eventually(lambda: any(event["event_type"] == "task_end" for event in child.trace), 30 * SLOWER, "the task ended")
    return "\n".join(event.get("output", "") for event in child.trace if event["event_type"] == "tool_call")


def test_spawn_S1_an_agent_child_is_a_process_of_its_own_with_a_door(lab, family, start):
    answer = family.roost.spawn(family.credential, "local/child-agent").ok()
    assert list(answer) == ["approval", "name", "version", "sha256", "expires_at_ms"]
    child = start().launch("local/child-agent", approval=answer["approval"])
    assert child.pid != os.getpid() and child.url.startswith("http://") and child.session_id.startswith("ses_")
    assert open(f"/proc/{child.pid}/comm", encoding="ascii").read() == "mur\n"
    assert family.roost.status(child.session_id).ok()["status"] == "running"
    assert send_task(child.url).startswith("tsk_")


def test_spawn_S2_siblings_share_no_variable_and_no_folder(lab, family, start):
    launcher = start(WORKER_A_ONLY="a", WORKER_B_ONLY="b", GITHUB_TOKEN="ghp_x")
    one = launcher.launch("local/child-a", env_allow=["WORKER_A_ONLY"])
    two = launcher.launch("local/child-b", env_allow=["WORKER_B_ONLY"])
    for child, own, others in ((one, "WORKER_A_ONLY", "WORKER_B_ONLY"), (two, "WORKER_B_ONLY", "WORKER_A_ONLY")):
        names = [entry.split("=", 1)[0] for entry in launcher.environment_of(child)]
        assert own in names and others not in names and "GITHUB_TOKEN" not in names
        assert os.path.dirname(child.workdir) == str(launcher.parent_dir / "children")
        assert os.path.basename(child.records_dir) == child.session_id and os.path.isdir(child.records_dir + "/home")
    assert one.records_dir != two.records_dir
    place(one, "mine.txt", "x")
    assert tree_of(two.workdir) == []
    assert ".murmur" not in [os.path.basename(path) for path in tree_of(launcher.parent_dir)]


@pytest.mark.parametrize("held", [(), ("LOGNAME",), ("LOGNAME", "USER")])
def test_spawn_S3_the_environment_is_eight_names_in_their_order(lab, family, start, held):
    launcher = start(**{name: "someone" for name in held})
    expected = [name for name in IN_ORDER if name not in ("LOGNAME", "USER") or name in held]
    plain = launcher.launch("local/child-agent")
    assert plain.names == expected
    assert launcher.environment_of(plain) == plain.environment
    lineage = launcher.launch("local/child-agent", spawner=handle())
    assert lineage.names == expected + ["MURMUR_SPAWNER"]
    assert launcher.environment_of(lineage) == lineage.environment
    assert lineage.value("MURMUR_HOST_WARNINGS_REPORTED") == "1"
    assert lineage.value("MURMUR_ROOST_URL") == family.roost.url
    start_line = lineage.trace[0]
    assert (start_line["spawned_by"], start_line["delegation_id"]) == (PARENT, DELEGATION)
    assert "spawned_by" not in plain.trace[0]


@pytest.mark.parametrize("spawner", [None, handle()])
def test_spawn_S4_a_formations_id_comes_last_and_is_reported(lab, family, start, spawner):
    launcher = start()
    child = launcher.launch("local/child-agent", formation_id=FORMATION, spawner=spawner)
    assert child.environment[-1] == f"MURMUR_FORMATION_ID={FORMATION}"
    assert launcher.environment_of(child)[-1] == child.environment[-1]
    assert child.formation_id == FORMATION and child.trace[0]["formation_id"] == FORMATION
    without = launcher.launch("local/child-agent", spawner=spawner)
    assert "MURMUR_FORMATION_ID" not in without.names and without.formation_id is None


def test_spawn_S5_a_deadline_is_handed_on_and_every_launch_is_contained(lab, family, start):
    launcher = start()
    at = int(time.time() * 1000) + 300_000
    bounded = launcher.launch("local/child-agent", inherited_deadline_ms=at)
    assert bounded.argument("--inherited-deadline") == str(at)
    deadline = bounded.trace[0]["deadline"]
    assert deadline["source"] == "inherited"
    assert deadline["at"] == time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at // 1000))
    unbounded = launcher.launch("local/child-agent")
    assert "--inherited-deadline" not in unbounded.argv
    for child in (bounded, unbounded):
        assert "--contained-launch" in child.argv and "--unconfined" not in child.argv
        assert any(child.workdir in line for line in launcher.launches)


def test_spawn_S6_a_child_stays_in_its_folder(lab, family, start):
    tried = ["read ./input.txt", "read ../../parent-secret.txt", "read ../SIBLING/sibling-secret.txt",
             "read link.txt", "read link.txt/", "read linked/parent-secret.txt"]
    tool_agent(lab, "child-files", ["write ../../outside.txt escaped", *tried])
    launcher = start()
    sibling = launcher.launch("local/child-agent")
    secrets = {launcher.parent_dir / "parent-secret.txt": "of the parent",
               launcher.parent_dir / "children" / os.path.basename(sibling.workdir) / "sibling-secret.txt": "of the sibling"}
    for path, text in secrets.items():
        path.write_text(text)
    child = launcher.launch("local/child-files")
    (launcher.parent_dir / "children" / "SIBLING").symlink_to(sibling.workdir)
    place(child, "input.txt", "placed by the parent")
    os.symlink(launcher.parent_dir / "parent-secret.txt", child.workdir + "/link.txt")
    os.symlink(launcher.parent_dir, child.workdir + "/linked")
    told = run_task(child)
    assert "write: error" in told and "placed by the parent" in told, told
    assert told.count("read: error") == len(tried) - 1
    for secret in secrets.values():
        assert secret not in told
    assert not list(lab.directory.rglob("outside.txt"))
    assert {path: path.read_text() for path in secrets} == secrets


def test_spawn_S7_the_same_capsule_twice_is_served_its_own_input(lab, family, start):
    tool_agent(lab, "child-repeat", ["read ./input.txt", "read ../OTHER/input.txt"])
    launcher = start()
    first, second = (launcher.launch("local/child-repeat") for _ in range(2))
    (launcher.parent_dir / "children" / "OTHER").symlink_to(first.workdir)
    for child, text in ((first, "input one"), (second, "input two")):
        place(child, "input.txt", text)
        name = os.path.basename(child.workdir)
        assert re.fullmatch(r"child-repeat-[0-9a-f]{16}", name)
        assert stat.S_IMODE(os.stat(child.workdir).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(launcher.parent_dir / "children").st_mode) == 0o700
    told = run_task(second)
    assert "input two" in told and "input one" not in told and "read: error" in told
    assert tree_of(first.workdir) == ["input.txt"]
    assert "input one" in run_task(first)


def test_spawn_S8_no_token_is_anywhere_a_sibling_could_read(lab, family, start):
    tool_agent(lab, "child-echo", ["env"], env=["WORKER_TOKEN"])
    launcher = start(WORKER_TOKEN="of the worker", GITHUB_TOKEN="ghp_decoy")
    approval = family.approval("local/child-echo")
    tokens = [approval, family.credential]
    child = launcher.launch("local/child-echo", approval=approval, env_allow=["WORKER_TOKEN"])
    for pid in (child.pid, launcher.process.pid):
        for name in ("cmdline", "environ"):
            with open(f"/proc/{pid}/{name}", "rb") as shown:
                text = shown.read()
            assert not any(token.encode() in text for token in tokens)
    told = run_task(child)
    assert "of the worker" in told and "GITHUB_TOKEN" not in told
    assert not any(token in word for token in tokens for word in child.argv + child.environment)
    holds_no_token(lab, tokens)

    approval = family.approval("local/child-agent")
    text = launcher.refused("local/child-agent", approval=approval, roost_url="http://127.0.0.1:1")
    assert "http://127.0.0.1:1" in text and "E-RUN-019" in text
    assert approval not in text and family.credential not in text
    holds_no_token(lab, [*tokens, approval])


def holds_no_token(lab, tokens):
    for path in lab.directory.rglob("*"):
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            assert not any(token.encode() in content for token in tokens), path


def test_spawn_S10_containment_5_a_child_that_asks_for_sealed_gets_it_or_does_not_run(lab, family, start):
    answer = start().try_launch("local/child-sealed")
    if "error" in answer:
        assert "declared containment class 'sealed'" in answer["error"]
        assert "is not achievable on this host" in answer["error"]
        return
    with open(answer["records_dir"] + "/trace.jsonl", encoding="utf-8") as trace:
        grants = json.loads(trace.readline())["effective_grants"]
    assert grants["achieved_containment"] == "sealed"
    assert grants["enforcement_tier"] == "mountns+pivot_root+landlock+seccomp"


def test_spawn_S11_a_child_without_a_floor_gets_what_this_host_decides(lab, family, start):
    alone = lab.agent(steps=HELLO).run("--task", "x").ok()
    expected = lab.session(alone).trace.one("session_start")
    child = start().launch("local/child-agent")
    line = child.trace[0]
    assert line["containment_achieved"] == expected["containment_achieved"] != "sealed"
    for key in ("achieved_containment", "enforcement_tier"):
        assert line["effective_grants"][key] == expected["effective_grants"][key]
    assert line["host_facts"] == expected["host_facts"]


def test_spawn_S13_dropping_the_handle_ends_and_reaps_the_child(lab, family, start):
    child = start().launch("local/child-agent")
    child.drop()
    assert not os.path.exists(f"/proc/{child.pid}")
    assert child.trace[-1]["event_type"] == "session_end"
    assert "spawner_ended" not in [event["event_type"] for event in child.trace]
    assert family.roost.status(child.session_id).ok()["status"] == "complete"


def test_spawn_S14_a_child_lives_while_its_handle_is_held(lab, family, start):
    child = start().launch("local/child-agent")
    time.sleep(0.5)
    assert child.ask("exited")["exited"] is False and pid_exists(child.pid)
    begun = time.monotonic()
    child.drop()
    eventually(lambda: not os.path.exists(f"/proc/{child.pid}"), 10 * SLOWER)
    assert time.monotonic() - begun < 10 * SLOWER


def test_spawn_S15_records_it_does_not_own_end_the_child_before_the_refusal(lab, family, start):
    launcher = start()
    note = lab.directory / "pid"
    line = json.dumps({"session_id": "ses_misreported", "url": "", "records_dir": "/tmp/ses_misreported"})
    launcher.wrapper.write_text(f"#!/bin/sh\necho $$ >{note}\necho '{line}'\nexec sleep 300\n")
    text = launcher.refused("local/child-agent")
    assert "named /tmp/ses_misreported as its records directory" in text
    assert not os.path.exists(f"/proc/{note.read_text().strip()}")


def pipe_ends(pid, pipe):
    """The descriptors a process holds on a pipe: (number, access mode)."""
    held = []
    for number in os.listdir(f"/proc/{pid}/fd"):
        try:
            if os.readlink(f"/proc/{pid}/fd/{number}") == pipe:
                with open(f"/proc/{pid}/fdinfo/{number}", encoding="ascii") as info:
                    held.append((int(number), int(re.search(r"flags:\s*(\d+)", info.read()).group(1), 8) & os.O_ACCMODE))
        except FileNotFoundError:
            continue
    return held


def test_spawn_S16_a_decoy_displaces_no_lifeline_and_each_holds_one_end(lab, family, start):
    decoys = {"MURMUR_FORMATION_LIFELINE": "4097", "MURMUR_SPAWNER_LIFELINE": "4098"}
    launcher = start(**decoys)
    child = launcher.launch("local/child-agent", env_allow=list(decoys), formation_id=FORMATION)
    assert child.names.count("MURMUR_SPAWNER_LIFELINE") == 1 and "MURMUR_FORMATION_LIFELINE" not in child.names
    number = int(child.value("MURMUR_SPAWNER_LIFELINE"))
    assert number >= 3 and number != 4098
    assert child.environment[-1] == f"MURMUR_FORMATION_ID={FORMATION}"
    pipe = os.readlink(f"/proc/{child.pid}/fd/{number}")
    assert pipe.startswith("pipe:[")
    assert pipe_ends(child.pid, pipe) == [(number, os.O_RDONLY)]
    assert [mode for _, mode in pipe_ends(launcher.process.pid, pipe)] == [os.O_WRONLY]


def test_spawn_S17_S18_a_snapshot_is_a_copy_and_is_asked_for(lab, family, start):
    launcher = start()
    tool_agent(lab, "child-files", ["read parent-file.txt", "read ../../parent-file.txt"])
    original = launcher.parent_dir / "parent-file.txt"
    original.write_text("from the parent")
    child = launcher.launch("local/child-files", snapshot_source=str(launcher.parent_dir), snapshot_limit_bytes=1 << 20)
    report = json.loads(child.snapshot_report)
    assert json.loads(child.argument("--parent-workdir-snapshot")) == report
    assert (report["source"], report["files"], report["bytes"]) == (str(launcher.parent_dir), 1, len("from the parent"))
    own = os.path.relpath(child.workdir, launcher.parent_dir)
    assert any(own.startswith(entry["path"]) for entry in report["skipped"])
    told = run_task(child)
    assert told.count("from the parent") == 1 and told.count("read: error") == 1
    assert original.read_text() == "from the parent"

    without = launcher.launch("local/child-files")
    assert without.snapshot_report is None and "--parent-workdir-snapshot" not in without.argv
    assert "from the parent" not in run_task(without)


def test_spawn_D5_killing_the_launcher_ends_its_children_within_their_bound(lab, family, start):
    launcher = start()
    child = launcher.launch("local/child-agent", spawner=handle())
    launcher.process.kill()
    eventually(lambda: not pid_exists(child.pid), 20 * SLOWER, "the child is gone")
    types = [event["event_type"] for event in child.trace]
    assert types[-2:] == ["spawner_ended", "session_end"] or types.index("spawner_ended") < types.index("session_end")
    launcher.process.wait()
    launcher.close = lambda: (launcher.process.stdout.close(), launcher.errors.close())


def test_spawn_D11_a_folder_swapped_after_it_was_made_is_not_written(lab, family, start):
    launcher = start()
    launcher.wrapper.write_text(
        "#!/bin/sh\nmv \"$PWD\" \"$PWD.moved\" && mkdir -m 700 \"$PWD\" && cd \"$PWD\"\n"
        f"exec {lab.mur_path} \"$@\"\n")
    assert "E-RUN-051" in launcher.refused("local/child-agent")
    for folder in (launcher.parent_dir / "children").iterdir():
        assert tree_of(folder) == []


def test_spawn_two_hundred_launches_in_turn_leave_no_descriptor_behind(lab, family, start):
    launcher = start()

    def held():
        return [descriptor_count(pid) for pid in (launcher.process.pid, family.roost.pid)]

    def launch_and_drop(count):
        for _ in range(count):
            child = launcher.launch("local/child-script")
            eventually(lambda: child.ask("exited")["exited"], 20 * SLOWER)
            child.drop()

    launch_and_drop(2)
    before = held()
    launch_and_drop(20 if IS_SANITIZED else 198)
    eventually(lambda: held() == before, 10 * SLOWER, "as many descriptors as before")
    assert threads_of(launcher.process.pid) == 1
    assert family.roost.status(PARENT).ok()["live_children"] == 0


def test_spawn_thirty_two_launches_at_once_all_come_up_and_all_end(lab):
    publish_agent(lab, "child-agent", HELLO)
    publish_capsule(lab, "suite-parent", capabilities={"spawn": {"allow": ["local/child-agent"]}})
    with Family(lab, roost_arguments=("--max-concurrent", "32", "--max-live-capsules", "64")) as family:
        launchers = [Launcher(lab, family) for _ in range(8)]
        with ThreadPoolExecutor(8) as pool:
            children = [child for some in pool.map(lambda one: [one.launch("local/child-agent") for _ in range(4)], launchers)
                        for child in some]
            assert len({child.session_id for child in children}) == 32
            assert len({child.workdir for child in children}) == 32
            assert family.roost.status(PARENT).ok()["live_children"] == 32
            assert "--max-concurrent 32" in family.roost.spawn(family.credential, "local/child-agent").refused()
            begun = time.monotonic()
            for child in children:
                child.ask("begin")
            list(pool.map(lambda one: one.close(), launchers))
        assert time.monotonic() - begun < 10 * SLOWER
        assert not [child for child in children if os.path.exists(f"/proc/{child.pid}")]
        assert family.roost.status(PARENT).ok()["live_children"] == 0
