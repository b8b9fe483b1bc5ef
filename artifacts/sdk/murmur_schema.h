/* SPDX-License-Identifier: Apache-2.0
 *
 * A tool's input schema in the words that providers take.
 */
#ifndef MURMUR_SCHEMA_H
#define MURMUR_SCHEMA_H

#include "murmur_sdk.h"

enum mur_schema_form {
    MUR_SCHEMA_COMMON, /* an object at the root, no references: what every provider takes */
    MUR_SCHEMA_NARROW, /* the same, with the names of inputs narrowed (murmur_names.h) */
    MUR_SCHEMA_SMALL,  /* Gemini's subset: the few keywords it knows */
};

/* Adds the schema; an absent node, or one that is no object, is an object without properties. A
 * schema that is in order already keeps its bytes. */
void mur_schema_lower (const struct mur_json *json, mur_node schema, enum mur_schema_form form,
                       struct mur_text *to);

#endif
