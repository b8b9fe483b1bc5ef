/* SPDX-License-Identifier: Apache-2.0
 *
 * What strangers say in a login: a challenge, a form, an address, metadata. What must hold: an
 * address that may be asked parses again and is no private literal of another host; a value of a
 * form that was written comes back as it was.
 */
#include "tests/fuzz/fuzzing.h"

#include "base/alloc.h"
#include "net/oauth/oauth_text.h"
#include "net/own_names.h"
#include "net/url.h"

#include <string.h>

#define SERVER "https://mcp.example.com/mcp"

static void
check_address (const char *text)
{
    _cleanup_url_ struct url u = { 0 };
    _cleanup_strv_ struct strv places = { 0 };
    if (oauth_url_fault (text, SERVER))
        return;
    if (url_parse (text, &u) || host_is_private (u.authority.host) || strcmp (u.scheme, "https"))
        abort ();
    oauth_well_known (OAUTH_OF_ISSUER, text, &places);
    oauth_well_known (OAUTH_OF_RESOURCE, text, &places);
    for (size_t i = 0; i < places.len; i++)
        if (! url_same_origin (places.items[i], text))
            abort ();
}

static void
check_form (const char *text)
{
    _cleanup_buf_ struct buf form = { 0 };
    _cleanup_free_ char *read = oauth_form_get (text, "code");
    oauth_form_add (&form, "x", "1");
    oauth_form_add (&form, "v", text);
    _cleanup_free_ char *back = oauth_form_get (form.data, "v");
    if (! back || strcmp (back, text))
        abort ();
}

static void
check_metadata (const char *text, size_t len)
{
    _cleanup_json_ json_t *m = json_loadb (text, len, 0, NULL);
    _cleanup_resource_ struct oauth_resource r = { 0 };
    _cleanup_issuer_ struct oauth_issuer i = { 0 };
    if (m && oauth_resource_read (m, SERVER, &r, NULL) && ! url_same_origin (r.resource, SERVER))
        abort ();
    if (m && oauth_issuer_read (m, "https://sso.example", SERVER, &i, NULL) &&
        oauth_url_fault (i.token_endpoint, SERVER))
        abort ();
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    _cleanup_free_ char *text = x_strndup ((const char *)data, size);
    _cleanup_challenge_ struct oauth_challenge c;
    oauth_challenge_read (text, &c);
    _cleanup_free_ char *scopes = oauth_scopes_joined (text, c.scope);
    check_address (text);
    check_form (text);
    check_metadata (text, strlen (text));
    return 0;
}
