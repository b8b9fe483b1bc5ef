# SPDX-License-Identifier: Apache-2.0
#
# Formations: `mur run --roster` from admission to the end of every member, and one member with the test as its launcher
# (C2-C7 and F1-F5 of spec/spawn.md).

import http.client
import json
import os
import re
import signal
import stat
import urllib.parse

import pytest

from tests.support.fixtures import own_component
from tests.support.formation import (BEARER, CALLS, FORMATION, OTHER_FORMATION, SERVES, Channel, Key, Team, b64, first_line)
from tests.support.lab import SLOWER
from tests.support.model_server import Reply
from tests.support.polling import eventually, pid_exists, tree_of

SLOW = [{"text": "never said", "delay_ms": 60_000}]
SLEEPER = {"task_acceptance": "queue", "after_task": "sleep", "queue_depth": 4}


def post(url, method, params=None, token=None, headers=()):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}).encode()
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=30)
    connection.putrequest("POST", "/")
    for name, value in (("content-type", "application/json"), ("A2A-Version", "1.0"), ("content-length", str(len(body))),
                        *headers, *([("Authorization", f"Bearer {token}")] if token else [])):
        connection.putheader(name, value)
    connection.endheaders(body)
    with connection.getresponse() as reply:
        answer = reply.status, reply.headers, json.loads(reply.read() or b"null")
    connection.close()
    return answer


def message(text="go"):
    return {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]},
            "configuration": {"returnImmediately": True}}


@pytest.fixture
def pair(lab):
    """lead, the entry, may call coder; other is a third nobody calls."""
    team = Team(lab, "lead", "coder", "other", reachability=[{"from": "lead", "to": ["coder"]}])
    team.member("lead", [{"text": "lead says {{task}}"}], **BEARER, **CALLS)
    team.member("coder", [{"text": "coder answers"}], **BEARER, **SERVES)
    team.member("other", [{"text": "other"}], **BEARER, **SERVES)
    return team


def announced(running):
    return json.loads(running.wait_for(r'^\{"deadline".*$').group(0))


def ended(running, code, timeout=60):
    result = running.result(timeout)
    assert result.code == code, str(result)
    return result


# --- a whole formation -----------------------------------------------------------------------------------------------


def test_spawn_C4_a_formation_runs_to_the_end_of_its_entry(lab, pair):
    result = pair.run("--task", "hello").ok()
    assert result.status == "ok" and "murmur: url localhost:" in result.stdout
    formation = re.search(r"^formation: (frm_[0-9a-f]{32})$", result.stderr, re.MULTILINE).group(1)
    lines = result.stderr.splitlines()
    row = re.compile(r"^  peer   (coder|other)  local/\1@0\.1\.0  pid \d+  ses_[0-9a-f]{32}  http://localhost:\d+$")
    assert [row.match(line).group(1) for line in lines[1:5:2]] == ["coder", "other"]
    folder = lab.murmur_home / "formations" / formation
    assert lines[2] == f"                workdir {folder / 'coder'}" and lines[5] == "  entry  lead   starting"
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE((folder / "coder").stat().st_mode) == 0o700
    marker = json.loads((folder / "formation.json").read_text())
    assert list(marker) == ["project_dir", "launcher_pid", "launcher_start"]
    assert marker["project_dir"] == str(pair.project.directory)
    assert (folder / "formation.json").read_text().count("\n") == 1
    assert stat.S_IMODE((folder / "formation.json").stat().st_mode) == 0o600
    traces = pair.sessions(formation)
    starts = {name: trace.events[0] for name, trace in traces.items()}
    assert starts["lead"]["formation_callees"] == ["coder"] and starts["coder"]["formation_callees"] == []
    assert traces["lead"].one("session_end")["exit_status"] == "ok"
    for name in ("coder", "other"):
        assert traces[name].one("formation_ended")["formation_id"] == formation
        assert traces[name].one("session_end")["exit_status"] == "formation_ended"
        assert traces[name].types[-2:] == ["formation_ended", "session_end"]
    assert "[coder] [capsule-runtime] the formation lifeline closed" in result.stderr
    assert not list((lab.murmur_home / "running").glob("*.json"))


