/* SPDX-License-Identifier: Apache-2.0
 *
 * Included before each source of the SDK and of a driver: what they allocate is noted, and freed
 * together by driver_host.c.
 */
#pragma once

#include <stddef.h>
#include <stdlib.h>

void *track_malloc (size_t size);
void *track_calloc (size_t count, size_t size);
void *track_realloc (void *memory, size_t size);
void track_free (void *memory);

#define malloc(size)          track_malloc (size)
#define calloc(count, size)   track_calloc (count, size)
#define realloc(memory, size) track_realloc (memory, size)
#define free(memory)          track_free (memory)
