/* SPDX-License-Identifier: Apache-2.0
 *
 * What the configuration files hold, key by key, as a person reads it back.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct config_entry {
    const char *key;   /* "registry.index_url", "credentials.NAME" */
    const char *value; /* text, or JSON of a list or a map; NULL: a secret, which nobody is shown */
    const char *file;  /* where it stands */
};
typedef void config_entry_fn (void *ctx, const struct config_entry *entry);

/* Calls <each> for the project's file and then for the global one, a key that the first overrides
 * included. E-IO-003 of a file that cannot be read. */
bool config_entries (config_entry_fn *each, void *ctx, struct mur_error **err);
