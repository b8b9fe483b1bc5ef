/* SPDX-License-Identifier: Apache-2.0
 *
 * The daemon's HTTP: one request a connection on 127.0.0.1, bounded in bytes and time
 * (spec/spawn.md B3).
 */
#pragma once

#include "roost/referee.h"

#include <stdint.h>

/* Binds 127.0.0.1:<port> (0: any). Owned descriptor or -1 with E-RUN-010; *bound is the port. */
int server_bind (uint16_t port, uint16_t *bound, struct mur_error **err);
/* Serves until <stop_fd> becomes readable; then answers what has arrived and returns. */
void server_run (int listen_fd, int stop_fd, struct referee *referee);
