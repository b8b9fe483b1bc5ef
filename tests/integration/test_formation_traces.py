# SPDX-License-Identifier: Apache-2.0
#
# `mur trace show frm_…`: the traces of a formation read together. The traces are written here, line by line.

import json

import pytest

FORMATION = "frm_01a2283800000000000000000000000f"
START = 1795996000000
SESSION_START = {
    "model": "m", "max_turns": None, "model_limits": None, "max_session_tokens": None, "machine_tokens_per_day": None,
    "deadline": None, "capabilities": [], "tools_declared": [], "containment_declared": "advisory",
    "containment_achieved": "advisory", "workdir_exec": False, "userns_grant": None, "effective_grants": {},
    "system_prompt_source": "none", "system_prompt_sha256": None, "credential_source": "none", "gateways": [],
    "tool_refresh": "compaction", "runtime_artifacts": [], "host_facts": [], "resumed_from": None, "context_id": None}


def session_id(n):
    return f"ses_01a22838{n:024x}"


class Member:
    """One trace under way."""

    def __init__(self, world, n, root, name=None, capsule="cap", formation=FORMATION, **start):
        self.id, self.n, self.lines = session_id(n), n, []
        self.directory = world.records(root) / self.id
        self.directory.mkdir(parents=True)
        more = {"formation_member": name, "formation_callees": start.pop("callees", [])} if name else {}
        self.line("session_start", capsule_name=capsule, capsule_version="0.1.0", **SESSION_START, formation_id=formation, **start, **more)

    def line(self, event_type, at=0, **payload):
        self.lines.append(json.dumps({"event_type": event_type, "event_id": f"evt_{len(self.lines):032x}", "parent_id": None,
                                      "session_id": self.id, "timestamp": START + at, **payload}))
        return self.write()

    def raw(self, text):
        self.lines.append(text)
        return self.write()

    def write(self):
        (self.directory / "trace.jsonl").write_text("".join(line + "\n" for line in self.lines))
        return self

    def call(self, call, to, task, at=0, member_task=None, busy=0, status="completed", ends=True, delivered=True):
        for offer in range(busy):
            self.line("member_call_busy", at + offer, task_id=task, call_id=call, member=to, offer=offer + 1, waited_ms=1,
                      message="busy")
        if member_task:
            self.line("member_call_start", at + busy, task_id=task, call_id=call, member=to, member_task_id=member_task)
        if ends:
            self.line("member_call", at + 500, task_id=task, call_id=call, member=to, status=status, duration_ms=505, output="x",
                      truncated=False, delivered=delivered, **({"member_task_id": member_task} if member_task else {}))
        return self

    def takes(self, task, call, caller, at=1, ended="ok"):
        self.line("a2a_task_received", at, task_id=task, context_id="ctx_1", message_id=f"msg_{call}",
                  traceparent_from_caller=None, caller_member=caller)
        if ended:
            self.line("task_end", at + 400, task_id=task, exit_status=ended)
        return self

    def ends(self, status="ok"):
        return self.line("session_end", 900, total_turns=0, total_input_tokens=0, total_output_tokens=0, total_tool_calls=0,
                         total_shell_calls=0, duration_ms=900, exit_status=status)


class World:
    """A roster's folder, and where its members' sessions are recorded."""

    def __init__(self, lab):
        self.lab = lab
        self.roster = lab.directory / "roster"
        self.roster.mkdir()

    def member_folder(self, name):
        return self.lab.murmur_home / "formations" / FORMATION / name

    def records(self, root):
        return self.lab.murmur_home / "records" / str(root).lstrip("/")

    def member(self, n, name, **more):
        folder = self.member_folder(name)
        folder.mkdir(parents=True, exist_ok=True)
        return Member(self, n, folder, name, **more)

    def entry(self, n=1, name="lead", **more):
        return Member(self, n, self.roster, name, **more)

    def show(self, address=FORMATION, workdir=None, **how):
        return self.lab.mur("trace", "show", address, "--workdir", workdir or self.roster, **how)


@pytest.fixture
def world(lab):
    return World(lab)


def test_records_25_a_formation_lists_its_members_and_their_calls(world):
    lead = world.entry(callees=["worker", "critic"])
    lead.call("mcl_1", "worker", "tsk_lead", member_task="tsk_w", busy=2)
    lead.call("mcl_2", "critic", "tsk_lead", at=100, member_task="tsk_gone").ends()
    worker = world.member(2, "worker", capsule="longer-capsule", callees=["critic"])
    worker.takes("tsk_w", "mcl_1", "lead").call("mcl_3", "critic", "tsk_w", at=50, member_task="tsk_c", delivered=False)
    world.member(3, "critic").takes("tsk_c", "mcl_3", "worker", at=60, ended="failed").ends("failed")
    world.member_folder("critic")

    shown = world.show().ok().stdout

    lines = shown.splitlines()
    assert lines[0].startswith("── Formation ───") and len(lines[0]) == 49
    assert lines[1] == f"formation:  {FORMATION}"
    assert lines[2:5] == [f"searched:   {world.records(world.roster)}", f"searched:   {world.records(world.member_folder('critic'))}",
                          f"searched:   {world.records(world.member_folder('worker'))}"]
    assert lines[5:8] == [
        f"{session_id(1)}  lead    cap@0.1.0             ok  may call worker, critic",
        f"{session_id(2)}  worker  longer-capsule@0.1.0  no session_end  may call critic",
        f"{session_id(3)}  critic  cap@0.1.0             failed"]
    assert lines[8:] == [
        "calls:      3",
        "mcl_1  lead → worker  completed  505ms  delivered",
        "  busy ×2",
        "  mcl_3  worker → critic  completed  505ms  not delivered",
        "    callee's task ended failed",
        "mcl_2  lead → critic  completed  505ms  delivered",
        "  callee trace not found"]
    with_section = world.show(session_id(1)).ok().stdout
    assert with_section.endswith("\n" + shown)


