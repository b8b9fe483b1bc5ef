# SPDX-License-Identifier: Apache-2.0
#
# Tests with real programs run in the same lab as the integration tests.

from tests.integration.conftest import lab, model, pytest_configure, pytest_report_header, pytest_runtest_makereport  # noqa: F401
