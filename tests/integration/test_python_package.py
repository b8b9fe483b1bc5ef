# SPDX-License-Identifier: Apache-2.0
#
# The Python package's own tests (python/tests) on this tree: its source, the library and the program of this build. As an installed
# wheel it is tested by tests/real/test_python.py.

import os
import re
import sys

import pytest

from tests.integration.test_library import declared
from tests.support.lab import BUILD, IS_SANITIZED, ROOT

PACKAGE = ROOT / "python"

if IS_SANITIZED or sys.version_info < (3, 11):
    pytest.skip("the library is loaded into a Python that is not sanitized, of 3.11 or newer", allow_module_level=True)

sys.path[:0] = [str(PACKAGE / "src"), str(PACKAGE / "tests")]

from test_murmur import *  # noqa: E402,F403  # each of its tests is one here


@pytest.fixture(autouse=True)
def this_build(monkeypatch):
    monkeypatch.setenv("MURMUR_LIBRARY", str(BUILD / "libmurmur.so.1"))
    monkeypatch.setenv("MURMUR_MUR_BINARY", str(BUILD / "mur"))
    monkeypatch.setenv("PYTHONPATH", str(PACKAGE / "src"))


def test_python_table_has_every_function_of_the_headers():
    """But children, which are a launcher's, and events by callback: Python polls."""
    from murmur._library import FUNCTIONS
    wanted = {name for name in declared() if not name.startswith("mur_child_")} - {"mur_request_set_events"}
    assert set(FUNCTIONS) == wanted


def test_python_options_are_what_the_request_can_be_told():
    from murmur.request import Options
    told = {name.removeprefix("mur_request_set_") for name in declared() if name.startswith("mur_request_set_")}
    assert set(Options.__annotations__) == told - {"manifest_text", "capsule", "variable", "task", "events"} | {"package", "env"}


def test_python_page_is_where_the_readme_points_to():
    assert re.search(r"\(python/README\.md\)", (ROOT / "README.md").read_text()) and os.access(PACKAGE / "README.md", os.R_OK)
