/* SPDX-License-Identifier: Apache-2.0 */
#include "net/oci/oci_pages.h"

#include "base/alloc.h"
#include "net/oci/oci_ask.h"
#include "net/oci/oci_get.h"
#include "net/url.h"

#include <string.h>

#define PAGES_MAX 100

/* Where a Link header says the list goes on, at this registry. Owned; NULL: nowhere. */
static char *
next_page (const struct http_response *r, const char *url)
{
    const char *link = http_response_header (r, "link");
    const char *end = link && *link == '<' ? strchr (link, '>') : NULL;
    if (! end || ! strstr (end, "next"))
        return NULL;
    _cleanup_free_ char *target = x_strndup (link + 1, (size_t)(end - link - 1));
    char *next = url_resolve (url, target);
    if (next && url_same_origin (next, url))
        return next;
    free (next);
    return NULL;
}

static bool
refuse_long (const struct oci_ref *repository, const struct oci_listing *l, struct mur_error **err)
{
    mur_fail (err, E_REG_013, "%s/%s: the registry's %s is too long to be read", repository->host,
              repository->repository, l->what);
    return l->hint ? mur_hint (err, "%s", l->hint) : false;
}

/* Answers that say "not now" are no word about the list. */
static bool
is_busy (int status)
{
    return status == 429 || (status >= 502 && status <= 504);
}

/* One page; *next (owned) is where it goes on. */
static bool
take_page (struct oci_client *c, const struct oci_ref *repository, const char *url,
           const struct oci_listing *l, bool is_optional, char **next, struct mur_error **err)
{
    struct mur_error *caught = NULL;
    _cleanup_http_response_ struct http_response r = { 0 };
    if (! oci_get (c, repository, url, l->accept, &r, &caught)) {
        if (! oci_is_too_large (caught))
            return mur_propagate (err, caught);
        mur_error_free (caught);
        return refuse_long (repository, l, err);
    }
    if (r.status == 404 || (is_optional && r.status != 200 && ! is_busy (r.status)))
        return true;
    if (r.status != 200)
        return oci_refuse (repository, &r, err);
    *next = next_page (&r, url);
    return l->take (l->ctx, &r, err);
}

bool
oci_pages (struct oci_client *c, const struct oci_ref *repository, char *url,
           const struct oci_listing *listing, struct mur_error **err)
{
    bool ok = true;
    for (int pages = 0; ok && url; pages++) {
        char *next = NULL;
        bool is_optional = listing->is_optional && pages == 0;
        ok = pages < PAGES_MAX ? take_page (c, repository, url, listing, is_optional, &next, err)
                               : refuse_long (repository, listing, err);
        free (url);
        url = next;
    }
    free (url);
    return ok;
}
