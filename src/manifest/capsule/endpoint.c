/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/capsule/endpoint.h"

#include "net/url.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

char *
endpoint_masked (struct arena *a, const char *text)
{
    const char *at = strrchr (text, '@');
    if (! at)
        return arena_strdup (a, text);
    const char *from = strstr (text, "//");
    from = from && from < at ? from + 2 : strchr (text, ':');
    if (from && *from == ':')
        from = from < at ? from + 1 : NULL;
    return arena_printf (a, "%.*s***%s", from ? (int)(from - text) : 0, text, at);
}

static bool
refuse (const char **why, const char *reason)
{
    *why = reason;
    return false;
}

/* A numeric last label must make a whole address: 127.1 and 2130706433 address something else than
 * they show. */
static bool
host_is_plain (const char *host)
{
    if (host[0] == '[')
        return true;
    for (const char *p = host; *p; p++)
        if (! isalnum ((unsigned char)*p) && ! strchr ("-._", *p))
            return false;
    size_t len = strlen (host);
    if (host[0] == '.' || strstr (host, "..") || len > 253)
        return false;
    size_t end = host[len - 1] == '.' ? len - 1 : len;
    size_t start = end;
    while (start && host[start - 1] != '.')
        start--;
    bool is_number = end > start && strspn (host + start, "0123456789") >= end - start;
    is_number = is_number || strncmp (host + start, "0x", 2) == 0;
    return ! is_number || host_is_literal (host);
}

static bool
judge_url (struct arena *a, struct url *url, struct endpoint *out, const char **why)
{
    if (url->authority.has_userinfo) {
        *why =
            arena_printf (a, "it carries a user name or password; the host really addressed is %s",
                          url->authority.host);
        return false;
    }
    if (! host_is_plain (url->authority.host))
        return refuse (why, "its host is neither a plain name nor a whole IP address");
    if (url->has_query)
        return refuse (why, "it has a query ('?')");
    if (url->has_fragment)
        return refuse (why, "it has a fragment ('#')");
    if (strcmp (url->scheme, "http") == 0 && ! host_is_loopback (url->authority.host))
        return refuse (why,
                       "http:// is allowed only to localhost, 127.0.0.0/8 and [::1]; use https://");
    size_t path_len = strlen (url->path);
    while (path_len && url->path[path_len - 1] == '/')
        path_len--;
    out->path = arena_strndup (a, url->path, path_len);
    out->scheme = arena_strdup (a, url->scheme);
    out->host = arena_strdup (a, url->authority.host);
    out->port_is_written = url->authority.port != URL_NO_PORT;
    out->port =
        (uint16_t)(out->port_is_written ? url->authority.port : url_default_port (url->scheme));
    return true;
}

bool
endpoint_parse (struct arena *a, const char *written, struct endpoint *out, const char **why)
{
    *out = (struct endpoint){ .text = text_trim (a, written) };
    if (strstr (out->text, "${"))
        return refuse (why, "an endpoint is literal: no interpolation of ${...} takes place here");
    for (const char *p = out->text; *p; p++)
        if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7f || *p == '\\')
            return refuse (why, "it holds a blank, a backslash or a character outside ASCII");
    _cleanup_url_ struct url url = { 0 };
    const char *fault = url_parse (out->text, &url);
    if (fault) {
        *why = arena_printf (a, "it %s", fault);
        return false;
    }
    return judge_url (a, &url, out, why);
}
