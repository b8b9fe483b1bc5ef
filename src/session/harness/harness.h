/* SPDX-License-Identifier: Apache-2.0
 *
 * inference.transport: process: a harness program that owns the conversation, driven through a
 * process driver (spec/session.md 6).
 *
 * Callers: stage.c, attempt.c, termination.c. Always true: the driver is granted nothing; the
 * harness runs outside of every containment class, with an environment built from nothing; it never
 * outlives its run.
 */
#pragma once

#include "host/process_driver.h"
#include "session/state/session.h"

struct running_task;
struct harness_memory;

struct harness {
    const struct staged_artifact *driver;
    struct arena *arena;
    struct process_description is;
    char *binary;              /* absolute */
    const char *binary_source; /* "inference.command", or whose describe() named it */
    struct harness_memory *memory;
    bool is_warned_version, is_warned_billing; /* said once a launch */
    pid_t pid; /* of the harness that runs and is not reaped; 0: none. Under the session's lock */
};

/* Step 11 of a process driver: instantiate, describe (E-RUN-032), required variables (E-CAP-019),
 * the executable (E-RUN-006). */
bool stage_harness (struct session *s, struct mur_error **err);
/* Step 13: a ceiling needs a driver that reports usage. E-RUN-038. */
bool stage_harness_spend (struct session *s, struct mur_error **err);
void harness_free (struct harness *h);
DEFINE_CLEANUP (struct harness, harness_free)
/* A fresh instance of the driver, for one run. */
struct guest *harness_open_driver (struct session *s, struct mur_error **err);

/* One attempt: a run of the harness. */
void harness_attempt_run (struct session *s, struct running_task *t);
/* Kills the harness that runs, if one does, with its group. From any thread. */
void harness_kill (struct session *s);
