/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur token`: prints a door token of a running session and nothing else (spec/door.md 10.5). The
 * process alone must live.
 */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/diag.h"
#include "cli/line/args.h"
#include "cli/running/commands.h"
#include "cli/running/running_session.h"

#include <string.h>

/* The token of that name, or NULL. Borrowed. */
static const struct secret *
token_of (const struct running_record *r, const char *name)
{
    if (str_eq (name, "operator"))
        return r->door_token;
    for (size_t i = 0; i < r->credential_count; i++)
        if (str_eq (r->credentials[i].name, name))
            return r->credentials[i].token;
    return NULL;
}

static bool
refuse_name (const struct running_record *r, const char *name, struct mur_error **err)
{
    struct buf names = { 0 };
    buf_puts (&names, "operator");
    for (size_t i = 0; i < r->credential_count; i++)
        buf_printf (&names, ", %s", r->credentials[i].name);
    mur_fail (err, E_RUN_049, "the door of %s has no credential \"%s\"; it has: %s", r->session_id,
              name, names.data);
    buf_free (&names);
    return false;
}

int
cmd_token (const struct cli_args *args, struct mur_error **err)
{
    _cleanup_ (running_scan_free) struct running_scan scan = { 0 };
    const struct running_entry *e = running_session (cli_positional (args, "SESSION"), &scan, err);
    if (! e)
        return CLI_FAILED;
    const char *name = cli_value (args, "--credential");
    if (! e->record.door_token) {
        mur_fail (err, E_RUN_048, "the door of %s is public: there is no token",
                  e->record.session_id);
        return CLI_FAILED;
    }
    const struct secret *token = token_of (&e->record, name);
    if (! token) {
        refuse_name (&e->record, name, err);
        return CLI_FAILED;
    }
    diag_secret_line (secret_reveal (token));
    return CLI_OK;
}
