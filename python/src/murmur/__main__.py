# SPDX-License-Identifier: Apache-2.0
"""`python -m murmur ...` is `mur ...`: what $MURMUR_MUR_BINARY names, the program of the wheel, the system's."""

import os
import shutil
import sys

from ._library import NATIVE

own = NATIVE / "mur"
program = os.environ.get("MURMUR_MUR_BINARY") or (str(own) if own.exists() else shutil.which("mur"))
if program is None:
    sys.exit("there is no program mur in this package and none on PATH")
os.execv(program, ["mur", *sys.argv[1:]])
