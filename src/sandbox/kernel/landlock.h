/* SPDX-License-Identifier: Apache-2.0
 *
 * Landlock: which files a native subprocess may open and execute (spec/containment.md 8).
 *
 * The parent opens every path and fills a plan; the child only turns it into a ruleset and
 * restricts itself. The runtime itself never enters a domain: that would forbid mounts to every
 * later child.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a path is granted, in the words of the spec's table. */
enum landlock_grant {
    LANDLOCK_WRITABLE_TREE, /* read, write, create and remove, no devices, no sockets */
    LANDLOCK_READABLE_TREE, /* files and directories */
    LANDLOCK_READABLE_FILE,
    LANDLOCK_EXECUTABLE_FILE, /* and readable */
    LANDLOCK_EXECUTABLE_DIR,  /* execute and read what is in it, not list it */
    LANDLOCK_EXECUTABLE_TREE, /* execute, read and list */
    LANDLOCK_DEVICE_READ,
    LANDLOCK_DEVICE_WRITE,
    LANDLOCK_SOCKETS,  /* sockets may be made in a folder, beside what else it is granted */
    LANDLOCK_TERMINAL, /* a terminal or a folder of them: the only devices that take ioctl */
};

struct landlock_rule {
    int path_fd;           /* O_PATH, owned by the plan; -1: <late_path> is opened by the child */
    const char *late_path; /* borrowed: what only the command's own mounts show there */
    uint64_t rights;
};

/* From here on TCP ports are judged, too. */
#define LANDLOCK_NETWORK_ABI 4
/* And what lies outside a domain. */
#define LANDLOCK_SCOPE_ABI 6
#define LANDLOCK_MAX_PORTS 17

struct landlock_plan {
    int abi; /* as used: min (kernel's, 7) */
    uint64_t handled;
    bool walls_network; /* no TCP port can be bound, and none but <ports> connected to */
    uint16_t ports[LANDLOCK_MAX_PORTS];
    size_t port_count;
    struct landlock_rule *rules;
    size_t len, cap;
    bool is_prepared;
    int ruleset_fd; /* owned, once it is prepared: every rule but the late ones */
};

/* ABI of the running kernel, 0 when it has none (or refuses). No side effect. */
int landlock_kernel_abi (void);

void landlock_plan_init (struct landlock_plan *plan, int kernel_abi);
/* Opens <path> and grants it. A path that does not open is dropped (grants only shrink) unless
 * <is_required>: E-IO-003. <workdir_exec> adds EXECUTE to a writable tree. */
bool landlock_plan_add (struct landlock_plan *plan, const char *path, enum landlock_grant grant,
                        bool workdir_exec, bool is_required, struct mur_error **err);
/* The same for an open directory or file (the descriptor is duplicated). */
bool landlock_plan_add_fd (struct landlock_plan *plan, int fd, enum landlock_grant grant,
                           bool workdir_exec, struct mur_error **err);
/* A plan of its own with the same rules, not prepared. E-IO-003. */
bool landlock_plan_copy (const struct landlock_plan *plan, struct landlock_plan *out,
                         struct mur_error **err);
/* Judges TCP ports, from LANDLOCK_NETWORK_ABI on; the kernel does not look at addresses. False: the
 * kernel cannot. */
bool landlock_plan_wall_network (struct landlock_plan *plan);
/* Lets it be connected to. More than LANDLOCK_MAX_PORTS are dropped. */
void landlock_plan_add_port (struct landlock_plan *plan, uint16_t port);
/* Grants what will lie at <path> (borrowed) once the child's mounts are made; nothing there,
 * nothing granted. */
void
landlock_plan_add_late (struct landlock_plan *plan, const char *path, enum landlock_grant grant);
/* Makes the ruleset all commands restrict themselves by, each into a domain of its own (what they
 * may do to each other is judged by landlock_share_scope's); nothing is
 * added to the plan from here on. Without it, and where it fails, each command makes one. */
void landlock_plan_prepare (struct landlock_plan *plan);
void landlock_plan_free (struct landlock_plan *plan);

/* Enters the domain. Async-signal-safe; no_new_privs must be set. Returns 0 or -1 with errno. */
int landlock_restrict (const struct landlock_plan *plan);
/* Puts the calling thread and whatever it starts into a domain that no signal leaves, and with
 * <with_sockets> no connection to an abstract socket: all of it reaches each other, also from
 * domains it enters within this one. Forbids mounts to the thread. From LANDLOCK_SCOPE_ABI on;
 * no_new_privs must be set. 0 or -1 with errno. */
int landlock_share_scope (bool with_sockets);
