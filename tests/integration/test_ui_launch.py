# SPDX-License-Identifier: Apache-2.0
#
# Launching from the page of `mur ui`, without a browser: which capsules it knows, what it takes, and that the session is nobody's
# but its own. The form a person fills is in tests/real/test_page.py.

import json
import os
import signal
import subprocess

import pytest

from tests.support.lab import SLOWER
from tests.support.page import Page
from tests.support.polling import eventually


@pytest.fixture
def page(lab):
    with Page(lab, cwd=lab.directory) as server:
        yield server


def capsules(page):
    return {row["id"]: row for row in page.get("capsules")["capsules"]}


def of_folder(page, project):
    return capsules(page)[f"folder:{project.directory}"]


def launch(page, capsule, **asked):
    return page.run(**{"capsule": capsule["id"], "seen": capsule["seen"], "task": "what is here?", **asked})


def event_of(lab, session, kind):
    """The first of this kind, once it is there: a session is reachable before its trace is written."""
    def look():
        lines = [line for path in lab.murmur_home.glob(f"records/**/{session}/trace.jsonl") for line in path.read_text().splitlines(keepends=True)]
        return next((event for event in (json.loads(line) for line in lines if line.endswith("\n")) if event["event_type"] == kind), None)
    return eventually(look, 30 * SLOWER, kind)


def start_of(lab, session):
    return event_of(lab, session, "session_start")


def ended(lab, session):
    return event_of(lab, session, "session_end")


def result_of(lab, session):
    [path] = lab.murmur_home.glob(f"records/**/{session}/out/result.txt")
    return path.read_text()


def test_ui_launch_runs_a_task_in_the_folder_of_a_capsule(lab, page):
    project = lab.agent("worker", steps=[{"text": "you said {{task}}"}])
    row = of_folder(page, project)
    assert (row["name"], row["version"], row["why_not"], row["is_installed"]) == ("worker", "0.1.0", None, False)
    status, said = launch(page, row, task="--model=x\n@nobody")
    assert status == 200, said
    assert ended(lab, said["session"])["exit_status"] == "ok"
    assert page.session(said["session"])["capsule_name"] == "worker"
    assert "you said --model=x" in result_of(lab, said["session"])
    assert page.session(said["session"])["work_root"] == str(project.directory / "workdir")
    assert "changed_keys" not in start_of(lab, said["session"])


def test_ui_launch_a_task_that_names_a_file_is_text(lab, page):
    project = lab.agent("worker", steps=[{"text": "you said {{task}}"}])
    (project.directory / "secret.md").write_text("the content of a file")
    _, said = launch(page, of_folder(page, project), task="secret.md")
    ended(lab, said["session"])
    assert result_of(lab, said["session"]) .strip() == "you said secret.md"


def test_ui_launch_outlives_the_page_and_goes_on(lab):
    project = lab.agent("worker", steps=[{"text": "one"}, {"text": "two"}])
    page = Page(lab, cwd=project.directory)
    status, said = launch(page, of_folder(page, project), goes_on=True)
    assert status == 200, said
    eventually(lambda: (page.session(said["session"]) or {}).get("state") == "waits", 30 * SLOWER)
    os.killpg(page.pid, signal.SIGKILL)  # the page and all that belongs to it
    page.running.result(30 * SLOWER)
    assert "one" in lab.mur("send", said["session"], "and now?").ok().stdout  # a conversation of its own
    context = start_of(lab, said["session"])["context_id"]
    assert "two" in lab.mur("send", "--context", context, said["session"], "and now?").ok().stdout
    lab.mur("stop", said["session"]).ok()


def test_ui_launch_asks_the_model_named_and_spends_no_more_than_said(lab, page):
    project = lab.agent("worker", steps=[{"text": "an answer"}], inference={"max_session_tokens": 5000})
    _, said = launch(page, of_folder(page, project), model="another", max_session_tokens=3000, deadline=600)
    start = start_of(lab, said["session"])
    assert (start["model"], start["max_session_tokens"], start["deadline"]["seconds"] if "seconds" in start["deadline"] else 600) == ("another", 3000, 600)
    assert start["changed_keys"] == ["inference.model", "inference.max_session_tokens"]
    ended(lab, said["session"])
    _, more = launch(page, of_folder(page, project), max_session_tokens=900000)
    assert start_of(lab, more["session"])["max_session_tokens"] == 5000  # a ceiling is never raised
    ended(lab, more["session"])


