# SPDX-License-Identifier: Apache-2.0
#
# The official Python client of A2A (a2a-sdk), as its documentation uses it and without special cases, against the door of a
# real session: discover, send, stream, poll, list, cancel, take a stream up again, and a bearer token.

import asyncio
import threading

import httpx
import pytest
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError
from a2a.types import (CancelTaskRequest, GetExtendedAgentCardRequest, GetTaskRequest, ListTasksRequest, Message, Part, Role,
                       SendMessageConfiguration, SendMessageRequest, SubscribeToTaskRequest, TaskState)
from a2a.utils.errors import A2AError
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value

from tests.support.door_client import SLEEPER, Door
from tests.support.fixtures import own_component
from tests.support.lab import SLOWER
from tests.support.model_server import answer

REFUSED = (A2AClientError, A2AError)


def talk(running, conversation, streaming=True, polling=False, token=None):
    """Runs the coroutine function with a client of that door, made from its card."""
    async def run():
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with httpx.AsyncClient(timeout=60 * SLOWER, headers=headers) as http:
            card = await A2ACardResolver(http, running.url).get_agent_card()
            client = ClientFactory(ClientConfig(httpx_client=http, streaming=streaming, polling=polling)).create(card)
            return await conversation(client, card)
    return asyncio.run(run())


def request(text="hello", **more):
    configuration = more.pop("configuration", None)
    message = Message(message_id="m1", role=Role.ROLE_USER, parts=[Part(text=text)], **more)
    return SendMessageRequest(message=message, **({"configuration": configuration} if configuration else {}))


async def collected(stream):
    return [event async for event in stream]


@pytest.fixture
def capsule(lab):
    running = lab.agent(steps=[{"text": "the answer"}], lifecycle=SLEEPER).start()
    running.url
    yield running
    running.signal()
    running.result(20).ok()


@pytest.fixture
def held(lab, model):
    """A capsule whose provider holds its answers: (running, go on)."""
    gate = threading.Event()
    model.script(repeat=answer("late answer", hold=gate))
    running = lab.agent(driver="std/driver-anthropic@0.1.0", gateway={"endpoint": model.url, "api_key": "sk-x"}, lifecycle=SLEEPER).start()
    running.url
    yield running, gate.set
    gate.set()
    Door(running).result("murmur.StopSession")
    running.signal()
    running.result(20)


def test_door_a2a_sdk_discovers_the_card(capsule):
    async def conversation(_, card):
        assert (card.name, card.version) == ("agent", "0.1.0")
        assert card.supported_interfaces[0].protocol_binding == "JSONRPC"
        assert card.capabilities.streaming and not card.capabilities.push_notifications
        assert [skill.id for skill in card.skills] == ["task"]
    talk(capsule, conversation)


def test_door_a2a_sdk_sends_and_waits(capsule):
    async def conversation(client, _):
        event, = await collected(client.send_message(request()))
        assert event.task.status.state == TaskState.TASK_STATE_COMPLETED
        assert event.task.artifacts[0].parts[0].text == "the answer"
    talk(capsule, conversation, streaming=False)


def test_door_a2a_sdk_streams(capsule):
    async def conversation(client, _):
        events = await collected(client.send_message(request(context_id="mine")))
        assert events[0].task.context_id == "mine"
        assert any(event.artifact_update.artifact.parts[0].text == "the answer" for event in events if event.HasField("artifact_update"))
        last = events[-1].status_update
        assert last.status.state == TaskState.TASK_STATE_COMPLETED and last.task_id == events[0].task.id
        assert all(event.HasField("status_update") or event.HasField("artifact_update") for event in events[1:])
    talk(capsule, conversation)


def test_door_a2a_sdk_polls_a_task_to_its_end_and_lists_it(held):
    running, go_on = held

    async def conversation(client, _):
        sent = request(configuration=SendMessageConfiguration(return_immediately=True))
        event, = await collected(client.send_message(sent))
        assert event.task.status.state == TaskState.TASK_STATE_SUBMITTED
        go_on()
        for _ in range(600):
            task = await client.get_task(GetTaskRequest(id=event.task.id))
            if task.status.state == TaskState.TASK_STATE_COMPLETED:
                break
            await asyncio.sleep(0.05)
        assert task.artifacts[0].parts[0].text == "late answer"
        page = await client.list_tasks(ListTasksRequest(page_size=10))
        assert [listed.id for listed in page.tasks] == [task.id] and page.total_size == 1
        with pytest.raises(REFUSED):
            await client.get_task(GetTaskRequest(id="tsk_" + "0" * 32))
    talk(running, conversation, streaming=False, polling=True)


