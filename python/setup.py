# SPDX-License-Identifier: Apache-2.0
"""Puts what `make build` made into the wheel: the library, the program it starts, the bundled artifacts, and the shared
libraries the library needs where a system has none. MURMUR_BUILD names the build folder (../build without it)."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.bdist_wheel import bdist_wheel

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("MURMUR_BUILD") or HERE.parent / "build").resolve()
BROUGHT = ("libjansson.so.4", "libcrypto.so.3", "libcares.so.2")


def version():
    return re.search(r'MUR_VERSION "([^"]+)"', (HERE.parent / "src/base/version.h").read_text()).group(1)


def needed(library):
    """Where the loader finds what the library was linked with."""
    listed = subprocess.run(["ldd", library], capture_output=True, text=True, check=True).stdout
    return {name: path for name, path in re.findall(r"(\S+) => (/\S+)", listed) if name in BROUGHT}


class WithNative(build_py):
    def run(self):
        super().run()
        if not (BUILD / "libmurmur.so.1").exists():
            raise SystemExit(f"{BUILD} holds no finished build: run `make build` first, or name one with MURMUR_BUILD")
        native = Path(self.build_lib) / "murmur" / "native"
        shutil.rmtree(native, ignore_errors=True)
        native.mkdir(parents=True)
        for name in ("libmurmur.so.1", "mur"):
            shutil.copy(BUILD / name, native / name)
            subprocess.run(["strip", native / name], check=True)
        for name, path in needed(BUILD / "libmurmur.so.1").items():
            shutil.copy(path, native / name)
        shutil.copytree(BUILD / "artifacts", native / "artifacts")
        if (BUILD / "cl100k.tokens").exists():
            shutil.copy(BUILD / "cl100k.tokens", native)


class ForThisMachine(bdist_wheel):
    """Any Python 3, this machine's processor, the C library it was built with or newer."""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        machine = os.uname().machine
        return "py3", "none", f"manylinux_2_36_{machine}"


setup(version=version(), cmdclass={"build_py": WithNative, "bdist_wheel": ForThisMachine})
