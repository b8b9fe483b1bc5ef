# SPDX-License-Identifier: Apache-2.0
#
# docs/lock-down.md promises nothing that is not tried: each row of its tables has an attempt at each class it speaks of, and each
# attempt is shown to succeed where nothing confines it, or else a refusal would prove nothing. Read from the sources, so it holds
# of hosts that reach no class, too.

import ast
import re
from pathlib import Path

from tests.support import walls
from tests.support.hosts import CLASSES
from tests.support.lab import ROOT

# Rows that name no wall.
FACTS = ("Mechanism", "Needs")
OF_A_POORER_HOST = ("process namespace", "IPC namespace", "`/proc` of its own", "host name", "control group")


class Attempt:
    def __init__(self, path, function, mark):
        self.path, self.name, self.function = path, function.name, function
        self.rows = [word.value for word in mark.args]
        value = next(word.value for word in mark.keywords if word.arg == "outside")
        self.outside = getattr(walls, value.id) if isinstance(value, ast.Name) else value.value

    @property
    def classes(self):
        if "tier" in [argument.arg for argument in self.function.args.args]:
            return set(CLASSES)
        found = set()
        for mark in self.function.decorator_list:
            if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Attribute) and mark.func.attr == "parametrize" \
                    and getattr(mark.args[0], "value", None) in ("scope", "tier", "containment"):
                names = mark.args[1]
                found |= set(CLASSES) if isinstance(names, ast.Name) else {name.value for name in names.elts}
        return found

    def names(self, *wanted):
        return any(isinstance(node, ast.Name) and node.id in wanted for node in ast.walk(self.function))


def of_the_tree():
    """Every test function, and those that carry the mark."""
    names, attempts = set(), []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if not isinstance(node, ast.FunctionDef):
                continue
            names.add(node.name)
            attempts += [Attempt(path, node, mark) for mark in node.decorator_list
                         if isinstance(mark, ast.Call) and getattr(mark.func, "id", None) == "wall"]
    return names, attempts


def tables():
    """The cells of each row, by its first one: what each class protects, and what a poorer host leaves."""
    classes, poorer = {}, {}
    into = None
    for line in (ROOT / "docs/lock-down.md").read_text().splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))] if line.startswith("|") else []
        if cells[1:4] == CLASSES:
            into = classes
        elif cells[:2] == ["Refused", "What is left"]:
            into = poorer
        elif not cells:
            into = None
        elif into is not None and not set(cells[0]) <= set("-"):
            into[cells[0]] = cells[1:]
    return {row: cells for row, cells in classes.items() if row not in FACTS}, poorer


def test_security_each_row_of_the_lock_down_table_is_tried_at_each_class():
    rows, poorer = tables()
    assert len(rows) > 25 and set(poorer) == set(OF_A_POORER_HOST), (len(rows), set(poorer))
    _, attempts = of_the_tree()
    missing = []
    for row in rows:
        tried = set()
        for attempt in attempts:
            if any(row.startswith(words) for words in attempt.rows):
                tried |= attempt.classes
        missing += [f"{row}: {name}" for name in CLASSES if name not in tried]
    missing += [row for row in poorer if not any(row in attempt.rows and attempt.classes for attempt in attempts)]
    assert not missing, "no attempt of the escape suite is marked with\n" + "\n".join(missing)


def test_security_each_attempt_names_a_row_and_is_shown_to_succeed_outside():
    rows, poorer = tables()
    names, attempts = of_the_tree()
    wrong = []
    for attempt in attempts:
        for words in attempt.rows:
            if words not in poorer and not any(row.startswith(words) for row in rows):
                wrong.append(f"{attempt.name}: no row begins with {words!r}")
        if attempt.outside == "here" and not attempt.names("outside_probe", "PROBE"):
            wrong.append(f"{attempt.name}: nothing in it runs without walls")
        elif attempt.outside not in ("here", "possible") and attempt.outside not in names:
            wrong.append(f"{attempt.name}: there is no test {attempt.outside}")
    assert not wrong, "\n".join(wrong)
