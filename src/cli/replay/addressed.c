/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/replay/addressed.h"

#include "base/alloc.h"
#include "replay/record/record_read.h"
#include "trace/read/address.h"

#include <libgen.h>
#include <stdio.h>

static struct record *
read_one (const char *address, const char *work_root, struct mur_error **err)
{
    struct recorded_session session = { 0 };
    if (! recorded_session_resolve (address, work_root, NULL, E_TRC_002, &session, err))
        return NULL;
    _cleanup_free_ char *copy = x_strdup (session.trace_path);
    recorded_session_free (&session);
    return record_read (dirname (copy), err);
}

struct record *
record_addressed (const char *address, const char *work_root, struct mur_error **err)
{
    if (address)
        return read_one (address, work_root, err);
    for (unsigned i = 1;; i++) {
        char newest[24];
        snprintf (newest, sizeof (newest), "@%u", i);
        _cleanup_record_ struct record *r = read_one (newest, work_root, err);
        if (! r || ! r->replay_of)
            return steal_ptr (&r);
    }
}
