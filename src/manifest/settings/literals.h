/* SPDX-License-Identifier: Apache-2.0
 *
 * Literal secrets left in a manifest that is about to be packed (spec/manifest.md 14).
 */
#pragma once

#include "manifest/text/yaml.h"

/* Prints W-SEC-004 for each literal secret in a credential-shaped key; returns how many. */
size_t artifact_manifest_warn_literals (const struct yaml_node *root);
