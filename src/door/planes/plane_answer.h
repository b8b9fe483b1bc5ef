/* SPDX-License-Identifier: Apache-2.0
 *
 * Paths and answers of the planes: what door.c, resources.c, peer_files.c and control.c share.
 */
#pragma once

#include "base/buf.h"
#include "net/server/http_server.h"

#define PLANE_RESOURCES "/resources/"
#define PLANE_FILES     "/resources/files"
#define PLANE_PEER      "/resources/peer"
#define PLANE_CONTROL   "/control"
#define PLANE_TRACE     "/trace"

/* The length of the path in a request target: what stands before a query. */
size_t plane_path_len (const struct http_exchange *x);
/* True when that path is <prefix> itself or lies below it. */
bool plane_is_under (const struct http_exchange *x, const char *prefix);
bool plane_is_get (const struct http_exchange *x);
/* True when some content-type line says application/json, in any case. */
bool plane_has_json_type (const struct http_exchange *x);

/* The headers of one answer. */
struct plane_headers {
    struct http_header items[10];
    size_t len;
    struct strv values; /* those that were made */
};

void plane_header (struct plane_headers *h, const char *name, const char *value);
void plane_header_number (struct plane_headers *h, const char *name, int64_t value);
void plane_headers_clear (struct plane_headers *h);
#define _cleanup_plane_headers_ _cleanup_ (plane_headers_clear)

/* {"error": code, "message": message} as JSON with <h>'s headers and its own content-type. */
void plane_refuse (struct http_exchange *x, struct plane_headers *h, int status, const char *code,
                   const char *message);
