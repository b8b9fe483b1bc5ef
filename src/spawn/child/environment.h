/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment a child starts with: built from nothing, in one fixed order (spec/spawn.md A4,
 * A8).
 *
 * Always true: each name once; a name the runtime owns is never taken from the list of allowed
 * ones; no token is in any value.
 */
#pragma once

#include "base/buf.h"
#include "base/json.h"

struct child_environment {
    const char *const *allow; /* names, NULL-terminated; may be NULL */
    const char *roost_url;
    int lifeline_fd;
    const char *spawner;      /* NULL: none */
    const char *formation_id; /* NULL: none */
};

/* Appends "NAME=value" entries; values come from this process's environment. */
void environment_build (const struct child_environment *e, struct strv *out);

/* What the child declares and its parent may pass on: the child's order, no name twice. */
void environment_clamp (const char *const *child, size_t child_count, const char *const *parent,
                        size_t parent_count, struct strv *out);

/* MURMUR_SPAWNER's text. <url> NULL: lineage only, no completion is wanted. <approvals>: the rules
 * of the parent, NULL: none. Owned. */
char *spawner_text (const char *session_id, const char *context_id, const char *delegation_id,
                    const char *url, const json_t *approvals);
