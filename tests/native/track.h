/* SPDX-License-Identifier: Apache-2.0
 *
 * Included before each source of the SDK and of a driver: what they allocate is noted, and freed
 * together by the host (track_memory.h).
 */
#pragma once

#include "tests/native/track_memory.h"

#include <stdlib.h>

#define malloc(size)          track_malloc (size)
#define calloc(count, size)   track_calloc (count, size)
#define realloc(memory, size) track_realloc (memory, size)
#define free(memory)          track_free (memory)
