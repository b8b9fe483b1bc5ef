/* SPDX-License-Identifier: Apache-2.0
 *
 * What the SDK and a driver allocate on the build machine is noted, and freed together, as the end
 * of an instance does in the runtime. track.h leads them here.
 */
#pragma once

#include <stddef.h>

void *track_malloc (size_t size);
void *track_calloc (size_t count, size_t size);
void *track_realloc (void *memory, size_t size);
void track_free (void *memory);
void track_free_all (void);