def test_ui_launch_of_an_installed_capsule(lab, page):
    project = lab.agent("packed", steps=[{"text": "from the store"}])
    manifest = (project.directory / "murmur.yaml").read_text()
    (project.directory / "murmur.yaml").write_text(manifest + "runtime: capsule\nexecution: static\n")
    project.mur("build", ".").ok()
    project.mur("publish").ok()
    row = capsules(page)["store:local/packed@0.1.0"]
    assert row["is_installed"]
    status, said = launch(page, row)
    assert status == 200, said
    assert ended(lab, said["session"])["exit_status"] == "ok"
    assert page.get("scope?capsule=store%3Alocal%2Fpacked%400.1.0")["status"] == 0


def test_ui_launch_knows_the_folders_of_sessions_on_record(lab, tmp_path):
    project = lab.agent("worker", steps=[{"text": "an answer"}])
    project.run("--task", "go").ok()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with Page(lab, cwd=elsewhere) as page:
        assert of_folder(page, project)["name"] == "worker"
    with Page(lab, "--workdir", elsewhere, cwd=elsewhere) as page:
        assert not capsules(page)


@pytest.mark.parametrize("id", ["folder:/etc", "folder:../worker", "folder:/", "store:std/driver-scripted@0.1.0", "", "worker", "folder:{}/../worker", "folder:{}/."])
def test_ui_launch_of_what_is_not_on_the_list_is_refused(lab, page, id):
    project = lab.agent("worker", steps=[{"text": "an answer"}])
    row = of_folder(page, project)
    assert page.run(capsule=id.replace("{}", str(project.directory)), seen=row["seen"], task="go")[0] == 404
    assert not page.get("sessions")["sessions"]


@pytest.mark.parametrize("asked, said", [
    ({"task": ""}, "task"), ({"task": " \n"}, "task"), ({"task": 5}, "task"), ({"model": ""}, "model"), ({"model": "a\nb"}, "model"), ({"model": "x" * 201}, "model"),
    ({"model": 5}, "model"), ({"max_session_tokens": 0}, "max_session_tokens"), ({"max_session_tokens": "many"}, "max_session_tokens"),
    ({"max_session_tokens": -1}, "max_session_tokens"), ({"deadline": 0}, "deadline"), ({"deadline": 400000000}, "deadline"), ({"deadline": 1.5}, "deadline"),
    ({"goes_on": "yes"}, "goes_on"), ({"workdir": "/"}, "key"), ({"manifest": "/etc/passwd"}, "key")])
def test_ui_launch_takes_no_field_that_is_none(lab, page, asked, said):
    status, answer = launch(page, of_folder(page, lab.agent("worker", steps=[{"text": "an answer"}])), **asked)
    assert status == 400 and said in answer["error"]
    assert not page.get("sessions")["sessions"]


def test_ui_launch_is_of_what_was_looked_at(lab, page):
    project = lab.agent("worker", steps=[{"text": "an answer"}])
    row = of_folder(page, project)
    path = project.directory / "murmur.yaml"
    path.write_text(path.read_text() + "description: another by now\n")
    assert launch(page, row)[0] == 409
    path.write_text("name: [\n")
    broken = of_folder(page, project)
    assert broken["why_not"] and launch(page, broken)[0] == 422
    path.unlink()
    assert launch(page, row)[0] == 404
    assert not page.get("sessions")["sessions"]


def test_ui_launch_that_is_refused_says_what_mur_run_says(lab, page):
    project = lab.agent("worker", steps=[{"text": "an answer"}])
    path = project.directory / "murmur.yaml"
    path.write_text(path.read_text().replace("std/driver-scripted", "std/driver-nobody"))
    status, answer = launch(page, of_folder(page, project))
    assert status == 422 and "std/driver-nobody" in answer["error"]


def test_ui_launch_of_a_second_press_is_one_session(lab, page):
    row = of_folder(page, lab.agent("worker", steps=[{"text": "an answer"}]))
    first, said = launch(page, row, request_id="once")
    second, _ = launch(page, row, request_id="once")
    assert (first, second) == (200, 409)
    ended(lab, said["session"])
    assert len(page.get("sessions")["sessions"]) == 1


