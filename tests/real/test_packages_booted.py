# SPDX-License-Identifier: Apache-2.0
#
# The Debian packages on a booted system: its own systemd is process 1, the units run, and apt installs, upgrades, downgrades,
# removes and purges underneath them.

import json
import re

import pytest

from tests.real.test_packages import debs, newer  # noqa: F401
from tests.support.booted_root import BootedRoot, SystemdRoot
from tests.support.polling import eventually

HOME = "/var/lib/murmur"
DIARY = f"{HOME}/work" "/hand/diary"

AGENT = """name: {name}
version: "0.1.0"
runtime: capsule
execution: static
artifacts:
  - {{name: std/driver-scripted, version: "0.1.0", runtime: driver}}
capabilities: {capabilities}
lifecycle: {lifecycle}
inference:
  model: scripted
  driver:
    artifact: std/driver-scripted
    config: {{steps: {steps}}}
"""
PATIENT = {"shell_grace_secs": 900}
STAYS = {"task_acceptance": "queue", "after_task": "sleep", **PATIENT}


def bash(command):
    return {"tool_calls": [{"name": "bash", "input": {"command": command}}]}


def manifest(name, steps, capabilities, lifecycle=None):
    return AGENT.format(name=name, steps=json.dumps(steps), capabilities=json.dumps(capabilities), lifecycle=json.dumps(lifecycle or {}))


@pytest.fixture
def system(tmp_path):
    booted = BootedRoot(tmp_path / "root")
    yield booted
    booted.stop()


def installed(system, debs):  # noqa: F811
    system.install(*(deb for deb in debs if deb.name.startswith(("mur_", "mur-roost_"))))
    # Where the kernel gives this container no memory controller, sessions are to go on without.
    if "memory" not in system.sh("cat /sys/fs/cgroup/cgroup.controllers").stdout:
        system.as_murmur("mkdir -p ~/.murmur && printf 'resources:\\n  cgroup: optional\\n' > ~/.murmur/config.yaml")


def service(system, name, *how, **more):
    """A capsule where murmur@NAME looks for it."""
    folder = system.folder / "etc/murmur" / name
    folder.mkdir(parents=True)
    (folder / "murmur.yaml").write_text(manifest(name, *how, lifecycle={**STAYS, **more}))
    system.sh(f"cd /etc/murmur/{name} && mur install && chown -R root:murmur /etc/murmur")


def published(system, folder):
    system.sh(f"cd {folder} && mur build -o /tmp && chmod a+r /tmp/*.mur.zip")
    system.as_murmur("mur publish /tmp/*.mur.zip; true")
    system.sh("rm /tmp/*.mur.zip")


def show(system, unit, *properties):
    told = dict(line.split("=", 1) for line in system.sh(f"systemctl show {unit}").stdout.splitlines() if "=" in line)
    return [told[each] for each in properties]


def journal(system, unit):
    return system.sh(f"journalctl --no-pager -o cat -u {unit}").stdout


def upgrade(system, debs, *how):  # noqa: F811
    return system.sh(f"apt-get install -q -y --no-install-recommends -o Dpkg::Options::=--force-confold {' '.join(how)} "
                     + " ".join(f"/root/{deb.name}" for deb in debs)).stdout


def pids(system, pattern):
    return system.sh(f"pgrep -f -u murmur {pattern!r} || true").stdout.split()


def with_other_defaults(tree):
    defaults = tree / "etc/default/mur-roost"
    if defaults.exists():
        defaults.write_text(defaults.read_text() + "# Another word of the maintainer.\n")


