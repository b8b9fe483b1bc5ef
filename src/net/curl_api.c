/* SPDX-License-Identifier: Apache-2.0
 *
 * Loading libcurl. See curl_api.h.
 */
#include "net/curl_api.h"

#include "base/cleanup.h"

#include <dlfcn.h>
#include <pthread.h>

static const struct {
    const char *name;
    size_t offset;
} symbols[] = {
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
static const char *const file_names[] = { "libcurl.so.4", "libcurl-gnutls.so.4" };

static pthread_once_t loaded_once = PTHREAD_ONCE_INIT;
static struct curl_api api;
static const char *load_fault;

static void
load (void)
{
    void *library = NULL;
    for (size_t i = 0; ! library && i < ARRAY_LEN (file_names); i++)
        library = dlopen (file_names[i], RTLD_LAZY | RTLD_LOCAL);
    if (! library) {
        load_fault = "libcurl.so.4 is not installed (Debian package libcurl4)";
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN (symbols); i++) {
        void *symbol = dlsym (library, symbols[i].name);
        if (! symbol) {
            load_fault = "libcurl.so.4 is too old: 7.84 or newer is needed";
            return;
        }
        *(void **)((char *)&api + symbols[i].offset) = symbol;
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
