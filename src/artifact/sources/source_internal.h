/* SPDX-License-Identifier: Apache-2.0
 *
 * The sources of a registry, for the files that pick and fetch through them.
 */
#pragma once

#include "artifact/sources/source.h"
#include "artifact/sources/source_facts.h"
#include "net/oci/oci_client.h"

struct remote {
    struct github github;
    struct oci_client *oci;
    struct source_list *sources;
    struct source_facts *facts; /* one a source */
};

/* NULL: no source serves that scope. */
struct source_facts *remote_facts_of (const struct remote *r, const char *scope);
/* The source of a name's scope. NULL: E-REG-001 (local, std), E-REG-008. */
struct source_facts *
remote_facts_for (struct remote *r, const char *name, const char *version, struct mur_error **err);
/* "github:<owner>/<repo>", "oci://<host>/<path>". Owned. */
char *source_label (const struct source *s);
/* Asks for the owner and checks it. E-REG-006, E-REG-010. */
bool source_check_owner (struct remote *r, struct source_facts *f, const struct lock *lock,
                         uint64_t *owner_id, struct mur_error **err);
