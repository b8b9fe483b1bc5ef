/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocation that cannot fail: out of memory ends the process with one line on stderr, which names
 * the limit of the shell (`ulimit`) that was met.
 *
 * Sizes that come from outside are bounded by their reader before they reach these.
 */
#pragma once

#include "base/cleanup.h"

#include <stdarg.h>
#include <stddef.h>

/* First thing in a program: whatever ends it for want of memory says so, the JSON library and those
 * that abort by themselves among them. */
void alloc_init (void);
/* The end: one line, async-signal-safe; an exit where a limit was set, else SIGABRT. */
_noreturn_ void alloc_out_of_memory (void);

void *x_malloc (size_t size) __attribute__ ((malloc, returns_nonnull));
void *x_calloc (size_t count, size_t size) __attribute__ ((malloc, returns_nonnull));
void *x_realloc (void *p, size_t size) __attribute__ ((returns_nonnull));
/* Resizes an array to <count> elements of <size> bytes, refusing an overflowing product like out of
 * memory. */
void *x_reallocarray (void *p, size_t count, size_t size) __attribute__ ((returns_nonnull));
char *x_strdup (const char *s) __attribute__ ((malloc, returns_nonnull));
char *x_strndup (const char *s, size_t len) __attribute__ ((malloc, returns_nonnull));
void *x_memdup (const void *p, size_t len) __attribute__ ((malloc, returns_nonnull));
char *x_asprintf (const char *fmt, ...) _printf_ (1, 2) __attribute__ ((malloc, returns_nonnull));
char *x_vasprintf (const char *fmt, va_list ap) __attribute__ ((malloc, returns_nonnull));

#define x_new0(type)           ((type *)x_calloc (1, sizeof (type)))
#define x_new_array(type, len) ((type *)x_calloc ((len), sizeof (type)))

/* Makes room for one more element in a growing array (ptr, len, cap as lvalues). */
#define x_grow(ptr, len, cap)                                                                      \
    do {                                                                                           \
        if ((len) == (cap)) {                                                                      \
            (cap) = (cap) ? (cap)*2 : 8;                                                           \
            (ptr) = x_reallocarray ((ptr), (cap), sizeof (*(ptr)));                                \
        }                                                                                          \
    } while (0)

/* --- the limits of a shell: "Too many open files" tells nobody that it was asked for --- */

#define LIMIT_NOTE_BYTES 96

/* Writes which limit of this process an errno may come of, as " (`ulimit -n` allows 8)", or nothing
 * when none is set. Returns the length. Keeps errno. */
size_t limit_note (int error, char to[LIMIT_NOTE_BYTES]);

/* The stack that functions here may count on. */
#define LIMIT_STACK_LEAST_BYTES ((size_t)128 << 10)

/* What `ulimit -s` allows, when that is below LIMIT_STACK_LEAST_BYTES; else 0. */
size_t limit_small_stack_bytes (void);
