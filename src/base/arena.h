/* SPDX-License-Identifier: Apache-2.0
 *
 * An arena: many small things that die together (a manifest, a policy, a value tree). Zeroed
 * memory, 16-byte aligned.
 */
#pragma once

#include "base/cleanup.h"

struct arena;

struct arena *arena_new (void);
void arena_free (struct arena *a);
DEFINE_CLEANUP (struct arena, arena_free)
#define _cleanup_arena_ _cleanup_ (arena_freep)

void *arena_alloc (struct arena *a, size_t size);
char *arena_strdup (struct arena *a, const char *s);
char *arena_strndup (struct arena *a, const char *s, size_t len);
char *arena_printf (struct arena *a, const char *fmt, ...) _printf_ (2, 3);

#define arena_new0(a, type)           ((type *)arena_alloc ((a), sizeof (type)))
#define arena_new_array(a, type, len) ((type *)arena_alloc ((a), (len) * sizeof (type)))
