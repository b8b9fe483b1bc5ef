/* SPDX-License-Identifier: Apache-2.0 */
#include "roost/front/store_reach.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/diag.h"
#include "deploy/store.h"
#include "net/http_fetch.h"
#include "net/url.h"
#include "trace/ship/s3_place.h"

#define CONNECT_MS 3000
#define WHOLE_MS   5000
#define ANSWER_MAX 65536

/* Whatever it answers, somebody is there. */
static void
knock (const char *url, const char *address)
{
    struct mur_error *err = NULL;
    _cleanup_http_response_ struct http_response r = { 0 };
    struct http_client *http = http_client_new ();
    const struct http_fetch fetch = { .request = { .method = "GET",
                                                   .url = address,
                                                   .body_kind = HTTP_BODY_NONE,
                                                   .connect_timeout_ms = CONNECT_MS,
                                                   .first_byte_timeout_ms = WHOLE_MS },
                                      .limit_bytes = ANSWER_MAX,
                                      .total_timeout_ms = WHOLE_MS };
    if (! http_fetch (http, &fetch, &r, NULL, &err))
        diag_plain_warning ("--records-store %s: nobody answers from here, and what children "
                            "record would stay in their pods: %s",
                            url, err->message);
    mur_error_free (err);
    http_client_free (http);
}

static char *
address_of (const char *url, struct mur_error **err)
{
    struct s3_place place = { 0 };
    if (! str_starts (url, "s3://"))
        return x_strdup (url);
    char *address = s3_place_read (url, &place, err) ? x_asprintf ("%s/", place.origin) : NULL;
    s3_place_clear (&place);
    return address;
}

bool
store_reach_check (const char *url, struct mur_error **err)
{
    _cleanup_url_ struct url at = { 0 };
    if (! deploy_store_check (url, err))
        return false;
    if (str_starts (url, "file:")) {
        mur_fail (err, E_DEP_005,
                  "--records-store %s is a folder of one machine, and the pods of children have "
                  "none of it",
                  url);
        return mur_hint (err, "name a store all of them reach: s3://bucket/prefix?region=R or "
                              "https://host/path");
    }
    _cleanup_free_ char *address = address_of (url, err);
    if (! address)
        return false;
    if (! url_parse (address, &at) && host_is_loopback (at.authority.host))
        diag_plain_warning ("--records-store %s: to a pod that address is the pod itself", url);
    knock (url, address);
    return true;
}
