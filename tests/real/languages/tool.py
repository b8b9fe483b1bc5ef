# SPDX-License-Identifier: Apache-2.0
#
# One tool in each language of this folder, the same in all: `name` holds a list of orders as JSON, the answer is the list of what
# came of each. It replaces the source of a fresh `mur new tool`, and so uses what that template offers.

import json
import os
import sys
import time

from fetch import fetch
from wit_world import exports
from wit_world.exports.run import Status, ToolInput, ToolResult
from wit_world.imports import events, task


def log(order):
    print(order["text"], file=sys.stderr)
    return "logged"


def write(order):
    with open(order["path"], "w") as file:
        file.write(order["text"])
    return "written"


def read(order):
    with open(order["path"]) as file:
        return file.read()


def ask(order):
    return task.request_input(order["text"])


def progress(order):
    events.emit_chunk(order["text"])
    return "shown"


def get(order):
    answer = fetch(order["url"])
    return f"{answer.status} {dict(answer.headers).get('x-told')} {answer.text}"


def post(order):
    answer = fetch(order["url"], "POST", {"x-asked": order["header"]}, order["text"])
    return f"{answer.status} {answer.text}"


ORDERS = {
    "log": log, "write": write, "read": read, "ask": ask, "progress": progress, "get": get, "post": post,
    "list": lambda order: " ".join(sorted(os.listdir(order["path"]))),
    "env": lambda order: os.environ.get(order["text"], "unset"),
    "config": lambda order: json.loads(os.environ["MURMUR_ARTIFACT_CONFIG"])[order["text"]],
    "clock": lambda order: "later" if time.time() > 1_600_000_000 else "earlier",
    "random": lambda order: "differs" if os.urandom(16) != os.urandom(16) else "repeats",
}


def outcome(order):
    try:
        return "ok: " + ORDERS[order["do"]](order)
    except Exception as problem:
        return f"error: {problem}"


class Run(exports.Run):
    def run(self, input: ToolInput) -> ToolResult:
        orders = json.loads(json.loads(input.data)["name"])
        if orders == "break":
            raise ValueError("broke on purpose")
        if orders == "fail":
            return ToolResult(Status.FAILED, "a summary", None, None, False, [])
        if orders == "meta":
            return ToolResult(Status.PASSED, None, "with metadata", None, False, [("resource_id", "r-1"), ("state_effect", "read")])
        return ToolResult(Status.PASSED, None, json.dumps([outcome(order) for order in orders]), None, False, [])
