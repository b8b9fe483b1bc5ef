/* SPDX-License-Identifier: Apache-2.0 */
#include "session/launch/export.h"

#include "session/launch/termination.h"
#include "session/state/session.h"
#include "trace/export/otel.h"

/* How long the end of a session may wait for a collector; shorter once it was told to end. */
#define PATIENCE_MS         30000
#define STOPPED_PATIENCE_MS 8000
/* Batches are few: a collector that takes them takes them at once. */
#define BATCH_PATIENCE_MS 1500

void
export_start (struct session *s)
{
    if (! s->spans)
        return;
    const struct otel_spec spec = { .settings = s->spans,
                                    .capsule_name = s->manifest->name,
                                    .capsule_version = s->manifest->version,
                                    .session_id = s->id.text,
                                    .records = s->places.records,
                                    .redactor = s->redactor };
    s->otel = otel_new (&spec);
    if (s->trace)
        otel_watch (s->otel, s->trace);
}

void
export_script_begin (struct session *s)
{
    export_start (s);
    if (s->otel)
        otel_work_begin (s->otel);
}

void
export_script_end (struct session *s, const char *exit_status)
{
    if (s->otel)
        otel_work_end (s->otel, exit_status);
    export_end (s);
}

void
export_end (struct session *s)
{
    if (! s->otel)
        return;
    bool was_stopped = termination_cause (s) != NOT_TERMINATED;
    if (s->trace)
        trace_writer_observe (s->trace, NULL, NULL);
    uint64_t patience_ms = ! s->spans->is_capsule ? BATCH_PATIENCE_MS
                           : was_stopped          ? STOPPED_PATIENCE_MS
                                                  : PATIENCE_MS;
    otel_end (s->otel, patience_ms);
    s->otel = NULL;
}
