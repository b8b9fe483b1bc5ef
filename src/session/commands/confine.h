/* SPDX-License-Identifier: Apache-2.0
 *
 * What a session's native processes run under: its confinement, the supervisor of its commands,
 * their environment and the bound on what they may store (spec/session.md 4.1 step 4,
 * spec/containment.md 7, 14).
 *
 * Callers: launch.c makes it before the door is bound and ends it in the teardown; shell.c,
 * background.c and native.c use it. Absent (s->confined NULL) when nothing in the capsule can start
 * a native process.
 */
#pragma once

#include "sandbox/run/commands.h"
#include "session/state/session.h"

struct confined {
    struct confinement_spec spec;
    struct spawn_limits limits;
    struct allow_list network;
    struct confinement *confinement;
    struct commands *commands;
    struct strv env; /* of every command */
    uint64_t workdir_max_bytes;
    uint64_t measure_at_ms; /* monotonic; when the folders are looked at next */
    uint64_t observed_bytes;
    bool is_over; /* the ceiling was passed: nothing more is started */
};

/* True when some part of the staged session may start a native process. */
bool session_may_run_native (const struct session *s);
/* E-CAP-005 when it may and this host gives no network namespace. A staging step, and again once
 * artifacts are known. */
bool confine_check_host (const struct session *s, bool has_native_artifact, struct mur_error **err);
/* E-CAP-006 under a sealed floor: every name of shell.allow that is a script the composed root
 * would hold no interpreter for. A staging step, and a concern of `mur doctor`. */
bool confine_check_entries (const struct policy *p, struct mur_error **err);
/* W-SEC-013 where any program of the host may create user namespaces. A staging step. */
void confine_warn_host (const struct session *s);
/* W-SEC-033 where the work folder holds ~/.murmur. As the launch begins. */
void confine_warn_places (const struct session *s);
/* Makes s->confined. E-RUN-012, E-RUN-014, E-CAP-005, E-IO-003. */
bool confine_start (struct session *s, struct mur_error **err);
/* The limits a session's control group gets. The path is borrowed. */
void confine_cgroup_limits (const struct policy *p, const char *io_path, struct cgroup_limits *out);
/* Names of shell.allow a runtime is staged for: nothing is asked of them. NULL-terminated, in the
 * policy's arena. */
const char *const *confine_staged_names (const struct policy *p);
/* The environment, once the URL is known. */
void confine_set_env (struct session *s);
/* Kills what runs and lets go. Safe when never started. */
void confine_end (struct session *s);

/* Measures the work folder, temp and home when the last look is old. False, with E-RUN-013 naming
 * both byte counts, once they have passed capabilities.resources.workdir_max_bytes. */
bool confine_check_size (struct session *s, struct mur_error **err);
