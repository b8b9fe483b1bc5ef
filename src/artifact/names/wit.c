/* SPDX-License-Identifier: Apache-2.0
 *
 * Levels, and what a component's names are judged by. Reading the names: wit_reader.c.
 */
#include "artifact/names/wit.h"

#include "base/alloc.h"

#include <string.h>

#define SERVED_LEVEL 1

/* --- levels --- */

static const struct wit_level_row level_rows[] = {
#define WIT_LEVEL(level, package, version) { level, package, version },
#include "artifact/names/wit_levels.def"
#undef WIT_LEVEL
};

const struct wit_level_row *
wit_level_rows (size_t *count)
{
    *count = ARRAY_LEN (level_rows);
    return level_rows;
}

unsigned
wit_newest_level (void)
{
    return level_rows[ARRAY_LEN (level_rows) - 1].level;
}

unsigned
wit_served_level (void)
{
    return SERVED_LEVEL;
}

const char *
wit_level_version (unsigned level, const char *package, size_t package_len)
{
    for (size_t i = 0; i < ARRAY_LEN (level_rows); i++)
        if (level_rows[i].level == level && strlen (level_rows[i].package) == package_len &&
            memcmp (level_rows[i].package, package, package_len) == 0)
            return level_rows[i].version;
    return NULL;
}

/* --- contracts --- */

void
wit_contracts_clear (struct wit_contracts *c)
{
    strv_free (&c->exports);
    strv_free (&c->imports);
    *c = (struct wit_contracts){ 0 };
}

bool
wit_exports (const struct wit_contracts *c, const char *interface)
{
    return strv_contains (&c->exports, interface);
}

const char *
wit_export_starting (const struct wit_contracts *c, const char *prefix)
{
    for (size_t i = 0; i < c->exports.len; i++)
        if (str_starts (c->exports.items[i], prefix))
            return c->exports.items[i];
    return NULL;
}

/* --- fit --- */

void
wit_judge (const char *interface, enum wit_direction direction, unsigned level,
           struct wit_misfits *m)
{
    const char *slash = strchr (interface, '/');
    size_t package_len = slash ? (size_t)(slash - interface) : strlen (interface);
    if (! str_starts (interface, "murmur:"))
        return;
    const char *served = wit_level_version (level, interface, package_len);
    const char *at = strrchr (interface, '@');
    if (served && at && strcmp (at + 1, served) == 0)
        return;
    x_grow (m->items, m->len, m->cap);
    m->items[m->len++] = (struct wit_misfit){
        .direction = direction,
        .interface = interface,
        .package = x_strndup (interface, package_len),
        .served = served,
    };
}

static bool
judge_all (const struct strv *names, enum wit_direction direction, unsigned level,
           struct wit_misfits *m)
{
    _cleanup_misfits_ struct wit_misfits own = { 0 };
    struct wit_misfits *into = m ? m : &own;
    size_t before = into->len;
    for (size_t i = 0; i < names->len; i++)
        wit_judge (names->items[i], direction, level, into);
    return into->len == before;
}

bool
wit_fits (const struct wit_contracts *c, unsigned level, struct wit_misfits *m)
{
    bool exports_fit = judge_all (&c->exports, WIT_EXPORTS, level, m);
    return judge_all (&c->imports, WIT_IMPORTS, level, m) && exports_fit;
}

bool
wit_names_fit (const struct strv *interfaces, unsigned level, struct wit_misfits *m)
{
    return judge_all (interfaces, WIT_NAMES, level, m);
}

unsigned
wit_newest_fit (const struct wit_contracts *c)
{
    for (unsigned level = wit_newest_level (); level > 0; level--)
        if (wit_fits (c, level, NULL))
            return level;
    return 0;
}

void
wit_contracts_names (const struct wit_contracts *c, struct strv *out)
{
    const struct strv *lists[] = { &c->exports, &c->imports };
    for (size_t l = 0; l < ARRAY_LEN (lists); l++)
        for (size_t i = 0; i < lists[l]->len; i++)
            if (str_starts (lists[l]->items[i], "murmur:") &&
                ! strv_contains (out, lists[l]->items[i]))
                strv_push (out, lists[l]->items[i]);
    strv_sort (out);
}

void
wit_misfits_clear (struct wit_misfits *m)
{
    for (size_t i = 0; i < m->len; i++)
        free (m->items[i].package);
    free (m->items);
    *m = (struct wit_misfits){ 0 };
}

char *
wit_misfits_text (const struct wit_misfits *m)
{
    static const char *const verbs[] = { "exports", "imports", "names" };
    struct buf text = { 0 };
    for (size_t i = 0; i < m->len; i++) {
        const struct wit_misfit *misfit = &m->items[i];
        buf_printf (&text, "%sit %s %s", i ? "; " : "", verbs[misfit->direction],
                    misfit->interface);
        if (misfit->served)
            buf_printf (&text, ", the level has %s@%s", misfit->package, misfit->served);
        else
            buf_printf (&text, ", the level has no version of %s", misfit->package);
    }
    return buf_steal (&text);
}

char *
wit_misfit_text (const struct wit_misfit *m)
{
    struct wit_misfits one = { .items = (struct wit_misfit *)m, .len = 1 };
    return wit_misfits_text (&one);
}

bool
wit_refuse (const char *name, const char *version, const struct wit_misfits *m,
            struct mur_error **err)
{
    _cleanup_free_ char *clauses = wit_misfits_text (m);
    return mur_fail (err, E_WIT_LEVEL_001, "%s@%s does not fit WIT level %u: %s", name, version,
                     wit_served_level (), clauses);
}
