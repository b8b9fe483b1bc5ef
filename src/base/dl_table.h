/* SPDX-License-Identifier: Apache-2.0
 *
 * A shared library as one table of functions, loaded when it is first needed: what a start does not
 * use it does not pay for.
 */
#pragma once

#include <stddef.h>

struct dl_symbol {
    const char *name;
    size_t offset; /* of its pointer in the table */
};

enum dl_outcome {
    DL_LOADED,
    DL_ABSENT,     /* none of the files is installed */
    DL_INCOMPLETE, /* a symbol is missing: another version than was built for */
};

/* Opens the first of <files> (NULL-terminated) that is there and fills the table. Never unloaded.
 * Not thread-safe: the caller loads once. */
enum dl_outcome dl_table_load (const char *const *files, const struct dl_symbol *symbols,
                               size_t count, void *table);
