/* SPDX-License-Identifier: Apache-2.0
 *
 * The daemon's HTTP: one request a connection, bounded in bytes and time; browsers are not answered
 * (spec/spawn.md B3).
 */
#pragma once

#include "roost/referee.h"

/* Serves until <stop_fd> becomes readable; then answers what has arrived and returns. <token>: what
 * a caller presents whom the kernel does not know as this user; NULL: none is answered. */
void server_run (int listen_fd, int stop_fd, struct referee *referee, const char *token);
