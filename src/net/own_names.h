/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses a name may not lead to: whoever answers for a listed name must not choose a service of
 * this machine or of its cloud.
 */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

/* True when <host> reaches <address> only as a literal that is listed: link-local and metadata
 * addresses, and loopback ones unless the name is "localhost", ends in ".localhost" or stands in
 * this machine's hosts file, which is the operator's word. False for a literal. */
bool address_needs_a_literal (const struct sockaddr *address, const char *host);
/* True for an address that is not of the public net: of this machine, its link, its cloud, or a
 * private range. */
bool address_is_private (const struct sockaddr *address);
/* The same of a host that is a literal, or this machine by name. */
bool host_is_private (const char *host);
