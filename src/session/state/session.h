/* SPDX-License-Identifier: Apache-2.0
 *
 * The session as the files of this folder share it: what staging decided, what a launch holds.
 *
 * Always true: what staging filled is read-only afterwards but for the members named "live"; those
 * are guarded as their comment says.
 */
#pragma once

#include "base/arena.h"
#include "base/ids.h"
#include "manifest/capsule/capsule.h"
#include "session/conversation/fence.h"
#include "session/conversation/passing.h"
#include "session/launch.h"
#include "session/state/driver.h"
#include "session/state/inventory.h"
#include "session/state/last_acts.h"
#include "session/state/loop_lock.h"
#include "session/state/now.h"
#include "session/state/places.h"
#include "session/state/spend.h"
#include "session/state/tally.h"
#include "trace/lines/writer.h"

enum termination_cause {
    NOT_TERMINATED,
    TERMINATED_BY_SIGNAL,
    TERMINATED_BY_TERMINAL, /* Ctrl-C, not a kill */
    TERMINATED_BY_DEADLINE,
    TERMINATED_BY_SPAWNER,   /* its lifeline closed */
    TERMINATED_BY_FORMATION, /* the formation's lifeline closed */
};

/* What each room holds of a session, seen by that room alone; NULL where the capsule has no use for
 * it. */
struct room_parts {
    struct guests *guests;
    struct processes *processes;
    struct handoff *handoff;
    struct steering *steering;
    struct hooks *hooks;
    struct told *told;
    struct harness *harness;
    struct going *going;
    struct staged *staged;
    struct launched *launched;
    struct served *served;
    struct held_hosts *held_hosts;
    struct refused *refused;
    struct approval_state *approvals;
    struct recording *recording;
};

struct session {
    const struct stage_request *asked;
    const struct capsule_manifest *manifest;
    struct policy *policy;
    struct id id;
    struct fence_word fence_word;
    struct arena *arena;
    struct http_client *http;
    struct redactor *redactor;
    struct trace_writer *trace;
    struct otel_settings *spans; /* how spans are exported; NULL: none are */
    struct otel *otel;           /* NULL: no spans are exported */
    struct door *door;
    struct registry *registry;
    struct spend_meter *spend;
    struct deadline *deadline;
    _Atomic enum termination_cause cause; /* set by the thread that takes the signals */

    struct places places;
    struct kit kit;
    struct choices choices;
    struct now now;
    struct tally tally;
    struct loop_lock loop_lock;
    struct last_acts last_acts;
    struct passing_records passing;

    struct room_parts rooms;
};

enum termination_cause termination_cause (const struct session *s);
/* A line in logs/bootstrap.log, where it outlives the terminal; nothing before there is one. */
void session_log_line (const struct session *s, const char *line);
/* What of its bodies the trace keeps. */
enum trace_capture session_capture (const struct session *s);
/* "network", "filesystem", "shell": what the capsule may do, appended. */
void session_list_capabilities (const struct session *s, struct strv *out);
