# SPDX-License-Identifier: Apache-2.0
#
# delegate-task with a real mur-roost and real children: what the model is told, what the trace holds, how outcomes come
# back into the task (A1-A5, A14, A16-A18, A22 of spec/spawn.md; D1-D8).

import pytest

from tests.support.delegation import (Plane, continuation, delegate, reads, tool_results, turn)
from tests.support.lab import SLOWER
from tests.support.spawn import completion, publish_agent

HELLO = [{"text": "hello from the child"}]
SLOW = [{"text": "never said", "delay_ms": 120_000}]


@pytest.fixture
def plane(lab):
    publish_agent(lab, "child-agent", HELLO)
    publish_agent(lab, "child-slow", SLOW)
    with Plane(lab, "local/child-agent", "local/child-slow") as plane:
        yield plane


def test_spawn_A18_an_outcome_comes_back_into_the_task(lab, plane):
    project = plane.parent(turn(delegate("child-agent"), save_request="first.json"), {"text": "waiting"}, reads())

    result = plane.run(project).ok()

    [(is_error, started)] = tool_results(project)
    assert not is_error and started["status"] == "started"
    text = continuation(project)
    assert text.startswith(f"[delegate-task] {started['delegation_id']} child-agent@0.1.0 ended ok\n"), text
    assert "hello from the child" in text
    trace = lab.session(result).trace
    assert trace.one("delegation")["outcome"] == "ok"
    assert trace.one("task_continued")["delegations"] == [started["delegation_id"]]
