/* SPDX-License-Identifier: Apache-2.0 */
#include "net/url.h"

#include "base/alloc.h"
#include "base/buf.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

/* What may not stand in a host: delimiters, blanks, controls, percent escapes, anything beyond
 * ASCII. */
static bool
is_host_char (char c)
{
    return c > ' ' && c < 0x7f && ! strchr ("#/<>?@[\\]^|%:\"`{}", c);
}

static const char *
read_port (const char *text, size_t len, int *port)
{
    if (len == 0)
        return NULL;
    long value = 0;
    for (size_t i = 0; i < len; i++) {
        if (! isdigit ((unsigned char)text[i]))
            return "has a port that is no number";
        value = value * 10 + (text[i] - '0');
        if (value > 65535)
            return "has a port above 65535";
    }
    *port = (int)value;
    return NULL;
}

/* "[...]": one canonical spelling for each address. */
static const char *
read_ipv6 (const char *text, size_t len, char **host)
{
    char inner[INET6_ADDRSTRLEN] = { 0 };
    struct in6_addr address;
    if (len < 2 || len - 2 >= sizeof inner)
        return "has a malformed IPv6 address";
    memcpy (inner, text + 1, len - 2);
    if (inet_pton (AF_INET6, inner, &address) != 1)
        return "has a malformed IPv6 address";
    inet_ntop (AF_INET6, &address, inner, sizeof inner);
    *host = x_asprintf ("[%s]", inner);
    return NULL;
}

const char *
authority_parse (const char *text, size_t len, struct authority *out)
{
    *out = (struct authority){ .port = URL_NO_PORT };
    const char *end = text + len;
    const char *at = memrchr (text, '@', len);
    out->has_userinfo = at != NULL;
    const char *host = at ? at + 1 : text;
    if (host == end || *host == ':')
        return "has no host";

    if (*host == '[') {
        const char *close = memchr (host, ']', (size_t)(end - host));
        if (! close)
            return "has a malformed IPv6 address";
        if (close + 1 < end && close[1] != ':')
            return "has something after its IPv6 address";
        const char *fault = read_ipv6 (host, (size_t)(close + 1 - host), &out->host);
        if (! fault && close + 1 < end)
            fault = read_port (close + 2, (size_t)(end - close - 2), &out->port);
        if (fault)
            authority_free (out);
        return fault;
    }

    const char *colon = memchr (host, ':', (size_t)(end - host));
    if (colon && memchr (colon + 1, ':', (size_t)(end - colon - 1)))
        return "has a bare IPv6 address; write it in brackets";
    const char *host_end = colon ? colon : end;
    for (const char *p = host; p < host_end; p++)
        if (! is_host_char (*p))
            return "has a character no host may hold";
    const char *fault = colon ? read_port (colon + 1, (size_t)(end - colon - 1), &out->port) : NULL;
    if (fault)
        return fault;
    out->host = x_strndup (host, (size_t)(host_end - host));
    str_lower (out->host);
    return NULL;
}

void
authority_free (struct authority *a)
{
    free (a->host);
    a->host = NULL;
}

const char *
url_parse (const char *text, struct url *out)
{
    *out = (struct url){ .authority = { .port = URL_NO_PORT } };
    const char *mark = strstr (text, "://");
    if (! mark)
        return "is no http:// or https:// address";
    size_t scheme_len = (size_t)(mark - text);
    bool is_https = scheme_len == 5 && strncasecmp (text, "https", 5) == 0;
    if (! is_https && ! (scheme_len == 4 && strncasecmp (text, "http", 4) == 0))
        return "has a scheme other than http and https";
    const char *start = mark + 3;
    size_t len = strcspn (start, "/?#");
    const char *fault = authority_parse (start, len, &out->authority);
    if (fault)
        return fault;
    const char *path = start + len;
    size_t path_len = strcspn (path, "?#");
    out->has_query = path[path_len] == '?';
    out->has_fragment = strchr (path, '#') != NULL;
    out->path = x_strndup (path, path_len);
    out->scheme = x_strdup (is_https ? "https" : "http");
    return NULL;
}

void
url_free (struct url *u)
{
    free (u->scheme);
    free (u->path);
    authority_free (&u->authority);
    *u = (struct url){ 0 };
}

int
url_default_port (const char *scheme)
{
    return strcasecmp (scheme, "https") == 0 ? 443 : 80;
}

