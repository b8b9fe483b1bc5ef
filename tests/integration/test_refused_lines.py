# SPDX-License-Identifier: Apache-2.0
#
# What a script session prints when nobody can be printed to.

import json

from tests.support.fixtures import own_component


def test_cli_a_script_s_refused_readiness_line_goes_to_the_bootstrap_log(lab):
    project = lab.script_capsule(own_component("probe"))
    with open("/dev/full", "wb") as full:
        project.run("--json", "--task", "artifacts", stdout=full)
    [records] = lab.records
    line = json.loads((records / "logs/bootstrap.log").read_text().splitlines()[0])
    assert line["session_id"] == records.name and line["url"] == ""


def test_session_a_script_that_loses_no_line_leaves_no_log(lab):
    lab.script_capsule(own_component("probe")).run("--task", "artifacts").ok()
    [records] = lab.records
    assert sorted(path.name for path in records.iterdir()) == ["home", "tmp"]
