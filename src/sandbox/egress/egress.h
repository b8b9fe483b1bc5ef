/* SPDX-License-Identifier: Apache-2.0
 *
 * Egress: what leaves a session's network namespace (spec/containment.md 10.3, 10.4). One thread
 * relays allowed TCP connections byte for byte and answers DNS queries; everything else goes
 * nowhere.
 *
 * Without a network namespace it is a proxy that is asked by host and port (proxy_request.h).
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
/* Gives sockets to whoever this listener of a system call filter belongs to, for as long as that
 * runs. The descriptor is borrowed until the relay is freed. */
bool egress_give_sockets (struct egress *e, int listener_fd);
/* Stops listening and ends the relays. */
void egress_free (struct egress *e);
DEFINE_CLEANUP (struct egress, egress_free)
