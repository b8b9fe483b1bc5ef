/* SPDX-License-Identifier: Apache-2.0
 *
 * Refusals of staging that need no store and no sandbox, each in its place (spec/manifest.md 18.4).
 */
#pragma once

#include "policy/policy.h"

/* E-CAP-013, then E-CAP-020. */
bool policy_check_tool_names (const struct capsule_manifest *m, struct mur_error **err);
/* What --explain-scope refuses beyond the above: E-CAP-009, E-CAP-010, E-CAP-002 of artifact
 * entries. */
bool policy_check_explain (const struct policy *p, struct mur_error **err);
/* The refusals of staging that come before the host is asked, in order: E-CAP-001, 002, 003, 009,
 * 011, 013, 020, 016, 010, 002, 008, E-MAN-003 (queue room), E-CAP-004. <c> may be NULL without a
 * floor above advisory. */
bool
policy_check_stage (const struct policy *p, const struct containment *c, struct mur_error **err);
/* And those after it, before the first artifact is resolved: E-CAP-012, E-IO-001 (source paths). */
bool policy_check_paths (const struct policy *p, struct mur_error **err);
/* What `mur doctor` only warns of: E-CAP-002 of artifact entries, E-CAP-004, E-CAP-016, numbered
 * from 0. True when number <which> finds nothing wrong, or does not exist: then *is_last is set. */
bool
policy_check_concern (const struct policy *p, size_t which, bool *is_last, struct mur_error **err);
/* Every ${NAME} of a gateway must have a value somewhere: E-MAN-003. Names in control.secrets are
 * not looked up, nor those of drivers only inference.alternates names. */
bool policy_check_gateway_keys (const struct policy *p, policy_credential_fn *config_credential,
                                const void *ctx, const char *config_path, struct mur_error **err);

/* An artifact's config as compact JSON of at most 65 536 bytes, or NULL with E-CAP-010. Owned. No
 * key: NULL without error. */
char *policy_artifact_config (const struct artifact_entry *e, const struct capsule_manifest *m,
                              struct mur_error **err);

/* E-CAP-016: every env.allow name the credential filter takes away. First of all, also under
 * --explain-scope. */
bool policy_check_env (const struct capsule_manifest *m, struct mur_error **err);
