/* SPDX-License-Identifier: Apache-2.0
 *
 * The namespaces of one session: made once, joined by each of its commands (spec/containment.md
 * 10.1, 11).
 *
 * User and network are required. Processes, IPC, host name and control group are taken where the
 * kernel gives them; what it refuses is named, never passed over. The process namespace has an init
 * of ours whose end is the end of everything in it, and it ends with the runtime, however that
 * went. The runtime itself enters none of them.
 */
#pragma once

#include "sandbox/kernel/cgroup.h"
#include "sandbox/kernel/mount_plan.h"
#include "sandbox/kernel/network_listeners.h"

/* Which step failed and why; step is static storage ("unshare(CLONE_NEWUSER|CLONE_NEWNET)"). */
struct attempt_failure {
    const char *step; /* NULL: none failed */
    int errno_value;
};

/* What a session has beside its user and network namespace, where the host gives it. */
enum session_wall {
    WALL_PROCESSES,     /* process namespace with its init */
    WALL_IPC,           /* System V objects and POSIX queues */
    WALL_HOST_NAME,     /* UTS */
    WALL_CONTROL_GROUP, /* what /proc/self/cgroup shows */
    WALL_PROC,          /* /proc of the process namespace */
    WALL_COUNT,
};

enum namespace_fd {
    NS_USER,
    NS_NET,
    NS_PROCESSES,
    NS_IPC,
    NS_HOST_NAME,
    NS_CONTROL_GROUP,
    NS_ROOT_USER, /* user namespace that owns the composed root */
    NS_MOUNTS,
    NS_WORK, /* the work folder, as it is reached in there */
    NS_PROC, /* root of the session's own /proc */
    NS_INIT, /* pidfd */
    NS_FD_COUNT,
};

struct session_namespaces {
    int fds[NS_FD_COUNT]; /* -1: none */
    int control_fd;       /* write end that the init holds on to */
    struct network_listeners listeners;
    struct attempt_failure missing[WALL_COUNT];
};

#define SESSION_NAMESPACES_NONE                                                                    \
    {                                                                                              \
        .fds = { -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 }, .control_fd = -1,                   \
        .listeners = NETWORK_LISTENERS_NONE                                                        \
    }

struct namespace_request {
    const uint16_t *ports; /* of the egress relay's listeners */
    size_t port_count;
    const struct mount_plan *mounts;  /* NULL: none, but find out about /proc */
    const struct cgroup_scope *scope; /* what a control group namespace begins at; NULL: none */
};

struct namespace_failure {
    struct attempt_failure attempt;
    bool is_composed_root; /* a step of the sealed root */
    char detail[256];      /* the path it was about, or "" */
};

/* Makes them. False with *failure set; no process is left then. */
bool session_namespaces_make (const struct namespace_request *request,
                              struct session_namespaces *out, struct namespace_failure *failure);
/* Ends what runs in the process namespace and lets go. The runtime's own children in there must be
 * reaped before. */
void session_namespaces_close (struct session_namespaces *ns);
/* Kills every process in the process namespace but its init. Async-signal-safe. */
void session_namespaces_kill_all (const struct session_namespaces *ns);

/* In a process that is to start a command: joins the user namespace, and has its next child born in
 * the process namespace. Async-signal-safe. NULL, or the step that failed (errno set). */
const char *session_namespaces_join_outer (const struct session_namespaces *ns);
/* In the command itself: joins the others and enters the work folder. */
const char *session_namespaces_join (const struct session_namespaces *ns);

/* "unshare(CLONE_NEWPID)": what a wall's absence is called, and what it means for a person. Static.
 */
const char *session_wall_name (enum session_wall wall);
const char *session_wall_meaning (enum session_wall wall);
/* The system call filter leaves something to it. */
bool session_wall_is_relied_on (enum session_wall wall);
