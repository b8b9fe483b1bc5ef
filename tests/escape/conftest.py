# SPDX-License-Identifier: Apache-2.0
#
# The escape suite runs in the same lab as the integration tests.

from tests.integration.conftest import lab, pytest_configure, pytest_report_header, pytest_runtest_makereport  # noqa: F401

from tests.escape.attempts import outside, tier  # noqa: F401


def pytest_terminal_summary(terminalreporter):
    """Which classes the attempts were made at, and which this host does not reach."""
    reached, skipped = set(), set()
    for outcome, found in (("passed", reached), ("failed", reached), ("skipped", skipped)):
        for report in terminalreporter.stats.get(outcome, []):
            if "tests/escape/" in report.nodeid and "[" in report.nodeid:
                words = report.nodeid.split("[", 1)[1].rstrip("]").split("-")
                found.update(word for word in words if word in ("advisory", "scoped", "sealed"))
    if reached or skipped:
        terminalreporter.write_line(f"escape suite: attempts were made at {', '.join(sorted(reached)) or 'no class'}"
                                    + (f"; not reached here: {', '.join(sorted(skipped - reached))}" if skipped - reached else ""))
