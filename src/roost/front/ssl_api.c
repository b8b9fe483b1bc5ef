/* SPDX-License-Identifier: Apache-2.0 */
#include "roost/front/ssl_api.h"

#include "base/cleanup.h"
#include "base/dl_table.h"

static const struct dl_symbol symbols[] = {
#define SYMBOL(name) { #name, offsetof (struct ssl_api, name) },
    SSL_API_FUNCTIONS (SYMBOL)
#undef SYMBOL
};

static const char *const file_names[] = { "libssl.so.3", NULL };

const struct ssl_api *
ssl_api_get (const char **why)
{
    static struct ssl_api api;
    *why = api.SSL_new ? NULL : "libssl.so.3 is not installed (Debian package libssl3)";
    if (! *why)
        return &api;
    enum dl_outcome outcome = dl_table_load (file_names, symbols, ARRAY_LEN (symbols), &api);
    if (outcome == DL_LOADED)
        *why = NULL;
    else if (outcome == DL_INCOMPLETE)
        *why = "libssl.so.3 is too old";
    return *why ? NULL : &api;
}
