# SPDX-License-Identifier: Apache-2.0
#
# `mur new tool|hook|driver --language L` and its build command where the language's tools are missing. That what they make
# runs is shown with the real tools, in tests/real/test_languages.py.

import shutil

import pytest

from tests.support.guest_languages import LANGUAGES

ROLES = ["tool", "hook", "driver"]
REMEDIES = {"c": "MURMUR_SOURCE must name a checkout", "python": "install Python 3.10 or newer", "javascript": "install Node.js 20",
            "rust": "rustup target add wasm32-wasip2", "go": "install Go 1.24"}


@pytest.fixture
def bare(tmp_path):
    """A PATH with a shell and nothing else."""
    folder = tmp_path / "bare"
    folder.mkdir()
    (folder / "sh").symlink_to(shutil.which("sh"))
    return str(folder)


@pytest.mark.parametrize("role", ROLES)
def test_new_component_in_each_language_names_the_tool_it_lacks(lab, bare, role):
    for language in LANGUAGES:
        folder = lab.directory / "a folder" / language
        folder.mkdir(parents=True)
        lab.mur("new", role, "mine", "--language", language, cwd=folder).ok()
        told = lab.mur("build", cwd=folder / "mine", env={"PATH": bare, "MURMUR_SOURCE": ""}).failed("E-BLD-006")
        assert REMEDIES[language] in told.stderr
        assert not list((folder / "mine").glob("*.zip")) and not list((folder / "mine").glob("*.wasm"))


@pytest.mark.parametrize("role", ROLES)
def test_new_component_is_the_same_twice_and_has_no_marks_left(lab, role):
    for language in LANGUAGES:
        seen = []
        for turn in ("once", "twice"):
            folder = lab.directory / turn / language
            folder.mkdir(parents=True)
            lab.mur("new", role, "mine", "--language", language, cwd=folder).ok()
            files = {path.relative_to(folder): path.read_text() for path in folder.rglob("*") if path.is_file()}
            seen.append(files)
        assert seen[0] == seen[1]
        for path, text in seen[0].items():
            assert "@NAME@" not in text and "@ROLE@" not in text and "@NEEDS@" not in text and "SPDX" not in text, path


def test_new_component_refuses_other_languages_and_other_templates(lab):
    told = lab.mur("new", "hook", "mine", "--language", "cobol").failed(exit_status=2).stderr
    assert "cobol" in told and all(language in told for language in LANGUAGES)
    told = lab.mur("new", "agent", "mine", "--language", "python").failed(exit_status=2).stderr
    assert "--language is for tool, hook and driver" in told
    assert "mur new driver hello" in lab.mur("new", "driver").failed(exit_status=2).stderr
