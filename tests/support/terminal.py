# SPDX-License-Identifier: Apache-2.0
#
# A program on a real pseudo-terminal: what a person sees, and what they type.

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading

from .lab import SLOWER
from .polling import eventually

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]")


class Terminal:
    """`mur`, or another program, with a terminal for the streams named in `streams`; the others are pipes that are kept apart."""

    def __init__(self, lab, *arguments, program=None, cwd=None, env=None, columns=80, rows=24, streams="012"):
        self.primary, secondary = pty.openpty()
        self.resize(columns, rows)
        self.argv = [program or lab.mur_path, *map(str, arguments)]

        def stream(number, other):
            return secondary if str(number) in streams else other
        self.process = subprocess.Popen(
            self.argv, cwd=cwd or lab.directory, env=lab.environment({"TERM": "xterm-256color", **(env or {})}),
            stdin=stream(0, subprocess.DEVNULL), stdout=stream(1, subprocess.PIPE), stderr=stream(2, subprocess.PIPE),
            start_new_session=True, preexec_fn=(lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)) if "0" in streams else None)
        os.close(secondary)
        lab._running.append(self)
        self._shown, self._lock = b"", threading.Lock()
        self._piped = {}
        self._readers = [threading.Thread(target=self._read, daemon=True)]
        for name in ("stdout", "stderr"):
            if getattr(self.process, name):
                self._piped[name] = b""
                self._readers.append(threading.Thread(target=self._read_pipe, args=(name,), daemon=True))
        for reader in self._readers:
            reader.start()

    def _read(self):
        while True:
            try:
                piece = os.read(self.primary, 65536)
            except OSError:  # EIO: nobody has the other side open
                return
            if not piece:
                return
            with self._lock:
                self._shown += piece

    def _read_pipe(self, name):
        stream = getattr(self.process, name)
        while piece := os.read(stream.fileno(), 65536):
            with self._lock:
                self._piped[name] += piece
        stream.close()

    @property
    def raw(self):
        """All that was written to the terminal, escapes included."""
        return self._shown.decode(errors="replace").replace("\r\n", "\n")

    @property
    def text(self):
        return ESCAPES.sub("", self.raw)

    @property
    def stdout(self):
        """Of a stream that is a pipe."""
        return self._piped["stdout"].decode(errors="replace")

    @property
    def stderr(self):
        return self._piped["stderr"].decode(errors="replace")

    @property
    def pid(self):
        return self.process.pid

    @property
    def is_running(self):
        return self.process.poll() is None

    def resize(self, columns, rows=24):
        fcntl.ioctl(self.primary, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.primary, text.encode())

    def wait_for(self, pattern, within_s=20):
        return eventually(lambda: re.search(pattern, self.text, re.MULTILINE), within_s * SLOWER,
                          lambda: f"{pattern!r} on the terminal:\n{self.text}")

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def end(self, timeout=30):
        """Waits for the end; returns the exit status."""
        self.process.wait(timeout * SLOWER)
        for reader in self._readers:
            reader.join(5)
        return self.process.returncode

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(10)
