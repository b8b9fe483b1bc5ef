# SPDX-License-Identifier: Apache-2.0
#
# Driver choices: inference.alternates, the tool switch-driver, and what each choice keeps for itself.

import json

import pytest
import re

from tests.integration.test_driver_contracts import component
from tests.integration.test_hooks import Hook, record_of
from tests.support.fixtures import own_component
from tests.support.model_server import Reply, answer, call
from tests.support.packages import manifest, zip_of

AGENT_MAY = {"agent_settings": ["inference.driver"]}
SCRIPTED = "std/driver-scripted"


def alternate(name="fast", model="swift", driver=SCRIPTED):
    return {"name": name, "model": model, "driver": {"artifact": driver}}


def switch(to, **more):
    return {"tool_calls": [{"name": "switch-driver", "id": "c", "input": {"driver": to}, **more}]}


def scripted(lab, steps, alternates=None, control=AGENT_MAY, inference=None, **how):
    """An agent whose choices share the bundled scripted driver."""
    return lab.agent(steps=steps, control=control,
                     inference={"driver": {"artifact": SCRIPTED, "config": {"steps": steps}},
                                "alternates": alternates or [alternate()], **(inference or {})}, **how)


def two_providers(lab, primary, other, keys=("${FIRST_KEY}", "${OTHER_KEY}"), inference=None, **how):
    """A primary and an alternate, each a driver of its own with its own provider and key."""
    component_path = own_component("driver-anthropic")
    auth = {"header": "x-api-key", "value": "{key}"}
    limits = {"max_output_tokens": 500, "context_window": 9000}
    first = lab.publish("driver-first", component_path, "driver", upstream_auth=auth, models={"model-a": limits})
    lab.publish("driver-other", component_path, "driver", upstream_auth=auth, models={
        "model-b": {**limits, "max_output_tokens": 700, "max_input_tokens": 4000}})
    entry = {"name": "local/driver-other", "version": "0.1.0", "runtime": "driver",
             "gateway": {"endpoint": other.url, "api_key": keys[1]}}
    project = lab.agent(driver=first, gateway={"endpoint": primary.url, "api_key": keys[0]},
                        tools=[entry, *how.pop("tools", [])], control=AGENT_MAY, inference={
                            "model": "model-a", "alternates": [alternate("other", "model-b", "local/driver-other")],
                            **(inference or {})}, **how)
    text = (project / "murmur.yaml").read_text().replace("  max_tokens: 1024\n", "")
    project.write("murmur.yaml", text)
    return project


def work_of(session):
    """The default work folder of a session of `agent`."""
    return session.lab.directory / "agent/workdir" / session.id


KEYS = {"FIRST_KEY": "key-of-the-first", "OTHER_KEY": "key-of-the-other"}


# --- switching -------------------------------------------------------------------------------------------------------


def test_session_8_3_the_model_switches_and_the_next_call_is_the_other_ones(lab):
    project = scripted(lab, [switch("fast"), {"text": "{{model}}"}])

    session = lab.session(project.run("--task", "x").ok())

    assert session.result_text == "swift"
    trace = session.trace
    change, applied = trace.one("control_change"), trace.one("control_applied")
    assert {key: change[key] for key in ("principal", "kind", "name", "action", "previous", "value", "applies_from")} == {
        "principal": "agent", "kind": "setting", "name": "inference.driver", "action": "set", "previous": "primary",
        "value": "fast", "applies_from": "next_inference_call"}
    assert "token_id" not in change and "replaced" not in change
    assert (applied["turn"], applied["name"], applied["value"], applied["change_id"]) == \
        (1, "inference.driver", "fast", change["event_id"])
    assert applied["task_id"] == trace.one("task_start")["task_id"]
    assert applied["parent_id"] == trace.one("task_start")["event_id"]
    assert [(line["driver_choice"], line["model"]) for line in trace.all("inference")] == \
        [("primary", "scripted"), ("fast", "swift")]
    assert trace.types.index("control_change") < trace.types.index("control_applied")
    assert trace.types.index("control_applied") + 1 == \
        [at for at, kind in enumerate(trace.types) if kind == "inference"][1]
    call_line = trace.one("tool_call")
    assert (call_line["tool_name"], call_line["status"], call_line["input"]) == ("switch-driver", "ok", {"driver": "fast"})


