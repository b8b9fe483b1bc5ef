/* SPDX-License-Identifier: Apache-2.0
 *
 * What a launch needs beside its policy, each checked before anything is made: flags that fit the
 * kind of capsule, a record to resume, its artifacts, its work folder, its task.
 */
#pragma once

#include "cli/run/run_state.h"

/* E-IO-003, E-RUN-037, E-RUN-039, E-RUN-046. Takes the prompt of the command line. */
bool run_check_agent_flags (struct run *r, struct mur_error **err);
/* E-RUN-017. */
bool run_check_resume_record (struct run *r, struct mur_error **err);
/* E-IO-003: --workdir is no directory, or not the one its launcher means. */
bool run_check_workdir (struct run *r, struct mur_error **err);
/* Reads murmur.lock; all artifacts are in the stores. E-REG-001, E-RUN-003, E-RUN-004, E-IO-003. */
bool run_check_artifacts (struct run *r, struct mur_error **err);
/* The bytes of --task into r->task. E-IO-001, E-IO-003. */
bool run_take_task (struct run *r, struct mur_error **err);
