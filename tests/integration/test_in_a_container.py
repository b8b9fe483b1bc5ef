# SPDX-License-Identifier: Apache-2.0
#
# What a container or a pod asks of mur beside its walls: keys as files, the address others know, and to be process 1.

import json
import os
import shutil
import signal
import subprocess
import urllib.request

import pytest

from tests.support.commands import command_agent
from tests.support.model_server import answer
from tests.support.polling import eventually

NAME = "FLEET_KEY"
SLEEPER = {"after_task": "sleep"}


def keyed(lab, model):
    return lab.agent(driver="std/driver-anthropic@0.1.0", gateway={"endpoint": model.url, "api_key": "${%s}" % NAME})


def shown(request):
    return request.headers["x-api-key"]


def test_fleet_secrets_a_key_is_a_file_named_like_the_credential(lab):
    model = lab.model_server()
    model.script(answer("one"), answer("two"))
    project = keyed(lab, model)
    folder = lab.directory / "keys"
    data = folder / "..data"
    data.mkdir(parents=True)
    (data / NAME).write_text("sk-of-the-file-" + "f" * 30 + "\n")
    (folder / NAME).symlink_to(f"..data/{NAME}")
    assert NAME in project.run("--task", "x").failed("E-MAN-003").stderr

    lab.mur("config", "set", "-g", f"credentials.{NAME}", "sk-of-the-configuration-" + "c" * 30).ok()
    result = project.run("--task", "x", "--secrets-dir", folder, env={NAME: "sk-of-the-environment"}).ok()
    project.run("--task", "x", env={NAME: "sk-of-the-environment"}).ok()

    assert [shown(r) for r in model.requests] == ["sk-of-the-file-" + "f" * 30, "sk-of-the-configuration-" + "c" * 30]
    session = lab.session(result)
    assert "sk-of-the-file" not in (session.records / "trace.jsonl").read_text()
    assert '"file"' in (session.records / "trace.jsonl").read_text(), "the source of the key"


def test_fleet_secrets_a_name_reaches_nothing_outside_the_folder(lab):
    model = lab.model_server()
    project = keyed(lab, model)
    folder = lab.directory / "keys"
    (folder / NAME).mkdir(parents=True)
    assert NAME in project.run("--task", "x", "--secrets-dir", folder).failed("E-MAN-003").stderr
    refused = project.run("--task", "x", "--secrets-dir", lab.directory / "nowhere").failed("E-IO-003").stderr
    assert "--secrets-dir" in refused and "named like the credential" in refused
    project.write(".env", f"MURMUR_SECRETS_DIR={folder}\n")
    (folder / NAME).rmdir()
    (folder / NAME).write_text("sk-chosen-by-a-project\n")
    project.run("--task", "x").failed("E-MAN-003")


def test_fleet_secrets_no_command_is_told_where_they_lie(lab):
    project = command_agent(lab, ["env"], shell=("bash", "env"))
    (lab.directory / "keys").mkdir()
    result = project.run("--task", "go", "--workdir", project / "work", "--secrets-dir", lab.directory / "keys").ok()
    assert "SECRETS_DIR" not in json.dumps(lab.session(result).trace.lines)


def card(url):
    with urllib.request.urlopen(f"{url}/.well-known/agent-card.json", timeout=20) as reply:
        return json.load(reply)


def test_fleet_31_the_card_names_the_public_address(lab):
    project = lab.agent(steps=[{"text": "x"}], lifecycle=SLEEPER)
    running = project.start("--public-url", "https://agents.example.com/writer")
    assert card(running.url)["supportedInterfaces"][0]["url"] == "https://agents.example.com/writer"
    running.signal()
    running.result()
    for wrong in ("agents.example.com", "ftp://x", "https://user@x/", "https://x/?a=b"):
        assert "--public-url" in project.run("--task", "x", "--public-url", wrong).failed("E-IO-003").stderr


def process_1(*command):
    return ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc", *map(str, command)]


def test_fleet_35_process_1_reaps_strangers_and_ends_in_time(lab):
    if not shutil.which("unshare") or subprocess.run(process_1("true"), capture_output=True).returncode:
        pytest.skip("no process namespace can be made here")
    project = lab.agent(steps=[{"text": "x"}], lifecycle=SLEEPER)
    told = lab.directory / "stranger"
    # A process whose parent ends becomes the child of process 1, which is mur.
    prelude = f"(sh -c 'sleep 0.2 & echo $! > {told}' &); exec \"$@\""
    with open(lab.directory / "out", "wb") as out:
        process = subprocess.Popen(process_1("sh", "-c", prelude, "sh", lab.mur_path, "run", "--json"), cwd=project.directory,
                                   env=lab.environment(), stdout=out, stderr=subprocess.STDOUT)
    try:
        eventually(lambda: b"session" in (lab.directory / "out").read_bytes(), within_s=30)
        first = int(subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True).stdout)
        children = f"/proc/{first}/task/{first}/children"
        eventually(lambda: not any("Z" == open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]
                                   for pid in open(children).read().split() if os.path.exists(f"/proc/{pid}")) and told.exists(),
                   within_s=20)
        eventually(lambda: len(open(children).read().split()) == 1, within_s=20)
        os.kill(first, signal.SIGTERM)
        assert process.wait(20) is not None
    finally:
        process.kill()
        process.wait()
    session, = lab.records
    assert [json.loads(line)["event_type"] for line in (session / "trace.jsonl").read_text().splitlines()][-1] == "session_end"