def test_spawn_C4_json_prints_the_announcement_and_the_entrys_line(lab, pair):
    result = pair.run("--json", "--task", "x", "--deadline", "60").ok()
    first, second = (json.loads(line) for line in result.stdout.splitlines())
    assert list(first) == ["deadline", "entry", "formation_id", "peers"]
    assert first["entry"] == "lead" and first["deadline"]["secs"] == 60
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", first["deadline"]["at"])
    assert [peer["name"] for peer in first["peers"]] == ["coder", "other"]
    assert list(first["peers"][0]) == ["name", "pid", "session_id", "url", "workdir"]
    assert second["formation_id"] == first["formation_id"] and second["workdir"] == str(pair.project.directory)
    assert "tokens" not in second and "mdt1." not in result.stdout and "mft1." not in result.stdout
    for trace in pair.sessions().values():
        assert trace.events[0]["deadline"]["source"] == "inherited"
        assert trace.events[0]["deadline"]["at"] == first["deadline"]["at"]


def test_spawn_C4_arguments_and_environment_of_members(lab, pair):
    pair.run("--task", "x", "--no-env-file", "--containment", "advisory", "--deadline", "100", env=pair.observed()).ok()
    coder, lead = pair.argv_of("coder"), pair.argv_of("lead")
    sha = coder[coder.index("--capsule-sha256") + 1]
    deadline = coder[-1]
    formation = next((lab.murmur_home / "formations").iterdir())
    tail = ["--no-env-file", "--containment", "advisory", "--inherited-deadline", deadline]
    assert coder == ["run", "--capsule", "local/coder", "--capsule-version", "0.1.0", "--capsule-sha256", sha, "--workdir",
                     str(formation / "coder"), "--store-root", str(pair.project.directory), "--json", "--readiness-tokens",
                     "--bind", "127.0.0.1", *tail]
    assert lead[:6] == ["run", "--capsule", "local/lead", "--capsule-version", "0.1.0", "--capsule-sha256"]
    assert lead[7:] == ["--workdir", str(pair.project.directory), "--lifecycle-task-acceptance", "single",
                        "--lifecycle-after-task", "exit", "--task", "x", *tail]
    line = pair.line_of("lead")
    assert list(line) == ["formation_id", "member", "launcher", "entry", "verify_key", "calls"]
    assert line["entry"] is True and line["member"] == "lead" and [call["name"] for call in line["calls"]] == ["coder"]
    assert "entry" not in pair.line_of("coder") and pair.line_of("coder")["calls"] == []
    tokens = json.dumps(line["calls"])
    assert not any(token in " ".join(coder + lead) for token in re.findall(r"mft1\.[\w.-]+", tokens))


def test_spawn_C4_a_roster_of_one_has_no_peers_and_no_folder(lab):
    team = Team(lab, "alone")
    team.member("alone", [{"text": "by myself"}])
    result = team.run("--json", "--task", "x").ok()
    assert json.loads(result.stdout.splitlines()[0])["peers"] == []
    assert not (lab.murmur_home / "formations").exists()


def test_spawn_C4_without_a_task_the_entry_waits_until_it_is_stopped(lab, pair):
    running = pair.start("--json")
    first = announced(running)
    entry = json.loads(eventually(lambda: len(running.stdout.splitlines()) == 2 and running.stdout.splitlines()[1]))
    pids = [peer["pid"] for peer in first["peers"]] + [entry["pid"]]
    records = [json.loads(path.read_text()) for path in (lab.murmur_home / "running").glob("*.json")]
    rows = {record["formation_member"]: record for record in records}
    assert set(rows) == {"lead", "coder", "other"}
    assert rows["lead"]["formation_entry"] is True and "formation_entry" not in rows["coder"]
    for row in rows.values():
        keys = list(row)
        assert keys[keys.index("door_token") + 1:][:2] == ["formation_id", "formation_member"]
        assert row["formation_lifeline"] is True and row["formation_launcher"]["pid"] == running.pid
    for peer in first["peers"]:
        assert os.getpgid(peer["pid"]) == peer["pid"]
    assert os.getpgid(entry["pid"]) == os.getpgid(running.pid)
    running.signal(signal.SIGTERM)
    ended(running, 143)
    assert not any(map(pid_exists, pids))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_cli_29_a_signal_ends_every_member(lab, number):
    team = Team(lab, "lead", "coder")
    team.member("lead", SLOW)
    team.member("coder", lifecycle=SLEEPER)
    running = team.start("--json", "--task", "x")
    pids = [peer["pid"] for peer in announced(running)["peers"]]
    eventually(lambda: len(list((lab.murmur_home / "running").glob("*.json"))) == 2)
    running.process.send_signal(number)
    ended(running, 128 + number)
    assert not any(map(pid_exists, pids))
    assert not list((lab.murmur_home / "running").glob("*.json"))


