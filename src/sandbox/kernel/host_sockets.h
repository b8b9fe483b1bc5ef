/* SPDX-License-Identifier: Apache-2.0
 *
 * Sockets of the host that have a path: a container engine, the bus, a key agent. Landlock lets a
 * command connect to one whose file it could not open, so a session that may use unix sockets has
 * each of them covered.
 */
#pragma once

#include "base/buf.h"

/* Absolute paths that sockets of this network namespace are bound to. */
void host_socket_paths (struct strv *out);
