/* SPDX-License-Identifier: Apache-2.0
 *
 * The blocks of `mur doctor` and the tally they share (spec/cli.md 5).
 *
 * Always true: no capsule is launched and nothing written; stdout carries the report, stderr its
 * warnings; a value of a variable or a credential is never printed; only an error changes the exit
 * status.
 */
#pragma once

#include "artifact/store/lock.h"
#include "artifact/store/store.h"
#include "manifest/settings/config.h"
#include "policy/policy.h"

struct doctor {
    const char *home;    /* the murmur home */
    const char *project; /* the project folder, absolute */
    const char *manifest_path;
    const struct capsule_manifest *manifest;
    struct policy *policy;
    const struct containment *containment;
    const struct config *config;
    const struct stores *stores;
    const struct lock *lock;
    size_t passed, errors, warnings;
    struct strv fixes;   /* commands, each once */
    struct strv natives; /* name@version of declared native artifacts */
};

/* doctor_host.c */
void doctor_namespaces (struct doctor *d); /* and Landlock: one probe feeds both */
void doctor_home (struct doctor *d);
void doctor_memory (struct doctor *d);
/* doctor_grants.c */
void doctor_grants (struct doctor *d);      /* preopens, protected paths, install grant */
void doctor_directories (struct doctor *d); /* runtime, records, temporary */
void doctor_concerns (struct doctor *d);    /* what a launch would refuse, as warnings on stderr */
/* doctor_environment.c */
void doctor_environment (struct doctor *d); /* silent when there is nothing to say, like the next */
void doctor_control_secrets (struct doctor *d);
/* doctor_harness.c: the program of transport: process, and what its driver was tested with. */
struct artifact_manifest;
void doctor_harness (struct doctor *d, const struct artifact_manifest *driver);
/* What a program says of its version: the first line. Owned; NULL when it says nothing. */
char *doctor_version_of (const char *program);
/* doctor_servers.c: rows below an entry of runtime: mcp. */
struct package;
void
doctor_server (struct doctor *d, const struct artifact_entry *e, const struct package *package);
/* doctor_roster.c: all of a formation's folder; false: its stores or its lock cannot be read. */
bool doctor_roster (struct doctor *d, struct mur_error **err);
/* doctor_trust.c: silent without a rule. */
void doctor_trust (struct doctor *d);
/* doctor_artifacts.c */
void doctor_wit_level (struct doctor *d);
void doctor_leftovers (struct doctor *d);
void doctor_checklist (struct doctor *d);
void doctor_model_limits (struct doctor *d);
