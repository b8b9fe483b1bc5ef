# SPDX-License-Identifier: Apache-2.0
#
# The page of `mur ui` in a real browser: what a person sees, does and is told. Who may ask at all, byte by byte, is in
# tests/integration/test_ui.py.

import hashlib
import json
import os
import re

import pytest

from tests.integration.test_approvals import delegating, publish_toucher, toucher_made_it
from tests.integration.test_ui import ENDS, event, recorded
from tests.support.approvals import Asker, state
from tests.support.browser import Browser, axe
from tests.support.commands import call
from tests.support.delegation import Plane, delegate, turn
from tests.support.door_client import SLEEPER
from tests.support.lab import SLOWER
from tests.support.model_server import answer
from tests.support.model_server import call as tool_call
from tests.support.page import Page
from tests.support.polling import eventually

PICTURES = os.environ.get("MURMUR_PICTURES")  # a folder: pictures of the guide are written there
HOSTILE = ['<img src=x onerror="document.title=1;fetch(\'//evil.test\')">', "</script><script>alert(1)</script>", "<b>bold</b>", "\u202egnp.exe\u202c", "\x1b[31mred\x1b[0m",
           "javascript:alert(1)", "{{constructor.constructor('alert(1)')()}}", "${alert(1)}", "&lt;b&gt;", "\u0000\u0007\u200b\u2066"]


@pytest.fixture(scope="module")
def browser():
    one = Browser()
    yield one
    one.close()


@pytest.fixture
def page(lab):
    with Page(lab) as server:
        yield server


def sleeper(lab, name="agent", **more):
    running = lab.agent(name, **{**ENDS, **more}).start()
    running.wait_for("^session: ")
    return running


def open_session(tab, session_id, view=""):
    tab.goto(f"{tab.url.split('#')[0]}#/s/{session_id}{view}")


def words(tab, selector="body"):
    return tab.inner_text(selector)


# --- getting in ------------------------------------------------------------------------------------------------------


def test_B6_01_sessions_are_there_and_the_token_is_out_of_the_address(lab, page, browser):
    result = lab.agent("agent", steps=[{"text": "hi"}]).run("--task", "go").ok()
    with browser.window(page) as window:
        tab = window.tab()
        tab.wait_for_selector(f"a[href='#/s/{result.session_id}']")
        assert page.token not in tab.url and tab.url == f"{page.origin}/"
        assert tab.evaluate("history.length") <= 2
        assert page.token not in tab.content()


def test_B6_01_a_second_tab_gets_the_key_from_the_first_and_a_stranger_does_not(lab, page, browser):
    with browser.window(page) as window:
        window.tab().wait_for_selector("text=live")
        second = window.tab(f"{page.origin}/")
        second.wait_for_selector("text=live")
    with browser.window(page) as window:
        stranger = window.tab(f"{page.origin}/")
        stranger.wait_for_selector("text=This page needs its key")
        assert "agent" not in words(stranger)


def test_ui_the_page_cannot_be_framed(lab, page, browser, tmp_path):
    frame = tmp_path / "frame.html"
    frame.write_text(f"<iframe src='{page.url}' width=500 height=500></iframe>")
    context = browser.chromium.new_context()
    tab = context.new_page()
    tab.goto(frame.as_uri())
    eventually(lambda: len(tab.frames) == 2, 20 * SLOWER)
    tab.wait_for_timeout(500)
    assert all("murmur" not in frame.content() or not frame.query_selector("#app") for frame in tab.frames[1:])
    context.close()


def test_B6_06_a_page_elsewhere_reads_nothing(lab, page, browser):
    context = browser.chromium.new_context()
    tab = context.new_page()
    with Page(lab) as other:
        tab.goto(f"{other.origin}/")
        said = tab.evaluate("""async ([origin, token]) => {
            const out = [];
            for (const mode of ["cors", "no-cors"]) {
                try { const got = await fetch(origin + "/api/sessions", {mode, headers: mode === "cors" ? {authorization: "Bearer " + token} : {}}); out.push(got.type + got.status); }
                catch (error) { out.push("refused"); }
            }
            return out; }""", [page.origin, page.token])
    assert said == ["refused", "refused"]
    context.close()


