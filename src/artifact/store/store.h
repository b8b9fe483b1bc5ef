/* SPDX-License-Identifier: Apache-2.0
 *
 * The stores on disk: project, global and the read-only bundled one (spec/artifacts.md 6,
 * DESIGN.md 10.2).
 *
 * A payload is a trio of files with one stem: archive, hash, sidecar. Finding one never verifies
 * its hash; store_read does. Always true: a payload without its hash is not found; a write either
 * completes all three files or leaves what was there.
 */
#pragma once

#include "artifact/package/package.h"
#include "artifact/trust/trust_policy.h"

enum store_kind {
    STORE_PROJECT,
    STORE_GLOBAL,
    STORE_BUNDLED,
    STORE_COUNT,
};

/* "project", "global", "bundled". */
const char *store_kind_name (enum store_kind kind);

struct store {
    enum store_kind kind;
    char *root; /* absolute; NULL when this store does not exist here */
};

struct stores {
    struct store at[STORE_COUNT];
    struct trust_policy *trust; /* of this user */
};

/* The stores of a project folder (NULL: none), of this user and of this installation. HOME
 * unusable: E-IO-004. Creates nothing. */
struct stores *stores_new (const char *project_root, struct mur_error **err);
void stores_free (struct stores *s);
DEFINE_CLEANUP (struct stores, stores_free)
#define _cleanup_stores_ _cleanup_ (stores_freep)
/* The nearest folder at or above <start> holding murmur.yaml; NULL when there is none. Owned. */
char *project_root_find (const char *start);
/* "<home>/…" shown as "~/…". Owned. */
char *path_with_tilde (const char *path);

struct store_payload {
    enum store_kind kind;
    char *dir;      /* <root>/<scope>/<bare>/<version> */
    char *stem;     /* file name without its ending */
    char *path;     /* the archive */
    char *sha256;   /* as its hash file says: proves nothing by itself */
    char *platform; /* the file's tag, NULL for the untagged payload */
};

void store_payload_clear (struct store_payload *p);
#define _cleanup_payload_ _cleanup_ (store_payload_clear)

enum store_found {
    STORE_FOUND,
    STORE_NOT_FOUND,
    STORE_FAILED, /* *err is set */
};

/* The payload of name@version for <platform> (NULL: this host's): its tagged file, else the
 * untagged one. */
enum store_found
store_find (const struct store *s, const char *name, const char *version, const char *platform,
            struct store_payload *out, struct mur_error **err);
/* The same without the fallback: that very file, the untagged one when <platform> is NULL. */
enum store_found
store_find_exact (const struct store *s, const char *name, const char *version,
                  const char *platform, struct store_payload *out, struct mur_error **err);
/* Project, then global, then bundled; only "not found" falls through. */
enum store_found
stores_find (const struct stores *s, const char *name, const char *version, const char *platform,
             struct store_payload *out, struct mur_error **err);
/* Reads the archive once and compares it with its sidecar hash (E-REG-002 naming both). The zip is
 * not opened. */
struct package *store_read (const struct store_payload *payload, const char *name,
                            const char *version, struct mur_error **err);
/* The same where only the manifest and <entry> are read of it: see package/head.h. */
struct package *store_read_head (const struct store_payload *payload, const char *name,
                                 const char *version, const char *entry, struct mur_error **err);
