/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/network_refusals.h"

#include "base/alloc.h"
#include "sandbox/egress/dns.h"

#include <arpa/inet.h>
#include <netinet/ip.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define PACKETS_A_TURN 512
#define HEADER_BYTES   8 /* of UDP, and what is looked at of TCP */

struct packet {
    unsigned char bytes[512];
    size_t len, payload; /* where the protocol's own header begins */
    struct in_addr from, to;
    uint16_t from_port, to_port;
};

static bool
receive (int fd, struct packet *p)
{
    ssize_t n = fd < 0 ? -1 : recv (fd, p->bytes, sizeof p->bytes, MSG_DONTWAIT);
    struct iphdr head;
    if (n < (ssize_t)sizeof head)
        return false;
    memcpy (&head, p->bytes, sizeof head);
    p->len = (size_t)n;
    p->payload = (size_t)head.ihl * 4;
    p->from.s_addr = head.saddr;
    p->to.s_addr = head.daddr;
    if (p->payload + HEADER_BYTES > p->len)
        return false;
    const unsigned char *ports = p->bytes + p->payload;
    p->from_port = (uint16_t)(ports[0] << 8 | ports[1]);
    p->to_port = (uint16_t)(ports[2] << 8 | ports[3]);
    return true;
}

static bool
is_loopback (struct in_addr a)
{
    return ntohl (a.s_addr) >> 24 == 127;
}

/* In one of the two tables, whose listeners come first. */
static bool
is_listened_for (const char *table, uint16_t port)
{
    char line[512];
    bool is_found = false;
    _cleanup_fclose_ FILE *f = fopen (table, "re");
    for (bool has_head = false; f && ! is_found && fgets (line, sizeof line, f); has_head = true) {
        unsigned local = 0, state = 0;
        const char *at = strchr (line, ':');
        if (! has_head)
            continue;
        if (! at || sscanf (at + 1, " %*[0-9A-F]:%x %*[0-9A-F]:%*x %x", &local, &state) != 2 ||
            state != 0x0a)
            break;
        is_found = local == port;
    }
    return is_found;
}

/* The runtime's network is the host's. */
static bool
host_listens (uint16_t port)
{
    return is_listened_for ("/proc/net/tcp", port) || is_listened_for ("/proc/net/tcp6", port);
}

static void
tell_address (const struct allow_list *rules, struct in_addr address, uint16_t port)
{
    char text[INET_ADDRSTRLEN];
    if (inet_ntop (AF_INET, &address, text, sizeof text))
        allow_tell_refused (rules, text, port);
}

void
network_refusals_tell (const struct network_listeners *listeners, const struct allow_list *rules)
{
    struct packet p;
    struct {
        uint16_t port;
        bool is_of_host;
    } last = { 0 };
    /* The answer comes from the address that was wanted. */
    for (int i = 0; i < PACKETS_A_TURN && receive (listeners->refused_tcp_fd, &p); i++) {
        bool is_local = is_loopback (p.from);
        if (is_local && p.from_port != last.port) {
            last.port = p.from_port;
            last.is_of_host = host_listens (p.from_port);
        }
        if (! is_local || last.is_of_host)
            tell_address (rules, p.from, p.from_port);
    }
    for (int i = 0; i < PACKETS_A_TURN && receive (listeners->refused_udp_fd, &p); i++) {
        struct dns_query query;
        const unsigned char *question = p.bytes + p.payload + HEADER_BYTES;
        size_t len = p.len - p.payload - HEADER_BYTES;
        if (p.to_port != 53)
            tell_address (rules, p.to, p.to_port);
        else if (listeners->dns_fd < 0 && dns_decide (question, len, rules, &query) == DNS_REFUSED)
            allow_tell_refused (rules, query.name, 0);
    }
}
