/* SPDX-License-Identifier: Apache-2.0
 *
 * Component sections and level fit.
 */
#include "artifact/wit.h"

#include "base/alloc.h"

#include <string.h>

#define SERVED_LEVEL 1

/* Names a component may carry: far above any real one, so that a hostile one stays small in memory.
 */
#define NAMES_MAX 10000

/* --- levels
 * ---------------------------------------------------------------------------------------------------------
 */

static const struct wit_level_row level_rows[] = {
#define WIT_LEVEL(level, package, version) { level, package, version },
#include "artifact/wit_levels.def"
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

/* --- sections
 * -------------------------------------------------------------------------------------------------------
 */

enum section_id {
    SECTION_IMPORT = 10,
    SECTION_EXPORT = 11,
    SECTION_LAST = 12, /* values, the last id the format has */
};

/* A stretch of bytes being read; <is_bad> latches the first overrun. */
struct reader {
    const unsigned char *at, *end;
    bool is_bad;
};

static unsigned char
read_byte (struct reader *r)
{
    if (r->is_bad || r->at == r->end) {
        r->is_bad = true;
        return 0;
    }
    return *r->at++;
}

/* An unsigned LEB128 of at most 32 bits. */
static uint32_t
read_u32 (struct reader *r)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
        unsigned char byte = read_byte (r);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (! (byte & 0x80)) {
            if (value > UINT32_MAX)
                break;
            return (uint32_t)value;
        }
    }
    r->is_bad = true;
    return 0;
}

/* A counted stretch inside this one. */
static struct reader
read_stretch (struct reader *r)
{
    uint32_t len = read_u32 (r);
    if (r->is_bad || len > (size_t)(r->end - r->at)) {
        r->is_bad = true;
        return (struct reader){ .at = r->end, .end = r->end, .is_bad = true };
    }
    struct reader inner = { .at = r->at, .end = r->at + len };
    r->at += len;
    return inner;
}

/* importname and exportname: a form byte and the text; form 2 adds a version suffix. */
static struct reader
read_name (struct reader *r)
{
    unsigned char form = read_byte (r);
    struct reader name = read_stretch (r);
    if (form == 2)
        read_stretch (r);
    if (form > 2 || ! utf8_is_valid ((const char *)name.at, (size_t)(name.end - name.at)))
        r->is_bad = true;
    return name;
}

/* valtype: a primitive (one byte) or an index. */
static void
read_valtype (struct reader *r)
{
    if (! r->is_bad && r->at < r->end && *r->at >= 0x64 && *r->at <= 0x7f)
        r->at++;
    else
        read_u32 (r);
}

/* typebound and valuebound: a form byte and what it bounds. */
static void
read_bound (struct reader *r, bool is_value)
{
    unsigned char form = read_byte (r);
    if (form == 0)
        read_u32 (r);
    else if (form != 1)
        r->is_bad = true;
    else if (is_value)
        read_valtype (r);
}

/* externdesc: what kind of thing a name stands for. Only its extent matters here. */
static void
read_externdesc (struct reader *r)
{
    switch (read_byte (r)) {
    case 0x00: /* core module */
        if (read_byte (r) != 0x11)
            r->is_bad = true;
        read_u32 (r);
        break;
    case 0x01: /* function */
    case 0x04: /* component */
    case 0x05: /* instance */
        read_u32 (r);
        break;
    case 0x02: /* value */
        read_bound (r, true);
        break;
    case 0x03: /* type */
        read_bound (r, false);
        break;
    default:
        r->is_bad = true;
    }
}

/* sortidx: what is exported. */
static void
read_sort_index (struct reader *r)
{
    if (read_byte (r) == 0x00)
        read_byte (r); /* a core sort has a second byte */
    read_u32 (r);
}

static void
keep_name (struct strv *names, const struct reader *name)
{
    size_t len = (size_t)(name->end - name->at);
    if (len > 0 && memchr (name->at, '/', len) && ! memchr (name->at, '\0', len))
        strv_take (names, x_strndup ((const char *)name->at, len));
}

/* Reads one import or export section to its last byte. */
static bool
read_names (struct reader *section, bool is_export, struct strv *names)
{
    uint32_t count = read_u32 (section);
    for (uint32_t i = 0; i < count && ! section->is_bad; i++) {
        struct reader name = read_name (section);
        if (is_export) {
            read_sort_index (section);
            unsigned char has_type = read_byte (section);
            if (has_type == 1)
                read_externdesc (section);
            else if (has_type != 0)
                section->is_bad = true;
        } else {
            read_externdesc (section);
        }
        if (! section->is_bad)
            keep_name (names, &name);
        if (names->len > NAMES_MAX)
            return false;
    }
    return ! section->is_bad && section->at == section->end;
}

static void
sort_and_dedup (struct strv *v)
{
    strv_sort (v);
    size_t kept = 0;
    for (size_t i = 0; i < v->len; i++) {
        if (kept > 0 && strcmp (v->items[kept - 1], v->items[i]) == 0)
            free (v->items[i]);
        else
            v->items[kept++] = v->items[i];
    }
    if (v->items)
        v->items[kept] = NULL;
    v->len = kept;
}

static bool
read_sections (struct reader *r, struct wit_contracts *out)
{
    while (r->at < r->end) {
        unsigned char id = read_byte (r);
        struct reader section = read_stretch (r);
        if (r->is_bad || id > SECTION_LAST)
            return false;
        if (id == SECTION_IMPORT && ! read_names (&section, false, &out->imports))
            return false;
        if (id == SECTION_EXPORT && ! read_names (&section, true, &out->exports))
            return false;
    }
    return true;
}

enum wit_reading
wit_read (const void *wasm, size_t len, struct wit_contracts *out)
{
    static const unsigned char magic[4] = { 0x00, 0x61, 0x73, 0x6d };
    static const unsigned char module_version[4] = { 0x01, 0x00, 0x00, 0x00 };
    static const unsigned char component_version[4] = { 0x0d, 0x00, 0x01, 0x00 };
    const unsigned char *bytes = wasm;
    *out = (struct wit_contracts){ 0 };
    if (len < 8 || memcmp (bytes, magic, 4) != 0)
        return WIT_UNREADABLE;
    if (memcmp (bytes + 4, module_version, 4) == 0)
        return WIT_CORE_MODULE;
    if (memcmp (bytes + 4, component_version, 4) != 0)
        return WIT_UNREADABLE;
    struct reader r = { .at = bytes + 8, .end = bytes + len };
    if (! read_sections (&r, out)) {
        wit_contracts_clear (out);
        return WIT_UNREADABLE;
    }
    sort_and_dedup (&out->exports);
    sort_and_dedup (&out->imports);
    return WIT_READ;
}

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

/* --- fit
 * ------------------------------------------------------------------------------------------------------------
 */

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

bool
wit_refuse (const char *name, const char *version, const struct wit_misfits *m,
            struct mur_error **err)
{
    _cleanup_free_ char *clauses = wit_misfits_text (m);
    return mur_fail (err, E_WIT_LEVEL_001, "%s@%s does not fit WIT level %u: %s", name, version,
                     wit_served_level (), clauses);
}
