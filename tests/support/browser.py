# SPDX-License-Identifier: Apache-2.0
#
# A real browser without a window: Debian's chromium, driven by playwright, which comes from PyPI into an environment of its own
# and downloads nothing. Where one of them cannot be had the tests are skipped.

import shutil
import subprocess
import sys

import pytest

from .lab import ROOT, SLOWER
from .pypi import python_with

DRIVER = "playwright==1.65.2"


def chromium():
    path = shutil.which("chromium")
    return path or pytest.skip("chromium is missing: apt-get install chromium")


def playwright():
    """The driver's module, out of the environment that holds it."""
    environment = python_with(DRIVER).parents[1]
    packages = next((environment / "lib").glob(f"python{sys.version_info.major}.{sys.version_info.minor}/site-packages"), None)
    if not packages:
        pytest.skip(f"{DRIVER} was installed for another Python")
    if str(packages) not in sys.path:
        sys.path.append(str(packages))
    from playwright import sync_api
    return sync_api


def axe():
    """The accessibility checker's text, by its hash from the npm registry."""
    done = subprocess.run([ROOT / "scripts/fetch-web", "--tests"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"axe-core cannot be had: {done.stderr.strip()}")
    folder = subprocess.run([ROOT / "scripts/fetch-web", "--print", "--tests"], capture_output=True, text=True, check=True).stdout.strip()
    with open(f"{folder}/axe.js") as file:
        return file.read()


class Browser:
    def __init__(self):
        path = chromium()
        self.driver = playwright().sync_playwright().start()
        self.chromium = self.driver.chromium.launch(executable_path=path, args=["--no-sandbox"])

    def close(self):
        self.chromium.close()
        self.driver.stop()

    def window(self, page, **how):
        return Window(self, page, **how)


class Window:
    """A browser of one person over one page: its tabs, and whatever should not have happened in them."""

    def __init__(self, browser, page, scheme="light", width=1280, height=800):
        self.page, self.faults = page, []
        self.context = browser.chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, accept_downloads=True)
        self.context.set_default_timeout(20000 * SLOWER)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.context.close()
        if kind is None:
            assert not self.faults, self.faults

    def tab(self, address=None):
        tab = self.context.new_page()
        tab.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        tab.on("console", lambda said: said.type == "error" and self.note(said.text))
        tab.on("dialog", lambda dialog: (self.faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        tab.on("request", lambda request: self.look_at(request.url))
        tab.goto(address or self.page.url)
        return tab

    def note(self, text):
        # What the server refuses on purpose, and a server that is away, are no faults of the page.
        if not any(part in text for part in ("status of 4", "status of 5", "ERR_CONNECTION", "ERR_INCOMPLETE", "ERR_EMPTY")):
            self.faults.append(text)

    def look_at(self, url):
        if not url.startswith((self.page.origin, "data:", "blob:")):
            self.faults.append(f"a request to {url}")
