# SPDX-License-Identifier: Apache-2.0
"""A whole hook: calls whose input holds a word of `config: {words: [...]}` are refused, and counted.

One instance serves a session, so what is kept in it lasts until its end. What it writes to sys.stderr, `mur run` shows on its own.
`from wit_world.imports import inference, tokens` has what a hook may ask for; fetch.py asks servers.
"""

import json
import os

from wit_world import exports
from wit_world.exports import lifecycle
from wit_world.exports.lifecycle import HookOutput_Deny, HookOutput_None_


class Lifecycle(exports.Lifecycle):
    refused = 0

    def on_tool_call(self, event: lifecycle.ToolEvent) -> lifecycle.HookOutput:
        words = json.loads(os.environ.get("MURMUR_ARTIFACT_CONFIG", "{}")).get("words", [])
        found = [word for word in words if word in event.input]
        # With an outcome the call is over: it can be looked at, no longer refused.
        if not found or event.outcome is not None:
            return HookOutput_None_()
        Lifecycle.refused += 1
        return HookOutput_Deny(f"no call may hold {found[0]} (refusal {Lifecycle.refused})")

    def on_stage(self, event: lifecycle.StageEvent) -> lifecycle.HookOutput:
        return HookOutput_None_()

    def on_session_start(self, ctx: lifecycle.SessionContext) -> lifecycle.HookOutput:
        return HookOutput_None_()

    def on_task_start(self, event: lifecycle.TaskStartEvent) -> lifecycle.HookOutput:
        return HookOutput_None_()

    def on_inference(self, event: lifecycle.InferenceEvent) -> lifecycle.HookOutput:
        return HookOutput_None_()

    def on_shell(self, event: lifecycle.ShellEvent) -> lifecycle.HookOutput:
        return HookOutput_None_()

    def on_compaction(self, event: lifecycle.CompactionEvent) -> lifecycle.HookOutput:
        return HookOutput_None_()

    def on_task_end(self, event: lifecycle.TaskEndEvent) -> lifecycle.HookOutput:
        return HookOutput_None_()

    def on_session_end(self, event: lifecycle.SessionEndEvent) -> lifecycle.HookOutput:
        return HookOutput_None_()
