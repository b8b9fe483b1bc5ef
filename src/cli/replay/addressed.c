/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/replay/addressed.h"

#include "base/alloc.h"
#include "replay/record/record_read.h"
#include "trace/read/address.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* The folder of a record that a path names: itself, or its trace. NULL: it is neither. Owned. */
static char *
folder_of (const char *path, struct mur_error **err)
{
    struct stat st;
    if (stat (path, &st) != 0)
        return mur_fail_errno (err, errno == ENOENT ? E_IO_001 : E_IO_003, "cannot read %s", path),
               NULL;
    if (S_ISDIR (st.st_mode)) {
        _cleanup_free_ char *trace = x_asprintf ("%s/trace.jsonl", path);
        if (access (trace, F_OK) == 0)
            return x_strdup (path);
    } else if (str_ends (path, ".jsonl")) {
        _cleanup_free_ char *copy = x_strdup (path);
        return x_strdup (dirname (copy));
    }
    mur_fail (err, E_TRC_002, "%s is no recorded session", path);
    mur_hint (err,
              "name a session (`mur trace list`), the folder of its record, the trace.jsonl in "
              "it, or a bundle of `mur trace pack`");
    return NULL;
}

static struct record *
read_one (const char *address, const char *work_root, struct mur_error **err)
{
    struct recorded_session session = { 0 };
    if (! recorded_session_resolve (address, work_root, NULL, E_TRC_002, &session, err))
        return NULL;
    _cleanup_free_ char *dir =
        session.dir_path ? steal_ptr (&session.dir_path) : folder_of (session.trace_path, err);
    recorded_session_free (&session);
    return dir ? record_read (dir, err) : NULL;
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
