/* SPDX-License-Identifier: Apache-2.0
 *
 * What a hook's own manifest says of when and how it runs (spec/manifest.md 5.1).
 */
#pragma once

#include "manifest/settings/artifact_manifest.h"

enum hook_binding {
    BIND_ALL, /* no binding: every session event */
    BIND_ON_STAGE,
    BIND_ON_SESSION_START,
    BIND_ON_TASK_START,
    BIND_ON_INFERENCE,
    BIND_ON_TOOL_CALL,
    BIND_ON_SHELL,
    BIND_ON_COMPACTION,
    BIND_ON_TASK_END,
    BIND_ON_SESSION_END,
};

enum hook_mode {
    HOOK_BLOCKING,
    HOOK_ASYNC,
};

enum hook_commit {
    COMMIT_NONE,
    COMMIT_WRITE_MANIFESTS,
    COMMIT_REPLACE_CONTEXT,
    COMMIT_REOPEN_TASK,
    COMMIT_SEED_CONTEXT,
    COMMIT_DENY,
};

struct hook_contract {
    enum hook_binding binding;
    enum hook_mode mode;
    enum hook_commit commit;
};
/* The hook contract of a hook called <bare>@<version>. E-IO-003. */
bool
artifact_manifest_hook (const struct artifact_manifest *m, const char *bare, const char *version,
                        struct hook_contract *out, struct mur_error **err);