# --- words -----------------------------------------------------------------------------------------------------------


def test_B6_08_hostile_words_of_model_tool_and_file_are_text(lab, page, browser):
    session = "ses_" + "8" * 32
    lines = [event("session_start", 0, capsule_name=HOSTILE[0], capsule_version=HOSTILE[1], model=HOSTILE[2], tools_declared=HOSTILE,
                   effective_grants={"shell_allow": HOSTILE, "network_allow": HOSTILE})]
    for n, text in enumerate(HOSTILE):
        lines += [event("tool_call", 10 + n, tool_name=text, input={"path": text}, status="error", error=text, duration_ms=1),
                  event("shell", 30 + n, binary=text, command=text, exit_code=1, duration_ms=1),
                  event("network_refused", 50 + n, host=text, target=text, rule=text, remedy=text, count=1),
                  event(f"kind{text}", 70 + n, anything=text)]
    recorded(lab, session, lines)
    running = sleeper(lab, "talker", steps=[{"text": " ".join(HOSTILE).replace("\u0000", "")}])
    with browser.window(page) as window:
        tab = window.tab()
        tab.wait_for_selector(f"a[href='#/s/{session}']")
        for view in ("", "/Refused", "/Grants", "/Lineage"):
            open_session(tab, session, view)
            tab.wait_for_selector("main h1")
            tab.wait_for_timeout(150)
            assert not tab.query_selector("main img, main script, main b")
        open_session(tab, session, "/Steps/1")
        tab.wait_for_selector(".detail pre")
        assert HOSTILE[0] in words(tab, ".detail") or json.dumps(HOSTILE[0]) in words(tab, ".detail")
        open_session(tab, running.session_id)
        tab.wait_for_selector("#task-text")
        tab.fill("#task-text", HOSTILE[0])
        tab.click("text=Send")
        shown = eventually(lambda: (lambda element: element and "</script>" in element.inner_text() and element.inner_text())(tab.query_selector(".flow-text")), 20 * SLOWER)
        assert "<img src=x" in shown and "\u202e" not in shown and "⟨U+202E⟩" in shown and "\x1b" not in shown and "␛" in shown
        tab.goto(f"{page.origin}/#/search/{HOSTILE[2]}")
        tab.wait_for_selector(".hits li")
        assert not tab.query_selector("main b, main img, main script")
        assert tab.title() == "murmur"
    lab.mur("stop", running.session_id).ok()


# --- live ------------------------------------------------------------------------------------------------------------


def test_B6_10_turn_call_spend_and_ending_come_without_reload(lab, page, browser, model):
    running = lab.agent("agent", "std/driver-anthropic@0.1.0", tools=["std/files@0.1.0"], gateway={"endpoint": model.url, "keyless": True},
                        inference={"model": "claude-test"}, context={"max_tokens": 100000}, lifecycle=SLEEPER).start()
    running.wait_for("^session: ")
    with browser.window(page) as window:
        tab = window.tab()
        tab.click(f"a[href='#/s/{running.session_id}']")
        tab.wait_for_selector("#task-text")
        model.script(tool_call("files", {"action": "write", "path": "a", "content": "b"}), answer("all done"))
        tab.fill("#task-text", "write it")
        tab.click("text=Send")
        tab.wait_for_selector(".row.call >> text=files")
        tab.wait_for_selector(".row >> text=task ends")
        eventually(lambda: "all done" in (tab.query_selector(".flow-text") or tab.query_selector("h1")).inner_text(), 20 * SLOWER)
        numbers = page.get(f"session/{running.session_id}/summary")
        eventually(lambda: f"{numbers['turns']} turns, {numbers['calls']} calls" in words(tab), 20 * SLOWER)
        assert f"{numbers['tokens_in']:,} tokens in, {numbers['tokens_out']:,} out" in words(tab)
        shown = lab.mur("trace", "show", running.session_id, "--workdir", page.session(running.session_id)["work_root"])
        assert re.search(rf"{numbers['tokens_in']:,}", shown.stdout)
        lab.mur("stop", running.session_id).ok()
        tab.wait_for_selector(".row >> text=session ends")
        tab.wait_for_selector("text=Replay")


