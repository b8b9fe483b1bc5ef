/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiling a package's component ahead of its first launch: `mur precompile`, and after an install
 * (spec/artifacts.md 12).
 */
#pragma once

#include "artifact/package/package.h"
#include "engine/form_cache.h"

enum precompile_outcome {
    PRECOMPILE_COMPILED,
    PRECOMPILE_ALREADY_STORED,
    PRECOMPILE_NOT_WASM,
    PRECOMPILE_FAILED,
};

struct precompiler {
    struct form_cache_spec spec; /* strings borrowed */
    struct engine *engine;       /* made on first need */
};

void precompiler_clear (struct precompiler *c);
#define _cleanup_precompiler_ _cleanup_ (precompiler_clear)

/* Compiles and stores the form of an opened package unless it is there. *err (may be NULL) is set
 * with PRECOMPILE_FAILED. A form that cannot be stored is still PRECOMPILE_COMPILED: the cache is
 * never more than a saving. */
enum precompile_outcome
precompile_package (struct precompiler *c, struct package *p, struct mur_error **err);
