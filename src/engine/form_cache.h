/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiled forms under ~/.murmur/compiled: a component that was compiled once is loaded, not
 * compiled again (spec/artifacts.md 12).
 *
 * A form is native code, so where it is read from is the security boundary: a private directory of
 * this user, out of reach of what a capsule can write. Always true: any doubt about a form is a
 * miss; the cache never fails a launch and never changes an error.
 */
#pragma once

#include "engine/engine.h"

#include <stdint.h>

/* How a component was had, for the trace and for `mur precompile`. */
enum form_outcome {
    FORM_HIT,      /* loaded from the cache */
    FORM_COMPILED, /* compiled, and stored unless the cache was bypassed or could not be written */
};

struct form_cache_spec {
    const char *murmur_dir;    /* absolute path of ~/.murmur */
    const char *writable_root; /* the capsule's work folder (absolute); NULL when no capsule is
                                  about to run */
    uint64_t ceiling_bytes;    /* decompression ceiling, part of the engine key */
    const char *compiler;      /* program that compiles in a process of its own
                                  (engine/compiler_process.h); NULL: here */
};

/* Gives the inflated wasm on a miss. Returns false with *err set (E-IO-003 for an archive defect).
 * The bytes stay the caller's and must live until form_cache_load returns. */
typedef bool form_wasm_fn (void *ctx, const void **wasm, size_t *len, struct mur_error **err);

/* Loads the form named by <key> or compiles what <wasm> gives, storing the form for next time. One
 * compiles at a time for a directory of forms; the others wait, for a while, and load.
 * <key>: 64 lower-case hex digits, the digest of the verified payload; anything else bypasses the
 * cache. *outcome may be NULL. Returns a component the caller frees, or NULL with *err from <wasm>,
 * or E-RUN-001 from the compiler. */
struct component *
form_cache_load (struct engine *e, const struct form_cache_spec *spec, const char *key,
                 form_wasm_fn *wasm, void *ctx, enum form_outcome *outcome, struct mur_error **err);

/* True when a form for <key> is there and its bytes verify; loads nothing, needs no engine (mur
 * precompile's "already"). */
bool form_cache_has (const struct form_cache_spec *spec, const char *key);
/* Compiles <wasm> and stores the form when the cache may be used (a directory that may not is
 * silently left alone). Returns false with E-RUN-001 when the wasm does not compile. *is_stored may
 * be NULL. */
bool form_cache_store (struct engine *e, const struct form_cache_spec *spec, const char *key,
                       const void *wasm, size_t len, bool *is_stored, struct mur_error **err);
