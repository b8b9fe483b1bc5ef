/* SPDX-License-Identifier: Apache-2.0
 *
 * A session on a stand: a manifest that was really read and lowered, real folders, a real trace,
 * and of the rooms' own parts only those a test makes. Nothing of it was staged and nothing runs.
 */
#pragma once

#include "tests/unit/testing.h"

#include "base/json.h"
#include "door/tasks/tasks.h"
#include "manifest/settings/config.h"
#include "session/state/deadline.h"
#include "session/state/running_task.h"
#include "session/state/session.h"
#include "spawn/child/spawner.h"

struct stand {
    char dir[32]; /* also HOME; removed at the end */
    char *work_dir, *runtime_dir, *records_dir;
    struct capsule_manifest *manifest;
    struct config config;
    struct policy_request policy_request;
    struct spawner spawner;
    struct stage_request asked;
    struct deadline deadline;
    struct session s;
    /* One task of the registry's, running. */
    struct task task;
    struct running_task t;
};

/* An agent of these further lines of its manifest (or none), with its task. */
void stand_open (struct stand *st, const char *more);
/* A capsule of exactly this manifest. */
void stand_open_manifest (struct stand *st, const char *yaml);
void stand_close (struct stand *st);

/* A registry, as a launch makes one; its task becomes the stand's. */
void stand_serve (struct stand *st);
/* The only entry of the manifest's artifacts that is no driver, as staging would have it. */
struct staged_artifact *stand_artifact (struct stand *st, const char *name, enum artifact_role role,
                                        const char *parameters);
/* The inventory as it is now, in order. */
void stand_tools (struct stand *st);

/* Lines of this type in the trace; the last of them (owned), NULL without. */
size_t stand_lines (struct stand *st, const char *type);
json_t *stand_line (struct stand *st, const char *type);
/* The contents of a file below the stand's folder (owned), NULL without one. */
char *stand_read (struct stand *st, const char *path);
void stand_write (struct stand *st, const char *path, const char *text);

/* A value from single-quoted JSON. Owned. */
json_t *value_of (const char *text);
/* Both are the same JSON, member order aside. */
void assert_same_json (const char *text, const char *expected);
