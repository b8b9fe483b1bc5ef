# SPDX-License-Identifier: Apache-2.0
#
# Compiled forms of components, lent from one lab of a test run to the next: compiling is most of what a short test costs, and
# it is not what these tests are about.

import atexit
import shutil
import tempfile
from pathlib import Path

_kept = None


def lend(lab):
    """Puts the forms kept so far into a fresh lab."""
    if _kept and not lab.murmur_home.exists():
        lab.murmur_home.mkdir(mode=0o700)
        shutil.copytree(_kept, lab.murmur_home / "compiled")


def keep(lab):
    """Keeps the forms a lab has by now."""
    global _kept
    own = lab.murmur_home / "compiled"
    if not own.is_dir():
        return
    if _kept is None:
        _kept = Path(tempfile.mkdtemp(prefix="murmur-forms-"))
        atexit.register(shutil.rmtree, _kept, ignore_errors=True)
        _kept.chmod(own.stat().st_mode & 0o777)
    for form in own.iterdir():
        if not (_kept / form.name).exists():
            shutil.copy2(form, _kept / form.name)
