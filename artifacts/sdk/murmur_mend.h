/* SPDX-License-Identifier: Apache-2.0
 *
 * What a model wrote as the input of a call, made into JSON that every reader takes.
 *
 * Mended is what leaves no doubt: a fence around it, stray commas, single quotes, names without
 * quotes, comments, line ends and half surrogate pairs in a text, Python's words, an object within
 * a string or alone in a list, nothing at all for an empty object. Everything else is told in a
 * sentence, for the model to write it again.
 */
#ifndef MURMUR_MEND_H
#define MURMUR_MEND_H

#include "murmur_sdk.h"

/* Adds a JSON object to `to` and returns true; or returns false with *why, a sentence that ends
 * "... is no JSON object: <what is wrong and where>". Well-formed input keeps its bytes. */
bool mur_mend_input (const char *text, size_t len, struct mur_text *to, char **why);
/* The same for any value of JSON, without a reason: false when it cannot be made such. */
bool mur_mend_value (const char *text, size_t len, struct mur_text *to);

#endif