def test_door_a2a_sdk_cancels(held):
    running, _ = held

    async def conversation(client, _):
        sent = request(configuration=SendMessageConfiguration(return_immediately=True))
        event, = await collected(client.send_message(sent))
        task = await client.cancel_task(CancelTaskRequest(id=event.task.id))
        assert task.status.state == TaskState.TASK_STATE_CANCELED
        with pytest.raises(REFUSED):
            await client.cancel_task(CancelTaskRequest(id=event.task.id))
    talk(running, conversation, streaming=False, polling=True)


def test_door_a2a_sdk_takes_a_stream_up_again(held):
    running, go_on = held

    async def conversation(client, _):
        stream = client.send_message(request())
        first = await anext(stream)
        await stream.aclose()  # the connection is lost; the task is not
        resumed = client.subscribe(SubscribeToTaskRequest(id=first.task.id))
        events = [await anext(resumed)]
        go_on()
        events += await collected(resumed)
        assert events[0].task.id == first.task.id
        assert events[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED
        with pytest.raises(REFUSED):
            await collected(client.subscribe(SubscribeToTaskRequest(id=first.task.id)))  # it has ended
    talk(running, conversation)


def test_door_a2a_sdk_answers_a_task_that_asks(lab):
    tool = lab.publish("tool-probe", own_component("tool-probe"), "tool", description="probe",
                       input_schema={"type": "object", "properties": {"do": {"type": "string"}}})
    running = lab.agent(steps=[{"tool_calls": [{"name": "tool-probe", "input": {"do": "ask which?"}}]}, {"text": "thanks"}],
                        tools=[tool], lifecycle=SLEEPER).start()

    async def conversation(client, _):
        events = await collected(client.send_message(request()))
        asked = events[-1].status_update
        assert asked.status.state == TaskState.TASK_STATE_INPUT_REQUIRED and asked.status.message.parts[0].text == "which?"
        events = await collected(client.send_message(request("this", task_id=asked.task_id, context_id=asked.context_id)))
        assert events[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED
    talk(running, conversation)
    running.signal()
    running.result(20).ok()


def test_door_a2a_sdk_with_a_bearer_token(lab):
    running = lab.agent(steps=[{"text": "x"}], lifecycle=SLEEPER, network={"authentication": {
        "scheme": "bearer", "credentials": {"app": {"scopes": ["SendMessage", "SendStreamingMessage", "GetTask"]}}}}).start()
    running.url
    token = lab.mur("token", "--credential", "app").ok().stdout.strip()

    async def conversation(client, card):
        assert card.capabilities.extended_agent_card and "bearer" in card.security_schemes
        extended = await client.get_extended_agent_card(GetExtendedAgentCardRequest())
        assert extended.name == card.name
        events = await collected(client.send_message(request()))
        assert events[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED
        with pytest.raises(REFUSED):
            await client.list_tasks(ListTasksRequest())
    talk(running, conversation, token=token)

    async def refused(client, _):
        with pytest.raises(REFUSED):
            await collected(client.send_message(request()))
    talk(running, refused)
    running.signal()
    running.result(20).ok()


def test_door_a2a_sdk_answers_what_is_asked_before_a_call(lab):
    write = {"tool_calls": [{"name": "files", "input": {"action": "write", "path": "a", "content": "x"}}]}
    capsule = lab.agent(steps=[write, {"text": "written"}], tools=["std/files@0.1.0"], approvals={"tools": ["files"]}, lifecycle=SLEEPER)
    running = capsule.start("--workdir", capsule.directory)

    async def conversation(client, _):
        event, = await collected(client.send_message(request()))
        assert event.task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        asked = MessageToDict(next(part.data for part in event.task.status.message.parts if part.HasField("data")))
        assert asked["kind"] == "approval" and asked["tool"] == "files" and not (capsule / "a").exists()
        data = ParseDict({"question_id": asked["question_id"], "answer": "once"}, Value())
        answered = Message(message_id="m2", role=Role.ROLE_USER, task_id=event.task.id, parts=[Part(data=data)])
        event, = await collected(client.send_message(SendMessageRequest(message=answered)))
        assert event.task.status.state == TaskState.TASK_STATE_COMPLETED and (capsule / "a").exists()
    talk(running, conversation, streaming=False)
    running.signal()
    running.result(20)
