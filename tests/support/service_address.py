# SPDX-License-Identifier: Apache-2.0
#
# The address of a Service on a machine that has no proxy for them: the address on the loopback device, and whoever connects there is
# handed on.

import contextlib
import socket
import subprocess
import threading


def pass_on(source, target):
    with contextlib.suppress(OSError):
        while piece := source.recv(65536):
            target.sendall(piece)
    for one in (source, target):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


class ServiceAddress:
    """A context manager; `to`: (host, port)."""

    def __init__(self, address, to, port=443):
        self.address, self.to, self.port = address, to, port

    def __enter__(self):
        subprocess.run(["ip", "address", "add", f"{self.address}/32", "dev", "lo"], check=True, capture_output=True)
        self.listening = socket.create_server((self.address, self.port))
        threading.Thread(target=self.run, daemon=True).start()
        return self

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                near, _whom = self.listening.accept()
                threading.Thread(target=self.connect, args=(near,), daemon=True).start()

    def connect(self, near):
        with near, contextlib.suppress(OSError), socket.create_connection(self.to, 30) as far:
            far.settimeout(None)
            back = threading.Thread(target=pass_on, args=(far, near), daemon=True)
            back.start()
            pass_on(near, far)
            back.join()

    def __exit__(self, *_exception):
        self.listening.close()
        subprocess.run(["ip", "address", "del", f"{self.address}/32", "dev", "lo"], check=True, capture_output=True)
