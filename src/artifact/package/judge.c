/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/package/judge.h"

#include "artifact/names/wit.h"
#include "base/alloc.h"
#include "manifest/settings/artifact_manifest.h"

#include <string.h>

#define READ_CEILINGS 4 /* so many times the ceiling of one entry are read of a whole package */

/* --- bytes --- */

static void
count (void *left, const void *data, size_t len)
{
    uint64_t *bytes = left;
    (void)data;
    *bytes -= len < *bytes ? len : *bytes;
}

bool
package_check_bytes (const struct package *p, struct mur_error **err)
{
    uint64_t left =
        zip_ceiling () > UINT64_MAX / READ_CEILINGS ? UINT64_MAX : zip_ceiling () * READ_CEILINGS;
    for (size_t i = 0; i < zip_count (p->zip) && left; i++)
        if (! zip_stream (p->zip, zip_at (p->zip, i), zip_ceiling (), count, &left, NULL, err)) {
            if (err && *err && ! (*err)->hint)
                mur_hint (err, "the package is damaged: build it or fetch it again");
            return false;
        }
    return true;
}

/* --- kinds --- */

static const struct {
    const char *kind;
    const char *exports[2]; /* beginnings of names, any of which it is called by; NULL: no component
                             * tells */
} kinds[] = {
    { "tool", { "murmur:tool/" } }, { "driver", { "murmur:driver/", "murmur:tool/" } },
    { "hook", { "murmur:hook/" } }, { "skill", { NULL } },
    { "capsule", { NULL } },        { "mcp", { NULL } },
};

/* Its row, or ARRAY_LEN (kinds). */
static size_t
kind_of (const char *word)
{
    size_t i = 0;
    while (i < ARRAY_LEN (kinds) && ! str_eq (kinds[i].kind, word))
        i++;
    return i;
}

char *
package_misdeclared (const struct package *p, const char *name, const char *declared)
{
    const char *packed = p->manifest->runtime;
    bool says_nothing = kind_of (packed) == ARRAY_LEN (kinds);
    bool may_drive =
        str_eq (packed, "tool") && str_eq (declared, "driver") && ! p->manifest->input_schema;
    if (says_nothing || str_eq (packed, declared) || may_drive)
        return NULL;
    const char *version = p->manifest->version;
    if (str_eq (packed, "capsule"))
        return x_asprintf ("%s@%s is a capsule, and it is declared as a %s: one is run (mur run "
                           "--capsule %s) or delegated to (capabilities.spawn)",
                           name, version, declared, name);
    return x_asprintf ("%s@%s is a %s, and it is declared as a %s: write runtime: %s beside its "
                       "name in murmur.yaml if it is meant as that",
                       name, version, packed, declared, packed);
}

static bool
is_called_by (const struct wit_contracts *c, size_t kind)
{
    for (size_t i = 0; i < ARRAY_LEN (kinds[kind].exports) && kinds[kind].exports[i]; i++)
        if (wit_export_starting (c, kinds[kind].exports[i]))
            return true;
    return false;
}

char *
package_miscast (struct package *p)
{
    const char *packed = p->manifest->runtime;
    bool is_called = str_eq (packed, "tool") || str_eq (packed, "driver");
    _cleanup_contracts_ struct wit_contracts contracts = { 0 };
    if (! is_called || p->manifest->packaging != PACKAGING_WASM ||
        package_contracts (p, &contracts, NULL) != PACKAGE_CONTRACTS ||
        is_called_by (&contracts, kind_of (packed)))
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN (kinds); i++)
        if (is_called_by (&contracts, i))
            return x_asprintf ("%s says runtime: %s, and its component is a %s (it exports %s): "
                               "write runtime: %s in its murmur.yaml and build it again",
                               p->label, packed, kinds[i].kind,
                               wit_export_starting (&contracts, kinds[i].exports[0]),
                               kinds[i].kind);
    return NULL;
}
