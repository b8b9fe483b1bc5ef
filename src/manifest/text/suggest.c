/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/text/suggest.h"

#include <string.h>

#define LONGEST 64 /* bytes; no known key comes near, so longer words have no neighbour */

/* Decodes UTF-8 into characters; a malformed byte counts as one. Returns how many, or LONGEST + 1
 * for a longer word. */
static size_t
characters (const char *text, uint32_t *out)
{
    size_t n = 0;
    for (const unsigned char *p = (const unsigned char *)text; *p; n++) {
        if (n == LONGEST)
            return LONGEST + 1;
        uint32_t point = *p++;
        int more = point >= 0xf0 ? 3 : point >= 0xe0 ? 2 : point >= 0xc0 ? 1 : 0;
        for (; more && (*p & 0xc0) == 0x80; more--)
            point = point << 6 | (*p++ & 0x3fu);
        out[n] = point;
    }
    return n;
}

static size_t
least (size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t
distance (const uint32_t *a, size_t a_len, const uint32_t *b, size_t b_len)
{
    size_t rows[3][LONGEST + 1];
    size_t *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b_len; j++)
        above[j] = before[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t cost = a[i - 1] != b[j - 1];
            row[j] = least (least (above[j], row[j - 1]) + 1, above[j - 1] + cost);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least (row[j], before[j - 2] + 1);
        }
        size_t *spare = before;
        before = above;
        above = row;
        row = spare;
    }
    return above[b_len];
}

size_t
schema_distance (const char *a, const char *b)
{
    uint32_t x[LONGEST], y[LONGEST];
    size_t x_len = characters (a, x), y_len = characters (b, y);
    if (x_len > LONGEST || y_len > LONGEST)
        return SIZE_MAX;
    return distance (x, x_len, y, y_len);
}

void
suggestion_offer (struct suggestion *s, const char *typed, const char *known)
{
    size_t len = strlen (typed);
    size_t accepted = len <= 3 ? 1 : len <= 7 ? 2 : 3;
    size_t distance = schema_distance (typed, known);
    if (distance <= accepted && (! s->word || distance < s->distance))
        *s = (struct suggestion){ known, distance };
}

bool
suggestion_hint (const struct suggestion *s, const char *rest, struct mur_error **err)
{
    return s->word ? mur_hint (err, "did you mean %s? %s", s->word, rest)
                   : mur_hint (err, "%s", rest);
}

bool
suggestion_among (const char *typed, const char *const *words, struct mur_error **err)
{
    struct suggestion near = { NULL, 0 };
    for (size_t i = 0; words[i]; i++)
        suggestion_offer (&near, typed, words[i]);
    return near.word ? mur_hint (err, "did you mean %s?", near.word) : false;
}

/* Words of other programs for what a block of ours is called. */
static const char *
of_other_programs (const struct schema *schema, const char *key)
{
    static const struct {
        const char *theirs, *ours;
    } words[] = {
        { "tools", "artifacts" },
        { "plugins", "artifacts" },
        { "skills", "artifacts" },
        { "mcp_servers", "artifacts" },
        { "mcpServers", "artifacts" },
        { "dependencies", "artifacts" },
        { "model", "inference" },
        { "provider", "inference" },
        { "llm", "inference" },
        { "prompt", "inference" },
        { "system_prompt", "inference" },
        { "instructions", "inference" },
        { "permissions", "capabilities" },
        { "allow", "capabilities" },
        { "env", "capabilities" },
        { "timeout", "capabilities" },
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (const struct schema_key *k = schema->keys;
             strcmp (key, words[i].theirs) == 0 && k->name; k++)
            if (strcmp (k->name, words[i].ours) == 0)
                return k->name;
    return NULL;
}

const char *
schema_suggest (const struct schema *schema, const char *key)
{
    uint32_t wanted[LONGEST], known[LONGEST];
    size_t wanted_len = characters (key, wanted);
    if (wanted_len > LONGEST)
        return NULL;
    const char *nearest = NULL;
    size_t nearest_distance = SIZE_MAX;
    for (const struct schema_key *k = schema->keys; k->name; k++) {
        size_t len = characters (k->name, known);
        size_t longer = len > wanted_len ? len : wanted_len;
        size_t accepted = longer / 3 ? longer / 3 : 1;
        size_t apart = len > wanted_len ? len - wanted_len : wanted_len - len;
        if (apart > accepted)
            continue;
        size_t d = distance (wanted, wanted_len, known, len);
        if (d <= accepted && d < nearest_distance) {
            nearest = k->name;
            nearest_distance = d;
        }
    }
    return nearest ? nearest : of_other_programs (schema, key);
}