def test_spawn_C7_a_signal_before_the_entry_starts_ends_the_peers(lab):
    team = Team(lab, "lead", "slow")
    team.member("lead")
    team.member("slow")
    wrapper = lab.directory / "waiter"
    wrapper.write_text("#!/bin/sh\nexec cat <&$MURMUR_FORMATION_LIFELINE\n")
    wrapper.chmod(0o755)
    running = team.start("--task", "x", env={"MURMUR_MUR_BINARY": wrapper})
    eventually(lambda: next(iter(lab.murmur_home.glob("formations/frm_*/slow")), None))
    running.process.send_signal(signal.SIGTERM)
    result = ended(running, 143)
    assert result.stdout == "" and "entry" not in result.stderr


def test_spawn_C4_the_exit_status_is_the_entrys(lab):
    team = Team(lab, "lead", "coder")
    team.member("lead", [{"error": "broken"}])
    team.member("coder")
    assert team.run("--task", "x").failed("E-RUN-040").status == "failed"


def test_spawn_C4_nothing_else_goes_with_a_roster(lab, pair):
    for words in (("--manifest", "x"), ("--workdir", "."), ("--bind", "0.0.0.0"), ("--explain-scope",), ("--context", "c"),
                  ("--resume",), ("--system-prompt", "x"), ("--capsule", "a/b", "--capsule-version", "1"),
                  ("--lifecycle-after-task", "exit"), ("--spawn-grant-stdin",), ("--readiness-tokens", "--json"),
                  ("--inherited-deadline", "5")):
        assert pair.project.mur("run", "--roster", *words).code == 2, words


def test_spawn_C4_formations_do_not_nest(lab, pair):
    pair.run("--task", "x", env={"MURMUR_FORMATION_ID": FORMATION}).failed("E-RUN-046")
    pair.run("--task", "x", env={"MURMUR_FORMATION_ID": "  "}).ok()


# --- F1 to F5 --------------------------------------------------------------------------------------------------------


