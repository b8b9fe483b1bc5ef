# SPDX-License-Identifier: Apache-2.0
"""The conformance hook: each event is a line on stderr, and at a task's end it asks for all a hook may ask for.

hook.c, hook.go, hook.js and hook.rs write the same lines.
"""

import sys

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports import lifecycle
from wit_world.exports.lifecycle import HookOutput_None_
from wit_world.imports import inference, murmur_conversation_read, murmur_task_io_read, tokens
from wit_world.imports.murmur_task_io_read import TaskInputForm

NONE = HookOutput_None_()


def tell(*words):
    print("heard:", *words, file=sys.stderr)
    return NONE


def asked(question, *arguments):
    """(the answer, "true"), or (why there is none, "false")."""
    try:
        return question(*arguments), "true"
    except Err as told:
        why = told.value
        return (why if isinstance(why, str) else why.name.lower().replace("_", "-")), "false"


def task_input():
    return asked(murmur_task_io_read.read_input, TaskInputForm.AS_GIVEN, 0, 1 << 20)


def ask_all():
    tell("tokens", tokens.count("hello world"), tokens.count(""))
    tell("input", *task_input())
    tell("output", *asked(murmur_task_io_read.read_output, 0, 1 << 20))
    roles, cursor = [], None
    while True:
        page = murmur_conversation_read.read_messages(cursor, 1)
        for message in page.messages:
            roles.append(message.role)
            if not message.id or message.inserted_by is not None:
                tell("odd message", message)
        cursor = page.next_cursor
        if cursor is None:
            break
    tell("conversation", page.total, ",".join(roles))
    tell("refused", "true" if asked(murmur_conversation_read.read_messages, "no cursor", 1)[1] == "false" else "false")
    message = inference.Message("user", "say it", None, None, None)
    answer, was_told = asked(inference.run_inference, inference.InferenceRequest([message], "be short", None))
    tell("inferred", getattr(answer, "text", answer), was_told)


class Lifecycle(exports.Lifecycle):
    def on_stage(self, event: lifecycle.StageEvent) -> lifecycle.HookOutput:
        return tell("stage", ",".join(event.shell_allow))

    def on_session_start(self, ctx: lifecycle.SessionContext) -> lifecycle.HookOutput:
        tell("start", ctx.capsule_name, ctx.capsule_version, len(ctx.session_id))
        return tell("no input:", task_input()[0])

    def on_task_start(self, event: lifecycle.TaskStartEvent) -> lifecycle.HookOutput:
        return tell("task", event.source, event.input_bytes)

    def on_inference(self, event: lifecycle.InferenceEvent) -> lifecycle.HookOutput:
        return tell("turn", event.turn, event.decision, event.tool_name or "-", event.output_tokens)

    def on_tool_call(self, event: lifecycle.ToolEvent) -> lifecycle.HookOutput:
        if event.outcome is None:
            return tell("call", event.tool_name, event.input_bytes)
        return tell("called", event.tool_name, event.outcome.status, "true" if event.outcome.output_bytes > 0 else "false")

    def on_shell(self, event: lifecycle.ShellEvent) -> lifecycle.HookOutput:
        if event.outcome is None:
            return tell("shell", event.binary, "|".join(event.argv))
        return tell("ran", event.binary, event.outcome.exit_code, event.outcome.stdout_bytes)

    def on_compaction(self, event: lifecycle.CompactionEvent) -> lifecycle.HookOutput:
        return NONE

    def on_task_end(self, event: lifecycle.TaskEndEvent) -> lifecycle.HookOutput:
        tell("end", event.exit_status)
        ask_all()
        return NONE

    def on_session_end(self, event: lifecycle.SessionEndEvent) -> lifecycle.HookOutput:
        return tell("over", event.total_turns, event.total_tool_calls, event.total_shell_calls, event.exit_status)