def test_B6_11_a_server_that_comes_back_is_gone_on_with(lab, browser, tmp_path):
    key = tmp_path / "key"
    running = sleeper(lab)
    first = Page(lab, "--token-file", key)
    with browser.window(first) as window:
        tab = window.tab()
        tab.click(f"a[href='#/s/{running.session_id}']")
        lab.mur("send", running.session_id, "one").ok()
        tab.wait_for_selector(".row >> text=task ends")
        first.close()
        tab.wait_for_selector(".link-state >> text=lost")
        lab.mur("send", running.session_id, "two").ok()
        with Page(lab, "--token-file", key, "--port", first.port) as again:
            tab.wait_for_selector(".link-state >> text=live")
            total = page_total(again, running.session_id)
            eventually(lambda: tab.query_selector_all(".row.task") and len([row for row in tab.query_selector_all(".row") if "task ends" in row.inner_text()]) == 2, 20 * SLOWER)
            assert len(tab.query_selector_all(".row")) == total
            numbers = [row.get_attribute("id") for row in tab.query_selector_all(".row")]
            assert len(numbers) == len(set(numbers))
            lab.mur("stop", running.session_id).ok()
            tab.wait_for_selector(".row >> text=session ends")


def page_total(page, session_id):
    return page.get(f"session/{session_id}/rows?tail=1&limit=1")["total"]


def test_B6_12_ten_tabs_are_live_over_one_stream_and_an_eleventh_loads(lab, page, browser):
    running = sleeper(lab)
    with browser.window(page, width=600, height=500) as window:
        tabs = [window.tab() for _ in range(11)]
        for tab in tabs:
            tab.wait_for_selector(".link-state >> text=live")
            open_session(tab, running.session_id)
        lab.mur("send", running.session_id, "go").ok()
        for tab in tabs:
            tab.wait_for_selector(".row >> text=task ends", state="attached")
        streams = [line for line in open(f"/proc/{page.pid}/net/tcp").read().splitlines()[1:]
                   if line.split()[1].endswith(f":{page.port:04X}") and line.split()[3] == "01"]
        assert len(streams) <= 6
        tabs[0].close()
        lab.mur("send", running.session_id, "again").ok()
        for tab in tabs[1:]:
            eventually(lambda: len([1 for row in tab.query_selector_all(".row") if "task ends" in row.inner_text()]) == 2, 30 * SLOWER)
    lab.mur("stop", running.session_id).ok()