def test_spawn_F1_a_members_door_knows_who_may_call_it(lab, pair):
    running = pair.start("--json", env=pair.observed())
    peers = {peer["name"]: peer["url"] for peer in announced(running)["peers"]}
    eventually(lambda: (pair.log / "lead.json").exists())
    token = pair.line_of("lead")["calls"][0]["token"]
    status, _, body = post(peers["coder"], "SendMessage", message(), token, [("x-murmur-task-origin", "peer")])
    assert status == 200 and body["result"]["task"]["status"]["state"] == "TASK_STATE_SUBMITTED"
    task_id = body["result"]["task"]["id"]
    for method, params in (("GetTask", {"id": task_id}), ("ListTasks", {}), ("CancelTask", {"id": "none"})):
        assert post(peers["coder"], method, params, token)[0] == 200
    assert post(peers["coder"], "ListTasks")[0] == 401
    status, headers, body = post(peers["coder"], "murmur.WatchSession", {}, token)
    assert (status, body["error"]) == (403, "insufficient_scope") and 'scope="murmur.WatchSession"' in headers["www-authenticate"]
    assert "member:lead" in body["message"]
    tag, payload, mark = token.split(".")
    forged = b64(json.dumps({"formation": pair.line_of("lead")["formation_id"], "from": "other", "to": "coder"}).encode())
    answers = [post(peers["coder"], "ListTasks", {}, bad)[::2] for bad in
               (f"{tag}.{forged}.{mark}", f"{tag}.{payload}.{b64(bytes(64))}", f"{tag}.{payload}", token + "x",
                Key().token("lead", "coder", pair.line_of("lead")["formation_id"]))]
    assert answers == [(401, answers[0][1])] * 5 and answers[0][1]["error"] == "invalid_token"
    status, headers, body = post(peers["other"], "ListTasks", {}, token)
    assert (status, body["error"]) == (403, "not_permitted")
    assert "lead" in body["message"] and "scope=" not in headers["www-authenticate"]
    assert 'error="insufficient_scope"' in headers["www-authenticate"]
    operator = json.loads(next(path for path in (lab.murmur_home / "running").glob("*.json")
                               if json.loads(path.read_text()).get("formation_member") == "coder").read_text())["door_token"]
    eventually(lambda: post(peers["coder"], "GetTask", {"id": task_id}, operator)[2]["result"]["status"]["state"]
               == "TASK_STATE_COMPLETED")
    own = post(peers["coder"], "SendMessage", message(), operator)[2]["result"]["task"]["id"]
    assert post(peers["coder"], "GetTask", {"id": own}, token)[2]["error"]["code"] == -32001
    running.signal()
    ended(running, 143)
    received = pair.sessions()["coder"].all("a2a_task_received")
    assert [line.get("caller_member") for line in received] == ["lead", None]
    for records in lab.records:
        assert token not in (records / "trace.jsonl").read_text()


def test_spawn_F2_the_death_of_the_launcher_ends_every_member(lab, pair):
    running = pair.start("--json")
    pids = [peer["pid"] for peer in announced(running)["peers"]]
    entry = json.loads(eventually(lambda: len(running.stdout.splitlines()) == 2 and running.stdout.splitlines()[1]))
    running.signal(signal.SIGKILL)
    eventually(lambda: not any(map(pid_exists, [*pids, entry["pid"]])), 30 * SLOWER)
    traces = pair.sessions()
    assert set(traces) == {"lead", "coder", "other"}
    for trace in traces.values():
        assert trace.types[-2:] == ["formation_ended", "session_end"]
        assert trace.one("session_end")["exit_status"] == "formation_ended"
    assert not list((lab.murmur_home / "running").glob("*.json"))


def test_spawn_F3_a_peer_that_ends_at_start_stops_the_launch(lab):
    team = Team(lab, "lead", "good", "bad")
    team.member("lead")
    team.member("good", lifecycle=SLEEPER)
    team.member("bad", inference={"system_prompt_file": "no-such-file.md"})
    result = team.run("--task", "x").failed("E-RUN-045")
    assert "member 'bad' (local/bad@0.1.0)" in result.stderr and "no-such-file.md" in result.stderr
    assert result.stdout == ""
    assert "lead" not in team.sessions()
    assert not list((lab.murmur_home / "running").glob("*.json"))
    assert "entry" not in result.stderr


def test_spawn_F4_a_member_whose_bytes_changed_after_admission_does_not_start(lab):
    team = Team(lab, "lead", "coder")
    team.member("lead")
    team.member("coder")
    changed = lab.directory / "changed"
    changed.mkdir()
    for path in (lab.directory / "packages/coder").glob("murmur.yaml"):
        (changed / path.name).write_text(path.read_text().replace("scripted", "scripted", 1) + "config: {changed: true}\n")
    lab.mur("build", ".", cwd=changed).ok()
    wrapper = lab.directory / "republish"
    wrapper.write_text(f"#!/bin/sh\n(cd '{changed}' && rm -rf '{lab.murmur_home}/artifacts/local/coder' && '{lab.mur_path}' publish >&2)\nexec '{lab.mur_path}' \"$@\"\n")
    wrapper.chmod(0o755)
    result = team.run("--task", "x", env={"MURMUR_MUR_BINARY": wrapper}).failed("E-RUN-045")
    assert "member 'coder'" in result.stderr and "E-RUN-047" in result.stderr
    assert not list((lab.murmur_home / "running").glob("*.json"))


