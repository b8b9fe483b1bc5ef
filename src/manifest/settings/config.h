/* SPDX-License-Identifier: Apache-2.0
 *
 * Configuration: ~/.murmur/config.yaml and <cwd>/.murmur/config.yaml, merged (spec/cli.md 8).
 *
 * Always true: credentials and inference.api_key come from the global file alone; containment is
 * the maximum and the spend ceiling the minimum of both; a value is never printed.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/secret.h"
#include "manifest/settings/config_trust.h"

#include <stdint.h>

enum config_floor {
    CONFIG_FLOOR_UNSET, /* weaker than advisory: nobody asked */
    CONFIG_FLOOR_ADVISORY,
    CONFIG_FLOOR_SCOPED,
    CONFIG_FLOOR_SEALED,
};

/* One entry of registry.sources, as written. What is unusable is kept and refused when sources are
 * built (E-CFG-003). */
struct config_source {
    char *repo;  /* "<owner>/<repo>" as written, "" when absent */
    char *oci;   /* "<host>/<path>" whose repositories are named like artifacts; "" when absent */
    char *scope; /* of an oci entry; "": the last part of its path */
    char *token; /* "${VAR}", "VAR" or a literal as written, NULL when absent; see
                    config_source_token */
    char *removed_key; /* "name", "type" or "url" when the entry still has one of them, else NULL */
    char *file;        /* the configuration file it stands in */
};

struct config_credential {
    char *name;
    struct secret *value;
};

struct config {
    char *global_path;  /* absolute, whether or not it exists */
    char *project_path; /* absolute, or NULL when only the global file was asked for */

    char *index_url; /* "" when unset: the published index */
    struct config_source *sources;
    size_t source_count;
    struct config_trust trust; /* trust.require, the global file's */
    struct strv plain_http;    /* registries spoken to in http, "host[:port]"; the global file's */
    char *default_file;        /* file that still has the removed key registry.default, or NULL */

    char *provider; /* "" when unset, like the next two */
    char *model;
    char *endpoint;
    struct secret *api_key; /* NULL when unset */

    struct strv beta; /* enabled features, global first */
    enum config_floor containment;
    struct config_credential *credentials;
    size_t credential_count;
    uint64_t machine_tokens_per_day; /* 0: no ceiling */
    bool is_unconfined; /* unconfined: commands may run where no namespace can be made */
    bool unconfined_is_set;
    bool cgroup_is_optional;      /* resources.cgroup: optional */
    bool cgroup_is_set;           /* it was written at all */
    bool is_observability_locked; /* observability.locked: no manifest names a collector */
    bool observability_is_set;    /* it was written at all */
};

/* Reads and merges both files; a missing one is empty. Warnings (a secret in the project file) go
 * to stderr. NULL with E-IO-003 naming the file (unreadable, not YAML, a wrong type,
 * machine_tokens_per_day 0) or E-IO-004. */
struct config *config_load (struct mur_error **err);
/* What nobody configured anything is: reads no file, so that no key is in memory. */
struct config *config_none (void);
/* The same from the global file alone, silent. */
struct config *config_load_global (struct mur_error **err);
void config_free (struct config *c);
DEFINE_CLEANUP (struct config, config_free)
#define _cleanup_config_ _cleanup_ (config_freep)

/* The value of credentials.<name>. Borrowed; NULL when there is none. */
const struct secret *config_credential (const struct config *c, const char *name);
/* A copy of it (owned), for who looks names up through a pointer: <config> is a struct config. */
struct secret *config_credential_copy (const void *config, const char *name);
/* A source's token resolved: "${VAR}" or the name of a set variable gives that variable's value,
 * else the literal. Owned; NULL when the entry has none or ${VAR} is unset. */
struct secret *config_source_token (const struct config_source *s);
