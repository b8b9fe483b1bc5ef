/* SPDX-License-Identifier: Apache-2.0
 *
 * Host side of murmur:artifact-manager/manage@0.1.0: what a script capsule sees and changes of its
 * artifacts (spec/artifacts.md 15.5).
 */
#pragma once

#include "engine/engine.h"

struct artifact_summary {
    const char *name;
    const char *version;
    bool is_native; /* enum runtime-type: native, else wasm */
};

struct artifact_info {
    struct artifact_summary summary;
    const char *description;
    const char *const *tags;
    size_t tag_count;
    const char *input_schema;  /* NULL for none */
    const char *output_schema; /* NULL for none */
};

struct artifact_state {
    const char *capsule_id; /* the session id */
    const struct artifact_summary *installed;
    size_t installed_count;
    const char *capabilities; /* states the install grant */
};

/* Every callback answers in <arena>; false = *refusal is the error arm's text. They may block while
 * they watch guest_current_cancel (). */
struct artifact_manager_host {
    void *ctx;
    void (*list) (void *ctx, struct arena *arena, const struct artifact_summary **items,
                  size_t *count);
    bool (*describe) (void *ctx, const char *name, struct arena *arena, struct artifact_info *info,
                      const char **refusal);
    bool (*search) (void *ctx, const char *query, struct arena *arena,
                    const struct artifact_summary **items, size_t *count, const char **refusal);
    bool (*pull) (void *ctx, const char *name, const char *version, struct arena *arena,
                  struct artifact_summary *pulled, const char **refusal);
    bool (*remove) (void *ctx, const char *name, struct arena *arena, bool *was_removed,
                    const char **refusal);
    bool (*diagnostics) (void *ctx, struct arena *arena, struct artifact_state *state,
                         const char **refusal);
};

/* Bind with a struct artifact_manager_host * as its context. */
extern const struct host_interface host_artifact_manager;
