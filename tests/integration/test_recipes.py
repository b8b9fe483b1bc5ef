# SPDX-License-Identifier: Apache-2.0
#
# Every family of the table of recipes, with the first of its programs that is installed here: a launch tells its parts, and
# watching it once proposes nothing that encloses what is not its own.

import re
import shutil
from pathlib import Path

import pytest
import yaml

PATH = "/usr/local/bin:/usr/bin:/bin"
TABLE = Path(__file__).resolve().parents[2] / "src/sandbox/programs/recipe_table.c"
FAMILY = re.compile(r'^    \{ "([^"]+)", \{ ((?:"[^"]+"(?:,\s*)?)+) \}', re.MULTILINE)
SLOW = {"browsers", "maven", "media", "documents"}  # to start, under observation


def families():
    """(family, its first installed program) of each row that has one."""
    for family, names in FAMILY.findall(TABLE.read_text()):
        for name in re.findall(r'"([^"*\[]+)"', names):
            if shutil.which(name, path=PATH):
                yield family, name
                break


INSTALLED = list(families())


def test_recipes_explain_scope_tells_the_parts_of_every_family(lab):
    assert {"git", "make"} <= {family for family, _ in INSTALLED}
    names = sorted({name for _, name in INSTALLED})
    project = lab.project("scope", {"name": "scope", "version": "0.1.0", "capabilities": {"shell": {"allow": names}}})
    report = project.run("--explain-scope", "--json", env={"PATH": PATH}).ok().json
    text = project.run("--explain-scope", env={"PATH": PATH}).ok().stdout
    for family, name in INSTALLED:
        line = next((part for part in report["program_parts"] if part.startswith(f"{name}: with the parts of {family}")), None)
        assert line, (family, name, report["program_parts"])
        assert line.split(";")[0] in text, line


@pytest.mark.parametrize("family, name", [row for row in INSTALLED if row[0] not in SLOW], ids=lambda word: re.sub(r"\W+", "_", word))
def test_recipes_learning_proposes_nothing_that_encloses_others(lab, family, name):
    done = lab.mur("doctor", "--learn", name, "--", "--version", env={"PATH": PATH}, timeout=120).ok()
    shell = yaml.safe_load(done.stdout[done.stdout.index("capabilities:"):])["capabilities"]["shell"]
    assert shell["allow"][0] == name
    proposed = [entry["path"] for block in shell.get("interpreter_runtime", ()) for entry in block["dirs"]]
    for path in proposed:
        assert path not in ("/", "/etc", "/usr", "/usr/lib", "/usr/local", "/usr/local/lib", "/opt", "/var/lib"), (family, proposed)
        assert not str(lab.home).startswith(path) and not path.startswith(str(lab.home)), (family, proposed)
