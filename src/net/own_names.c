/* SPDX-License-Identifier: Apache-2.0 */
#include "net/own_names.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "net/url.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool
is_loopback (const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy (&v4, address, sizeof v4);
        uint32_t first = ntohl (v4.sin_addr.s_addr) >> 24;
        return first == 127 || first == 0;
    }
    if (address->sa_family != AF_INET6)
        return false;
    struct sockaddr_in6 v6;
    memcpy (&v6, address, sizeof v6);
    const unsigned char *bytes = v6.sin6_addr.s6_addr;
    if (IN6_IS_ADDR_V4MAPPED (&v6.sin6_addr))
        return bytes[12] == 127 || bytes[12] == 0;
    return IN6_IS_ADDR_LOOPBACK (&v6.sin6_addr) || IN6_IS_ADDR_UNSPECIFIED (&v6.sin6_addr);
}

static bool
line_names (char *line, const char *host)
{
    line[strcspn (line, "#")] = '\0';
    char *rest = NULL;
    strtok_r (line, " \t\r\n", &rest); /* the address */
    for (const char *word; (word = strtok_r (NULL, " \t\r\n", &rest));)
        if (strcasecmp (word, host) == 0)
            return true;
    return false;
}

static bool
is_in_hosts_file (const char *host)
{
    FILE *file = fopen ("/etc/hosts", "re");
    char *line = NULL;
    size_t cap = 0;
    bool is_found = false;
    while (file && ! is_found && getline (&line, &cap, file) > 0)
        is_found = line_names (line, host);
    free (line);
    if (file)
        fclose (file);
    return is_found;
}

static bool
is_localhost (const char *host)
{
    static const char suffix[] = ".localhost";
    size_t len = strlen (host), tail = sizeof suffix - 1;
    return strcasecmp (host, "localhost") == 0 ||
           (len > tail && strcasecmp (host + len - tail, suffix) == 0);
}

bool
address_needs_a_literal (const struct sockaddr *address, const char *host)
{
    if (host_is_literal (host))
        return false;
    if (address_is_local_service (address))
        return true;
    return is_loopback (address) && ! is_localhost (host) && ! is_in_hosts_file (host);
}

/* --- private ranges --- */

static bool
is_private_v4 (struct in_addr address)
{
    static const struct {
        uint32_t net;
        unsigned bits;
    } ranges[] = {
        { 0x0a000000, 8 },  { 0xac100000, 12 }, { 0xc0a80000, 16 },
        { 0x64400000, 10 }, { 0, 8 },           { 0x7f000000, 8 },
    };
    uint32_t at = ntohl (address.s_addr);
    for (size_t i = 0; i < ARRAY_LEN (ranges); i++)
        if ((at ^ ranges[i].net) >> (32 - ranges[i].bits) == 0)
            return true;
    return false;
}

bool
address_is_private (const struct sockaddr *address)
{
    struct in_addr inner;
    if (is_loopback (address) || address_is_local_service (address))
        return true;
    if (address->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy (&v4, address, sizeof v4);
        return is_private_v4 (v4.sin_addr);
    }
    if (address->sa_family != AF_INET6)
        return true;
    struct sockaddr_in6 v6;
    memcpy (&v6, address, sizeof v6);
    const unsigned char *bytes = v6.sin6_addr.s6_addr;
    memcpy (&inner, bytes + 12, sizeof inner);
    if (IN6_IS_ADDR_V4MAPPED (&v6.sin6_addr) && is_private_v4 (inner))
        return true;
    return (bytes[0] & 0xfe) == 0xfc; /* fc00::/7 */
}

bool
host_is_private (const char *host)
{
    char bare[INET6_ADDRSTRLEN + 2] = "";
    struct sockaddr_in v4 = { .sin_family = AF_INET };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
    size_t len = strlen (host);
    if (is_localhost (host))
        return true;
    if (inet_pton (AF_INET, host, &v4.sin_addr) == 1)
        return address_is_private ((const struct sockaddr *)&v4);
    if (host[0] != '[' || len < 3 || len >= sizeof bare)
        return false;
    memcpy (bare, host + 1, len - 2);
    return inet_pton (AF_INET6, bare, &v6.sin6_addr) != 1 ||
           address_is_private ((const struct sockaddr *)&v6);
}
