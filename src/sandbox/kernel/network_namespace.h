/* SPDX-License-Identifier: Apache-2.0
 *
 * The session's network namespace: one user and one network namespace that every command of a
 * session joins (spec/containment.md 10.1). A forked creator builds it and hands its descriptors
 * over; the runtime never enters it.
 *
 * Inside, every address is local: a port with a listener reaches the egress relay, any other is
 * refused at once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NETWORK_NAMESPACE_MAX_PORTS 16

struct network_namespace {
    int user_fd; /* -1 when there is none */
    int net_fd;
    int listener_fds[NETWORK_NAMESPACE_MAX_PORTS]; /* TCP, one a port, same order as asked for */
    size_t listener_count;
    int dns_fd; /* UDP port 53 with IP_PKTINFO, -1 when no port was asked for */
};

/* Which step failed and why; step is static storage ("unshare(CLONE_NEWUSER|CLONE_NEWNET)"). */
struct attempt_failure {
    const char *step;
    int errno_value;
};

/* Builds one with listeners for <ports> (at most NETWORK_NAMESPACE_MAX_PORTS). False with *failure
 * set. */
bool network_namespace_create (const uint16_t *ports, size_t count, struct network_namespace *ns,
                               struct attempt_failure *failure);
void network_namespace_close (struct network_namespace *ns);
/* Joins user then net. Async-signal-safe. Returns NULL, or the step that failed (errno set). */
const char *network_namespace_join (const struct network_namespace *ns);
