/* SPDX-License-Identifier: Apache-2.0 */
#include "roost/verdict.h"

#include "base/alloc.h"

#include <stdarg.h>

struct verdict
verdict_error (int status, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    _cleanup_free_ char *text = x_vasprintf (fmt, ap);
    va_end (ap);
    json_t *body = json_object ();
    json_set_string (body, "error", text);
    return (struct verdict){ status, body };
}

struct verdict
verdict_not_you (void)
{
    return verdict_error (403, "the credential presented is not valid for this request");
}

struct verdict
verdict_from_error (int status, struct mur_error *e)
{
    struct verdict v = verdict_error (status, "%s", e->message);
    mur_error_free (e);
    return v;
}
