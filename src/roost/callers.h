/* SPDX-License-Identifier: Apache-2.0
 *
 * Who asks the referee. A caller on the user's own socket is a process the kernel vouches for; one
 * over TCP is of this user by the kernel's own table of sockets, or holds the token.
 */
#pragma once

#include "base/error.h"

#include <stdint.h>
#include <sys/types.h>

struct caller {
    bool is_of_user;
    pid_t pid;      /* 0: not known */
    char start[24]; /* of that process, process_start_text; "" without a pid */
};

/* Listens on 127.0.0.1:<port> (0: any). Owned descriptor or -1 with E-RUN-010; *bound is the port.
 */
int callers_bind_tcp (uint16_t port, uint16_t *bound, struct mur_error **err);
/* Listens on a socket of that path, mode 0600, made anew; one that is served already is E-RUN-010.
 */
int callers_bind_socket (const char *path, struct mur_error **err);

/* What the kernel says of an accepted connection. */
struct caller caller_of (int fd);

/* The token TCP callers may present: made on first use, mode 0600. NULL with E-IO-003. Owned. */
char *callers_token (const char *path, struct mur_error **err);