def test_session_8_3_the_answer_of_switch_driver_is_fenced_data(lab):
    session = lab.session(scripted(lab, [switch("fast"), {"text": "{{fenced}}"}]).run("--task", "x").ok())

    head, body, tail = session.result_text.split("\n")
    assert head == "<untrusted-content source=tool:switch-driver>" and re.fullmatch("</untrusted-content> [0-9]{8}", tail)
    assert json.loads(body) == {"applies_from": "next_inference_call", "name": "inference.driver", "previous": "primary",
                                "value": "fast"}


def test_session_8_3_switch_driver_names_the_choices_and_needs_one(lab):
    project = scripted(lab, [{"tool_calls": [{"name": "switch-driver", "input": {}}]}, {"text": "{{tools}}",
                                                                                        "save_request": "request.json"}],
                       [alternate(), alternate("slow", "snail")])

    session = lab.session(project.run("--task", "x").ok())

    tools = {tool["name"]: tool for tool in json.loads((work_of(session) / "request.json").read_text())["tools"]}
    schema = tools["switch-driver"]["parameters"]
    assert schema["properties"]["driver"]["enum"] == ["primary", "fast", "slow"] and schema["required"] == ["driver"]
    assert session.trace.one("tool_call")["status"] == "error"
    assert "control_change" not in session.trace.types


@pytest.mark.parametrize("name, status, reason", [("nobody", 422, "undeclared_driver"), (" ", 422, "undeclared_driver"),
                                                  (5, 422, "undeclared_driver")])
def test_session_8_3_a_refused_switch_changes_nothing(lab, name, status, reason):
    project = scripted(lab, [switch(name), {"text": "{{model}} {{fenced}}"}])

    session = lab.session(project.run("--task", "x").ok())

    refused = session.trace.one("control_refused")
    assert (refused["principal"], refused["status"], refused["reason"], refused["kind"], refused["name"]) == \
        ("agent", status, reason, "setting", "inference.driver")
    assert "token_id" not in refused
    assert session.result_text.startswith("scripted ") and "primary, fast" in session.result_text
    assert "untrusted-content" not in session.result_text
    assert {"control_change", "control_applied"}.isdisjoint(session.trace.types)


def test_session_8_3_without_the_grant_the_tool_is_absent_and_a_call_is_refused(lab):
    steps = [{"tool_calls": [{"name": "switch-driver", "input": {"driver": "fast"}}]}, {"text": "{{model}} {{fenced}}"}]

    session = lab.session(lab.agent(steps=steps).run("--task", "x").ok())

    assert "switch-driver" not in session.trace.one("session_start")["tools_declared"]
    assert "control.agent_settings" in session.result_text and session.result_text.startswith("scripted ")
    assert "control_refused" not in session.trace.types


def test_session_a_value_no_call_used_is_never_reported_as_applied(lab):
    twice = {"tool_calls": [{"name": "switch-driver", "id": "a", "input": {"driver": "fast"}},
                            {"name": "switch-driver", "id": "b", "input": {"driver": "slow"}}]}
    project = scripted(lab, [twice, {"text": "{{model}}"}], [alternate(), alternate("slow", "snail")])

    session = lab.session(project.run("--task", "x").ok())

    changes, applied = session.trace.all("control_change"), session.trace.one("control_applied")
    assert [(line["previous"], line["value"]) for line in changes] == [("primary", "fast"), ("fast", "slow")]
    assert (applied["value"], applied["change_id"]) == ("slow", changes[1]["event_id"])
    assert session.result_text == "snail"


def test_session_a_choice_lasts_from_task_to_task_and_not_beyond_the_session(lab):
    project = scripted(lab, [switch("fast"), {"text": "{{model}}"}],
                       lifecycle={"task_acceptance": "none", "keep_working": {"message": "go on", "limit": 1}})

    first = lab.session(project.run("--task", "x").ok())
    again = lab.session(project.run("--task", "x").ok())

    assert [line["driver_choice"] for line in first.trace.all("inference")] == ["primary", "fast", "fast"]
    assert again.trace.all("inference")[0]["driver_choice"] == "primary"


