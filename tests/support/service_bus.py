# SPDX-License-Identifier: Apache-2.0
#
# A user bus whose service manager refuses what it is asked: enough of D-Bus for one call.

import socket
import struct
import threading


class ServiceBus:
    """Listens at a path; keeps the body of every method call it got, by member."""

    def __init__(self, path):
        self.path, self.calls = str(path), {}
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self):
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listener.close()

    def _serve(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client:
                try:
                    self._talk(client)
                except OSError:
                    pass

    def _talk(self, client):
        data = b""
        while b"BEGIN\r\n" not in data:
            piece = client.recv(4096)
            if not piece:
                return
            data += piece
            while b"\r\n" in data and not data.lstrip(b"\0").startswith(b"BEGIN"):
                line, data = data.split(b"\r\n", 1)
                line = line.lstrip(b"\0")
                client.sendall({b"AUTH": b"OK 0123456789abcdef0123456789abcdef\r\n", b"NEGO": b"AGREE_UNIX_FD\r\n",
                                b"DATA": b"OK 0123456789abcdef0123456789abcdef\r\n"}.get(line[:4], b"ERROR\r\n"))
        data = data.split(b"BEGIN\r\n", 1)[1]
        while True:
            while len(data) < 16 or len(data) < self._size(data):
                piece = client.recv(65536)
                if not piece:
                    return
                data += piece
            size = self._size(data)
            message, data = data[:size], data[size:]
            self._answer(client, message)

    @staticmethod
    def _size(data):
        body, _, fields = struct.unpack("<III", data[4:16])
        return 16 + (fields + 7) // 8 * 8 + body

    def _answer(self, client, message):
        serial = struct.unpack("<I", message[8:12])[0]
        for member in (b"Hello", b"StartTransientUnit"):
            if member + b"\0" in message:
                self.calls.setdefault(member.decode(), []).append(message)
                if member == b"Hello":
                    client.sendall(self._reply(2, serial, b"s", b":1.1"))
                else:
                    client.sendall(self._reply(3, serial, b"s", b"refused", b"org.freedesktop.DBus.Error.AccessDenied"))

    @staticmethod
    def _reply(kind, serial, signature, text, error=None):
        """A method return (2) or an error (3) with one string."""
        fields = struct.pack("<BBBxI", 5, 1, ord("u"), serial)
        if error:
            fields = fields.ljust((len(fields) + 7) // 8 * 8, b"\0")
            fields += struct.pack("<B", 4) + b"\1s\0" + struct.pack("<I", len(error)) + error + b"\0"
        fields = fields.ljust((len(fields) + 7) // 8 * 8, b"\0")
        fields += struct.pack("<B", 8) + b"\1g\0" + bytes([len(signature)]) + signature + b"\0"
        body = struct.pack("<I", len(text)) + text + b"\0"
        head = struct.pack("<BBBBIII", ord("l"), kind, 1, 1, len(body), serial + 1000, len(fields))
        return (head + fields).ljust((16 + len(fields) + 7) // 8 * 8, b"\0") + body
