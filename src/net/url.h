/* SPDX-License-Identifier: Apache-2.0
 *
 * Pieces of http and https addresses: authorities and whole URLs, split strictly and without
 * guessing.
 */
#pragma once

#include "base/error.h"

#include <sys/socket.h>

#define URL_NO_PORT (-1)

struct authority {
    char *host; /* lower case; an IPv6 literal keeps its brackets */
    int port;   /* URL_NO_PORT when none was written */
    bool has_userinfo;
};

/* Splits "[userinfo@]host[:port]". Returns NULL, or a static sentence saying what is wrong ("has no
 * host"). */
const char *authority_parse (const char *text, size_t len, struct authority *out);
void authority_free (struct authority *a);
#define _cleanup_authority_ _cleanup_ (authority_free)

struct url {
    char *scheme; /* "http" or "https" */
    struct authority authority;
    char *path; /* "" or starting with '/', without query and fragment */
    bool has_query;
    bool has_fragment;
};

/* Splits an absolute http or https URL. Returns NULL, or a static sentence saying what is wrong. */
const char *url_parse (const char *text, struct url *out);
void url_free (struct url *u);
#define _cleanup_url_ _cleanup_ (url_free)

/* Where <location> leads from the address <from>: an address of its own, one without its scheme, or
 * a path from the root. Owned; NULL: none of these. */
char *url_resolve (const char *from, const char *location);
/* True when both are addresses with scheme, host and port in common. */
bool url_same_origin (const char *a, const char *b);
/* False when <to> is no address, or a plain one where <from> is secure: a step nobody should be led
 * to take. The letters of a scheme may be of either case. */
bool url_keeps_secure (const char *from, const char *to);

/* 443 or 80. */
int url_default_port (const char *scheme);
/* True for "localhost", a literal in 127.0.0.0/8, or [::1]. <host> as in struct authority. */
bool host_is_loopback (const char *host);
/* True when <host> is an IPv4 literal or a bracketed IPv6 literal. */
bool host_is_literal (const char *host);
/* True for link-local and cloud metadata addresses (DESIGN 10.3), IPv4-mapped forms included. */
bool address_is_local_service (const struct sockaddr *address);