def faulty_rosters():
    def shape(roster):
        roster["surprise"] = 1

    def twice(roster):
        roster["members"][1]["name"] = "lead"

    def no_entry(roster):
        del roster["members"][0]["entry"]

    def unknown(roster):
        roster["reachability"] = [{"from": "lead", "to": ["nobody"]}]

    def calls_entry(roster):
        roster["reachability"] = [{"from": "coder", "to": ["lead"]}]

    def missing(roster):
        roster["members"][1]["version"] = "9.9.9"

    def refuses_peers(roster):
        roster["members"][1]["capsule"] = "local/shy"
        roster["reachability"] = [{"from": "lead", "to": ["coder"]}]

    def public(roster):
        roster["members"][0]["capsule"] = "local/public"
        roster["reachability"] = [{"from": "lead", "to": ["coder"]}]

    return {"E-ROS-001": shape, "E-ROS-003": twice, "E-ROS-002": no_entry, "E-ROS-004": unknown, "E-ROS-008": calls_entry,
            "E-ROS-007": missing, "E-ROS-005": refuses_peers, "E-ROS-006": public}


@pytest.mark.parametrize("code", list(faulty_rosters()))
def test_spawn_F5_each_fault_of_a_roster_starts_and_writes_nothing(lab, pair, code):
    pair.member("shy", **BEARER)
    pair.member("public")
    faulty_rosters()[code](pair.roster)
    pair.write()
    before = tree_of(lab.home)
    result = pair.run("--task", "x").failed(code)
    assert tree_of(lab.home) == before and result.stdout == ""


def test_spawn_F5_a_lock_that_pins_other_bytes_refuses(lab, pair):
    for pin in (f"resolved_version: 0.1.0\n  sha256:\n    any: {'0' * 64}\n", f"resolved_version: 0.2.0\n  sha256:\n    any: {'0' * 64}\n"):
        pair.project.write("murmur.lock", f"lock_version: 3\nartifacts:\n- name: local/coder\n  {pin}")
        before = tree_of(lab.home)
        assert "local/coder" in pair.run("--task", "x").failed("E-REG-005").stderr
        assert tree_of(lab.home) == before


def test_spawn_C3_an_overfull_member_is_warned_of_and_runs(lab):
    team = Team(lab, "lead", "a", "b", reachability=[{"from": "lead", "to": ["b"]}, {"from": "a", "to": ["b"]}])
    for name in ("lead", "a"):
        team.member(name, **BEARER)
    team.member("b", exports={"peer_tasks": {"accept": True}}, **BEARER)
    result = team.run("--task", "x").ok()
    assert "warning[W-ROS-001]" in result.stderr and "'b'" in result.stderr


def test_spawn_C4_a_deadline_that_passes_before_the_entry_starts(lab):
    team = Team(lab, "lead", "slow")
    team.member("lead")
    team.member("slow")
    wrapper = lab.directory / "sleeper"
    wrapper.write_text("#!/bin/sh\nexec sleep 100\n")
    wrapper.chmod(0o755)
    result = team.run("--task", "x", "--deadline", "1", env={"MURMUR_MUR_BINARY": wrapper}).failed("E-RUN-053")
    assert result.stdout == ""


@pytest.mark.parametrize("script, said", [
    ("echo not json; exec sleep 100", "no readiness line"),
    ("exit 7", "exit status 7"),
    ("exec >&-; exec sleep 1", "ended"),
    ('echo \'{"session_id":"ses_%s","url":""}\'; exec sleep 100' % ("0" * 32), "no door"),
    ('echo \'{"session_id":"ses_%s","url":"localhost:1","formation_id":"%s"}\'; exec sleep 100' % ("0" * 32, OTHER_FORMATION),
     "another formation"),
])
def test_spawn_F3_every_way_not_to_come_up_is_named(lab, script, said):
    team = Team(lab, "lead", "odd")
    team.member("lead")
    team.member("odd")
    wrapper = lab.directory / "odd-wrapper"
    # The lifeline is honoured by nobody here: the group is killed only if it outlives its patience.
    wrapper.write_text(f"#!/bin/sh\n(cat <&$MURMUR_FORMATION_LIFELINE >/dev/null; kill $$) &\n{script}\n")
    wrapper.chmod(0o755)
    result = team.run("--task", "x", env={"MURMUR_MUR_BINARY": wrapper}, timeout=90).failed("E-RUN-045")
    assert "member 'odd'" in result.stderr and said in result.stderr, result.stderr


