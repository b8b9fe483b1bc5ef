# SPDX-License-Identifier: Apache-2.0
#
# The units of systemd, read as it reads them: what a service works in is there before it starts.

import configparser

import pytest

from tests.support.lab import ROOT

UNITS = sorted((ROOT / "packaging/systemd").glob("*.service"))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_each_folder_a_unit_names_below_its_state_is_made_for_it(unit):
    read = configparser.RawConfigParser(strict=False)
    read.optionxform = str
    read.read(unit)
    service = read["Service"]
    made = {f"/var/lib/{name}" for name in service["StateDirectory"].split()}
    words = [*service["ExecStart"].split(), service.get("WorkingDirectory", "/var/lib/murmur"), service["Environment"].split("=", 1)[1]]
    named = {word for word in words if word.startswith("/var/lib/")}
    assert named and named <= made
