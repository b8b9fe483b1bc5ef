/* SPDX-License-Identifier: Apache-2.0
 *
 * "Did you mean": the known key nearest to an unknown one (spec/manifest.md 3).
 */
#pragma once

#include "manifest/text/schema.h"

/* The nearest known key within the accepted distance (manifest.md 3), or NULL. */
const char *schema_suggest (const struct schema *schema, const char *key);
/* Optimal string alignment distance in characters. */
size_t schema_distance (const char *a, const char *b);
