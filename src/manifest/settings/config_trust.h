/* SPDX-License-Identifier: Apache-2.0
 *
 * trust.require of the configuration: which scopes must be signed, and by which keys.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <stddef.h>

struct yaml_node;

struct config_trust_rule {
    char *pattern;    /* of scopes; with a '/' of full names */
    struct strv keys; /* names; empty: none is asked for */
};

struct config_trust {
    struct config_trust_rule *rules;
    size_t count;
};

/* Reads it from a file's root. E-TRU-004 naming file, key and what is wrong. */
bool config_trust_read (const struct yaml_node *root, const char *file, struct config_trust *out,
                        struct mur_error **err);
void config_trust_clear (struct config_trust *t);
