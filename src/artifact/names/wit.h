/* SPDX-License-Identifier: Apache-2.0
 *
 * Which interfaces a component names, and whether the WIT level served here has them
 * (spec/artifacts.md 11).
 *
 * The reader walks the outermost component's import and export sections by hand, every length
 * bounded by its section, and touches nothing else, whatever the component's size. Levels are a
 * table (wit_levels.def), shared with host/. Always true: versions of murmur:* are compared as
 * text, never as semver; other namespaces are never judged.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <stdint.h>

/* --- levels --- */

struct wit_level_row {
    unsigned level;
    const char *package; /* "murmur:tool" */
    const char *version; /* "0.1.0" */
};

/* All rows, ascending by level, then package. Static. */
const struct wit_level_row *wit_level_rows (size_t *count);
unsigned wit_newest_level (void);
/* The level this build serves. */
unsigned wit_served_level (void);
/* The version a level names for a package, or NULL. */
const char *wit_level_version (unsigned level, const char *package, size_t package_len);

/* --- contracts --- */

/* Instance names holding '/', sorted, no repeats. */
struct wit_contracts {
    struct strv exports;
    struct strv imports;
};

void wit_contracts_clear (struct wit_contracts *c);
#define _cleanup_contracts_ _cleanup_ (wit_contracts_clear)

/* True when some export is exactly this name. */
bool wit_exports (const struct wit_contracts *c, const char *interface);
/* The first export that starts with this text ("murmur:driver/process@"), or NULL. */
const char *wit_export_starting (const struct wit_contracts *c, const char *prefix);

/* Every murmur:* name of either direction, ascending, once. */
void wit_contracts_names (const struct wit_contracts *c, struct strv *out);

/* --- fit --- */

enum wit_direction {
    WIT_EXPORTS,
    WIT_IMPORTS,
    WIT_NAMES, /* an index does not tell the direction */
};

struct wit_misfit {
    enum wit_direction direction;
    const char *interface; /* borrowed from the contracts */
    char *package;         /* owned */
    const char *served;    /* the level's version of the package, NULL when it has none */
};

struct wit_misfits {
    struct wit_misfit *items;
    size_t len, cap;
};

void wit_misfits_clear (struct wit_misfits *m);
#define _cleanup_misfits_ _cleanup_ (wit_misfits_clear)

/* Adds a misfit when <interface> is a murmur:* name the level does not have. */
void wit_judge (const char *interface, enum wit_direction direction, unsigned level,
                struct wit_misfits *m);
/* Every murmur:* name of the contracts, exports then imports. Returns true when all fit. m may be
 * NULL. */
bool wit_fits (const struct wit_contracts *c, unsigned level, struct wit_misfits *m);
/* Index form: one merged list. */
bool wit_names_fit (const struct strv *interfaces, unsigned level, struct wit_misfits *m);
/* The newest level all names fit, or 0. */
unsigned wit_newest_fit (const struct wit_contracts *c);
/* "exports murmur:x/y@2.0.0 (level 1 has murmur:x@0.1.0)" clauses joined by "; ". Owned. */
char *wit_misfits_text (const struct wit_misfits *m);
/* The clause of one. Owned. */
char *wit_misfit_text (const struct wit_misfit *m);
/* Sets E-WIT-LEVEL-001 naming artifact, level and every clause. Always false. The caller adds the
 * hint. */
bool wit_refuse (const char *name, const char *version, const struct wit_misfits *m,
                 struct mur_error **err);
