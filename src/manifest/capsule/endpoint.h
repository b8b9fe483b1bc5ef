/* SPDX-License-Identifier: Apache-2.0
 *
 * Gateway endpoints: the literal provider address an operator writes (spec/manifest.md 5.4).
 *
 * Stricter than a browser's reading on purpose: an address whose host is not plainly visible
 * (127.1, https:h, userinfo) is refused, because a key is sent there. No text this file makes holds
 * userinfo.
 */
#pragma once

#include "manifest/text/grammar.h"

/* A gateway endpoint taken apart: "https", "host" (lower case), 443, "/v1" ("" for none or "/"). */
struct endpoint {
    char *text; /* as written, trimmed */
    char *scheme;
    char *host;
    uint16_t port;
    bool port_is_written;
    char *path; /* without a trailing '/' */
};

/* Reads and judges an endpoint (5.4) into the arena. On refusal returns false with *why in the
 * arena; no message of it ever holds userinfo. */
bool endpoint_parse (struct arena *a, const char *text, struct endpoint *out, const char **why);
/* The endpoint as a message may show it: userinfo replaced by "***". */
char *endpoint_masked (struct arena *a, const char *text);
