# SPDX-License-Identifier: Apache-2.0
#
# One bundled tool called by a scripted model: what a test of a tool needs.

import json


def ask(lab, tool, *inputs, files=None, config=None, **manifest):
    """Runs the calls of std/<tool> in one turn; what the model read of each, as (is_error, text without its fence), the work
    folder, the session. `files` fill the work folder."""
    steps = [{"tool_calls": [{"name": tool, "input": value} for value in inputs]},
             {"text": "done", "save_request": "request.json"}]
    entry = {"name": f"std/{tool}", "version": "0.1.0", **({"config": config} if config is not None else {})}
    agent = lab.agent(steps=steps, tools=[entry], **manifest)
    for name, content in (files or {}).items():
        agent.write(f"work/{name}", content)
    (agent / "work").mkdir(exist_ok=True)
    session = lab.session(agent.run("--task", "go", "--workdir", agent / "work").ok())
    request = json.loads((agent / "work/request.json").read_text())
    answers = []
    for message in request["messages"]:
        if message["role"] != "tool":
            continue
        text = message["content"][0]["text"]
        assert text.startswith("<untrusted-content "), text
        inside = text.split("\n", 1)[1].rsplit("\n</untrusted-content>", 1)[0]
        answers.append((message["is_error"], inside.rstrip("\n")))
    assert len(answers) == len(inputs)
    return answers, agent / "work", session
