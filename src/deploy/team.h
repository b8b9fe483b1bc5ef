/* SPDX-License-Identifier: Apache-2.0
 *
 * The roster of a folder as it goes to other machines: its members admitted, its text, and a lock
 * that names the bytes of each.
 *
 * Always true: nothing is written or asked of a network; the same packages give the same lock.
 */
#pragma once

#include "artifact/store/admission.h"
#include "artifact/store/lock_file.h"
#include "base/buf.h"
#include "deploy/deploy.h"

struct team {
    char *dir; /* of the roster, canonical */
    struct stores *stores;
    struct admission admission;
    struct buf text; /* of roster.yaml */
    char *lock_text; /* the folder's lock, else one that pins the members */
    const struct capsule_manifest **manifests; /* in roster order, borrowed of the admission */
    const char **sha256;                       /* the same, of each member's package */
};

/* <path>: a folder or a roster.yaml. What `mur run --roster` admits: E-ROS-001 to E-ROS-008,
 * E-REG-005, E-RUN-003, E-IO-*. */
bool team_read (const char *path, struct team *out, struct mur_error **err);
void team_clear (struct team *t);
#define _cleanup_team_ _cleanup_ (team_clear)

/* The same as deploy_render takes it; borrows of <t>. */
struct deploy_formation team_formation (const struct team *t);
/* The manifest of the entry. Borrowed. */
const struct capsule_manifest *team_entry (const struct team *t);
