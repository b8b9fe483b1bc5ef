/* SPDX-License-Identifier: Apache-2.0
 *
 * The peer plane: one file, handed to one capsule, by a handle that names both (spec/door.md 13).
 *
 * Always true: a handle is good for its audience, this process and its time alone; the key lives in
 * this object's memory; the bytes are those of the moment.
 */
#pragma once

#include "base/ids.h"
#include "door/planes/export_folder.h"
#include "door/planes/planes.h"

struct http_exchange;
struct peer_files;
struct plane_worker;

/* Facts and worker are borrowed or copied as planes.h says. */
struct peer_files *peer_files_new (const struct plane_facts *facts, const char *session_id,
                                   struct plane_worker *worker);
void peer_files_free (struct peer_files *p);

/* Answers a request under /resources/peer that needs no file: true when it did. On the server's
 * thread, before a body is read. */
bool peer_files_refuse (struct peer_files *p, struct http_exchange *x);
/* Redeems a handle on a worker. */
void peer_files_serve (struct peer_files *p, struct http_exchange *x);

struct peer_handle {
    char *token;
    char id[17];         /* what may be logged of it */
    char *path;          /* below the root, links resolved */
    uint64_t expires_ms; /* Unix */
};
void peer_handle_clear (struct peer_handle *h);

/* Makes a handle for a file that may be served now. <audience> is lower case; <ttl_secs> 0, or more
 * than max_ttl, is max_ttl. */
enum export_outcome peer_files_mint (struct peer_files *p, const char *path, const char *audience,
                                     uint64_t ttl_secs, struct peer_handle *out);
