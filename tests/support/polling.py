# SPDX-License-Identifier: Apache-2.0
#
# Waiting for a fact instead of sleeping: every wait has a deadline and says what it waited for.

import os
import time


def eventually(fact, within_s=10.0, message=None, every_s=0.01):
    """Calls `fact` until it is true and returns its value; AssertionError after `within_s` seconds.

    An AssertionError of `fact` itself counts as "not yet" and is shown when time is up.
    """
    deadline = time.monotonic() + within_s
    while True:
        reason = None
        try:
            value = fact()
        except AssertionError as error:
            value, reason = None, error
        if value:
            return value
        if time.monotonic() >= deadline:
            what = (message() if callable(message) else message) or getattr(fact, "__doc__", None) or "the expected fact"
            raise AssertionError(f"after {within_s} s still not: {what}" + (f" ({reason})" if reason else ""))
        time.sleep(every_s)


def pid_exists(pid):
    """True while a process with this id runs; a zombie does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def marked_processes(mark):
    """Ids of the running processes whose command line (NUL-separated bytes) holds the mark."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as line:
                    if mark in line.read() and pid_exists(int(entry)):
                        found.append(int(entry))
            except OSError:
                pass
    return found


def children_of(pid):
    """Ids of the direct children of a process."""
    children = []
    for task in os.listdir(f"/proc/{pid}/task") if os.path.isdir(f"/proc/{pid}/task") else []:
        try:
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as listed:
                children += [int(word) for word in listed.read().split()]
        except OSError:
            continue
    return children


def descriptor_count(pid):
    """How many descriptors a process holds (the tests run as its owner or as root)."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def threads_of(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def tree_of(directory):
    """Every path below a directory, relative to it, sorted: for 'nothing was left' and 'nothing was changed'."""
    found = []
    for base, directories, names in os.walk(directory):
        for name in directories + names:
            found.append(os.path.relpath(os.path.join(base, name), directory))
    return sorted(found)
