/* SPDX-License-Identifier: Apache-2.0
 *
 * What a session's native processes run under: its confinement, the supervisor of its commands,
 * their environment and the bound on what they may store (docs/spec/session.md 4.1 step 4,
 * docs/spec/containment.md 7, 14).
 *
 * Always true: without anything that can start a native process there is no confinement, and all
 * of this does nothing.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "sandbox/run/confinement.h"
#include "session/commands/refusals.h"

#include <stdint.h>

struct session;

/* W-SEC-013 where any program of the host may create user namespaces. A staging step. */
void confine_warn_host (const struct session *s);
/* W-SEC-033 where the work folder holds ~/.murmur. As the launch begins. */
void confine_warn_places (const struct session *s);
/* A program beside those of shell.allow that runs in the session's walls: a harness. */
struct confine_program {
    const char *const
        *trees;        /* it and what it starts read them; bound under sealed; NULL-terminated */
    const char *home;  /* its home instead of the session's own, kept between sessions; or NULL */
    uint16_t ports[2]; /* of 127.0.0.1 outside that it reaches; 0: none */
};
/* Before confine_start. Borrowed until confine_end. */
void confine_admit (struct session *s, const struct confine_program *program);
/* The environment of a command, NULL-terminated, once it is set. Borrowed. */
const struct strv *confine_env (const struct session *s);
/* Makes the confinement. E-RUN-012, E-RUN-014, E-CAP-005, E-IO-003. */
bool confine_start (struct session *s, struct mur_error **err);
/* The environment, once the URL is known. */
void confine_set_env (struct session *s);
/* Kills what runs. */
void confine_kill_all (struct session *s);
/* NULL: nothing here starts a native process. Borrowed. */
struct confinement *confine_confinement (const struct session *s);
/* Kills what runs and lets go. Safe when never started. */
void confine_end (struct session *s);

/* Measures the work folder, temp and home when the last look is old. False, with E-RUN-013 naming
 * both byte counts, once they have passed capabilities.resources.workdir_max_bytes. */
bool confine_check_size (struct session *s, struct mur_error **err);

/* The tier the decision came to. */
enum confinement_tier confine_tier (const struct session *s);
/* A folder as mounts hold it. E-IO-003. */
bool confine_name_folder (const char *path, struct mount_folder *f, struct mur_error **err);

/* What refusals of this session's commands are judged by; <reaches> is asked for hosts. The lists
 * are in the session's arena. */
struct refusal_walls
confine_refusal_walls (struct session *s, bool (*reaches) (void *, const char *), void *ctx);
