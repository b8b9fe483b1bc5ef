# SPDX-License-Identifier: Apache-2.0
#
# The house rules of scripts/lint: each finds a breach that was put into a small tree of its own, names it with the remedy, and
# finds nothing in the same tree without it.

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
HEAD = "/* SPDX-License-Identifier: Apache-2.0\n *\n * {}\n */\n"


def head(why="What stands here, and why."):
    return HEAD.format(why)


class House:
    """A git tree with the scripts of this one, sources of its own, and the objects cc makes of them."""

    def __init__(self, folder):
        self.root = folder
        (folder / "scripts").mkdir()
        for name in ("lint", "rooms.py", "symbols.py"):
            shutil.copy(ROOT / "scripts" / name, folder / "scripts" / name)
        shutil.copy(ROOT / ".clang-format", folder / ".clang-format")
        subprocess.run(["git", "init", "-q", folder], check=True)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def owe(self, *lines):
        self.write("scripts/debts", "".join(f"{line}\n" for line in lines))

    def compile(self):
        for source in sorted((self.root / "src").rglob("*.c")):
            folder, *rest = source.relative_to(self.root / "src").parts
            objects = self.root / "build/src" / folder / f"libmur_{folder}.a.p"
            objects.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cc", "-I", self.root / "src", "-c", source, "-o", objects / ("_".join(rest) + ".o")], check=True)

    def lint(self, *rules):
        done = subprocess.run([self.root / "scripts/lint", "--build", self.root / "build", *rules], capture_output=True, text=True)
        assert done.stderr == ""
        return done.returncode, done.stdout


@pytest.fixture
def house(tmp_path):
    return House(tmp_path)


def assert_found(house, rule, *parts):
    status, text = house.lint(rule)
    assert status == 1 and f"FAIL  {rule}" in text, text
    for part in parts:
        assert part in text, text


def assert_in_order(house, rule):
    status, text = house.lint(rule)
    assert status == 0 and f"ok    {rule}" in text, text


# --- includes ---


def test_house_rule_1_a_room_includes_only_lower_rooms(house):
    house.write("src/session/loop/turn.h", head() + "#pragma once\n")
    house.write("src/session/state/spend.h", head() + "#pragma once\n")
    house.write("src/session/loop/turn.c", head() + '#include "session/loop/turn.h"\n#include "session/state/spend.h"\n')
    assert_in_order(house, "rooms and rows")
    house.write("src/session/state/spend.c", head() + '#include "session/loop/turn.h"\n')
    assert_found(house, "rooms and rows", "src/session/state/spend.c:5: may not include session/loop/turn.h",
                 "room loop does not lie below room state: move what both need to a lower room")


def test_house_rule_1_rooms_on_one_row_do_not_know_each_other(house):
    house.write("src/session/plan/plan.c", head() + '#include "session/harness/harness.h"\n')
    assert_found(house, "rooms and rows", "room harness does not lie below room plan")


def test_house_rule_1_a_folder_includes_only_lower_folders(house):
    house.write("src/base/buf.c", head() + '#include "net/url.h"\n')
    assert_found(house, "rooms and rows", "src/net lies above src/base")


def test_house_rule_1_a_room_without_a_row_is_told_to_get_one(house):
    house.write("src/trace/attic/old.c", head() + '#include "trace/lines/writer.h"\n')
    assert_found(house, "rooms and rows", "src/trace/attic has no row in ROOMS of scripts/rooms.py: give it one")


def test_house_rule_2_other_folders_see_only_a_face(house):
    house.write("src/cli/run/cmd_run.c", head() + '#include "session/stage.h"\n')
    assert_in_order(house, "rooms and rows")
    house.write("src/cli/run/cmd_run.c", head() + '#include "session/loop/turn.h"\n')
    assert_found(house, "rooms and rows", "other folders see the headers directly in src/session")


def test_house_an_internal_header_stays_in_its_room(house):
    house.write("src/session/hooks/hooks.c", head() + '#include "session/hooks/hooks_internal.h"\n')
    assert_in_order(house, "internal headers")
    house.write("src/session/loop/seed.c", head() + '#include "session/hooks/hooks_internal.h"\n')
    assert_found(house, "internal headers", "src/session/loop/seed.c:5", "declare what is needed in a header of its own")


# --- calls ---


def test_house_rule_3_no_circle_of_calls(house):
    house.write("src/base/a.c", head() + "void b (void);\nvoid\na (void)\n{\n    b ();\n}\n")
    house.write("src/base/b.c", head() + "void\nb (void)\n{\n}\n")
    house.compile()
    assert_in_order(house, "no circles")
    house.write("src/base/b.c", head() + "void a (void);\nvoid\nb (void)\n{\n    a ();\n}\n")
    house.compile()
    assert_found(house, "no circles", "2 sources call each other in a circle", "base/a.c -> base/b.c (b)", "base/b.c -> base/a.c (a)",
                 "move what the lower one asks for into a file below both")


