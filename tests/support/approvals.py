# SPDX-License-Identifier: Apache-2.0
#
# An agent whose calls are asked about, and the person who answers at its door.

import json

from .commands import call
from .door_client import SLEEPER, Door
from .polling import eventually

SHELLS = ["sh", "bash", "git", "cat", "touch", "rm", "ln", "mkdir", "tee", "cp"]


class Asker:
    """A running agent that makes `calls` (a script of sh, or a step) one a turn, each in the task it is given."""

    def __init__(self, lab, calls, approvals, shell=SHELLS, tools=("std/files@0.1.0",), capabilities=None, lifecycle=None, name="asker",
                 **manifest):
        steps = [call("sh", step) if isinstance(step, str) else step for step in calls]
        steps.append({"text": "done", "save_request": "request.json"})
        self.lab = lab
        self.project = lab.agent(name, steps=steps, tools=list(tools), **({"approvals": approvals} if approvals else {}),
                                 capabilities={"shell": {"allow": list(shell)}, **(capabilities or {})},
                                 lifecycle={**SLEEPER, **(lifecycle or {})}, **manifest)
        self.work = self.project / "work"
        self.work.mkdir(exist_ok=True)

    @classmethod
    def of(cls, lab, project, work, running):
        """One that runs already."""
        one = cls.__new__(cls)
        one.lab, one.project, one.work, one.running, one.door = lab, project, work, running, Door(running)
        return one

    def start(self, *arguments, **how):
        self.running = self.project.start("--workdir", self.work, *arguments, **how)
        self.door = Door(self.running)
        return self

    def begin(self, text="go"):
        """Sends a task; the task as it is once it asks or has ended."""
        return self.settled(self.door.result("SendMessage", {
            "message": {"messageId": "begin", "role": "ROLE_USER", "parts": [{"text": text}]},
            "configuration": {"returnImmediately": True}})["task"]["id"])

    def settled(self, task_id):
        def look():
            task = self.door.result("GetTask", {"id": task_id})
            return task if task["status"]["state"] not in ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING") else None
        return eventually(look, within_s=60)

    def answer(self, task, answer, message_id=None, **more):
        """Answers the question of `task` as a program does; the task as it settles next."""
        data = {"question_id": question(task)["question_id"], "answer": answer}
        self.door.result("SendMessage", {"message": {
            "messageId": message_id or f"m-{data['question_id']}", "role": "ROLE_USER", "taskId": task["id"], "parts": [{"data": data}], **more},
            "configuration": {"returnImmediately": True}})
        return self.settled(task["id"])

    def say(self, task, words):
        """Answers a question that takes any text; the task as it settles next."""
        self.door.result("SendMessage", {"message": {"messageId": f"w-{id(task)}", "role": "ROLE_USER", "taskId": task["id"],
                                                     "parts": [{"text": words}]}, "configuration": {"returnImmediately": True}})
        return self.settled(task["id"])

    def end(self):
        self.running.signal()
        self.running.result(30)

    @property
    def trace(self):
        return self.lab.session(self.running.session_id).trace

    @property
    def results(self):
        """What the model read of its calls, in order."""
        saved = json.loads((self.work / "request.json").read_text())
        return [m["content"][0]["text"] for m in saved["messages"] if m["role"] == "tool"]


def question(task):
    """The structured question of a task."""
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED", task
    return next(part["data"] for part in task["status"]["message"]["parts"] if "data" in part)


def state(task):
    return task["status"]["state"].removeprefix("TASK_STATE_").lower()
