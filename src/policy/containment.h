/* SPDX-License-Identifier: Apache-2.0
 *
 * The containment decision: a pure function of what the host can do, the floor asked for and facts
 * of the capsule (spec/containment.md 6). Taken once a session; the launch, the report and the
 * trace all read the same value.
 */
#pragma once

#include "manifest/text/grammar.h"

enum containment_tier {
    TIER_NONE,
    TIER_SECCOMP,
    TIER_LANDLOCK,
    TIER_SEALED,
};

/* "none", "seccomp-only", "landlock+seccomp", "mountns+pivot_root+landlock+seccomp". Static. */
const char *containment_tier_name (enum containment_tier t);

/* Facts of the host, from one probe. */
struct host_containment {
    enum containment_tier tier; /* the strongest this build can apply here */
    const char *userns_grant;   /* NULL, or the word of containment.md 6.3 */
    int landlock_abi;           /* 0: none installed */
    const char *scoped_blocker; /* why scoped cannot be had, when tier is below it */
    const char *sealed_blocker; /* why sealed cannot be had, when tier is below it */
    bool has_namespaces;        /* a network namespace can be made for commands */
    bool has_mount_namespace;   /* a private /tmp can be mounted for a command */
    bool walls_network; /* Landlock and the filter can keep commands to the relay without one */
    /* what a session's namespaces lack here and what that leaves, a line each; NULL-terminated, may
     * be NULL */
    const char *const *missing_walls;
};

/* Where a session's commands run. */
enum session_space {
    SPACE_OWN,    /* in namespaces of the session; nowhere where the host makes none */
    SPACE_WALLED, /* the host makes none: Landlock and the filter keep them to the egress relay */
    SPACE_OPEN,   /* the host makes none, and the operator lets them reach every address */
};

/* Facts of the capsule. */
struct capsule_containment {
    bool workdir_exec;
    bool may_be_unconfined; /* the operator lets commands run without namespaces */
    /* runtime or records directory inside the work folder, or NULL */
    const char *dir_inside_workdir;
    const char *work_dir; /* for the message; may be NULL */
};

struct containment {
    enum containment_class declared; /* the combined floor */
    enum containment_class achieved;
    enum containment_class host;
    enum containment_tier applied;
    struct host_containment facts;
    bool floor_met;
    char *shortfall_reason; /* NULL when met; owned */
    bool shortfall_is_host; /* the cause is the host, not the capsule */
    enum session_space space;
    bool is_capped; /* advisory by workdir_exec or a directory inside the work folder */
};

/* The strongest of the floors. */
enum containment_class
containment_floor (enum containment_class config, enum containment_class manifest,
                   enum containment_class flag);
void containment_decide (const struct host_containment *host, enum containment_class floor,
                         const struct capsule_containment *capsule, struct containment *out);
/* <may_be_open>: the operator's --unconfined, which wins over walls without namespaces. */
enum session_space containment_space (const struct host_containment *host, bool may_be_open);
void containment_clear (struct containment *c);
/* E-CAP-003 when the floor is not met. */
bool containment_check (const struct containment *c, struct mur_error **err);
/* A --containment value. E-IO-003. */
bool containment_flag (const char *text, enum containment_class *out, struct mur_error **err);
