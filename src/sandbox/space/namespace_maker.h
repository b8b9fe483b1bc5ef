/* SPDX-License-Identifier: Apache-2.0
 *
 * The child's side of a session's namespaces: the process that makes them, and the init that stays.
 * See namespaces.h.
 */
#pragma once

#include "sandbox/space/namespaces.h"

/* What the makers tell over their socket, with descriptors beside it. Pointers in it are to static
 * storage of this very program. */
struct maker_report {
    struct namespace_failure failure; /* attempt.step NULL: none */
    struct attempt_failure missing[WALL_COUNT];
    uint8_t slots[NS_FD_COUNT]; /* enum namespace_fd of each descriptor */
    uint32_t slot_count;
    uint32_t listener_count; /* descriptors of listeners after those */
    bool has_dns;            /* then its socket, then those of refusals */
    bool has_refused_tcp, has_refused_udp;
    bool is_init; /* from the init, not from its maker */
};

#define MAKER_MAX_FDS (NS_FD_COUNT + NETWORK_NAMESPACE_MAX_PORTS + 3)

struct maker {
    const struct namespace_request *request;
    int socket_fd;  /* reports go here */
    int control_fd; /* read end: its end of file, or the runtime's end, is the init's */
    int runtime_fd; /* pidfd of the runtime */
    unsigned uid, gid;
};

/* The life of the making process. The init it leaves is a child of the runtime. */
_noreturn_ void namespace_maker_run (const struct maker *maker);
