/* SPDX-License-Identifier: Apache-2.0
 *
 * Taking the network from this process for good, and from everything it starts.
 */
#pragma once

#include "base/error.h"

/* Every thread of this process, and every process it starts from now on, is refused each new socket
 * with EPERM, and the ways around that. <keeps_local>: sockets of this host's own kinds (unix,
 * netlink) stay, for what sets up namespaces. E-RUN-012 where the kernel cannot. */
bool no_sockets_enter (bool keeps_local, struct mur_error **err);