# --- retention -------------------------------------------------------------------------------------------------------


def test_spawn_C7_old_formations_of_the_project_are_retired(lab):
    team = Team(lab, "lead", "coder")
    team.member("lead", trace={"retain": {"max_sessions": 2}})
    team.member("coder", lifecycle=SLEEPER)
    folder = lab.murmur_home / "formations"
    foreign = folder / ("frm_" + "0" * 32)
    foreign.mkdir(parents=True)
    (foreign / "formation.json").write_text(json.dumps({"project_dir": "/elsewhere", "launcher_pid": 1, "launcher_start": "x"}))
    results = [team.run("--task", "x").ok() for _ in range(3)]
    ids = [re.search(r"^formation: (\S+)$", result.stderr, re.MULTILINE).group(1) for result in results]
    assert results[2].stderr.splitlines()[-1] == f"removed formation {ids[0]}: max_sessions"
    assert sorted(path.name for path in folder.iterdir()) == sorted([foreign.name, *ids[1:]])
    assert not [path for path in (lab.murmur_home / "records").rglob(ids[0])]
    assert [path for path in (lab.murmur_home / "records").rglob(ids[1])]


# --- one member, its launcher made by hand ---------------------------------------------------------------------------


def member(lab, name="coder", **manifest):
    return lab.agent(name=name, steps=[{"text": "done"}], lifecycle=SLEEPER, **BEARER, **manifest)


def refused(lab, line, code="E-RUN-046", formation=FORMATION):
    channel = Channel(line)
    result = channel.start(member(lab), formation=formation).result().failed(code)
    channel.close()
    channel.cut()
    assert lab.records == [] and "mft1" not in result.stderr
    return result.stderr


def test_spawn_C5_a_first_line_that_is_not_whole_refuses_the_launch(lab):
    key = Key()
    good = json.loads(first_line(key, calls=["other"]))
    for change, said in (
            ({"formation_id": OTHER_FORMATION}, "another formation"), ({"formation_id": "frm_x"}, "formation_id"),
            ({"member": "Coder"}, "member"), ({"member": None}, "member"), ({"verify_key": "AAAA"}, "verify_key"),
            ({"verify_key": Key().public}, "vouch"), ({"entry": "yes"}, "entry"), ({"calls": {}}, "calls"),
            ({"calls": [{"name": "other"}]}, "call"), ({"launcher": {"pid": 0}}, "launcher"),
            ({"calls": [{"name": "other", "token": key.token("x", "other")}]}, "vouch"),
            ({"calls": [{"name": "other", "token": key.token("coder", "third")}]}, "vouch"),
            ({"calls": good["calls"] * 2}, "twice")):
        assert said in refused(lab, json.dumps({**good, **change})), change
    for line in ("not json", "[]", ""):
        refused(lab, line)


def test_spawn_A13_the_formations_variables_belong_together(lab):
    project = member(lab)
    project.run(env={"MURMUR_FORMATION_ID": "frm_" + "A" * 32}).failed("E-RUN-044")
    project.run(env={"MURMUR_FORMATION_PEERS": ""}).failed("E-RUN-046")
    reader, writer = os.pipe()
    for name in ("MURMUR_FORMATION_LIFELINE", "MURMUR_FORMATION_CHANNEL"):
        project.start(pass_fds=(reader,), env={name: reader}).result().failed("E-RUN-046")
    for value, said in (("three", "not the decimal number"), ("2", "a standard stream"), ("4097", "not open")):
        for name in ("MURMUR_FORMATION_LIFELINE", "MURMUR_FORMATION_CHANNEL"):
            result = project.run(env={"MURMUR_FORMATION_ID": FORMATION, name: value}).failed("E-RUN-046")
            assert said in result.stderr
    os.close(writer)
    os.close(reader)
    assert lab.records == []


