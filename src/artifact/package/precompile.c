/* SPDX-License-Identifier: Apache-2.0
 *
 * Ahead-of-time compilation of one package.
 */
#include "artifact/package/precompile.h"

#include "manifest/settings/artifact_manifest.h"

#include <string.h>

void
precompiler_clear (struct precompiler *c)
{
    if (c->engine)
        engine_free (c->engine);
    c->engine = NULL;
}

/* A capsule's component is compiled by its launch, under a key of its own. */
static bool
is_eligible (const struct package *p)
{
    return p->manifest->packaging == PACKAGING_WASM &&
           strcmp (p->manifest->runtime, "capsule") != 0;
}

static enum precompile_outcome
compile (struct precompiler *c, struct package *p, struct mur_error **err)
{
    _cleanup_buf_ struct buf wasm = { 0 };
    if (! package_read_wasm (p, &wasm, err))
        return PRECOMPILE_FAILED;
    if (! c->engine)
        c->engine = engine_new (err);
    if (! c->engine)
        return PRECOMPILE_FAILED;
    bool is_stored; /* nothing to report when it is not: the cache is only a saving */
    if (form_cache_store (c->engine, &c->spec, p->sha256, wasm.data, wasm.len, &is_stored, err))
        return PRECOMPILE_COMPILED;
    mur_context (err, "%s", p->label);
    return PRECOMPILE_FAILED;
}

enum precompile_outcome
precompile_package (struct precompiler *c, struct package *p, struct mur_error **err)
{
    if (! package_open_zip (p, err))
        return PRECOMPILE_FAILED;
    if (! is_eligible (p))
        return PRECOMPILE_NOT_WASM;
    if (! package_root_wasm (p, E_IO_003, err))
        return PRECOMPILE_FAILED;
    if (form_cache_has (&c->spec, p->sha256))
        return PRECOMPILE_ALREADY_STORED;
    return compile (c, p, err);
}
