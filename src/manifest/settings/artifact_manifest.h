/* SPDX-License-Identifier: Apache-2.0
 *
 * An artifact's own murmur.yaml: what build, publish and staging read from the packed file
 * (spec/manifest.md 14, spec/artifacts.md 3).
 *
 * Grants never come from here. Unlike the capsule reader this one keeps no scalar text: an
 * unquoted 1.10 is refused.
 */
#pragma once

#include "manifest/text/schema.h"

enum packaging {
    PACKAGING_WASM,
    PACKAGING_NATIVE,
    PACKAGING_STATIC,
};

/* "wasm", "native", "static". Static. */
const char *packaging_name (enum packaging p);

/* One model a driver knows. */
struct model_limits {
    const char *id;
    uint32_t max_output_tokens;
    uint32_t context_window;
    uint32_t max_input_tokens; /* 0: not given */
};

struct artifact_manifest {
    const char *name; /* bare */
    const char *version;
    const char *runtime; /* tool, driver, hook, skill, capsule or any other word */
    const char *implementation;
    const char *description;        /* NULL when absent or no string */
    struct str_list requires_files; /* default applied */
    const char *build;              /* command of `mur build`; NULL: none */
    enum packaging packaging;       /* from execution:, else derived */
    bool execution_is_declared;
    bool is_native_implementation;
    bool has_upstream_none; /* upstream: none */

    const struct yaml_node *input_schema;
    const struct yaml_node *output_schema;
    const struct yaml_node *tags;
    const struct yaml_node *models;        /* as packed, see artifact_manifest_models */
    const struct yaml_node *upstream_auth; /* as packed, see artifact_manifest_upstream_auth */
    /* retired name: E-BLD-004 at build, E-RUN-025 at launch */
    const struct yaml_node *inference_auth;
    const struct yaml_node *binding, *execution_mode, *commit_policy;

    struct arena *arena;
    const char *file;
    const struct yaml_node *root;
};

/* Reads a packed or source manifest. E-MAN-001, E-MAN-002, E-MAN-003. Does not judge the name's
 * form (E-BLD-001 is build's), nor models, upstream_auth and hook keys: their own functions below
 * do, when they matter. */
struct artifact_manifest *
artifact_manifest_parse (const char *text, size_t len, const char *file, struct mur_error **err);
/* The same of a file: also E-IO-001, E-IO-003. */
struct artifact_manifest *artifact_manifest_read (const char *path, struct mur_error **err);
void artifact_manifest_free (struct artifact_manifest *m);
DEFINE_CLEANUP (struct artifact_manifest, artifact_manifest_free)

/* The models table, in file order, in the manifest's arena; none is fine. <code>: E-BLD-005,
 * E-REG-011 or E-RUN-052. */
bool
artifact_manifest_models (const struct artifact_manifest *m, enum diag_code code,
                          const struct model_limits **models, size_t *len, struct mur_error **err);
/* The header a key is shown in and the value with "{key}" once. <code> is E-RUN-025; absent fails
 * too. In the arena. */
bool
artifact_manifest_upstream_auth (const struct artifact_manifest *m, enum diag_code code,
                                 const char **header, const char **value, struct mur_error **err);
