/* SPDX-License-Identifier: Apache-2.0 */
#include "net/curl_api.h"

#include "base/cleanup.h"
#include "base/dl_table.h"

#include <pthread.h>

static const struct dl_symbol symbols[] = {
#define SYMBOL(member)                                                                             \
    {                                                                                              \
        "curl_" #member, offsetof (struct curl_api, member)                                        \
    }
    SYMBOL (global_init),      SYMBOL (easy_init),           SYMBOL (easy_setopt),
    SYMBOL (easy_getinfo),     SYMBOL (easy_pause),          SYMBOL (easy_cleanup),
    SYMBOL (easy_strerror),    SYMBOL (multi_init),          SYMBOL (multi_setopt),
    SYMBOL (multi_add_handle), SYMBOL (multi_remove_handle), SYMBOL (multi_perform),
    SYMBOL (multi_poll),       SYMBOL (multi_wakeup),        SYMBOL (multi_info_read),
    SYMBOL (multi_cleanup),
#undef SYMBOL
};

/* The OpenSSL flavour first: its thread model is the one measured. */
static const char *const file_names[] = { "libcurl.so.4", "libcurl-gnutls.so.4", NULL };

static pthread_once_t loaded_once = PTHREAD_ONCE_INIT;
static struct curl_api api;
static const char *load_fault;

static void
load (void)
{
    switch (dl_table_load (file_names, symbols, ARRAY_LEN (symbols), &api)) {
    case DL_ABSENT:
        load_fault = "libcurl.so.4 is not installed (Debian package libcurl4)";
        return;
    case DL_INCOMPLETE:
        load_fault = "libcurl.so.4 is too old: 7.84 or newer is needed";
        return;
    case DL_LOADED:
        break;
    }
    if (api.global_init (CURL_GLOBAL_DEFAULT) != CURLE_OK)
        load_fault = "libcurl could not be initialised";
}

const struct curl_api *
curl_api_get (const char **why)
{
    pthread_once (&loaded_once, load);
    *why = load_fault;
    return load_fault ? NULL : &api;
}
