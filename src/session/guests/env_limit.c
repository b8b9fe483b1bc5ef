/* SPDX-License-Identifier: Apache-2.0 */
#include "session/guests/env_limit.h"

#include <string.h>

static bool
mentions (const struct buf *wasm, const char *text)
{
    return memmem (wasm->data, wasm->len, text, strlen (text)) != NULL;
}

bool
env_limit_traps (const struct package *p, size_t len)
{
    if (len <= ADAPTED_VALUE_MAX)
        return false;
    _cleanup_buf_ struct buf wasm = { 0 };
    /* The two names an adapted core module imports its environment by: no tool strips them. */
    return package_read_wasm (p, &wasm, NULL) && wasm.len &&
           mentions (&wasm, "wasi_snapshot_preview1") && mentions (&wasm, "environ_sizes_get");
}
