/* SPDX-License-Identifier: Apache-2.0
 *
 * The small grammars manifests share (spec/manifest.md 15): durations, sizes, paths below the work
 * folder, environment patterns, words, endpoints, credential references. Pure text; names and
 * install patterns are in artifact/names/name.h, network entries in net/allow.h.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

#include <stdint.h>

enum containment_class {
    CONTAINMENT_ADVISORY,
    CONTAINMENT_SCOPED,
    CONTAINMENT_SEALED,
};

/* "advisory", "scoped", "sealed". Static. */
const char *containment_name (enum containment_class c);
/* Exact text. Returns false for anything else. */
bool containment_parse (const char *text, enum containment_class *c);

/* The text without outer ASCII whitespace, in the arena. */
char *text_trim (struct arena *a, const char *text);

/* Seconds of "5m", "90", "1d". Returns false when malformed or beyond 64 bits. */
bool duration_parse (const char *text, uint64_t *seconds);
/* Bytes of "10Mi", "4096". */
bool byte_size_parse (const char *text, uint64_t *bytes);

/* Lowers a path below the work folder lexically ("a/../b" is "b", "." is ""). NULL when absolute or
 * escaping, with *why a static reason. The caller owns the result. */
char *subpath_lower (const char *text, const char **why);
/* True when <path> is <tree> or lies below it, by component; both lowered, "" is the whole work
 * folder. */
bool subpath_is_within (const char *path, const char *tree);
/* One path segment that does not start with '.': a state store or record name. */
bool segment_is_valid (const char *text);

/* Environment patterns: X, P*, *S, *M*, *. */
bool env_pattern_matches (const char *pattern, const char *name);
/* The pattern of the backstop, else of <strip>, that takes <name> away, or NULL. *is_builtin says
 * which. */
const char *
env_stripped_by (const char *name, const char *const *strip, size_t strip_len, bool *is_builtin);
/* True for a name that looks like a credential (manifest.md 17.3, W-SEC-024). */
bool env_name_is_credential_shaped (const char *name);
/* True for a name only the runtime sets (MURMUR_ARTIFACT_CONFIG, ...). */
bool env_name_is_runtime_owned (const char *name);

/* The NAME of a text that is wholly "${NAME}", in the arena, or NULL. */
char *reference_name (struct arena *a, const char *text);
/* True for [A-Z_][A-Z0-9_]*. */
bool upper_snake_is_valid (const char *text);
