/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking into a YAML tree and turning it into JSON.
 */
#pragma once

#include "manifest/text/yaml.h"

/* "null" ... "map": for messages. Static. */
const char *yaml_kind_name (const struct yaml_node *n);
/* The value of a key of a map, or NULL (also when <map> is NULL or no map). Last-resort linear
 * search. */
struct yaml_node *yaml_get (const struct yaml_node *map, const char *key);
/* Follows a dotted path with indexes ("artifacts[2].name") as far as it exists; never NULL when
 * root is not. */
const struct yaml_node *yaml_find_nearest (const struct yaml_node *root, const char *path);
/* The scalar's text when it is a scalar that is not null, else NULL. */
const char *yaml_text (const struct yaml_node *n);
bool yaml_as_bool (const struct yaml_node *n, bool *value);
/* A non-negative integer in 64 bits (decimal, 0x, 0o, 0b; plain scalars only). */
bool yaml_as_u64 (const struct yaml_node *n, uint64_t *value);
/* A plain number, fractions and .inf/.nan included. */
bool yaml_as_double (const struct yaml_node *n, double *value);

/* Compact-able JSON of a node: key order kept, scalar keys become text, numbers kept as written
 * where JSON can hold them
 * ("1.0" stays 1.0), NaN and infinities null, a foreign tag {"!tag": value}. A list or map as a key
 * fails with <code>. The caller owns the result. */
json_t *yaml_to_json (const struct yaml_node *n, enum diag_code code, struct mur_error **err);
/* The same as compact text, floats in their shortest form. On failure <out> holds a part and must
 * be dropped. */
bool yaml_put_json (struct buf *out, const struct yaml_node *n, enum diag_code code,
                    struct mur_error **err);