def test_ui_launch_by_a_stranger_or_a_form_or_a_read_only_page_is_refused(lab, page):
    row = of_folder(page, lab.agent("worker", steps=[{"text": "an answer"}]))
    body = json.dumps({"request_id": "r", "capsule": row["id"], "seen": row["seen"], "task": "go"}).encode()
    kind = "Content-Type: application/json"
    assert page.request("POST", "/api/run", [kind], body, token=None)[0] == 401
    assert page.request("POST", f"/api/run?token={page.token}", [kind], body, token=None)[0] == 401
    assert page.request("POST", "/api/run", [kind], body, host="evil.test")[0] == 403
    assert page.request("POST", "/api/run", [kind, "Origin: http://evil.test"], body)[0] == 403
    assert page.request("POST", "/api/run", [kind, "Sec-Fetch-Site: cross-site"], body)[0] == 403
    assert page.request("POST", "/api/run", ["Content-Type: text/plain"], body)[0] == 415
    assert page.request("GET", "/api/run")[0] == 404
    assert page.request("GET", "/api/capsules", token=None)[0] == 401
    assert page.request("GET", "/api/scope?capsule=folder:/etc")[0] == 404
    with Page(lab, "--read-only", cwd=lab.directory) as looking:
        assert looking.get("capsules")["read_only"] is True
        assert launch(looking, row)[0] == 403
    assert not page.get("sessions")["sessions"]


def test_ui_launch_no_key_of_a_manifest_is_told(lab, page):
    lab.agent("worker", "std/driver-anthropic@0.1.0", gateway={"endpoint": "http://127.0.0.1:9", "api_key": "sk-told-to-nobody"})
    assert capsules(page) and b"sk-told-to-nobody" not in page.request(path="/api/capsules")[2]


def test_run_model_and_ceiling_of_the_command_line_are_replayed(lab):
    project = lab.agent("worker", steps=[{"text": "an answer"}], trace={"capture": "replay"})
    project.run("--task", "go", "--model", "another", "--max-session-tokens", "4000").ok()
    again = project.mur("replay").ok()
    assert (again.stdout.splitlines() or [""])[-1:] != [""]
    manifest = project.directory / "murmur.yaml"
    assert project.mur("replay", "@2", "--with-manifest", manifest).code != 0  # that one names another model
    project.mur("run", "--model", " ", "--task", "x").failed("E-IO-003")


# --- a server that lives long ----------------------------------------------------------------------------------------


def test_B6_25_a_full_disk_is_said_and_the_server_lives(lab, tmp_path):
    project = lab.agent("worker", steps=[{"text": "an answer"}])
    lab.murmur_home.mkdir(parents=True, exist_ok=True)
    inside = tmp_path / "mur"
    inside.write_text(f"""#!/bin/sh
exec unshare --user --map-root-user --mount sh -c '
    mount -t tmpfs -o size=64k,mode=700 tmpfs {lab.murmur_home} || exit 77
    mkdir {lab.murmur_home}/records {lab.murmur_home}/sessions {lab.murmur_home}/running
    dd if=/dev/zero of={lab.murmur_home}/full bs=4k 2>/dev/null
    exec "$@"' sh {lab.mur_path} "$@"
""")
    inside.chmod(0o755)
    probe = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True)
    if probe.returncode:
        pytest.skip("this host mounts nothing for tests")
    real, lab.mur_path = lab.mur_path, inside
    try:
        page = Page(lab, cwd=lab.directory)
    finally:
        lab.mur_path = real
    with page:
        row = of_folder(page, project)
        status, said = launch(page, row)
        assert status == 422 and "No space left on device" in said["error"]
        assert of_folder(page, project) == row and "sessions" in page.get("sessions")


def anonymous_kib(pid):
    [line] = [line for line in open(f"/proc/{pid}/status") if line.startswith("RssAnon:")]
    return int(line.split()[1])


def test_B6_26_a_server_that_was_asked_a_thousand_times_is_as_large_as_before(lab, page):
    session = lab.agent("worker", steps=[{"text": "an answer"}]).run("--task", "go").ok().session_id

    def an_hour():
        for _ in range(30):
            for path in ("sessions", f"session/{session}", f"session/{session}/rows?tail=1", f"session/{session}/summary", "capsules"):
                page.get(path)
            assert page.lines("search?q=answer")
            page.act(session, "stop")
    an_hour()
    an_hour()
    before = anonymous_kib(page.pid)
    for _ in range(4):
        an_hour()
    assert anonymous_kib(page.pid) - before < 1024
