/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two forms of the grants report share, so that they cannot drift; nobody else includes
 * this.
 */
#pragma once

#include "policy/scope_report.h"

/* A path the runtime itself may write in the work folder, and when. */
struct report_write {
    const char *path, *kind, *condition;
};

extern const struct report_write report_writes[]; /* ends with a NULL path */

/* "advisory", "enforced" or "absent". Static. */
void report_not_protected (const struct report_facts *f, struct strv *out);
/* "murmur-runtime", "environment", "unresolved" or NULL. Static. */
const char *report_runtime_reach (const struct policy *p, const struct report_facts *f, size_t i);
void report_interpreters (const struct policy *p, struct strv *out);
void report_staged (const struct policy *p, struct strv *out);
/* Absolute path of a state store; the caller owns it. */
char *report_state_path (const struct policy *p, const char *store);
