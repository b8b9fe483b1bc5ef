# SPDX-License-Identifier: Apache-2.0
#
# What integration tests share: the lab (own home, own projects, the real mur), the scripted model server, components built
# by others, the other build to compare with, counters of what is left behind.

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Five by default: whoever dials while five others wait is heard a second later, when the kernel asks again.
ThreadingHTTPServer.request_queue_size = 128
# A head and a body are two writes: without this the second waits for the first one's acknowledgement, 40 ms on a kept connection.
BaseHTTPRequestHandler.disable_nagle_algorithm = True
