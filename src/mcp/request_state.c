/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/request_state.h"

#include "base/alloc.h"
#include "base/digest.h"

#include <stdlib.h>
#include <string.h>

#define MAC_LEN   32
#define STATE_MAX 512

static void
mac_of (const unsigned char *key, const char *head, size_t len, const char *binding,
        char hex[2 * MAC_LEN + 1])
{
    unsigned char mac[MAC_LEN];
    _cleanup_free_ char *whole = x_asprintf ("%zu.%.*s.%s", len, (int)len, head, binding);
    hmac_sha256 (key, MCP_STATE_KEY_LEN, whole, strlen (whole), mac);
    hex_encode (mac, sizeof mac, hex);
}

char *
mcp_state_make (const unsigned char key[MCP_STATE_KEY_LEN], const char *subject,
                const char *binding, uint64_t until_ms)
{
    char hex[2 * MAC_LEN + 1];
    _cleanup_free_ char *head = x_asprintf ("%s.%llu", subject, (unsigned long long)until_ms);
    mac_of (key, head, strlen (head), binding, hex);
    return x_asprintf ("%s.%s", head, hex);
}

char *
mcp_state_read (const unsigned char key[MCP_STATE_KEY_LEN], const char *state, const char *binding,
                uint64_t now_ms)
{
    char hex[2 * MAC_LEN + 1];
    const char *mac = strrchr (state, '.');
    size_t head_len = mac ? (size_t)(mac - state) : 0, subject_len = strcspn (state, ".");
    if (! mac || strlen (state) > STATE_MAX || strlen (mac + 1) != 2 * MAC_LEN ||
        subject_len >= head_len)
        return NULL;
    mac_of (key, state, head_len, binding, hex);
    if (! bytes_equal_ct (hex, mac + 1, 2 * MAC_LEN) ||
        strtoull (state + subject_len + 1, NULL, 10) < now_ms)
        return NULL;
    return x_strndup (state, subject_len);
}
