# SPDX-License-Identifier: Apache-2.0
#
# What trace.retain and context.retain remove at a launch, and what they leave.

import json
import os
import time

DAY_MS = 86_400_000


def session_name(ms, number=0):
    return f"ses_{ms:012x}7000{number:016x}"


def now_ms():
    return int(time.time() * 1000)


def group_of(lab, work_root):
    return lab.murmur_home / "records" / str(work_root).lstrip("/")


def recorded(lab, work_root, ms, number=0):
    """A session of the past, as a launch would have left it."""
    path = group_of(lab, work_root) / session_name(ms, number)
    path.mkdir(parents=True)
    (path / "trace.jsonl").write_text("{}\n")
    return path


def retaining(lab, **how):
    return lab.agent(steps=[{"text": "x"}], **how)


def test_records_11_only_the_newest_sessions_stay(lab):
    project = retaining(lab, trace={"retain": {"max_sessions": 3}})
    old = [recorded(lab, project / "workdir", now_ms() - (n + 1) * 1000) for n in range(5)]
    for path in old:
        (project / "workdir" / path.name).mkdir(parents=True)
    session = lab.session(project.run("--task", "go").ok())
    assert [path.exists() for path in old] == [True, True, False, False, False]
    line = session.trace.one("retention")
    assert (line["store"], line["reason"], line["removed"]) == ("sessions", "max_sessions", 3)
    assert line["targets"] == [path.name for path in old[2:]]
    assert session.trace.types.index("retention") == 1
    assert sorted(path.name for path in (project / "workdir").iterdir()) == sorted(
        [old[0].name, old[1].name, session.id])


def test_records_12_age_is_read_from_the_id(lab):
    project = retaining(lab, trace={"retain": {"max_age": "1d"}})
    old = recorded(lab, project / "workdir", now_ms() - 2 * DAY_MS)
    fresh = recorded(lab, project / "workdir", now_ms() - 60_000)
    os.utime(fresh, (1, 1))
    session = lab.session(project.run("--task", "go").ok())
    assert not old.exists() and fresh.exists()
    assert session.trace.one("retention")["reason"] == "max_age"


def test_records_a_later_sibling_counts_and_stays(lab):
    project = retaining(lab, trace={"retain": {"max_sessions": 1}})
    later = recorded(lab, project / "workdir", now_ms() + DAY_MS)
    session = lab.session(project.run("--task", "go").ok())
    assert later.exists() and session.records.exists()
    assert "retention" not in session.trace.types


def test_records_nothing_below_a_given_workdir_is_removed(lab):
    project = retaining(lab, trace={"retain": {"max_sessions": 1}})
    (project / "work").mkdir()
    old = recorded(lab, project / "work", now_ms() - 1000)
    kept = project / "work" / old.name
    kept.mkdir()
    beside = project / "workdir" / old.name
    beside.mkdir(parents=True)
    lab.session(project.run("--task", "go", "--workdir", project / "work").ok())
    assert not old.exists() and kept.exists() and beside.exists()


def test_records_links_in_the_group_are_no_candidates(lab):
    project = retaining(lab, trace={"retain": {"max_sessions": 1}})
    outside = lab.directory / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    group = group_of(lab, project / "workdir")
    group.mkdir(parents=True)
    (group / session_name(now_ms() - 1000)).symlink_to(outside)
    lab.session(project.run("--task", "go").ok())
    assert (outside / "kept").exists() and (group / session_name(0)).exists() is False
    assert [path.is_symlink() for path in group.iterdir()].count(True) == 1


def test_records_without_a_policy_nothing_goes(lab):
    project = retaining(lab)
    old = recorded(lab, project / "workdir", 1)
    session = lab.session(project.run("--task", "go").ok())
    assert old.exists() and "retention" not in session.trace.types


def conversation(lab, store, context, messages=1, capsule=None, age_days=0):
    path = lab.murmur_home / "conversations" / store / context / "conversation.jsonl"
    path.parent.mkdir(parents=True)
    lines = [{"type": "murmur.record", "capsule": capsule, "created_ms": 1}] if capsule else []
    lines += [{"id": f"msg_{n:032x}", "role": "user", "content": [{"type": "text", "text": f"m{n}"}]}
              for n in range(messages)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    then = time.time() - age_days * 86400
    os.utime(path, (then, then))
    return path


def test_records_old_conversations_of_this_capsule_go(lab):
    project = retaining(lab, context={"retain": {"max_age": "7d"}})
    gone = conversation(lab, "agent", "old", capsule="agent", age_days=8)
    kept = [conversation(lab, "agent", "unowned", age_days=8),
            conversation(lab, "agent", "other", capsule="someone", age_days=8),
            conversation(lab, "agent", "fresh", capsule="agent"),
            conversation(lab, "agent", "now", capsule="agent", age_days=8)]
    session = lab.session(project.run("--task", "go", "--context", "now").ok())
    assert not gone.parent.exists() and all(path.exists() for path in kept)
    line = session.trace.one("retention")
    assert (line["store"], line["reason"], line["removed"], line["targets"]) == ("records", "max_age", 1, ["old"])
    assert "messages_dropped" not in line


def test_records_13_the_front_of_the_present_conversation_is_cut(lab):
    project = retaining(lab, context={"retain": {"max_messages": 2}}, lifecycle={"conversation": "threaded"})
    path = conversation(lab, "agent", "c1", messages=5, capsule="agent")
    other = conversation(lab, "agent", "c2", messages=5, capsule="agent")
    session = lab.session(project.run("--task", "go", "--context", "c1").ok())
    line = session.trace.one("retention")
    assert (line["reason"], line["removed"], line["messages_dropped"], line["targets"]) == ("max_messages", 1, 3, ["c1"])
    lines = [json.loads(text) for text in path.read_text().splitlines()]
    assert lines[0]["truncated"]["dropped"] == 3
    assert [part["content"][0]["text"] for part in lines[1:]] == ["m3", "m4", "go", "x"]
    assert len(other.read_text().splitlines()) == 6


def test_session_an_older_record_is_adopted_when_the_capsule_retains(lab):
    project = retaining(lab, context={"retain": {"max_messages": 50}}, lifecycle={"conversation": "threaded"})
    path = conversation(lab, "agent", "c1", messages=2)
    session = lab.session(project.run("--task", "go", "--context", "c1").ok())
    header, *messages = [json.loads(text) for text in path.read_text().splitlines()]
    assert (header["type"], header["capsule"]) == ("murmur.record", "agent")
    assert [part["content"][0]["text"] for part in messages] == ["m0", "m1", "go", "x"]
    assert "retention" not in session.trace.types
