/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/records/recorded.h"

#include "cli/records/fleet_trace.h"
#include "home/paths.h"

bool
recorded_group_open (const char *workdir, struct recorded_group *g, struct mur_error **err)
{
    struct mur_error *caught = NULL;
    g->work_root = home_work_root (workdir, ".", err);
    g->path = g->work_root ? home_records_group (g->work_root, err) : NULL;
    if (! g->path)
        return false;
    g->fd = home_find_records_group (g->work_root, &caught);
    if (caught)
        return mur_propagate (err, caught);
    return g->fd < 0 || home_list_sessions (g->fd, g->path, &g->names, err);
}

void
recorded_group_free (struct recorded_group *g)
{
    if (g->fd >= 0)
        close (g->fd);
    free (g->work_root);
    free (g->path);
    strv_free (&g->names);
    *g = RECORDED_GROUP_EMPTY;
}

struct trace *
recorded_trace (const struct cli_args *args, const char *address, enum trace_mode mode,
                struct mur_error **err)
{
    if (cli_has (args, "--fleet"))
        return fleet_trace (args, address, err);
    _cleanup_free_ char *work_root = home_work_root (cli_value (args, "--workdir"), ".", err);
    struct recorded_session session;
    if (! work_root ||
        ! recorded_session_resolve (address, work_root, NULL, E_TRC_002, &session, err))
        return NULL;
    struct trace *t = trace_read (session.trace_path, mode, err);
    recorded_session_free (&session);
    return t;
}
