/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/ceiling.h"

#include "base/alloc.h"

#include <string.h>

static int
compare_keys (const void *x, const void *y)
{
    return strcmp (*(const char *const *)x, *(const char *const *)y);
}

static char *
key_of (const char *host, const char *scheme, int port)
{
    return x_asprintf ("%s\n%s\n%d", host, scheme ? scheme : "", port);
}

struct ceiling
ceiling_of (struct arena *arena, const struct str_list *allow)
{
    struct ceiling c = { .keys = arena_new_array (arena, const char *, allow->len + 1) };
    for (size_t i = 0; i < allow->len; i++) {
        _cleanup_allow_list_ struct allow_list one = { 0 };
        if (! allow_list_add (&one, allow->items[i], NULL))
            continue; /* covers nothing; staging refuses it */
        const struct allow_rule *rule = &one.rules[0];
        _cleanup_free_ char *key = key_of (rule->host, rule->scheme, rule->port);
        c.keys[c.len++] = arena_strdup (arena, key);
    }
    qsort (c.keys, c.len, sizeof *c.keys, compare_keys);
    return c;
}

static bool
holds (const struct ceiling *c, const char *host, const char *scheme, int port)
{
    _cleanup_free_ char *key = key_of (host, scheme, port);
    return bsearch (&key, c->keys, c->len, sizeof *c->keys, compare_keys) != NULL;
}

bool
ceiling_covers (const struct ceiling *c, const struct allow_rule *rule)
{
    return holds (c, rule->host, NULL, ALLOW_ANY_PORT) ||
           holds (c, rule->host, rule->scheme, ALLOW_ANY_PORT) ||
           holds (c, rule->host, NULL, rule->port) ||
           holds (c, rule->host, rule->scheme, rule->port);
}
