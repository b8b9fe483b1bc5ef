/* SPDX-License-Identifier: Apache-2.0
 *
 * The blocks of `mur doctor` and the tally they share (spec/cli.md 5).
 *
 * Always true: nothing is launched or written; stdout carries the report, stderr its warnings; a
 * value of a variable or a credential is never printed; only an error changes the exit status.
 */
#pragma once

#include "artifact/lock.h"
#include "artifact/store.h"
#include "policy/policy.h"

struct doctor {
    const char *project; /* the project folder, absolute */
    const char *manifest_path;
    const struct capsule_manifest *manifest;
    const struct policy *policy;
    const struct stores *stores;
    const struct lock *lock;
    size_t passed, errors, warnings;
    struct strv fixes; /* commands, each once */
};

/* doctor_host.c */
void doctor_namespaces (struct doctor *d); /* and Landlock: one probe feeds both */
void doctor_home (struct doctor *d, const char *home);
void doctor_memory (struct doctor *d);
void doctor_session_dirs (struct doctor *d, const char *home);
/* doctor_artifacts.c */
void doctor_wit_level (struct doctor *d);
void doctor_checklist (struct doctor *d);
