/* SPDX-License-Identifier: Apache-2.0
 *
 * The grants report: `mur run --explain-scope` as text and as one line of JSON, the same object
 * session_start records as effective_grants (spec/manifest.md 18.5, spec/containment.md 16).
 *
 * Creates nothing and asks the host nothing: every fact that depends on the host is passed in.
 */
#pragma once

#include "base/json.h"
#include "policy/policy.h"

/* A directory of the session as commands see it. */
struct report_dir {
    const char *path;                  /* with a literal <session-id> */
    const char *enforced_by;           /* NULL, or what keeps commands from writing */
    const char *not_protected_because; /* NULL when enforced */
};

struct report_facts {
    const struct containment *containment;
    struct report_dir runtime_dir;
    struct report_dir records_dir;
    const char *temp_path;      /* the session's tmp/ */
    const char *temp_mapped_by; /* NULL, "composed-root" or "mount-namespace" */
    const char *temp_not_mapped_because;
    const char *io_max_status;      /* enforced, unavailable, not-required, not-probed */
    const char *io_max_reason;      /* NULL without */
    const bool *artifact_is_native; /* one for each manifest entry, or NULL: not known yet */
    const bool *
        artifact_is_resolved; /* the same: false is runtime_dir_reach "unresolved"; NULL: none is */
};

/* Fills facts for this build and host: the directories below <home_dir>, nothing enforced yet. The
 * strings are static or in the policy's arena. */
void report_facts_fill (struct policy *p, const struct containment *c, struct report_facts *out);

/* The object, keys in the order of the specification. The caller owns it. */
json_t *scope_report_json (const struct policy *p, const struct report_facts *facts);
