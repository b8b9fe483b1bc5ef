/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/egress/proxy_request.h"

#include "base/alloc.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static const char scheme[] = "http://";

/* Lines a proxy reads, or that would keep the connection for another request; the host is the
 * target's, whatever the line says (RFC 9112, 3.2.2). */
static const char *const hop_lines[] = { "Connection:", "Keep-Alive:", "Proxy-Connection:",
                                         "Proxy-Authorization:", "Host:" };

/* host[:port] of <len> bytes. */
static bool
read_authority (const char *text, size_t len, int fallback_port, struct proxy_request *out)
{
    const char *colon = memchr (text, ':', len);
    size_t host_len = colon ? (size_t)(colon - text) : len;
    long port = colon ? 0 : fallback_port;
    for (size_t i = host_len + 1; colon && i < len; i++) {
        if (! isdigit ((unsigned char)text[i]) || port > 65535)
            return false;
        port = port * 10 + (text[i] - '0');
    }
    if (host_len && text[host_len - 1] == '.')
        host_len--;
    if (! host_len || host_len >= sizeof out->host || port < 1 || port > 65535)
        return false;
    for (size_t i = 0; i < host_len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (! isalnum (c) && ! strchr ("-._", c))
            return false;
        out->host[i] = (char)tolower (c);
    }
    out->host[host_len] = '\0';
    out->port = (int)port;
    return true;
}

static size_t
head_length (const char *bytes, size_t len)
{
    const char *end = memmem (bytes, len, "\r\n\r\n", 4);
    return end ? (size_t)(end - bytes) + 4 : 0;
}

enum proxy_verdict
proxy_request_read (const char *bytes, size_t len, struct proxy_request *out)
{
    *out = (struct proxy_request){ .head_len = head_length (bytes, len) };
    if (! out->head_len)
        return len < PROXY_HEAD_MAX ? PROXY_INCOMPLETE : PROXY_MALFORMED;
    const char *end = memchr (bytes, '\r', out->head_len);
    const char *target = memchr (bytes, ' ', (size_t)(end - bytes));
    const char *version = target ? memchr (target + 1, ' ', (size_t)(end - target - 1)) : NULL;
    if (! version || memchr (bytes, '\0', out->head_len) ||
        strncmp (version + 1, "HTTP/1.", 7) != 0)
        return PROXY_MALFORMED;
    size_t method_len = (size_t)(target - bytes), target_len = (size_t)(version - ++target);
    if (method_len == 7 && memcmp (bytes, "CONNECT", 7) == 0)
        return read_authority (target, target_len, 443, out) ? PROXY_TUNNEL : PROXY_MALFORMED;
    size_t skip = sizeof scheme - 1;
    if (target_len <= skip || strncasecmp (target, scheme, skip) != 0)
        return PROXY_MALFORMED;
    const char *authority = target + skip;
    size_t authority_len = strcspn (authority, "/?# ");
    return read_authority (authority, authority_len, 80, out) ? PROXY_FORWARD : PROXY_MALFORMED;
}

static bool
is_hop_line (const char *line)
{
    for (size_t i = 0; i < ARRAY_LEN (hop_lines); i++)
        if (strncasecmp (line, hop_lines[i], strlen (hop_lines[i])) == 0)
            return true;
    return false;
}

void
proxy_request_rewrite (const char *bytes, const struct proxy_request *request, struct buf *head)
{
    const char *target = strchr (bytes, ' ') + 1;
    const char *authority = target + sizeof scheme - 1;
    const char *rest = authority + strcspn (authority, "/?# ");
    const char *line = strstr (rest, "\r\n") + 2;
    buf_append (head, bytes, (size_t)(target - bytes));
    if (*rest != '/')
        buf_puts (head, "/");
    buf_append (head, rest, (size_t)(line - rest));
    buf_printf (head, "Host: %.*s\r\n", (int)strcspn (authority, "/?# "), authority);
    const char *end = bytes + request->head_len - 2;
    while (line < end) {
        const char *next = strstr (line, "\r\n") + 2;
        if (! is_hop_line (line))
            buf_append (head, line, (size_t)(next - line));
        line = next;
    }
    buf_puts (head, "Connection: close\r\n\r\n");
}
