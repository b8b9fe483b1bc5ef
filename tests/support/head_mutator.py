# SPDX-License-Identifier: Apache-2.0
#
# HTTP heads as nobody means them: well-formed requests cut, doubled, stretched and mixed, thrown at a door over bare sockets.
# The choice follows a seed, so that a finding can be thrown again.
#
#   python3 -m tests.support.head_mutator HOST PORT [SECONDS] [SEED]     by hand, against any door

import random
import socket
import sys
import time

BODY = b'{"jsonrpc":"2.0","id":1,"method":"ListTasks"}'
REQUESTS = [
    b"GET /.well-known/agent-card.json HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY),
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY),
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n{\"a\":",
    b"GET /resources/files/%2e%2e%2fx HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer mdt1.a.b\r\nRange: bytes=0-\r\n\r\n",
    b"PUT /control/settings/x HTTP/1.0\r\nConnection: keep-alive\r\nAuthorization: Basic eDp5\r\nContent-Length: 3\r\n\r\nabc",
]
PIECES = [b"\r\n", b"\n", b"\r", b":", b" ", b"\t", b"\0", b"\xff\xfe", b"%00", b"%zz", b"HTTP/9.9", b"HTTP/1.1", b"Content-Length: -1\r\n",
          b"Content-Length: 99999999999999999999\r\n", b"Content-Length: 0x10\r\n", b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n",
          b"ffffffffffffffff\r\n", b"0\r\n\r\n", b"Host: \r\n", b" folded: line\r\n", b"A2A-Version: 1.0\r\n", b"Last-Event-ID: 1\r\n",
          b"Authorization: Bearer " + b"A" * 500 + b"\r\n", b"X: " + b"y" * 9000 + b"\r\n", b"/" * 3000, b"?" + b"q" * 70000, b"*"]


def mutated(random_):
    request = bytearray(random_.choice(REQUESTS))
    for _ in range(random_.choice((0, 1, 1, 2, 3, 6))):
        at = random_.randrange(len(request) + 1)
        kind = random_.randrange(6)
        if kind == 0:
            request[at:at] = random_.choice(PIECES)
        elif kind == 1:
            del request[at:at + random_.choice((1, 2, 10, 100))]
        elif kind == 2 and at < len(request):
            request[at] = random_.randrange(256)
        elif kind == 3:
            request[at:at] = request[:at][-random_.choice((4, 40, 400)):] * random_.choice((1, 2, 130))
        elif kind == 4:
            request = request[:at]
        else:
            request += random_.choice(REQUESTS)
    return bytes(request)


def throw(address, random_):
    """One connection: some requests, in pieces or whole, read or not. Returns what came, or None when nothing was waited for."""
    with socket.create_connection(address, timeout=45) as connection:  # longer than a head may take
        try:
            for _ in range(random_.choice((1, 1, 2, 5))):
                request = mutated(random_)
                step = random_.choice((len(request), len(request), 1000, 7)) or 1
                for at in range(0, min(len(request), 40 * step), step):
                    connection.sendall(request[at:at + step])
            end = random_.randrange(4)
            if end == 0:
                return None  # leaves at once
            if end == 1:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                return None  # leaves with a reset
            connection.shutdown(socket.SHUT_WR)
            received = b""
            while chunk := connection.recv(65536):
                received += chunk
            return received
        except TimeoutError:
            raise  # the door neither answered nor closed
        except OSError:
            return None  # it closed before all was sent


def run(address, seconds, seed):
    """Throws for that long; returns how many connections were made. AssertionError on an answer that is no HTTP."""
    random_ = random.Random(seed)
    until, count = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        count += 1
        received = throw(address, random_)
        assert not received or received.startswith(b"HTTP/1.1 "), f"seed {seed}, connection {count}: {received[:200]!r}"
    return count


if __name__ == "__main__":
    host, port, *more = sys.argv[1:]
    print(run((host, int(port)), float(more[0]) if more else 60, int(more[1]) if len(more) > 1 else 1), "connections")
