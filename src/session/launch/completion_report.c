/* SPDX-License-Identifier: Apache-2.0 */
#include "session/launch/completion_report.h"

#include "base/clock.h"
#include "base/diag.h"
#include "session/state/session.h"
#include "spawn/report/completion.h"

void
completion_report_send (struct session *s, bool is_good)
{
    const struct spawner *by = s->asked->launcher.spawner;
    if (! by->url)
        return;
    const struct completion_address to = { by->url, by->context_id, by->session_id };
    int records_fd = fs_root_fd (s->places.records);
    struct completion c = {
        .delegation_id = by->delegation_id,
        .capsule_name = session_capsule_name (s),
        .capsule_version = s->manifest->version,
        .session_id = s->id.text,
        .status = is_good ? COMPLETION_OK : COMPLETION_ERROR,
        .result_path =
            completion_result_path (records_fd, s->places.dirs.records_path,
                                    fs_root_fd (s->places.work), s->places.work_path, s->arena),
        .workdir = s->places.work_path,
        .duration_ms = clock_monotonic_ms () - s->tally.launched_ms,
        .reported_by = REPORTED_BY_CHILD,
    };
    _cleanup_error_ struct mur_error *err = NULL;
    if (! completion_report (records_fd, s->http, &to, &c, s->arena, &err))
        diag_stderr_line ("[capsule-runtime] %s", err->message);
}
