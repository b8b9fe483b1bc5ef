/* SPDX-License-Identifier: Apache-2.0
 *
 * Queries of std/json: the part of JSONPath (RFC 9535) that people use, and JSON Pointer (RFC
 * 6901).
 */
#ifndef PATH_H
#define PATH_H

#include "tree.h"

struct path;

/* Reads `$.a[0]..b[?@.c == "d"]`, `.a.b`, `a.b` or `/a/0`. Returns NULL with *error set. */
struct path *path_read (const char *text, char **error);
/* True when it can lead to one value at most. */
bool path_is_single (const struct path *path);
/* Hands each value it leads to over, in document order; `take` answers false to stop. */
void path_walk (const struct path *path, struct value *root,
                bool (*take) (void *context, struct value *value), void *context);

#endif
