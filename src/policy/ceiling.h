/* SPDX-License-Identifier: Apache-2.0
 *
 * The capsule's network ceiling, parsed once and looked up in logarithmic time, whatever its
 * length. Used inside policy/ only.
 */
#pragma once

#include "net/allow.h"
#include "policy/policy.h"

struct ceiling {
    const char **keys; /* "host\nscheme\nport" of every entry that parses, sorted; in the arena */
    size_t len;
};

struct ceiling ceiling_of (struct arena *arena, const struct str_list *allow);
/* True when some entry of the ceiling covers the rule (spec/manifest.md 15.4). */
bool ceiling_covers (const struct ceiling *c, const struct allow_rule *rule);
