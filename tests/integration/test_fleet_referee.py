# SPDX-License-Identifier: Apache-2.0
#
# mur-roost over a cluster, against a scripted API server and a node that runs real capsules: a child becomes one Job, its answer
# comes home, and it lives no longer than its parent (docs/fleet.md). The same cases against the real control plane are in
# tests/real/test_fleet.py.

import json

from tests.support.delegation import delegate, reads, turn
from tests.support.fleet import Fleet

HELLO = [{"text": "hello from afar"}]
WAITING = {"text": "waiting"}


def test_fleet_8_a_child_is_one_job_with_its_fields_and_its_answer_comes_home(lab):
    with Fleet(lab) as fleet:
        fleet.publish("child", HELLO)
        fleet.publish_parent(turn(delegate("child")), WAITING, reads())
        fleet.start_root()

        pod = fleet.wait_end("root-1")

        assert pod["status"]["phase"] == "Succeeded", fleet.logs()
        [job] = fleet.children()
        meta, spec = job["metadata"], job["spec"]
        print(json.dumps(job, indent=1))
        delegation = fleet.annotation(job, "delegation")
        assert meta["name"] == "mur-" + delegation[-16:]
        assert "hello from afar" in fleet.work_file(pod).read_text()