def test_records_the_start_line_names_control_and_choices(lab):
    trace = lab.session(scripted(lab, [{"text": "x"}]).run("--task", "x").ok()).trace

    start = trace.one("session_start")
    assert start["control"] == {"settings": [], "secrets": [], "agent_settings": ["inference.driver"]}
    assert list(start["control"]) == ["settings", "secrets", "agent_settings"]
    limits = start["model_limits"]
    assert start["inference_choices"] == [
        {"name": "primary", "driver": SCRIPTED, "model": "scripted", "credential_source": "none", "available": True,
         "model_limits": limits},
        {"name": "fast", "driver": SCRIPTED, "model": "swift", "credential_source": "none", "available": True,
         "model_limits": {**limits, "context_window": None, "context_window_source": "none", "input_budget": None,
                          "input_budget_basis": "none"}}]
    assert [list(choice) for choice in start["inference_choices"]] == \
        [["name", "driver", "model", "credential_source", "available", "model_limits"]] * 2


def test_records_one_choice_leaves_no_word_of_choices(lab):
    trace = lab.session(lab.agent(steps=[{"text": "x"}]).run("--task", "x").ok()).trace

    assert {"inference_choices", "control"}.isdisjoint(trace.one("session_start"))
    assert {"driver_choice", "model"}.isdisjoint(trace.one("inference"))


def test_records_trace_show_names_the_choice_of_each_turn(lab):
    session = lab.session(scripted(lab, [switch("fast"), {"text": "x"}]).run("--task", "x").ok())

    shown = lab.mur("trace", "show", session.id, cwd=lab.directory / "agent").ok().stdout

    assert "turn 0  on primary (scripted)" in shown and "turn 1  on fast (swift)" in shown
    assert "setting inference.driver  primary → fast  applied from turn 1  by agent" in shown


# --- what is kept apart ----------------------------------------------------------------------------------------------


def thinking(text, thought="hm"):
    return Reply(content=[{"type": "thinking", "thinking": thought, "signature": "s"}, {"type": "text", "text": text}])


def test_session_5_3_thinking_stays_with_the_model_that_had_it(lab):
    steps = [{"content": [{"type": "thinking", "thinking": "mine"}, {"type": "text", "text": "so"},
                          {"type": "tool_call", "id": "c", "name": "switch-driver", "input": {"driver": "fast"}}],
              "stop_reason": "tool_call"},
             {"content": [{"type": "thinking", "thinking": "alone"},
                          {"type": "tool_call", "id": "d", "name": "switch-driver", "input": {"driver": "primary"}}],
              "stop_reason": "tool_call", "save_request": "second.json"},
             {"text": "done", "save_request": "third.json"}]
    session = lab.session(scripted(lab, steps).run("--task", "x").ok())

    def kinds(name):
        messages = json.loads((work_of(session) / name).read_text())["messages"]
        return [[block["type"] for block in message["content"]] for message in messages if message["role"] == "assistant"]
    assert kinds("second.json") == [["text", "tool_call"]]
    assert kinds("third.json") == [["thinking", "text", "tool_call"], ["tool_call"]]
    made = [(line["produced_by"]["driver"], line["produced_by"]["model"]) for line in record_of(lab)
            if line["role"] == "assistant"]
    bare = SCRIPTED.split("/")[1]
    assert made == [(bare, "scripted"), (bare, "swift"), (bare, "scripted")]
    assert [block["type"] for block in record_of(lab)[1]["content"]] == ["thinking", "text", "tool_call"]


def test_session_5_3_a_message_of_nothing_but_anothers_thinking_is_left_out(lab):
    steps = [{"content": [{"type": "thinking", "thinking": "only"}], "stop_reason": "end_turn"},
             switch("fast"), {"text": "x", "save_request": "last.json"}]
    project = scripted(lab, steps, lifecycle={"task_acceptance": "none", "keep_working": {"message": "go on", "limit": 1}})

    session = lab.session(project.run("--task", "x").ok())

    # The script counts the assistant messages it is shown, so the other model sees its step twice.
    messages = json.loads((work_of(session) / "last.json").read_text())["messages"]
    assert [message["role"] for message in messages] == ["user", "user"] + ["assistant", "tool"] * 2
    line = session.trace.all("inference")[-1]
    assert len(line["message_ids"]) == len(line["message_shas"]) == 6
    assert [message["role"] for message in record_of(lab)] == \
        ["user", "assistant", "user"] + ["assistant", "tool"] * 2 + ["assistant"]


