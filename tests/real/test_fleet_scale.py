# SPDX-License-Identifier: Apache-2.0
#
# Many sessions on the real control plane, on nodes of kwok, which run nothing: none is lost, none is started twice, none outlives its
# root, and what each costs is printed. MURMUR_FLEET_SESSIONS says how many (200).

import time

import pytest

from tests.support.control_plane import ControlPlane, missing
from tests.support.fleet_engines import Kwok
from tests.support.fleet_many import CONTROLLERS, NODES, SESSIONS, Many, first, say
from tests.support.lab import SLOWER
from tests.support.polling import eventually

LACKING = missing("kwok", "kube-scheduler")
pytestmark = pytest.mark.skipif(LACKING is not None, reason=LACKING or "")


def test_fleet_36_none_of_many_is_lost_and_what_each_costs(lab, tmp_path):
    with ControlPlane(tmp_path / "control", CONTROLLERS) as plane, Kwok(plane, NODES), Many(lab, plane) as many:
        many.start_all()
        many.wait_registered()
        many.wait_finished()
        figures = many.figures()
        say(sessions=SESSIONS, admissions_a_second=round(SESSIONS / many.admitted_s, 1), **figures)
        assert figures["writes_at_the_API_server_a_session"] <= 16 and figures["mur_roost_most_memory_MB"] < 64


def test_fleet_36_their_roots_end_leaves_none_of_many_behind(lab, tmp_path):
    """All at work when the root's Job goes: the referee and the garbage collector end every one."""
    with ControlPlane(tmp_path / "control", CONTROLLERS) as plane, Kwok(plane, NODES), Many(lab, plane, stays=True) as many:
        many.start_all()
        many.ask_after_all()
        many.wait_registered()
        assert len(many.children.at_work) == SESSIONS, many.told()
        began = time.monotonic()
        plane.api.call("DELETE", plane.api.path("jobs", "root-1"), {"propagationPolicy": "Background"})
        eventually(lambda: not any(first(plane, kind) for kind in ("jobs", "pods")), 120 + SESSIONS * SLOWER,
                   lambda: f"{len(plane.api.list('jobs'))} Jobs, {len(plane.api.list('pods'))} pods are left", every_s=0.5)
        say(sessions=SESSIONS, orphans=0, all_gone_after_the_roots_Job_s=round(time.monotonic() - began, 1))