def test_spawn_A13_a_session_only_named_after_a_formation_is_warned_of(lab):
    running = member(lab).start("--json", env={"MURMUR_FORMATION_ID": FORMATION})
    assert json.loads(running.wait_for(r"^\{.*$").group(0))["formation_id"] == FORMATION
    assert "warning[W-RUN-007]" in running.stderr
    key = Key()
    assert post(running.url, "ListTasks", {}, key.token("lead", "coder"))[0] == 401
    running.signal()
    running.result(20).ok()
    start = lab.session(running).trace.events[0]
    assert start["formation_id"] == FORMATION and "formation_member" not in start


def test_spawn_C7_a_script_capsule_holds_no_formation_lifeline(lab):
    project = lab.script_capsule(own_component("script-task"))
    channel = Channel(first_line(Key()))
    channel.start(project).result().failed("E-RUN-046")
    channel.close()
    channel.cut()


def test_spawn_C7_the_lifelines_end_winds_a_member_down(lab):
    channel = Channel(first_line(Key(), entry=True))
    running = channel.start(member(lab))
    running.url
    assert "W-RUN-007" not in running.stderr
    channel.cut()
    result = running.result(30).ok()
    assert result.status == "formation_ended" and "formation lifeline" in result.stderr
    trace = lab.session(running).trace
    assert trace.types[-2:] == ["formation_ended", "session_end"]
    channel.close()


def test_spawn_C6_a_public_door_takes_formation_tokens_as_nothing(lab):
    key = Key()
    project = lab.agent(name="coder", steps=[{"text": "x"}], lifecycle=SLEEPER)
    channel = Channel(first_line(key))
    running = channel.start(project)
    assert post(running.url, "ListTasks", {}, "mft1.garbage.x")[0] == 200
    channel.cut()
    running.result(30)
    channel.close()


def test_spawn_C6_guests_call_members_by_virtual_addresses_alone(lab):
    model = lab.model_server()
    seen = []

    def answer(request):
        seen.append(request)
        return Reply(body=b"hello from coder", content_type="text/plain")

    model.script(repeat=answer)
    key = Key()
    urls = ["http://coder.formation.invalid/path?q=1", "http://CODER.Formation.Invalid/x", "http://coder.formation.invalid:80/",
            "http://u@coder.formation.invalid/", "https://coder.formation.invalid/", "http://other.formation.invalid/",
            "http://a.coder.formation.invalid/", "http://formation.invalid/"]
    calls = [{"name": "fetch", "input": {"url": url}} for url in urls]
    project = lab.agent(
        name="lead", steps=[{"tool_calls": calls}, {"text": "done", "save_request": "request.json"}], lifecycle=SLEEPER,
        tools=["std/fetch@0.1.0"], **BEARER, **CALLS)
    line = first_line(key, "lead", ["coder"])
    token = json.loads(line)["calls"][0]["token"]
    channel = Channel(line)
    channel.tell("nonsense")
    channel.tell(json.dumps({"addresses": [{"name": "coder", "url": model.url.replace("127.0.0.1", "localhost")},
                                           {"name": "stranger", "url": "http://localhost:9"}]}))
    running = channel.start(project, "--task", "go")
    eventually(lambda: "session_end" not in lab.session(running).trace.types and
               "task_end" in lab.session(running).trace.types, 60)
    channel.cut()
    running.result(30)
    channel.close()
    outputs = [line["status"] for line in lab.session(running).trace.all("tool_call")]
    assert outputs[:2] == ["ok", "ok"] and "ok" not in outputs[2:], outputs
    assert [request.path for request in seen] == ["/path?q=1", "/x"]
    for request in seen:
        assert request.headers["authorization"] == f"Bearer {token}"
        assert request.headers["x-murmur-task-origin"] == "peer" and request.headers["x-murmur-task-trust"] == "trusted"
    assert "was not understood" in running.stderr



# --- the commands that look at formations ----------------------------------------------------------------------------


