/* SPDX-License-Identifier: Apache-2.0
 *
 * What a session's commands asked of the network and did not get, as their network namespace saw
 * it: connections nobody listens for, datagrams to elsewhere, names asked of nobody. Programs that
 * keep such a failure to themselves are heard so, too.
 */
#pragma once

#include "net/allow.h"
#include "sandbox/kernel/network_listeners.h"

/* Reads what has come since the last call and tells the listener of <rules> of each. What is of the
 * session alone is left out: a port of its own loopback where nothing of the host listens either.
 * Never blocks; what the buffers could not hold is lost. */
void
network_refusals_tell (const struct network_listeners *listeners, const struct allow_list *rules);
