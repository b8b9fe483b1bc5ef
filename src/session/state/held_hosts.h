/* SPDX-License-Identifier: Apache-2.0
 *
 * The hosts of approvals: closed to tools and commands until a call that names one was approved.
 *
 * Threads: asked from the egress thread and those of guests; its own lock, a leaf.
 */
#pragma once

#include "net/allow.h"

struct session;

/* From the rules of the policy; NULL without one for a host. */
void held_hosts_new (struct session *s);
void held_hosts_free (struct session *s);
/* What an allow list asks; NULL: nothing is held. Borrowed. */
const struct allow_hold *held_hosts_of (const struct session *s);
/* True when some rule is about that host, open or not. */
bool held_hosts_names (const struct session *s, const char *host);
/* Opens the host of rule <rule> of the policy's approvals until it is closed as often, or for the
 * session. */
void held_hosts_open (struct session *s, size_t rule, bool is_for_session);
void held_hosts_close (struct session *s, size_t rule);
