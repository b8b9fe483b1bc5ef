/* SPDX-License-Identifier: Apache-2.0
 *
 * roster.yaml: the members of a formation and who may call whom (spec/manifest.md 16, spec/spawn.md
 * C3).
 *
 * Strict: any unknown key refuses. Reading covers the shape (E-ROS-001) and the checks that need no
 * store (E-ROS-003, 002, 004, 008, in that order); roster_admit takes each member's own manifest
 * for the rest.
 */
#pragma once

#include "manifest/capsule/capsule.h"

/* Members of one formation: above any real one, so that a file of thousands is refused at once. */
#define ROSTER_MEMBERS_MAX 256

struct roster_member {
    const char *name;
    const char *capsule; /* full name */
    const char *version; /* as written */
    bool is_entry;
};

struct roster_edge {
    size_t from, to; /* member indexes */
};

struct roster {
    struct roster_member *members;
    size_t len;
    size_t entry;              /* index of the entry member */
    bool reaches_all;          /* reachability: all */
    struct roster_edge *edges; /* deduplicated, by member index; for "all" filled by roster_admit */
    size_t edges_len;

    struct arena *arena;
    const char *file;
};

struct roster *
roster_parse (const char *text, size_t len, const char *file, struct mur_error **err);
/* Of a file or of a directory holding roster.yaml; any other file name is E-ROS-001, so is an
 * unreadable one. */
struct roster *roster_read (const char *path, struct mur_error **err);
void roster_free (struct roster *r);
DEFINE_CLEANUP (struct roster, roster_free)

/* Checks 6 and 7 over the members' manifests (one for each member, in order), and expands "all".
 * E-ROS-005, E-ROS-006. */
bool roster_admit (struct roster *r, const struct capsule_manifest *const *manifests,
                   struct mur_error **err);
/* Whether a member takes tasks of others: exports.peer_tasks.accept. */
bool roster_serves_peers (const struct capsule_manifest *m);
/* The W-ROS-001 text for a member with more callers than it holds tasks, or NULL. The caller owns
 * it. */
char *roster_overfull (const struct roster *r, size_t member, const struct capsule_manifest *m);