def test_packages_booted_upgrade_downgrade_remove_purge_under_what_runs(system, debs, tmp_path):  # noqa: F811
    installed(system, debs)
    (system.folder / "etc/default/mur-roost").write_text('MUR_ROOST_OPTIONS="--spawn-allow local/lead"\n')
    (system.folder / "srv/worker").mkdir()
    (system.folder / "srv/worker/murmur.yaml").write_text(
        manifest("worker", [bash("sleep 600"), {"text": "worked"}], {"shell": {"allow": ["bash", "sleep"]}}, PATIENT))
    delegates = {"tool_calls": [{"name": "delegate-task", "input": {"capsule": "worker", "version": "0.1.0", "task": "work"}}]}
    service(system, "lead", [delegates, {"text": "begun"}, {"text": "{{task}}"}],
            {"spawn": {"allow": ["local/worker"]}, "shell": {"allow": ["bash", "sleep"]}}, delegation_deadline_secs=900)
    service(system, "hand", [bash("echo done >> diary"), {"text": "worked"}], {"shell": {"allow": ["bash"]}})
    for folder in ("/srv/worker", "/etc/murmur/lead"):
        published(system, folder)
    system.sh("systemctl restart mur-roost && systemctl enable --now murmur@lead murmur@hand")
    # Starting ends when the door is open, and the status says where.
    assert "localhost:" in show(system, "murmur@lead", "StatusText")[0]
    sessions = {each["capsule_name"].split("/")[-1]: each["session_id"] for each in running(system)}
    assert set(sessions) == {"lead", "hand"}
    system.as_murmur(f"mur send --detach {sessions['lead']} go")
    assert "worked" in system.as_murmur(f"mur send {sessions['hand']} go").stdout
    eventually(lambda: pids(system, "^sleep 600"), within_s=60, message=lambda: journal(system, "murmur@lead"))
    before = {unit: show(system, unit, "MainPID") for unit in ("mur-roost", "murmur@lead", "murmur@hand")}

    newers = [newer(deb, tmp_path, with_other_defaults) for deb in debs if deb.name.startswith(("mur_", "mur-roost_"))]
    for deb in newers:
        (system.folder / "root" / deb.name).write_bytes(deb.read_bytes())
    upgrade(system, newers)

    # The referee is another process, started once; what it let run goes on, children and commands too.
    after = {unit: show(system, unit, "MainPID") for unit in before}
    assert after["mur-roost"] != before["mur-roost"] and after["murmur@lead"] == before["murmur@lead"]
    assert after["murmur@hand"] == before["murmur@hand"]
    assert show(system, "mur-roost", "ActiveState", "NRestarts") == ["active", "0"]
    assert "3 live capsules" in journal(system, "mur-roost").split("listening on")[-2]
    assert pids(system, "^sleep 600")
    assert "--spawn-allow local/lead" in system.sh("cat /etc/default/mur-roost").stdout
    assert not system.sh("systemctl --failed --no-legend --plain").stdout
    # The new program speaks with sessions of the old one, and those still work.
    assert {each["session_id"] for each in running(system)} >= set(sessions.values())
    assert "worked" in system.as_murmur(f"mur send {sessions['hand']} again").stdout
    assert system.sh(f"cat {DIARY}").stdout.split() == ["done", "done"]
    # Restarted, a capsule is of the new program and may delegate again.
    system.sh("systemctl restart murmur@lead")
    assert not pids(system, "^sleep 600"), "nothing of the old session is left"
    lead = next(each["session_id"] for each in running(system) if each["capsule_name"].endswith("lead"))
    system.as_murmur(f"mur send --detach {lead} go")
    eventually(lambda: pids(system, "^sleep 600"), within_s=60)

    upgrade(system, [deb for deb in debs if deb.name.startswith(("mur_", "mur-roost_"))], "--allow-downgrades")
    assert system.sh("dpkg-query -W -f '${Version}' mur").stdout == "0.1.0"
    assert show(system, "mur-roost", "ActiveState", "NRestarts") == ["active", "0"] and pids(system, "^sleep 600")

    system.sh("apt-get remove -q -y mur mur-roost")
    eventually(lambda: not system.sh("pgrep -u murmur || true").stdout, within_s=30,
               message=lambda: system.sh("ps -ef").stdout)
    traces = system.sh(f"find {HOME}/.murmur/records -name trace.jsonl").stdout.split()
    assert len(traces) >= 4 and all("session_end" in system.sh(f"tail -n 1 {trace}").stdout for trace in traces)

    system.sh("apt-get purge -q -y mur mur-roost")
    assert not system.sh("find /etc /usr /lib -xdev \\( -name 'mur-*' -o -name '*murmur*' \\) -not -path '/etc/murmur*' "
                         "-not -path '/usr/share/doc/*'").stdout
    # What sessions recorded and what the operator wrote is theirs.
    assert system.sh(f"cat {DIARY} /etc/murmur/lead/murmur.yaml").stdout
    assert not system.sh("systemctl --failed --no-legend --plain").stdout


