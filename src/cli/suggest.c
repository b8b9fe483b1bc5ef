/* SPDX-License-Identifier: Apache-2.0
 *
 * The nearest known word. See suggest.h.
 */
#include "cli/suggest.h"

#include <string.h>

#define LONGEST 64

static size_t
least (size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t
edit_distance (const char *a, const char *b, size_t limit)
{
    size_t la = strlen (a), lb = strlen (b);
    if (la > LONGEST || lb > LONGEST || (la > lb ? la - lb : lb - la) > limit)
        return limit + 1;
    size_t rows[3][LONGEST + 1]; /* the row before last, the last, the present one */
    size_t *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= lb; j++)
        last[j] = j;
    for (size_t i = 1; i <= la; i++) {
        now[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            size_t cost = a[i - 1] == b[j - 1] ? 0 : 1;
            now[j] = least (least (last[j] + 1, now[j - 1] + 1), last[j - 1] + cost);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least (now[j], before[j - 2] + 1);
        }
        size_t *spare = before;
        before = last;
        last = now;
        now = spare;
    }
    return last[lb];
}

void
suggestion_offer (struct suggestion *s, const char *typed, const char *known)
{
    size_t len = strlen (typed);
    size_t limit = len <= 3 ? 1 : len <= 7 ? 2 : 3;
    size_t distance = edit_distance (typed, known, limit);
    if (distance <= limit && (! s->word || distance < s->distance))
        *s = (struct suggestion){ known, distance };
}
