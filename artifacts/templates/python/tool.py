# SPDX-License-Identifier: Apache-2.0
"""A whole tool: JSON in, a text out.

Files of the work folder are opened by relative names where the capsule grants them, print() and sys.stderr are the tool's log,
os.environ holds the session's variables. fetch.py asks servers; `from wit_world.imports import events, task` has
`events.emit_chunk(text)`, progress of the running task, and `task.request_input(prompt)`, a question to the person behind it.
"""

import json

from wit_world import exports
from wit_world.exports.run import Status, ToolInput, ToolResult


def answer(status: Status, text: str) -> ToolResult:
    return ToolResult(status, None, text, None, False, [])


class Run(exports.Run):
    def run(self, input: ToolInput) -> ToolResult:
        name = json.loads(input.data or "{}").get("name")
        if not isinstance(name, str):
            return answer(Status.FAILED, "name: a string is needed")
        return answer(Status.PASSED, f"Hello, {name}!")
