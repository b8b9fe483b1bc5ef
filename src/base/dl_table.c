/* SPDX-License-Identifier: Apache-2.0 */
#include "base/dl_table.h"

#include <dlfcn.h>

enum dl_outcome
dl_table_load (const char *const *files, const struct dl_symbol *symbols, size_t count, void *table)
{
    void *library = NULL;
    for (size_t i = 0; ! library && files[i]; i++)
        library = dlopen (files[i], RTLD_LAZY | RTLD_LOCAL);
    if (! library)
        return DL_ABSENT;
    for (size_t i = 0; i < count; i++) {
        void *symbol = dlsym (library, symbols[i].name);
        if (! symbol)
            return DL_INCOMPLETE;
        *(void **)((char *)table + symbols[i].offset) = symbol;
    }
    return DL_LOADED;
}
