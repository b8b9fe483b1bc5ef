#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# under_profile.py PROFILE COMMAND...: runs the command under a filter of system calls that is written as the OCI runtime
# specification has it, by libseccomp, as a container's runtime would: no new privileges, what is not named is refused.

import ctypes
import json
import os
import sys

ACTIONS = {"SCMP_ACT_ALLOW": 0x7FFF0000}
COMPARISONS = {"SCMP_CMP_EQ": 4}
ERRNO, PR_SET_NO_NEW_PRIVS = 0x00050000, 38


class Comparison(ctypes.Structure):
    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


def load(profile):
    library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(ERRNO | profile["defaultErrnoRet"])))
    for rule in profile["syscalls"]:
        arguments = [Comparison(one["index"], COMPARISONS[one["op"]], one["value"], 0) for one in rule.get("args", [])]
        for name in rule["names"]:
            number = library.seccomp_syscall_resolve_name(name.encode())
            if number == -1:  # newer than this library; a runtime passes over it, too
                continue
            added = library.seccomp_rule_add_array(context, ctypes.c_uint32(ACTIONS[rule["action"]]), number, len(arguments),
                                                   (Comparison * max(1, len(arguments)))(*arguments))
            assert added == 0, (name, added)
    assert ctypes.CDLL(None).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    assert library.seccomp_load(context) == 0


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        load(json.load(file))
    os.execvp(sys.argv[2], sys.argv[2:])
