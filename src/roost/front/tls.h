/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS in front of the referee: whoever speaks it is handed on to where the daemon listens on
 * loopback.
 *
 * Always true: at most so many connections at once; who does not finish a handshake in time is let
 * go; a certificate that was replaced holds from the next connection on.
 */
#pragma once

#include "base/error.h"

#include <stdint.h>

struct tls_front;

/* Serves on every address of <port> (0: a free one) with tls.crt and tls.key of <folder>, handing
 * on to 127.0.0.1:<inner_port>, in threads of its own. E-IO-001, E-IO-003, E-RUN-010. */
struct tls_front *
tls_front_start (const char *folder, uint16_t port, uint16_t inner_port, struct mur_error **err);
uint16_t tls_front_port (const struct tls_front *t);
/* Ends it and every connection. */
void tls_front_stop (struct tls_front *t);
