/* SPDX-License-Identifier: Apache-2.0
 *
 * An index by its address: a URL, or a file.
 */
#pragma once

#include "artifact/sources/index.h"

struct config;

/* registry.index_url of the configuration, else the published index. Borrowed. */
const char *index_address (const struct config *c);
/* Fetches an index from an http(s) URL or reads it from a path. E-IO-003, E-IDX-002. */
struct artifact_index *index_load (const char *path_or_url, struct mur_error **err);
