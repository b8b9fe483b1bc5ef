/* SPDX-License-Identifier: Apache-2.0
 *
 * "Did you mean": the known key (spec/manifest.md 3) or word nearest to an unknown one.
 */
#pragma once

#include "manifest/text/schema.h"

/* The nearest known key within the accepted distance (manifest.md 3), or NULL. */
const char *schema_suggest (const struct schema *schema, const char *key);
/* Of words that are no keys: start with { NULL, 0 } and offer every known one; the nearest stays,
 * when one is near enough. The words are borrowed. */
struct suggestion {
    const char *word; /* NULL while none is near */
    size_t distance;
};
void suggestion_offer (struct suggestion *s, const char *typed, const char *known);
/* The hint "did you mean WORD? <rest>", or <rest> alone. Always false. */
bool suggestion_hint (const struct suggestion *s, const char *rest, struct mur_error **err);
/* The hint "did you mean WORD?" when one of <words> (ends with NULL) is near. Always false. */
bool suggestion_among (const char *typed, const char *const *words, struct mur_error **err);
/* Optimal string alignment distance in characters. */
size_t schema_distance (const char *a, const char *b);