char *
url_resolve (const char *from, const char *location)
{
    size_t scheme = strcspn (location, ":/?#");
    if (str_starts (location + scheme, "://"))
        return x_strdup (location);
    _cleanup_url_ struct url base = { 0 };
    if (url_parse (from, &base) || location[0] != '/')
        return NULL;
    if (location[1] == '/')
        return x_asprintf ("%s:%s", base.scheme, location);
    const char *host = strstr (from, "://") + 3;
    size_t origin = (size_t)(host - from) + strcspn (host, "/?#");
    return x_asprintf ("%.*s%s", (int)origin, from, location);
}

bool
url_same_origin (const char *a, const char *b)
{
    _cleanup_url_ struct url x = { 0 }, y = { 0 };
    if (url_parse (a, &x) || url_parse (b, &y))
        return false;
    int x_port = x.authority.port == URL_NO_PORT ? url_default_port (x.scheme) : x.authority.port;
    int y_port = y.authority.port == URL_NO_PORT ? url_default_port (y.scheme) : y.authority.port;
    return str_eq (x.scheme, y.scheme) && str_eq (x.authority.host, y.authority.host) &&
           x_port == y_port;
}

bool
url_keeps_secure (const char *from, const char *to)
{
    return strncasecmp (to, "https://", 8) == 0 ||
           (strncasecmp (to, "http://", 7) == 0 && strncasecmp (from, "https:", 6) != 0);
}

static bool
read_literal (const char *host, struct in_addr *v4, struct in6_addr *v6, int *family)
{
    if (inet_pton (AF_INET, host, v4) == 1) {
        *family = AF_INET;
        return true;
    }
    size_t len = strlen (host);
    char inner[INET6_ADDRSTRLEN] = { 0 };
    if (len < 3 || host[0] != '[' || len - 2 >= sizeof inner)
        return false;
    memcpy (inner, host + 1, len - 2);
    *family = AF_INET6;
    return inet_pton (AF_INET6, inner, v6) == 1;
}

bool
host_is_literal (const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;
    int family;
    return read_literal (host, &v4, &v6, &family);
}

bool
host_is_loopback (const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;
    int family;
    if (strcasecmp (host, "localhost") == 0)
        return true;
    if (! read_literal (host, &v4, &v6, &family))
        return false;
    return family == AF_INET ? (ntohl (v4.s_addr) >> 24) == 127 : IN6_IS_ADDR_LOOPBACK (&v6);
}

/* Metadata services of clouds that sit outside the link-local ranges. */
static const char *const metadata_v4[] = { "100.100.100.200", "192.0.0.192", "168.63.129.16" };
static const char *const metadata_v6[] = { "fd00:ec2::254", "fd20:ce::254" };

static bool
v4_is_local_service (struct in_addr address)
{
    if ((ntohl (address.s_addr) >> 16) == 0xa9fe) /* 169.254.0.0/16 */
        return true;
    for (size_t i = 0; i < ARRAY_LEN (metadata_v4); i++) {
        struct in_addr known;
        inet_pton (AF_INET, metadata_v4[i], &known);
        if (known.s_addr == address.s_addr)
            return true;
    }
    return false;
}

bool
address_is_local_service (const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy (&v4, address, sizeof v4);
        return v4_is_local_service (v4.sin_addr);
    }
    if (address->sa_family != AF_INET6)
        return false;
    struct sockaddr_in6 v6;
    memcpy (&v6, address, sizeof v6);
    const unsigned char *bytes = v6.sin6_addr.s6_addr;
    static const unsigned char nat64[12] = { 0, 0x64, 0xff, 0x9b };
    if (IN6_IS_ADDR_V4MAPPED (&v6.sin6_addr) || IN6_IS_ADDR_V4COMPAT (&v6.sin6_addr) ||
        memcmp (bytes, nat64, sizeof nat64) == 0) {
        struct in_addr inner;
        memcpy (&inner, bytes + 12, sizeof inner);
        return v4_is_local_service (inner);
    }
    if (IN6_IS_ADDR_LINKLOCAL (&v6.sin6_addr))
        return true;
    for (size_t i = 0; i < ARRAY_LEN (metadata_v6); i++) {
        struct in6_addr known;
        inet_pton (AF_INET6, metadata_v6[i], &known);
        if (IN6_ARE_ADDR_EQUAL (&known, &v6.sin6_addr))
            return true;
    }
    return false;
}
