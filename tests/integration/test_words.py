# SPDX-License-Identifier: Apache-2.0
#
# Words of strangers on a terminal: whatever a project, a folder, a package or an index is called, no command lets it steer the
# screen or turn the order of what a person reads.

import json
import os

import pytest

from tests.support.polling import eventually  # noqa: F401

ESC, CSI, BELL, OVERRIDE = "\x1b]0;PWN\x07\x1b[2J", "\x9b2J", "\x07", "\u202egnp.exe"
STEERING = set("\x1b\x9b\x07\x08\x7f\r") | set(map(chr, range(0x202A, 0x202F))) | set(map(chr, range(0x2066, 0x206A)))


def steers(result):
    return sorted((STEERING & set(result.stdout)) | (STEERING & set(result.stderr)))


PLACES = {
    "shell.allow": lambda w: {"capabilities": {"shell": {"allow": ["ba" + w]}}},
    "filesystem.scope": lambda w: {"artifacts": [{"name": "std/files", "version": "0.1.0", "filesystem": {"scope": w}}]},
    "read_only": lambda w: {"capabilities": {"filesystem": {"read_only": ["x" + w]}}},
    "env.allow": lambda w: {"capabilities": {"env": {"allow": ["X" + w]}}},
    "network.allow": lambda w: {"capabilities": {"network": {"allow": [f"https://a{w}.example"]}}},
    "exports.files.root": lambda w: {"exports": {"files": {"root": "out" + w}}},
    "version of an artifact": lambda w: {"artifacts": [{"name": "std/files", "version": "0.1.0" + w}]},
    "model": lambda w: {"inference": {"model": "m" + w}},
    "name": lambda w: {"name": "local/a" + w},
    "version": lambda w: {"version": "0.1.0" + w},
    "unknown key": lambda w: {"a" + w: 1},
}


@pytest.mark.parametrize("place", PLACES)
def test_security_B5_words_of_a_project(lab, place):
    for number, word in enumerate((ESC, CSI, BELL, OVERRIDE)):
        project = lab.project(f"p{number}", {"name": "local/a", "version": "0.1.0", **PLACES[place](word)})
        for arguments in (("run", "--explain-scope"), ("run", "--explain-scope", "--json"), ("doctor",), ("install",),
                          ("trace", "list"), ("run", "--task", "x")):
            assert not steers(project.mur(*arguments)), (place, word, arguments)


@pytest.mark.parametrize("place", ["shell.allow", "read_only", "env.allow", "network.allow", "model", "version of an artifact"])
def test_security_B5_a_name_with_such_characters_is_refused(lab, place):
    for number, word in enumerate((ESC, CSI, OVERRIDE)):
        project = lab.project(f"p{number}", {"name": "local/a", "version": "0.1.0", **PLACES[place](word)})
        refused = project.run("--explain-scope").failed("E-MAN-003")
        assert "murmur.yaml:" in refused.stderr and "steers a terminal" in refused.stderr, refused.stderr


def test_security_B5_words_of_a_folder(lab):
    for word in (ESC, CSI, OVERRIDE):
        project = lab.project("x" + word.replace("/", ""), {"name": "local/a", "version": "0.1.0"})
        for arguments in (("run", "--explain-scope"), ("doctor",), ("trace", "list"), ("trace", "list", "--json"), ("ls",), ("ps",)):
            assert not steers(project.mur(*arguments)), (word, arguments)


def test_security_B5_json_keeps_its_value(lab):
    """What is shown escaped in text is the same value to a program that reads JSON."""
    project = lab.project("x" + CSI + "\u202e", {"name": "local/a", "version": "0.1.0"})
    report = project.run("--explain-scope", "--json").ok()
    assert not steers(report)
    assert (CSI + "\u202e") in json.dumps(json.loads(report.stdout), ensure_ascii=False)


def test_security_B5_words_of_an_index(lab):
    index = lab.directory / "index.json"
    text = "nice" + ESC + CSI + OVERRIDE
    index.write_text(json.dumps({"schema": 1, "artifacts": [{"name": "other/tool", "latest": "0.1.0", "kind": "tool",
                                                            "description": text, "source": "github.com/other/tool"}]}))
    for arguments in (("search", "tool", "--index", index), ("search", "nice")):
        assert not steers(lab.mur(*arguments, env={"MURMUR_INDEX": str(index)}))


def test_security_D4_a_recorded_command_reads_forwards(lab):
    """Direction marks in records are shown, not sent."""
    project = lab.agent(steps=[{"text": "said " + OVERRIDE + "\u2066x" + CSI}])
    result = project.run("--task", "look").ok()
    session = lab.session(result)
    for arguments in (("trace", "show"), ("trace", "steps"), ("trace", "list"), ("trace", "report"), ("conversation", "ls")):
        shown = project.mur(*arguments, *([session.id] if arguments[1] in ("show", "steps") else []))
        assert not steers(shown), (arguments, shown.stdout)
    assert os.path.exists(session.trace.path)