def test_records_formation_calls_that_have_no_ending_or_no_other_side(world):
    lead = world.entry()
    lead.call("mcl_1", "worker", "tsk_l", busy=1, ends=False)
    lead.call("mcl_2", "worker", "tsk_l", at=10, member_task="tsk_w", ends=False)
    lead.call("mcl_3", "worker", "tsk_l", at=20, status="unreachable")
    world.member(2, "worker").takes("tsk_w", "mcl_2", "lead", ended=None).takes("tsk_x", "mcl_9", "ghost", at=30)

    assert world.show().ok().stdout.split("calls:      4\n")[1] == (
        "mcl_1  lead → worker  not yet held\n  busy ×1\n  never held\n"
        "mcl_2  lead → worker  no ending\n  callee's task has no task_end\n"
        "mcl_9  ghost → worker  no ending\n  caller trace not found\n  callee's task ended ok\n"
        "mcl_3  lead → worker  unreachable  505ms  delivered\n  never held\n")


def test_records_formation_calls_in_a_circle_come_last_and_once(world):
    world.entry(1, "a").takes("tsk_a", "mcl_2", "b").call("mcl_1", "b", "tsk_a", member_task="tsk_b")
    world.member(2, "b").takes("tsk_b", "mcl_1", "a").call("mcl_2", "a", "tsk_b", at=1, member_task="tsk_a")
    world.member(3, "c").call("mcl_3", "b", "tsk_c", at=900, member_task="tsk_none")

    rows = [line.strip().split()[0] for line in world.show().ok().stdout.split("calls:      3\n")[1].splitlines() if "→" in line]
    assert rows == ["mcl_3", "mcl_1", "mcl_2"]


def test_records_formation_belonging_is_told_by_the_first_line_alone(world):
    world.entry().ends()
    Member(world, 4, world.roster, "other", formation="frm_01a2283800000000000000000000000e")
    late = Member(world, 5, world.roster, "late", formation=None)
    late.raw(json.dumps({"event_type": "session_start", "formation_id": FORMATION}))
    torn = world.member(6, "torn")
    torn.raw("{not json").raw('{"event_type":"member_call","call_id":5}').call("mcl_7", "lead", "tsk_t", member_task="tsk_q").ends()
    early = world.records(world.roster) / "ses_01a22837000000000000000000000001"
    early.mkdir()
    early.joinpath("trace.jsonl").write_text((late.directory / "trace.jsonl").read_text().split("\n")[1] + "\n")

    shown = world.show().ok().stdout

    assert [line.split()[0] for line in shown.splitlines() if line.startswith("ses_")] == [session_id(1), session_id(6)]
    assert "mcl_7  torn → lead" in shown


def test_records_formation_the_entry_is_found_through_the_launchers_marker(world, lab):
    world.entry().ends()
    world.member(2, "worker").ends()
    (world.member_folder("worker").parent / "formation.json").write_text(json.dumps({"project_dir": str(world.roster)}))

    shown = world.show(workdir=lab.directory / "elsewhere").ok().stdout
    assert session_id(1) in shown and session_id(2) in shown


def test_records_formation_a_delegated_child_says_who_spawned_it(world):
    world.entry().ends()
    Member(world, 7, world.roster, None, capsule="child", spawned_by=session_id(1), delegation_id="dlg_1").ends()
    assert f"{session_id(7)}  —     child@0.1.0  ok  spawned by {session_id(1)}" in world.show().ok().stdout


def test_records_formation_refusals(world, lab):
    world.show().failed("E-TRC-002")
    world.entry()
    world.show("frm_").failed("E-TRC-002")
    lab.mur("trace", "show", FORMATION, "--body", "system", "--turn", "0", "--workdir", world.roster).failed("E-TRC-001")
    lab.mur("trace", "steps", FORMATION, "--workdir", world.roster).failed("E-TRC-001")
    group = world.records(lab.directory / "linked")
    group.parent.mkdir(parents=True, exist_ok=True)
    group.symlink_to(lab.directory)
    world.show(workdir=lab.directory / "linked").failed("E-IO-003")
