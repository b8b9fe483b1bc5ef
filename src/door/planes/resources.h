/* SPDX-License-Identifier: Apache-2.0
 *
 * The resource plane: GET /resources/files (spec/door.md 12).
 */
#pragma once

#include "door/planes/plane_worker.h"
#include "door/planes/planes.h"

struct resources;

/* Both are borrowed. */
struct resources *resources_new (const struct plane_facts *facts, struct plane_worker *worker);
void resources_free (struct resources *r);

/* Answers what needs no file: true when it did. On the server's thread, before a body is read. */
bool resources_refuse (struct resources *r, struct http_exchange *x);
/* Serves a listing or a file on a worker. */
void resources_serve (struct resources *r, struct http_exchange *x);
