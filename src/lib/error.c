/* SPDX-License-Identifier: Apache-2.0
 *
 * The project's error value through opaque eyes, and which version says so.
 */
#include "murmur/error.h"

#include "base/error.h"
#include "base/version.h"
#include "murmur/session.h"

const char *
mur_error_code (const struct mur_error *e)
{
    return e ? diag_code_name (e->code) : "";
}

const char *
mur_error_message (const struct mur_error *e)
{
    return e ? e->message : "";
}

const char *
mur_error_hint (const struct mur_error *e)
{
    return e ? e->hint : NULL;
}

const char *
mur_version (void)
{
    return MUR_VERSION;
}
