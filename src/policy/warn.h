/* SPDX-License-Identifier: Apache-2.0
 *
 * Warnings that follow from a manifest and its policy, one line each (spec/manifest.md 19).
 */
#pragma once

#include "policy/policy.h"

/* W-SEC-032 of a public door on an exposed address; one line, on stdout for doctor. */
void policy_warn_door (const struct policy *p, bool to_stdout);
/* W-SEC-024, 025, 027, 030 in that order; also under --explain-scope. config_credential as above,
 * may be NULL. */
void policy_warn_parse (const struct policy *p, policy_credential_fn *config_credential,
                        const void *ctx);
/* W-SEC-014, 016: after state names resolve. */
void policy_warn_inert (const struct policy *p);
/* W-SEC-006, 007, 008 of the artifact entries, W-SEC-009, 011, 017: after every refusal of staging.
 */
void policy_warn_stage (const struct policy *p);
/* W-SEC-009 and W-SEC-011 alone; how many were printed. */
size_t policy_warn_programs (const struct policy *p, enum diag_source source);
/* W-SEC-008 and W-SEC-015 of an entry whose payload turned out native. */
void policy_warn_native_entry (const struct artifact_entry *e);
/* What confines the commands of a launch: W-SEC-005, 002 or 001, and W-SEC-003 where bash opens
 * connections nothing bounds. In order; the caller prints them. Texts are static. */
#define TIER_WARNINGS_MAX 2
struct tier_warning {
    enum diag_code code;
    const char *text;
};
size_t policy_tier_warnings (const struct policy *p, enum containment_tier tier,
                             struct tier_warning out[TIER_WARNINGS_MAX]);
/* W-SEC-018 when read_only paths are declared and the tool's input schema (may be NULL) says of no
 * value whether it is a destination. Once a tool, after its manifest was read. */
void policy_warn_unannotated (const struct policy *p, const char *tool_name,
                              const struct yaml_node *input_schema);
/* The interpreters of shell.allow read_only is only advisory against, in order. In the policy's
 * arena. */
struct str_list policy_advisory_interpreters (const struct policy *p);
