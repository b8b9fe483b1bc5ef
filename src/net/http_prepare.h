/* SPDX-License-Identifier: Apache-2.0
 *
 * What a request needs before libcurl sees it: its header lines, and the proxy it goes through.
 */
#pragma once

#include "net/http_client.h"
#include "net/url.h"

/* "name: value" lines in order; what libcurl would add on its own is suppressed by "name:" lines.
 * The lines may hold a key: wipe them. */
void http_header_lines (const struct http_request *request, struct strv *lines);

/* The proxy our environment names for this address, or NULL: never for loopback, nor for what
 * no_proxy lists. Owned. */
char *http_find_proxy (const struct url *url);
