/* SPDX-License-Identifier: Apache-2.0
 *
 * What a session's network namespace holds: a loopback on which every address is local, and the
 * listeners of the egress relay (spec/containment.md 10.1).
 *
 * Inside, a port with a listener reaches the relay; any other is refused at once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NETWORK_NAMESPACE_MAX_PORTS 16

struct network_listeners {
    int tcp_fds[NETWORK_NAMESPACE_MAX_PORTS]; /* one a port, same order as asked for */
    size_t count;
    int dns_fd; /* UDP port 53 with IP_PKTINFO, -1 when no port was asked for */
    /* Raw sockets that are given what tells of a refusal (network_refusals.h): answers "nobody
     * listens", datagrams that go nowhere. -1 each where the kernel gives none. */
    int refused_tcp_fd, refused_udp_fd;
    int proxy_fd; /* of a session without a network namespace: asked by host and port, -1 */
};

#define NETWORK_LISTENERS_NONE                                                                     \
    {                                                                                              \
        .dns_fd = -1, .refused_tcp_fd = -1, .refused_udp_fd = -1, .proxy_fd = -1                   \
    }

/* In a process that just made its network namespace, with every capability in it: brings the
 * loopback up and binds <count> ports. Async-signal-safe. Returns NULL, or the step that failed
 * (static storage, errno set). */
const char *
network_listeners_bind (const uint16_t *ports, size_t count, struct network_listeners *out);
/* Without a network namespace: binds one port of this host's loopback that nobody else has, for a
 * relay that is asked by host and port. Returns it, 0 with errno. */
uint16_t network_listeners_bind_proxy (struct network_listeners *out);
void network_listeners_close (struct network_listeners *listeners);

/* A TCP socket over IPv4 that no packet of leaves this host, whatever address it is connected to:
 * it is bound to the loopback device, and only a capability over the network unbinds it. <flags>:
 * SOCK_NONBLOCK, SOCK_CLOEXEC. -1 with errno. */
int network_loopback_socket (int flags);
/* The kernel gives such a socket to this user. */
bool network_loopback_is_had (void);