def test_session_5_3_without_alternates_nothing_says_who_made_a_message(lab):
    session = lab.session(lab.agent(steps=[{"text": "x"}]).run("--task", "x").ok())

    assert all("produced_by" not in line for line in record_of(lab))


def test_session_5_5_a_continuation_is_not_told_to_another_choice(lab):
    steps = [{**switch("fast"), "continuation": True}, {"text": "end", "save_request": "other.json"}]

    session = lab.session(scripted(lab, steps).run("--task", "x").ok())

    request = json.loads((work_of(session) / "other.json").read_text())
    assert "continuation_id" not in request
    assert [message["role"] for message in request["messages"]] == ["user", "assistant", "tool"]


def test_session_5_5_under_the_same_choice_a_continuation_goes_on(lab):
    steps = [{**switch("primary"), "continuation": True}, {"text": "end", "save_request": "other.json"}]

    session = lab.session(scripted(lab, steps).run("--task", "x").ok())

    request = json.loads((work_of(session) / "other.json").read_text())
    assert request["continuation_id"] and [message["role"] for message in request["messages"]] == ["assistant", "tool"]


def test_session_5_6_each_choice_has_its_own_limits_and_count(lab):
    first, other = lab.model_server(), lab.model_server()
    first.script(call("switch-driver", {"driver": "other"}, usage={"input_tokens": 5000, "output_tokens": 5}))
    other.script(call("session-status", {}, usage={"input_tokens": 40, "output_tokens": 2}), answer("done"))
    project = two_providers(lab, first, other)

    trace = lab.session(project.run("--task", "x", env=KEYS).ok()).trace

    lines = trace.all("inference")
    assert [(line["max_output_tokens"], line["input_budget"]) for line in lines] == [(500, 8500), (700, 4000), (700, 4000)]
    assert lines[1]["input_tokens"] < 3000, "the other provider's count was taken for this one's"
    assert lines[2]["input_tokens"] >= 42
    context = trace.one("session_status")["status"]["context"]
    assert (context["window_tokens"], context["budget_tokens"], context["budget_basis"]) == (9000, 4000, "max_input_tokens")


def test_containment_4_each_choice_calls_its_own_provider_with_its_own_key(lab):
    first, other = lab.model_server(), lab.model_server()
    first.script(call("switch-driver", {"driver": "other"}))
    other.script(call("switch-driver", {"driver": "primary"}, call_id="back"))
    first.script(answer("home"))
    project = two_providers(lab, first, other)

    session = lab.session(project.run("--task", "x", env=KEYS).ok())

    assert session.result_text == "home"
    assert [request.headers["x-api-key"] for request in first.requests] == ["key-of-the-first"] * 2
    assert [request.headers["x-api-key"] for request in other.requests] == ["key-of-the-other"]
    assert [request.json["model"] for request in first.requests + other.requests] == ["model-a", "model-a", "model-b"]
    start = session.trace.one("session_start")
    assert start["gateways"] == [
        {"artifact": "local/driver-first", "host": first.host, "credential_source": "environment", "metered": True},
        {"artifact": "local/driver-other", "host": other.host, "credential_source": "environment", "metered": True}]
    assert [choice["credential_source"] for choice in start["inference_choices"]] == ["environment"] * 2
    everything = session.trace.path.read_text() + json.dumps(record_of(lab))
    assert all(key not in everything for key in KEYS.values())


def test_containment_4_spend_of_an_alternate_is_metered(lab):
    first, other = lab.model_server(), lab.model_server()
    first.script(call("switch-driver", {"driver": "other"}, usage={"input_tokens": 100, "output_tokens": 10}))
    project = two_providers(lab, first, other, inference={"max_session_tokens": 1000})

    result = project.run("--task", "x", env=KEYS)

    assert result.status == "spend_ceiling_reached" and other.requests == []


# --- availability ----------------------------------------------------------------------------------------------------