def test_B6_13_a_hundred_thousand_lines_stay_a_few_elements(lab, page, browser):
    session = "ses_" + "9" * 32
    recorded(lab, session, [event("session_start", 0, capsule_name="long", capsule_version="1", model="m")] +
             [event("tool_call", n, turn=n // 3, tool_name="files", input={"path": f"file-{n}", "content": "x" * 200}, status="ok", duration_ms=n % 50) for n in range(1, 100000)])
    with browser.window(page) as window:
        tab = window.tab()
        tab.wait_for_selector(f"a[href='#/s/{session}']")
        page.get(f"session/{session}/rows?tail=1&limit=1")  # the file is in the system's memory
        began = tab.evaluate("performance.now()")
        open_session(tab, session)
        tab.wait_for_selector("#row-99999")
        print("first paint of 100000 rows:", tab.evaluate("performance.now()") - began, "ms")
        assert tab.evaluate("document.querySelectorAll('*').length") < 2000
        tab.evaluate("""() => { window.longest = 0; new PerformanceObserver((list) => { for (const entry of list.getEntries()) window.longest = Math.max(window.longest, entry.duration); })
            .observe({type: "longtask"}); }""")
        for at in (0.0, 0.25, 0.5, 0.75, 0.999):
            tab.evaluate(f"() => {{ const rows = document.querySelector('.rows'); rows.scrollTop = rows.scrollHeight * {at}; }}")
            row = min(99999, int(100000 * at) + 3)
            tab.wait_for_selector(f"#row-{row} >> text=/file-{row}|long@1/", state="attached")
            assert tab.evaluate("document.querySelectorAll('*').length") < 2000
        print("longest task while scrolling:", tab.evaluate("window.longest"), "ms")
        # What somebody looks at stays where it is when lines are added.
        tab.evaluate("document.querySelector('.rows').scrollTop = 28 * 500")
        tab.wait_for_selector("#row-505")


def test_B6_14_a_large_body_is_cut_on_the_page_and_downloaded_whole(lab, page, browser, tmp_path):
    session = "ses_" + "a" * 32
    data = os.urandom(1 << 20) * 8
    sha = hashlib.sha256(data).hexdigest()
    folder = recorded(lab, session, [event("session_start", 0, capsule_name="big"), event("inference", 1, turn=0, decision="end_turn", response_sha=sha)])
    (folder / "blobs").mkdir()
    (folder / "blobs" / sha).write_bytes(data)
    with browser.window(page) as window:
        tab = window.tab()
        tab.wait_for_selector(f"a[href='#/s/{session}']")
        open_session(tab, session, "/Steps/1")
        tab.click("text=the answer")
        tab.wait_for_selector("text=The first 256 KiB")
        with tab.expect_download() as waiting:
            tab.click("text=Download")
        waiting.value.save_as(tmp_path / "whole")
        assert hashlib.sha256((tmp_path / "whole").read_bytes()).hexdigest() == sha


def test_B6_15_marks_are_seen(lab, page, browser):
    session = "ses_" + "b" * 32
    recorded(lab, session, [event("session_start", 0, capsule_name="made"), b"not json\n", event("later_kind", 2, text="new"), b'{"event_type":"sh'])
    with browser.window(page) as window:
        tab = window.tab()
        tab.wait_for_selector(f"a[href='#/s/{session}']")
        open_session(tab, session)
        for text in ("malformed", "unknown here", "torn"):
            tab.wait_for_selector(f".row >> text={text}")
        tab.click(".row >> text=malformed")
        tab.wait_for_selector(".detail pre >> text=not json")


# --- questions and acts ----------------------------------------------------------------------------------------------


def test_B6_16_a_childs_question_is_answered_at_the_top(lab, page, browser):
    publish_toucher(lab)
    with Plane(lab, "local/toucher") as plane, browser.window(page) as window:
        one = delegating(lab, plane, turn(delegate("toucher")), {"text": "waiting"}, {"text": "all done"}, approvals={"commands": ["touch"]})
        tab = window.tab()
        task = one.begin()
        tab.wait_for_selector(".ask >> text=touch")
        assert len(tab.query_selector_all(".ask")) == 1 and "toucher" in words(tab, ".ask") and tab.title() == "(1) murmur"
        tab.goto(f"{page.origin}/#/search")  # whatever is looked at
        tab.click(".ask >> text=Once")
        tab.wait_for_selector(".ask", state="detached")
        eventually(lambda: tab.title() == "murmur", 20 * SLOWER)
        assert state(one.settled(task["id"])) == "completed" and toucher_made_it(lab)
        one.end()


def test_B6_16_an_answer_that_came_too_late_is_said(lab, page, browser):
    one = Asker(lab, ["touch made"], {"commands": ["touch"]}).start()
    task = one.begin()
    with browser.window(page) as window:
        tab = window.tab()
        tab.wait_for_selector(".ask")
        # The button is pressed with what this tab last saw, after another person has answered.
        tab.evaluate("document.querySelector('.link-state').id = 'there'")
        one.answer(task, "no")
        tab.wait_for_selector(".ask", state="detached")
        status, said = page.act(one.running.session_id, "reply", task=task["id"], question_id="apr_" + "0" * 32, answer="once")
        assert status == 409 and said["error"]
    one.end()


def test_B6_17_cancel_and_stop_ask_once_and_say_what_is_left(lab, page, browser):
    one = Asker(lab, ["touch made"], {"commands": ["touch"]}).start()
    one.begin()
    with browser.window(page) as window:
        tab = window.tab()
        tab.wait_for_selector(".ask")
        open_session(tab, one.running.session_id)
        tab.click("text=Cancel task")
        assert tab.query_selector(".ask")  # it only asked whether
        tab.click("text=Yes, cancel task")
        tab.wait_for_selector(".ask", state="detached")
        tab.click("text=Stop")
        tab.click(".careful >> text=No")
        assert one.running.is_running
        tab.click("text=Stop")
        tab.click("text=Yes, stop")
        eventually(lambda: not one.running.is_running, 30 * SLOWER)
    one.running.result()


def test_ui_a_capsule_is_launched_from_the_page_and_outlives_it(lab, browser):
    project = lab.agent("worker", steps=[{"text": "the first answer"}, {"text": "the second"}])
    broken = lab.agent("broken")
    (broken.directory / "murmur.yaml").write_text(f"name: [\n{HOSTILE[0]}\n")
    with Page(lab, cwd=lab.directory) as page, browser.window(page) as window:
        tab = window.tab()
        tab.click("nav >> text=New")
        tab.wait_for_selector("#launch-task")
        assert "broken cannot be started" in words(tab) and tab.query_selector("button[type=submit]").is_disabled()
        tab.click("text=What it may do")
        tab.wait_for_selector("pre.text")
        tab.fill("#launch-task", HOSTILE[1])
        tab.fill("#launch-model", "another-model")
        tab.fill("#launch-tokens", "5000")
        tab.dblclick("button[type=submit]")
        tab.wait_for_selector("text=the first answer")
        session = re.search(r"#/s/(ses_\w+)", tab.url).group(1)
        assert len(page.get("sessions")["sessions"]) == 1
        start = page.get(f"session/{session}")["start"]
        assert (start["model"], start["max_session_tokens"]) == ("another-model", 5000)
        tab.fill("#task-text", "and now?")
        tab.click("text=Send")
        tab.wait_for_selector("text=the second")
        # What was looked at is what is started.
        tab.goto(f"{page.origin}/#/new")
        tab.wait_for_selector("#launch-task")
        tab.fill("#launch-task", "again")
        path = project.directory / "murmur.yaml"
        path.write_text(path.read_text() + "description: another by now\n")
        tab.click("button[type=submit]")
        tab.wait_for_selector("pre.bad")
        assert "look again" in words(tab, "pre.bad") and tab.input_value("#launch-task") == "again"
        assert len(page.get("sessions")["sessions"]) == 1
    assert [row["session_id"] for row in json.loads(lab.mur("ps", "--json").ok().stdout)["capsules"]] == [session]
    lab.mur("stop", session).ok()


def test_B6_18_a_read_only_page_has_no_button_that_acts(lab, browser):
    one = Asker(lab, ["touch made"], {"commands": ["touch"]}).start()
    one.begin()
    with Page(lab, "--read-only") as page, browser.window(page) as window:
        tab = window.tab()
        tab.wait_for_selector(".ask")
        assert not tab.query_selector(".ask button")
        open_session(tab, one.running.session_id)
        tab.wait_for_selector(".row")
        names = {button.inner_text() for button in tab.query_selector_all("button")}
        assert "New" not in words(tab, "nav")
        tab.goto(f"{page.origin}/#/new")
        tab.wait_for_selector("text=This page is read-only")
        assert not tab.query_selector("form.launch")
        assert not names & {"Send", "Stop", "Cancel task", "Replay", "Once", "No"} and not tab.query_selector("textarea")
    one.end()


# --- views -----------------------------------------------------------------------------------------------------------


def test_B6_19_refusals_have_rule_and_remedy(lab, page, browser):
    agent = lab.agent("agent", steps=[call("sh", "curl http://evil.test/; cat /etc/shadow"), turn({"name": "files", "input": {"action": "read", "path": "../x"}}), {"text": "no"}],
                      tools=["std/files@0.1.0"], capabilities={"shell": {"allow": ["sh", "cat"]}, "network": {"allow": ["https://good.test"]}})
    result = agent.run("--task", "go").ok()
    refused = [one for kind in ("command_refused", "network_refused", "workdir_path_refused") for one in lab.session(result).trace.all(kind)]
    with browser.window(page) as window:
        tab = window.tab()
        tab.wait_for_selector(f"a[href='#/s/{result.session_id}']")
        open_session(tab, result.session_id, "/Refused")
        tab.wait_for_selector("table tbody tr")
        rows = [row.inner_text() for row in tab.query_selector_all("table tbody tr")]
        assert len(rows) == len(refused) and refused
        for one in refused:
            said = one.get("remedy") or one.get("reason") or one.get("what")
            assert any(" ".join(said.split())[:40] in " ".join(row.split()) for row in rows), (one, rows)
        open_session(tab, result.session_id, "/Grants")
        tab.wait_for_selector("text=used 1")
        assert "good.test" in words(tab)


def test_B6_20_formation_and_children_are_drawn_and_a_dead_member_marked(lab, page, browser):
    base = {"capsule_version": "1", "model": "m", "formation_id": "frm_" + "0" * 32}
    ids = [f"ses_{n:032x}" for n in range(1, 6)]
    for n, name in enumerate(("writer", "critic", "judge")):
        lines = [{**event("session_start", 0, capsule_name=name, formation_member=name, **base), "session_id": ids[n]}]
        if name == "writer":
            lines += [event("member_call_start", 1, call_id="c1", member="critic"), event("member_call", 2, call_id="c1", member="critic", status="ok", output="good"),
                      event("member_call_start", 3, call_id="c2", member="judge")]
        if name != "judge":
            lines.append(event("session_end", 9, exit_status="ok", total_turns=1, total_input_tokens=1, total_output_tokens=1, duration_ms=1))
        recorded(lab, ids[n], lines)
    for n in (3, 4):
        recorded(lab, ids[n], [event("session_start", 0, capsule_name=f"child{n}", spawned_by=ids[0] if n == 3 else ids[3]),
                               event("session_end", 9, exit_status="ok", total_turns=1, total_input_tokens=1, total_output_tokens=1, duration_ms=1)])
    with browser.window(page) as window:
        tab = window.tab()
        tab.wait_for_selector(f"a[href='#/s/{ids[0]}']")
        open_session(tab, ids[0], "/Lineage")
        tab.wait_for_selector(".graph svg a")
        assert len(tab.query_selector_all(".graph a")) == 5
        dead = tab.text_content(".graph a.bad")
        assert "lost" in dead and "judge" in dead
        tab.wait_for_selector("text=2 calls between members, 1 out")
        assert tab.query_selector(".graph path.member.open")
        tab.keyboard.press("Tab")
        tab.click(".graph a >> text=child4")
        tab.wait_for_selector("h1 >> text=child4")


def test_B6_21_search_finds_and_can_be_stopped(lab, page, browser):
    for n in range(50):
        recorded(lab, f"ses_{n:032x}", [event("session_start", 0, capsule_name="made"), event("tool_call", 1, tool_name="t", input={"said": '日本語 ä "quoted"'})])
    with browser.window(page) as window:
        tab = window.tab()
        tab.wait_for_selector("table.list")  # the page listens to keys
        tab.keyboard.press("/")
        for text in ("日本語", "ä", 'ä "quoted"'):
            tab.fill("#search-text", text)
            tab.press("#search-text", "Enter")
            tab.wait_for_selector("text=50 found, 50 of 50 sessions looked through")
        tab.click(".hits a >> nth=0")
        tab.wait_for_selector(".detail >> text=日本語")


def test_B6_22_two_runs_are_aligned_as_the_command_does(lab, page, browser):
    steps = [turn({"name": "files", "input": {"action": "write", "path": name, "content": name}}) for name in "abcd"]
    before = lab.agent("before", steps=[*steps, {"text": "done"}], tools=["std/files@0.1.0"]).run("--task", "go").ok()
    extra = turn({"name": "files", "input": {"action": "list", "path": "."}})
    after = lab.agent("after", steps=[*steps[:2], extra, *steps[2:], {"text": "done"}], tools=["std/files@0.1.0"]).run("--task", "go").ok()
    paths = [lab.session(one).records / "trace.jsonl" for one in (before, after)]
    said = lab.mur("trace", "diff", *paths, "--steps", "--json").ok().json
    assert page.get(f"diff?a={before.session_id}&b={after.session_id}") == said
    alone = [pair for pair in said["steps"] if pair["kind"] == "only_b" and pair["b"]["what"] == "call files"]
    assert len(alone) == 1 and '"list"' in alone[0]["b"]["text"]
    assert not [pair for pair in said["steps"] if pair["kind"] == "only_a"]
    lines = lab.mur("trace", "diff", *paths, "--steps").ok().stdout
    assert len(re.findall(r"^\+ call files", lines, re.MULTILINE)) == 1
    with browser.window(page) as window:
        tab = window.tab()
        tab.wait_for_selector("table.list")
        tab.goto(f"{page.origin}/#/compare/{before.session_id}/{after.session_id}")
        tab.wait_for_selector(".pair")
        sides = [side.inner_text() for side in tab.query_selector_all(".pair > div")]
        at = next(i for i, side in enumerate(sides) if '"list"' in side)
        assert at % 2 == 1 and sides[at - 1] == "—"


def test_B6_23_a_replay_and_a_fork_open_and_are_linked_both_ways(lab, page, browser):
    result = lab.agent("agent", steps=[turn({"name": "files", "input": {"action": "write", "path": name, "content": name}}) for name in "ab"] + [{"text": "done"}],
                       tools=["std/files@0.1.0"], trace={"capture": "replay"}).run("--task", "go").ok()
    with browser.window(page) as window:
        tab = window.tab()
        tab.click(f"a[href='#/s/{result.session_id}']")
        tab.click("button >> text=Replay")
        tab.wait_for_selector("strong >> text=same")
        tab.click("text=the replay")
        tab.wait_for_selector(f"text=replay of {result.session_id[-8:]}")
        tab.click(f"main a[href='#/s/{result.session_id}']")
        tab.wait_for_selector(f"main >> text={result.session_id}")
        tab.wait_for_selector("text=replayed:")
        tab.fill("input[type=number]", "1")
        tab.click("button >> text=Fork")
        tab.wait_for_selector("strong >> text=forked")
        tab.click("text=the replay")
        tab.wait_for_selector(f"text=replay of {result.session_id[-8:]}")
        tab.click(f"main a[href='#/s/{result.session_id}']")
        eventually(lambda: len(tab.query_selector_all("main p a")) >= 2, 20 * SLOWER)


def tour(lab):
    """A home with something of everything; the ids to look at."""
    agent = lab.agent("writer", steps=[call("sh", "echo hello > notes.txt; curl http://evil.test/"), turn({"name": "files", "input": {"action": "read", "path": "notes.txt"}}),
                                       {"text": "I wrote notes.txt and read it back. The host evil.test is not granted."}],
                      tools=["std/files@0.1.0"], capabilities={"shell": {"allow": ["sh", "cat", "git"]}, "network": {"allow": ["https://api.example.com"]}}, trace={"capture": "content"})
    first, second = (agent.run("--task", "Write a note").ok() for _ in range(2))
    asker = Asker(lab, ["touch deploy.txt"], {"commands": ["touch"]}, name="deployer").start()
    asker.begin("Deploy it")
    talker = sleeper(lab, "reader", steps=[{"text": "Here is what I found so far:\n\n1. the tests pass\n2. the change is small"}])
    lab.mur("send", talker.session_id, "look").ok()
    return first.session_id, second.session_id, asker, talker


def pictured(tab, name, scheme):
    if PICTURES:
        tab.wait_for_timeout(400)
        tab.screenshot(path=f"{PICTURES}/ui-{name}-{scheme}.png")
        assert os.path.getsize(f"{PICTURES}/ui-{name}-{scheme}.png") < 200_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_B6_24_axe_finds_no_fault_in_any_view(lab, page, browser, scheme):
    checker = axe()
    first, second, asker, talker = tour(lab)
    views = [("sessions", "/", "table.list"), ("session", f"/s/{first}/Steps/3", ".detail dl"), ("refused", f"/s/{first}/Refused", "table tbody tr"),
             ("grants", f"/s/{first}/Grants", "text=used"), ("lineage", f"/s/{first}/Lineage", ".graph a"), ("live", f"/s/{talker.session_id}", ".flow-text"),
             ("search", "/search/notes", ".hits li"), ("new", "/new", "form.launch"), ("compare", f"/compare/{first}/{second}", ".pair")]
    with browser.window(page, scheme=scheme, width=1100, height=760) as window:
        tab = window.tab()
        tab.wait_for_selector(".ask")
        for name, view, seen in views:
            tab.goto(f"{page.origin}/#{view}")
            tab.wait_for_selector(seen)
            pictured(tab, name, scheme)
            # The policy of the page lets no foreign code in, so the checker comes by the way of a debugger.
            found = tab.context.new_cdp_session(tab).send("Runtime.evaluate", {
                "expression": f"{checker};axe.run(document, {{resultTypes: ['violations']}}).then(r => JSON.stringify(r.violations.map(v => [v.id, v.impact, v.nodes.map(n => n.html).slice(0, 3)])))",
                "awaitPromise": True, "returnByValue": True})
            faults = [fault for fault in json.loads(found["result"]["value"]) if fault[1] in ("serious", "critical")]
            assert not faults, (name, faults)
    asker.end()
    lab.mur("stop", talker.session_id).ok()


def test_B6_24_a_tour_by_keyboard_alone(lab, page, browser):
    result = lab.agent("agent", steps=[turn({"name": "files", "input": {"action": "write", "path": "a", "content": "b"}}), {"text": "done"}],
                       tools=["std/files@0.1.0"]).run("--task", "go").ok()
    with browser.window(page) as window:
        tab = window.tab()
        tab.wait_for_selector("table.list tbody tr")
        tab.keyboard.press("?")
        tab.wait_for_selector("dialog[open]")
        tab.keyboard.press("Escape")
        tab.wait_for_selector("dialog", state="detached")
        tab.keyboard.press("j")
        tab.wait_for_selector("tr.selected")
        tab.keyboard.press("Enter")
        tab.wait_for_selector(".row.call")
        assert result.session_id in tab.url
        for _ in range(40):
            if tab.evaluate("document.activeElement.classList.contains('rows')"):
                break
            tab.keyboard.press("Tab")
        assert tab.evaluate("document.activeElement.classList.contains('rows')")
        tab.keyboard.press("Home")
        for _ in range(3):
            tab.keyboard.press("j")
        tab.keyboard.press("Enter")
        tab.wait_for_selector(".detail h2")
        tab.keyboard.press("Escape")
        tab.wait_for_selector(".detail", state="detached")
        tab.keyboard.press("Escape")
        tab.wait_for_selector("table.list")
        tab.keyboard.press("/")
        tab.wait_for_selector("#search-text")
