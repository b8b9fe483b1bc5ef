/* SPDX-License-Identifier: Apache-2.0
 *
 * A formation: launching every member of an admitted roster and ending them together (spec/spawn.md
 * C2, C4-C7).
 *
 * Always true: the entry starts after every peer is ready, or not at all; when formation_run
 * returns no member is left; should this process die by any means, the members learn it through
 * their lifelines and wind down.
 */
#pragma once

#include "base/error.h"
#include "base/ids.h"
#include "manifest/settings/roster.h"
#include "spawn/formation/member.h"

struct formation_plan {
    const struct roster *roster;
    const char *const *sha256; /* of each member, as admitted */
    const char *project_dir;   /* canonical; the entry's work folder and everybody's store root */
    const char *task;          /* NULL: none */
    const char *containment;   /* NULL: not given */
    bool is_json, is_verbose, has_no_env_file;
    uint64_t deadline_secs; /* 0: none */
    uint64_t started_ms;    /* monotonic: what the deadline is counted from */
    member_probe_fn *probe;
    void *probe_ctx;
};

struct formation {
    const struct formation_plan *plan;
    struct id id;
    struct member *members; /* in roster order */
    size_t len;
    uint64_t deadline_at_ms; /* Unix; 0: none */
    bool has_begun;          /* something of it exists: a folder, a process */
};

/* Launches and sees it to its end. True: the entry was started, and *exit_status is its own, or 128
 * + the signal that ended it or this process. False with E-RUN-045 (a member did not come up),
 * E-RUN-053 (the deadline passed before the entry started), E-IO-003; also with *exit_status set
 * and no error when a signal stopped it before the entry started. */
bool formation_run (struct formation *f, int *exit_status, struct mur_error **err);
void formation_clear (struct formation *f);