def test_house_a_circle_of_three_through_two_rooms_is_found(house):
    for name, calls in (("one", "two"), ("two", "three"), ("three", "one")):
        house.write(f"src/trace/{name}.c", head() + f"void {calls} (void);\nvoid\n{name} (void)\n{{\n    {calls} ();\n}}\n")
    house.compile()
    assert_found(house, "no circles", "3 sources call each other")


def test_house_rule_3_a_call_goes_down_whatever_was_declared_by_hand(house):
    house.write("src/session/loop/turn.c", head() + "void\nturn_run (void)\n{\n}\n")
    house.write("src/session/state/spend.c", head() + "void turn_run (void);\nvoid\nspend (void)\n{\n    turn_run ();\n}\n")
    house.compile()
    assert_found(house, "calls go down", "src/session/state/spend.c: calls turn_run of session/loop/turn.c")


def test_house_a_name_is_defined_once(house):
    house.write("src/base/words.c", head() + "void\nwords_split (void)\n{\n}\n")
    house.compile()
    assert_in_order(house, "defined once")
    house.write("src/manifest/text/grammar.c", head() + "void\nwords_split (void)\n{\n}\n")
    house.compile()
    assert_found(house, "defined once", "words_split is defined in", "keep one")


def test_house_rule_5_a_header_declares_what_its_own_source_defines(house):
    house.write("src/base/buf.h", head() + "#pragma once\nvoid buf_free (void);\nextern const int buf_limit;\n")
    house.write("src/base/buf.c", head() + "const int buf_limit = 1;\nvoid\nbuf_free (void)\n{\n}\n")
    house.compile()
    assert_in_order(house, "own declarations")
    house.write("src/base/buf.h", head() + "#pragma once\nvoid buf_free (void);\n/* Of another. */\nint ids_next (int a,\n              int b);\n")
    house.write("src/base/ids.c", head() + "int\nids_next (int a, int b)\n{\n    return a + b;\n}\n")
    house.compile()
    assert_found(house, "own declarations", "declares ids_next, which base/ids.c defines: declare it in base/ids.h")


def test_house_rule_5_a_rooms_internal_header_may_declare_for_it(house):
    house.write("src/session/hooks/hooks_internal.h", head() + "#pragma once\nvoid hook_ask (void);\n")
    house.write("src/session/hooks/hook.c", head() + "void\nhook_ask (void)\n{\n}\n")
    house.compile()
    assert_in_order(house, "own declarations")


def test_house_an_exported_name_is_used(house):
    house.write("src/base/a.c", head() + "static void\nhelp (void)\n{\n}\nvoid\na_run (void)\n{\n    help ();\n}\n")
    house.compile()
    assert_found(house, "unused exports", "src/base/a.c: a_run is used by no other file: make it static, or take it out")
    house.write("src/base/b.c", head() + "void a_run (void);\nint\nmain (void)\n{\n    a_run ();\n}\n")
    house.compile()
    assert_in_order(house, "unused exports")


def test_house_rules_about_calls_are_skipped_with_the_reason_without_a_build(house):
    house.write("src/base/a.c", head())
    status, text = house.lint("no circles")
    assert status == 0 and "skip  no circles: no build to look at: scripts/build build" in text


# --- sizes ---


def test_house_rule_4_at_most_twenty_sources_in_a_folder(house):
    for number in range(20):
        house.write(f"src/base/a{number}.c", head())
    assert_in_order(house, "folder size")
    house.write("src/base/a20.c", head())
    assert_found(house, "folder size", "src/base: 21 sources, the most is 20: make a room")


