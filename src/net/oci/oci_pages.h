/* SPDX-License-Identifier: Apache-2.0
 *
 * A list a registry gives in pages: all of it, or an error.
 */
#pragma once

#include "net/http_fetch.h"
#include "net/oci/oci_client.h"

/* Takes one page over into <ctx>; false with *err ends the walk. */
typedef bool oci_page_fn (void *ctx, const struct http_response *page, struct mur_error **err);

struct oci_listing {
    const char *what; /* "list of tags" */
    const char *hint; /* for one that is too long; may be NULL */
    const char *accept;
    bool is_optional; /* a registry may know nothing of such a list */
    oci_page_fn *take;
    void *ctx;
};

/* Walks the pages from <url>, taken over, to the last; one that is not there ends it. E-REG-013
 * (too long), E-REG-006, E-REG-012. */
bool oci_pages (struct oci_client *c, const struct oci_ref *repository, char *url,
                const struct oci_listing *listing, struct mur_error **err);
