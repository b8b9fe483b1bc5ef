/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/base64.h"

#include "base/alloc.h"
#include "base/digest.h"

#include <string.h>

char *
mcp_base64_encode (const void *data, size_t len)
{
    struct buf out = { 0 };
    _cleanup_free_ char *url = base64url_encode (data, len);
    buf_puts (&out, url);
    while (out.len % 4)
        buf_putc (&out, '=');
    for (size_t i = 0; i < out.len; i++)
        out.data[i] = out.data[i] == '-' ? '+' : out.data[i] == '_' ? '/' : out.data[i];
    return buf_steal (&out);
}

unsigned char *
mcp_base64_decode (const char *text, size_t len, size_t *out_len)
{
    while (len && text[len - 1] == '=')
        len--;
    _cleanup_free_ char *url = x_strndup (text, len);
    for (size_t i = 0; i < len; i++) {
        if (url[i] == '-' || url[i] == '_')
            return NULL;
        url[i] = url[i] == '+' ? '-' : url[i] == '/' ? '_' : url[i];
    }
    if (strlen (url) != len)
        return NULL;
    unsigned char *bytes = base64url_decode (url, len, out_len);
    if (! bytes)
        return NULL;
    bytes = x_realloc (bytes, *out_len + 1);
    bytes[*out_len] = '\0';
    return bytes;
}
