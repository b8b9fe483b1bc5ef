# SPDX-License-Identifier: Apache-2.0
#
# Fixtures of every integration test. A test asks for `lab` and gets a world of its own; when it ends, whatever it left
# running or lying about fails it.

import signal
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support.fixtures import peer_path  # noqa: E402
from tests.support.lab import MUR, Lab  # noqa: E402


def pytest_report_header():
    return f"mur: {MUR}"


def pytest_configure(config):
    # Started in the background, the tests inherit an ignored SIGINT, and so would every program they interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if not MUR.is_file():
        raise pytest.UsageError(f"{MUR} is missing: run `make build` first")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if call.excinfo is not None and "Timeout" in str(call.excinfo.value):
        report.sections.append(("what runs on this machine", subprocess.run(
            ["ps", "-N", "--ppid", "2", "-o", "pid,ppid,stat,wchan:24,etimes,args"], capture_output=True, text=True, check=False).stdout[-20_000:]))
    setattr(item, f"report_{call.when}", report)


@pytest.fixture
def lab(tmp_path, request):
    lab = Lab(tmp_path)
    yield lab
    complaints = lab.close()
    report = getattr(request.node, "report_call", None)
    if complaints and report is not None and report.passed:
        pytest.fail("left behind:\n" + "\n".join(complaints))


@pytest.fixture
def peer_lab(tmp_path_factory):
    """The same world for the other build; skipped without MUR_PEER."""
    lab = Lab(tmp_path_factory.mktemp("peer"), mur=peer_path())
    yield lab
    lab.close()


@pytest.fixture
def model(lab):
    """A scripted model provider."""
    return lab.model_server()
