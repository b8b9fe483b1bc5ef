/* SPDX-License-Identifier: Apache-2.0
 *
 * The few GitHub API calls sources need. Internal to artifact/.
 *
 * Base address: MUR_GITHUB_API_BASE, else https://api.github.com. No call is repeated by itself.
 */
#pragma once

#include "base/buf.h"
#include "base/cancel.h"
#include "base/error.h"
#include "base/secret.h"
#include "net/http_client.h"

#include <stdint.h>

struct github {
    struct http_client *http;
    char *base;
    struct cancel *cancel; /* borrowed, may be NULL */
};

struct github_repo {
    const char *owner, *name;   /* as configured */
    const struct secret *token; /* NULL: none */
};

struct github_asset {
    uint64_t id;
    char *name;
};

struct github_release {
    char *tag;
    struct github_asset *assets;
    size_t count;
};

void github_init (struct github *g);
void github_clear (struct github *g);
void github_release_free (struct github_release *r);
DEFINE_CLEANUP (struct github_release, github_release_free)
const struct github_asset *github_find_asset (const struct github_release *r, const char *name);

/* The numeric id of the repository's owner. E-REG-001 when the repository is not there, E-REG-006.
 */
bool github_owner_id (const struct github *g, const struct github_repo *repo, uint64_t *id,
                      struct mur_error **err);
/* The latest release, or that of a tag; NULL without an error when there is none. */
struct github_release *
github_release_latest (const struct github *g, const struct github_repo *repo,
                       struct mur_error **err);
struct github_release *
github_release_by_tag (const struct github *g, const struct github_repo *repo, const char *tag,
                       struct mur_error **err);
/* An asset's bytes, at most <limit>. E-REG-001 (gone), E-REG-006. */
bool github_download (const struct github *g, const struct github_repo *repo,
                      const struct github_asset *asset, size_t limit, struct buf *out,
                      struct mur_error **err);