def test_cli_ps_and_stop_know_a_formation(lab, pair):
    running = pair.start("--json")
    first = announced(running)
    eventually(lambda: len(list((lab.murmur_home / "running").glob("*.json"))) == 3)
    eventually(lambda: {row["status"] for row in lab.mur("ps", "--json").ok().json["capsules"]} == {"running"})
    listed = lab.mur("ps", "--json").ok().json
    assert {(row["formation_id"], row["formation_member"], row["formation_entry"]) for row in listed["capsules"]} == {
        (first["formation_id"], "lead", True), (first["formation_id"], "coder", False), (first["formation_id"], "other", False)}
    formation, = listed["formations"]
    assert list(formation) == ["formation_id", "entry_member", "listed", "ended", "gone_without_ending", "not_listed",
                               "searched_roots", "unreadable_roots"]
    assert (formation["formation_id"], formation["entry_member"], formation["listed"], formation["ended"],
            formation["gone_without_ending"], formation["not_listed"]) == (first["formation_id"], "lead", 3, 0, 0, [])
    assert len(formation["searched_roots"]) == 3 and formation["unreadable_roots"] == []
    table = lab.mur("ps").ok().stdout
    assert "FORMATION" in table.splitlines()[0]
    assert table.splitlines()[-1] == f"formation {first['formation_id']}: 3 listed (coder, lead, other)"
    stopped = lab.mur("stop", first["formation_id"]).ok().stdout.splitlines()
    assert stopped[:2] == [f"stopped: {first['formation_id']}", f"launcher: pid {running.pid}  SIGTERM"]
    assert {line.split()[1] for line in stopped[2:]} == {"lead", "coder", "other"}
    assert all(line.startswith("member: ") and line.endswith("formation_ended") for line in stopped[2:])
    ended(running, 143)
    assert lab.mur("ps").ok().stdout == "no running capsules\n"
    lab.mur("stop", first["formation_id"]).failed("E-RUN-022")
    lab.mur("stop", "frm_x").failed("E-RUN-022")


def test_cli_stop_ends_members_started_by_hand_one_by_one(lab):
    running = member(lab).start(env={"MURMUR_FORMATION_ID": FORMATION})
    running.url
    eventually(lambda: list((lab.murmur_home / "running").glob("*.json")))
    out = lab.mur("stop", FORMATION).ok().stdout
    assert f"stopped: {running.session_id}" in out and f"stopped: {FORMATION}" in out and "launcher:" not in out
    running.result(20)


def test_cli_stop_signals_nobody_when_launchers_differ(lab, pair):
    running = pair.start("--json")
    first = announced(running)
    eventually(lambda: len(list((lab.murmur_home / "running").glob("*.json"))) == 3)
    path = next(iter((lab.murmur_home / "running").glob("*.json")))
    record = json.loads(path.read_text())
    record["formation_launcher"]["pid"] += 1
    path.write_text(json.dumps(record, indent=2))
    assert "nothing was signalled" in lab.mur("stop", first["formation_id"]).failed("E-RUN-024").stderr
    assert running.is_running
    running.signal()
    ended(running, 143)


def test_records_8_2_a_formations_traces_are_shown_together(lab):
    team = Team(lab, "lead", "coder", reachability=[{"from": "lead", "to": ["coder"]}])
    team.member("lead", [{"tool_calls": [{"name": "call-member", "input": {"member": "coder", "task": "x"}}]}, {"text": "wait"},
                         {"text": "done"}], **BEARER, **CALLS)
    team.member("coder", **BEARER, **SERVES)
    team.run("--task", "go").ok()
    traces = team.sessions()
    formation = traces["lead"].events[0]["formation_id"]
    shown = lab.mur("trace", "show", formation, "--workdir", team.project.directory).ok().stdout
    call_id = traces["lead"].one("member_call")["call_id"]
    assert f"formation:  {formation}" in shown and "may call coder" in shown and "calls:      1" in shown
    assert re.search(rf"{call_id}  lead → coder  completed  \S+  delivered", shown)
    lab.mur("trace", "steps", formation).failed("E-TRC-001")
