/* SPDX-License-Identifier: Apache-2.0
 *
 * What config.c and config_write.c share: where the files are, and one file's tree.
 */
#pragma once

#include "manifest/settings/config.h"
#include "manifest/text/yaml.h"

/* "<cwd>/.murmur/config.yaml". Owned. */
char *config_project_path (struct mur_error **err);
/* The tree of one file; an absent or empty one is an empty map. NULL with E-IO-003 naming the file.
 */
struct yaml_node *config_file_tree (struct arena *arena, const char *path, struct mur_error **err);
