/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http_prepare.h"

#include "base/alloc.h"

#include <string.h>
#include <strings.h>

/* Names the client writes itself or that belong to one connection. */
static const char *const dropped_headers[] = {
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "upgrade",
    "te",
    "trailer",
    "proxy-connection",
    "expect",
    "http2-settings",
    "proxy-authorization",
    "proxy-authenticate",
};

static bool
is_header_sent (const struct http_header *h)
{
    for (size_t i = 0; i < ARRAY_LEN (dropped_headers); i++)
        if (strcasecmp (h->name, dropped_headers[i]) == 0)
            return false;
    return h->name[0] != '\0' && h->name[strcspn (h->name, ":\r\n")] == '\0' &&
           ! memchr (h->value, '\r', h->value_len) && ! memchr (h->value, '\n', h->value_len) &&
           ! memchr (h->value, '\0', h->value_len);
}

void
http_header_lines (const struct http_request *request, struct strv *lines)
{
    bool has_accept = false;
    for (size_t i = 0; i < request->header_count; i++) {
        const struct http_header *h = &request->headers[i];
        if (! is_header_sent (h))
            continue;
        has_accept = has_accept || strcasecmp (h->name, "accept") == 0;
        if (h->value_len)
            strv_printf (lines, "%s: %.*s", h->name, (int)h->value_len, h->value);
        else
            strv_printf (lines, "%s;", h->name); /* how libcurl spells an empty value */
    }
    if (! has_accept)
        strv_push (lines, "Accept:");
    strv_push (lines, "Expect:");
    bool wants_length =
        request->body_kind == HTTP_BODY_NONE &&
        (strcmp (request->method, "POST") == 0 || strcmp (request->method, "PUT") == 0 ||
         strcmp (request->method, "PATCH") == 0);
    if (wants_length)
        strv_push (lines, "Content-Length: 0");
}

static bool
no_proxy_names (const char *list, const char *host)
{
    size_t host_len = strlen (host);
    while (list && *list) {
        list += strspn (list, ", ");
        size_t len = strcspn (list, ", ");
        const char *name = list;
        list += len;
        if (len == 1 && *name == '*')
            return true;
        if (len && *name == '.') {
            name++;
            len--;
        }
        if (len && host_len >= len && strncasecmp (host + host_len - len, name, len) == 0 &&
            (host_len == len || host[host_len - len - 1] == '.'))
            return true;
    }
    return false;
}

static const char *
first_set (const char *const *names)
{
    for (; *names; names++) {
        const char *value = getenv (*names);
        if (value && *value)
            return value;
    }
    return NULL;
}

/* http_proxy counts in lower case only: in upper case a web server could have set it from a request
 * header. */
char *
http_find_proxy (const struct url *url)
{
    static const char *const https_names[] = { "https_proxy", "HTTPS_PROXY", "all_proxy",
                                               "ALL_PROXY", NULL };
    static const char *const http_names[] = { "http_proxy", "all_proxy", "ALL_PROXY", NULL };
    static const char *const except_names[] = { "no_proxy", "NO_PROXY", NULL };
    const char *host = url->authority.host;
    if (host_is_loopback (host) || no_proxy_names (first_set (except_names), host))
        return NULL;
    const char *proxy = first_set (strcmp (url->scheme, "https") == 0 ? https_names : http_names);
    return proxy ? x_strdup (proxy) : NULL;
}
