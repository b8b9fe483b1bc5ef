/* SPDX-License-Identifier: Apache-2.0
 *
 * Base64 as MCP writes it: the standard alphabet, padded; a reader takes it without padding, too.
 */
#pragma once

#include <stddef.h>

/* Owned. */
char *mcp_base64_encode (const void *data, size_t len);
/* Owned bytes with a NUL after them; NULL when malformed. */
unsigned char *mcp_base64_decode (const char *text, size_t len, size_t *out_len);
