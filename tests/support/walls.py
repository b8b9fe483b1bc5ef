# SPDX-License-Identifier: Apache-2.0
#
# Which row of docs/lock-down.md a test is an attempt at. tests/escape/test_rows.py reads the marks and asks for one for each row
# and class.

# The attempts of the probe, one by one, and those on other processes.
PREFLIGHT = "test_escape_preflight_the_probe_succeeds_where_nothing_confines_it"
PROCESSES = "test_security_outside_the_walls_other_processes_are_within_reach"


def wall(*rows, outside):
    """`rows`: first words of rows. `outside`: the test that shows the attempt to succeed where nothing confines it; "here" when
    this one does so itself, by `outside_probe`; or, for a row that says what stays possible, "possible": it succeeds inside."""
    assert rows and outside
    return lambda test: test
