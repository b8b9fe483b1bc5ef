/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes one key of a configuration file.
 *
 * The file is read, every known key is copied, the changed one replaced, and the whole renamed into
 * place: its inode changes, which running capsules notice, and the global file has mode 0600 before
 * its name is visible. Two writers take turns on the directory's lock.
 */
#pragma once

#include "manifest/settings/config.h"

/* Writes one supported key into the project file (<cwd>/.murmur/config.yaml) or the global one,
 * keeping every other known key; temp + rename, the global file 0600 before its name is visible.
 * E-CFG-002 (unsupported key, or credentials without is_global), E-IO-003. *written receives the
 * path to show ("~/.murmur/config.yaml" for the global file). A NULL value takes the key out. */
bool config_set (const char *key, const char *value, bool is_global, char **written,
                 struct mur_error **err);
/* True for a key that a configuration file may hold; else E-CFG-002 with the nearest. */
bool config_key_exists (const char *dotted, struct mur_error **err);
/* Adds or removes a name of beta.enabled in the global file; *changed tells whether it was
 * different before. */
bool config_set_beta (const char *feature, bool enabled, bool *changed, struct mur_error **err);