def test_manifest_7_3_an_alternate_without_its_key_is_staged_unavailable(lab):
    first, other = lab.model_server(), lab.model_server()
    first.script(call("switch-driver", {"driver": "other"}), answer("stayed"))
    project = two_providers(lab, first, other)

    result = project.run("--task", "x", env={"FIRST_KEY": "k1"}).ok()

    session = lab.session(result)
    assert result.stderr.count("warning[W-RUN-003]") == 1 and "driver choice other" in result.stderr
    assert result.stderr.count("OTHER_KEY") == 1, "a key that is nowhere is named once"
    assert [(choice["available"], choice["credential_source"]) for choice in
            session.trace.one("session_start")["inference_choices"]] == [(True, "environment"), (False, "none")]
    refused = session.trace.one("control_refused")
    assert (refused["status"], refused["reason"]) == (409, "credential_unresolvable")
    assert "OTHER_KEY" in session.trace.one("tool_call")["error"]
    assert session.result_text == "stayed" and other.requests == []


def test_manifest_7_3_a_key_that_comes_later_makes_the_choice_usable(lab):
    first, other = lab.model_server(), lab.model_server()

    def give_key(_request):
        lab.mur("config", "set", "-g", "credentials.OTHER_KEY", "late-key").ok()
        return call("switch-driver", {"driver": "other"})
    first.script(give_key)
    other.script(answer("there"))
    project = two_providers(lab, first, other)

    session = lab.session(project.run("--task", "x", env={"FIRST_KEY": "k1"}).ok())

    assert session.result_text == "there" and other.requests[0].headers["x-api-key"] == "late-key"


def test_manifest_7_3_the_primarys_missing_key_still_refuses(lab):
    first, other = lab.model_server(), lab.model_server()
    result = two_providers(lab, first, other).run("--task", "x", env={"OTHER_KEY": "k2"}).failed("E-MAN-003")
    assert "FIRST_KEY" in result.stderr


def test_session_a_rejected_key_of_an_alternate_is_an_inference_credential(lab):
    first, other = lab.model_server(), lab.model_server()
    first.script(call("switch-driver", {"driver": "other"}))
    other.script(Reply(status=401, body=b'{"type":"error","error":{"type":"authentication_error","message":"no"}}'))
    project = two_providers(lab, first, other)

    result = project.run("--task", "x", env=KEYS).failed("E-RUN-040")

    assert "error[E-RUN-027]" in result.stderr and "local/driver-other" in result.stderr
    trace = lab.session(result).trace
    line = trace.one("inference_credential")
    assert (line["change"], line["status"], line["credential"]) == ("rejected", 401, "OTHER_KEY")
    assert trace.one("task_failed")["cause"] == "credential_rejected"


def test_artifacts_an_alternates_driver_is_judged_like_the_primarys(lab):
    package = zip_of({"murmur.yaml": manifest("driver-odd", "0.1.0", "driver", upstream_auth={
        "header": "x-api-key", "value": "{key}"}), "driver.wasm": component(exports=["murmur:driver/process@0.3.0"])})
    path = lab.directory / "driver-odd.mur.zip"
    path.write_bytes(package)
    lab.mur("publish", path).ok()
    project = scripted(lab, [{"text": "x"}], [alternate(driver="local/driver-odd")], tools=[
        {"name": "local/driver-odd", "version": "0.1.0", "runtime": "driver",
         "gateway": {"endpoint": "http://127.0.0.1:9", "keyless": True}}])

    told = project.run("--task", "x").failed("E-RUN-030").stderr

    assert "local/driver-odd" in told and lab.records == []


def test_artifacts_an_alternates_model_needs_an_output_cap(lab):
    project = scripted(lab, [{"text": "x"}])
    project.write("murmur.yaml", (project / "murmur.yaml").read_text().replace("  max_tokens: 1024\n", ""))

    told = project.run("--task", "x").failed("E-RUN-052").stderr

    assert "fast" in told and "swift" in told


# --- hooks -----------------------------------------------------------------------------------------------------------


def test_hooks_9_4_a_completion_is_the_primarys_whatever_is_selected(lab):
    hook = Hook(lab, on={"on-task-end": {"ask": "sum up"}})
    project = scripted(lab, [switch("fast"), {"text": "{{model}}"}], tools=[hook.entry])

    trace = lab.session(project.run("--task", "x").ok()).trace

    line = next(line for line in trace.all("inference") if "origin" in line)
    assert (line["driver_choice"], line["model"]) == ("primary", "scripted")
