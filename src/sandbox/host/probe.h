/* SPDX-License-Identifier: Apache-2.0
 *
 * What this host can do, found by doing it in forked children, never by reading version strings
 * (spec/containment.md 6.3).
 *
 * One probe a session feeds every consumer: the decision, the report, doctor, the commands.
 */
#pragma once

#include "base/buf.h"
#include "sandbox/space/namespaces.h"

#include <sys/types.h>

enum probe_state {
    PROBE_NOT_MADE, /* an earlier attempt it stands on failed */
    PROBE_SUCCEEDED,
    PROBE_FAILED,
};

struct attempt {
    enum probe_state state;
    struct attempt_failure failure; /* when failed */
};

enum userns_grant {
    USERNS_APPARMOR_ABSENT,
    USERNS_RESTRICTION_DISABLED, /* host-wide: W-SEC-013 */
    USERNS_PROFILE_CONFINING,
    USERNS_WITHHELD,
};

struct host_probe {
    int landlock_abi;        /* of the kernel; 0 = none */
    struct attempt landlock; /* a whole domain was entered */
    struct attempt network;  /* user and network namespace, as a session makes them */
    /* what a session's set lacks here, once <network> succeeded */
    struct attempt_failure missing[WALL_COUNT];
    struct attempt mounts; /* private mount namespace with /tmp covered */
    struct attempt sealed; /* composed root */
    /* where <network> failed: Landlock and the filter can stand for it */
    bool walls_network;
    enum userns_grant userns; /* chooses words only */
    char profile[128];        /* AppArmor profile of this process, "" when unconfined or unknown */
};

/* W-SEC-013, wherever it is said. */
#define HOST_UNRESTRICTED_TEXT                                                                     \
    "this host lets any program create user namespaces, which murmur uses but does not need for "  \
    "every program"

/* Runs every attempt. The runtime itself is unchanged afterwards. */
void host_probe_run (struct host_probe *probe);

/* The same in two halves: everything is known after the first, while the attempts' processes may
 * still be leaving their namespaces. */
struct attempt_child {
    pid_t pid; /* -1: none */
    int report_fd;
    int errno_value; /* why there is none */
};
struct probe_children {
    struct attempt_child all[3];
};
void host_probe_make (struct host_probe *probe, struct probe_children *children);
void probe_children_reap (struct probe_children *children);

/* "apparmor_absent", "restriction_disabled_host_wide", "profile_confining", "withheld". */
const char *userns_grant_name (enum userns_grant grant);

/* "unshare(CLONE_NEWUSER|CLONE_NEWNET): EPERM (Operation not permitted)". Owned. */
char *attempt_failure_text (const struct attempt_failure *failure);

/* What a session's set lacks here and what that leaves, "no process namespace (clone(CLONE_NEWPID)
 * failed: ENOSPC (...)): a command can ...". Owned; NULL when it is there. */
char *host_probe_missing_wall (const struct host_probe *probe, enum session_wall wall);

/* Why sealed cannot be had here, with what to do, or NULL when it can. Owned. */
char *host_probe_sealed_blocker (const struct host_probe *probe);
/* Why scoped cannot be had here, or NULL when it can. Owned. */
char *host_probe_scoped_blocker (const struct host_probe *probe);
/* The facts of E-CAP-005: failed call, likely cause and remedy, host readings. Owned; NULL when the
 * attempt succeeded. */
char *host_probe_network_blocker (const struct host_probe *probe);
