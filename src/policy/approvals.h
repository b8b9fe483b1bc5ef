/* SPDX-License-Identifier: Apache-2.0
 *
 * What a person is asked about before it is done: the rules of the manifest's approvals block, and
 * those of the session that delegated, which a child's own manifest cannot take away.
 */
#pragma once

#include "base/json.h"
#include "manifest/capsule/capsule.h"

#define APPROVAL_HOSTS_MAX 32

enum approval_kind {
    APPROVAL_TOOL,
    APPROVAL_COMMAND,
    APPROVAL_HOST,
    APPROVAL_PATH,
    APPROVAL_CAPSULE,
};
/* The key of the block: "tools", "commands", ... Static. */
const char *approval_kind_name (enum approval_kind kind);

struct approval_rule {
    enum approval_kind kind;
    const char *text;
    bool is_inherited; /* of the session that delegated */
};

struct approval_rules {
    struct approval_rule *items; /* the manifest's first, in order of the keys */
    size_t len;
    uint64_t timeout_secs;
    bool allows_on_timeout;
};

/* The rules of a block (NULL: none) and of an inherited text (NULL: none; approval_rules_json of
 * the parent). False with E-RUN-020 when that text cannot be read. */
bool approval_rules_lower (struct arena *arena, const struct approvals *own, const char *inherited,
                           struct approval_rules *out, struct mur_error **err);
/* {"tools": [...], ..., "timeout_secs": N, "on_timeout": "refuse"}, kinds without rules left out.
 * <for_child>: without paths, which mean the work folder of this session. NULL without rules. */
json_t *approval_rules_json (const struct approval_rules *rules, bool for_child);
