/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/store.h"

#include "base/buf.h"
#include "net/url.h"
#include "trace/ship/s3_place.h"

#include <string.h>

#define S3 "s3://"

/* What this machine's environment would add, a pod's does not. */
static bool
check_s3 (const char *url, struct mur_error **err)
{
    struct s3_place place = { 0 };
    const char *words = strchr (url, '?');
    if (! words || (! strstr (words, "region=") && ! strstr (words, "endpoint="))) {
        mur_fail (err, E_DEP_005,
                  "--records-store %s says neither region nor server, and a pod knows none", url);
        return mur_hint (err, "add ?region=eu-central-1, and for another server than Amazon's "
                              "&endpoint=https://HOST");
    }
    bool is_one = s3_place_read (url, &place, err);
    s3_place_clear (&place);
    return is_one || mur_context (err, "--records-store");
}

bool
deploy_store_check (const char *url, struct mur_error **err)
{
    _cleanup_url_ struct url at = { 0 };
    if (str_starts (url, S3))
        return check_s3 (url, err);
    if (str_starts (url, "file:///"))
        return true;
    const char *fault = url_parse (url, &at);
    if (! fault && (at.authority.has_userinfo || at.has_query || at.has_fragment))
        fault = "holds more than scheme, host, port and path";
    if (! fault)
        return true;
    mur_fail (err, E_DEP_005, "--records-store: \"%s\" %s", url, fault);
    return mur_hint (err, "write https://host/path or s3://bucket/prefix?region=R; keys are files "
                          "of the Secret");
}