def struct_of(members):
    pairs = "".join(f"    int a{n}, *b{n};\n" for n in range(members // 2)) + "    void (*last) (int x, int y);\n" * (members % 2)
    return head() + "struct big {\n" + pairs + "};\n"


def test_house_rule_9_a_struct_above_25_members_may_only_shrink(house):
    house.write("src/base/big.h", struct_of(25))
    assert_in_order(house, "struct members")
    house.write("src/base/big.h", struct_of(26))
    assert_found(house, "struct members", "struct big has 26 members, the most is 25")
    house.owe("struct members: big 27")
    assert_in_order(house, "struct members")
    house.write("src/base/big.h", struct_of(28))
    assert_found(house, "struct members", "struct big has 28 members", "(scripts/debts allows 27)")


def test_house_a_source_has_at_most_700_lines(house):
    house.write("src/base/long.c", head() + "\n" * 697)
    assert_found(house, "file length", "701 lines, the most is 700: split it along its sections")


def test_house_a_function_has_at_most_80_lines(house):
    house.write("src/base/a.c", head() + "void\na (void)\n{\n" + "    a ();\n" * 80 + "}\n")
    assert_in_order(house, "function length")
    house.write("src/base/a.c", head() + "void\na (void)\n{\n" + "    a ();\n" * 81 + "}\n")
    assert_found(house, "function length", "src/base/a.c:7: a function of 81 lines")


# --- words and form ---


@pytest.mark.parametrize("words", ["Callers: session/launch.c.", "Joins text. Called by turn.c and loop.c."])
def test_house_rule_6_a_comment_names_no_caller(house, words):
    house.write("src/base/a.h", head("Joins text, as it is used by every room.") + "#pragma once\n")
    assert_in_order(house, "no callers")
    house.write("src/base/a.h", head(words) + "#pragma once\n")
    assert_found(house, "no callers", "src/base/a.h:1: a list of callers", "take it out")


def test_house_rule_7_a_head_says_something_or_is_left_out(house):
    house.write("src/base/a.h", head() + "#pragma once\n")
    house.write("src/base/a.c", '/* SPDX-License-Identifier: Apache-2.0 */\n#include "base/a.h"\n')
    assert_in_order(house, "head comment")
    house.write("src/base/a.c", head("Texts. See a.h.") + '#include "base/a.h"\n')
    assert_found(house, "head comment", "src/base/a.c:1: its head only points to its header: leave it out")
    house.write("src/base/a.c", '/* SPDX-License-Identifier: Apache-2.0 */\n')
    (house.root / "src/base/a.h").unlink()
    assert_found(house, "head comment", "src/base/a.c:1: no head comment saying what question the file answers")


def clang_format_major():
    found = shutil.which("clang-format-14") or shutil.which("clang-format")
    version = subprocess.run([found, "--version"], capture_output=True, text=True).stdout if found else ""
    match = re.search(r"version (\d+)", version)
    return int(match.group(1)) if match else 0


@pytest.mark.skipif(clang_format_major() != 14, reason="the tree is formatted with clang-format 14, which is not installed")
def test_house_rule_8_the_formatter_is_run(house):
    house.write("src/base/a.c", head() + "int\na (void)\n{\n    return 1;\n}\n")
    assert_in_order(house, "formatted")
    house.write("src/base/a.c", head() + "int a(void) { return 1; }\n")
    assert_found(house, "formatted", "src/base/a.c: not formatted: clang-format -i src/base/a.c")


def test_house_rule_8_another_formatter_is_no_judge(house, monkeypatch):
    house.write("bin/clang-format-14", "#!/bin/sh\necho clang-format version 99.0\n")
    (house.root / "bin/clang-format-14").chmod(0o755)
    monkeypatch.setenv("PATH", f"{house.root}/bin", prepend=":")
    status, text = house.lint("formatted")
    assert status == 0 and "skip  formatted: clang-format 14 is what the tree is formatted with; here is 99" in text


# --- the map ---


def test_house_the_drawing_of_the_rooms_cannot_go_stale(house):
    shutil.copy(ROOT / "scripts/draw-rooms", house.root / "scripts/draw-rooms")
    house.write("docs/ARCHITECTURE.md", "# Map\n\n<!-- rooms: made by scripts/draw-rooms -->\n<!-- /rooms -->\n\nEnd.\n")
    subprocess.run([house.root / "scripts/draw-rooms"], check=True)
    assert_in_order(house, "drawing is fresh")
    assert (house.root / "docs/ARCHITECTURE.md").read_text().endswith("<!-- /rooms -->\n\nEnd.\n")
    table = (house.root / "scripts/rooms.py").read_text()
    house.write("scripts/rooms.py", table.replace('{"conversation"},', '{"conversation"},\n        {"attic"},', 1))
    assert_found(house, "drawing is fresh", "docs/rooms.svg: not as scripts/rooms.py says: scripts/draw-rooms writes it",
                 "docs/ARCHITECTURE.md: not as")


def test_house_a_walk_names_functions_that_are_there(house):
    house.write("src/base/a.c", head() + "void\na_run (void)\n{\n}\n")
    house.write("docs/ARCHITECTURE.md", "* `base/a.c:a_run` runs\n")
    assert_in_order(house, "walks exist")
    house.write("docs/ARCHITECTURE.md", "* `base/a.c:a_walk` walks\n* `base/gone.c` is gone\n")
    assert_found(house, "walks exist", "docs/ARCHITECTURE.md:1: src/base/a.c has no function a_walk", "2: there is no src/base/gone.c")


def test_house_an_answer_names_a_place(house):
    house.write("src/base/a.c", head() + "void\na_walk (void)\n{\n}\n")
    house.write("docs/ARCHITECTURE.md", "| who walks? | `base/a.c:a_walk` |\n")
    assert_in_order(house, "walks exist")
    house.write("docs/ARCHITECTURE.md", "| who walks? | somebody |\n| who runs? | `base/a.c:a_run` |\n")
    assert_found(house, "walks exist", "docs/ARCHITECTURE.md:1: the answer names no place", "2: src/base/a.c has no function a_run")


# --- what is owed ---


def test_house_a_debt_that_is_paid_is_taken_out(house):
    house.write("src/base/a.c", head())
    house.owe("file length: src/base/a.c")
    assert_found(house, "file length", '"src/base/a.c" is in order now: scripts/lint --settle takes that line out')
    house.lint("--settle", "file length")
    assert (house.root / "scripts/debts").read_text().strip() == ""
    assert_in_order(house, "file length")
