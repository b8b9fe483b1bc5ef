/* SPDX-License-Identifier: Apache-2.0 */
#include "session/state/session.h"

#include "base/alloc.h"

const char *
session_id (const struct session *s)
{
    return s->id.text;
}

const char *
session_capsule_name (const struct session *s)
{
    return s->asked->capsule.artifact ? s->asked->capsule.artifact
                                      : arena_printf (s->arena, "local/%s", s->manifest->name);
}

const char *
session_workdir (const struct session *s)
{
    return s->places.work_path;
}

const char *
session_records_dir (const struct session *s)
{
    return s->places.dirs.records_path;
}

bool
session_is_agent (const struct session *s)
{
    return s->manifest->inference != NULL;
}

enum termination_cause
termination_cause (const struct session *s)
{
    return s->cause;
}

void
session_log_line (const struct session *s, const char *line)
{
    if (s->places.bootstrap_fd >= 0)
        dprintf (s->places.bootstrap_fd, "%s\n", line);
}

void
session_list_capabilities (const struct session *s, struct strv *out)
{
    const struct policy *p = s->policy;
    if (p->network.allow.len)
        strv_push (out, "network");
    if (p->files.scope)
        strv_push (out, "filesystem");
    if (p->commands.allow.len)
        strv_push (out, "shell");
}

const char *
session_ending_name (enum session_ending ending)
{
    static const char *const names[] = {
        "ok",       "failed",    "trapped",          "max_turns_reached", "spend_ceiling_reached",
        "canceled", "no_answer", "deadline_reached", "formation_ended"
    };
    return names[ending];
}

enum trace_capture
session_capture (const struct session *s)
{
    return s->manifest->trace ? s->manifest->trace->capture : CAPTURE_META;
}
