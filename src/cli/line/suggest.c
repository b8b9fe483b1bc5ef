/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/line/suggest.h"

#include "manifest/text/schema.h"
#include "manifest/text/suggest.h"

#include <string.h>

void
suggestion_offer (struct suggestion *s, const char *typed, const char *known)
{
    size_t len = strlen (typed);
    size_t accepted = len <= 3 ? 1 : len <= 7 ? 2 : 3;
    size_t distance = schema_distance (typed, known);
    if (distance <= accepted && (! s->word || distance < s->distance))
        *s = (struct suggestion){ known, distance };
}
