# SPDX-License-Identifier: Apache-2.0
#
# What Landlock of this kernel knows.

import ctypes


def landlock_abi():
    return ctypes.CDLL(None, use_errno=True).syscall(444, None, 0, 1)
