/* SPDX-License-Identifier: Apache-2.0
 *
 * Egress: what leaves a session's network namespace (spec/containment.md 10.3, 10.4). One thread
 * relays allowed TCP connections byte for byte and answers DNS queries; everything else goes
 * nowhere.
 *
 * Decided from the query alone before any lookup leaves the process; the connection goes to the
 * address the client dialled, from the host's network.
 */
#pragma once

#include "net/allow.h"
#include "sandbox/kernel/network_listeners.h"

struct egress;

/* The ports of the rules that need a listener: sorted, unique, the first
 * NETWORK_NAMESPACE_MAX_PORTS. A rule without a port stands for 80 and 443. Returns the count. */
size_t egress_ports (const struct allow_list *rules, uint16_t ports[NETWORK_NAMESPACE_MAX_PORTS]);

/* Starts serving the listeners and the DNS socket, which are borrowed. <rules> is borrowed; hosts
 * that do not resolve now are left out (a name nobody answered for is warned about). E-IO-003. */
struct egress *
egress_new (const struct network_listeners *listeners, const struct allow_list *rules,
            const uint16_t *ports, struct mur_error **err);
/* Stops listening and ends the relays. */
void egress_free (struct egress *e);
DEFINE_CLEANUP (struct egress, egress_free)

/* --- the DNS half, on its own for tests --- */

enum dns_verdict {
    DNS_IGNORE, /* shorter than a header */
    DNS_FORMERR,
    DNS_REFUSED, /* no rule names it */
    DNS_EMPTY,   /* allowed name, no record of that type here */
    DNS_LOOK_UP,
};

struct dns_query {
    unsigned char header[12];
    char name[256]; /* lower case, no trailing dot */
    uint16_t type;
    size_t question_len; /* bytes after the header */
};

/* Reads one query and decides it against the rules. */
enum dns_verdict dns_decide (const unsigned char *packet, size_t len,
                             const struct allow_list *rules, struct dns_query *query);
