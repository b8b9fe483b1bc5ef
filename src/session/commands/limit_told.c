/* SPDX-License-Identifier: Apache-2.0 */
#include "session/commands/limit_told.h"

#include "base/diag.h"

#include "base/alloc.h"

char *
limit_told (const char *binary, const struct command_result *r)
{
    _cleanup_error_ struct mur_error *err = NULL;
    if (! r->resource_limit)
        return NULL;
    mur_fail (&err, E_RUN_011,
              "%s was stopped by capabilities.resources.%s (exit code %d after %llu ms)", binary,
              r->resource_limit, r->exit_code, (unsigned long long)r->duration_ms);
    mur_hint (&err, "raise capabilities.resources.%s in murmur.yaml, or give it less to do",
              r->resource_limit);
    diag_error (err);
    return x_asprintf ("%s: %s", diag_code_name (err->code), err->message);
}