def running(system):
    return json.loads(system.as_murmur("mur ps --json").stdout)["capsules"]


def test_packages_booted_what_is_wrong_is_told_by_the_status_and_not_tried_for_ever(system, debs):  # noqa: F811
    installed(system, debs)
    service(system, "broken", [{"text": "x"}], {})
    path = system.folder / "etc/murmur/broken/murmur.yaml"
    path.write_text(path.read_text().replace("capabilities: {}", "capabilities: {network: {allow: [https://example.org/page]}}"))
    done = system.sh("systemctl start murmur@broken", is_ok=False)
    assert done.returncode != 0
    told = system.sh("systemctl status --no-pager --full murmur@broken || true").stdout
    assert re.search(r"Status: \"error\[E-CAP-\d+\]: /etc/murmur/broken/murmur.yaml:7:\d+: .*example.org/page", told), told
    assert "  hint: " in journal(system, "murmur@broken")
    eventually(lambda: show(system, "murmur@broken", "ActiveState") == ["failed"], within_s=120, every_s=0.5)
    path.write_text(path.read_text().replace("{network: {allow: [https://example.org/page]}}", "{}"))
    system.sh("systemctl reset-failed murmur@broken && systemctl start murmur@broken")
    assert show(system, "murmur@broken", "ActiveState") == ["active"]


@pytest.mark.parametrize("containment", ["scoped", "sealed"])
def test_packages_booted_commands_have_their_walls_inside_the_unit(system, debs, containment):  # noqa: F811
    installed(system, debs)
    tries = "cat /etc/shadow /etc/murmur/*/murmur.yaml; touch /usr/x && echo made; cat /proc/1/comm; echo done"
    walls = {"containment": containment, "shell": {"allow": ["bash", "cat", "touch", "sleep"]}}
    service(system, "walls", [bash(tries), {"text": "{{result}}"}], walls)
    service(system, "waits", [bash("sleep 600"), {"text": "never"}], walls)
    system.uncover_proc()
    system.sh("systemctl start murmur@walls murmur@waits")
    sessions = {each["capsule_name"].split("/")[-1]: each["session_id"] for each in running(system)}
    answer = system.as_murmur(f"mur send {sessions['walls']} try").stdout
    told = answer[answer.index("Stdout:"):]
    assert "done" in told and not {"root:", "made", "scripted", "systemd"} & set(re.findall(r"[\w:]+", told)), answer
    assert told.count("ermission denied") + told.count("No such file") + told.count("ead-only") == 3, answer
    # Stopped while a command runs: within its grace, told in the trace and in lines a person can read.
    system.as_murmur(f"mur send --detach {sessions['waits']} wait")
    eventually(lambda: pids(system, "^sleep 600"), within_s=60)
    system.sh("timeout 25 systemctl stop murmur@waits")
    assert show(system, "murmur@waits", "ActiveState", "Result") == ["inactive", "success"], journal(system, "murmur@waits")
    assert not pids(system, "^sleep 600")
    assert "session_end" in system.sh(f"tail -n 1 $(find {HOME}/.murmur/records -path '*{sessions['waits']}/trace.jsonl')").stdout
    lines = journal(system, "murmur@waits").splitlines()
    assert any("asked to stop" in line for line in lines) and all(line.isprintable() for line in lines), lines


def test_packages_booted_nothing_fails_where_systemd_does_not_run(debs, tmp_path):  # noqa: F811
    root = SystemdRoot(tmp_path / "root")
    root.sh("printf '#!/bin/sh\\nexit 101\\n' > /usr/sbin/policy-rc.d && chmod 0755 /usr/sbin/policy-rc.d")
    root.install(*(deb for deb in debs if deb.name.startswith(("mur_", "mur-roost_"))))
    root.sh("test -e /etc/systemd/system/multi-user.target.wants/mur-roost.service && mur --version")
    root.sh("apt-get purge -q -y mur mur-roost && ! test -e /etc/systemd/system/multi-user.target.wants/mur-roost.service")
