/* SPDX-License-Identifier: Apache-2.0
 *
 * Loading libmicrohttpd. See mhd_api.h.
 */
#include "net/mhd_api.h"

#include "base/cleanup.h"

#include <dlfcn.h>
#include <pthread.h>

static const struct {
    const char *name;
    size_t offset;
} symbols[] = {
#define SYMBOL(member)                                                                             \
    {                                                                                              \
        "MHD_" #member, offsetof (struct mhd_api, member)                                          \
    }
    SYMBOL (start_daemon),
    SYMBOL (stop_daemon),
    SYMBOL (run),
    SYMBOL (get_timeout),
    SYMBOL (get_daemon_info),
    SYMBOL (add_connection),
    SYMBOL (get_connection_values_n),
    SYMBOL (get_connection_info),
    SYMBOL (queue_response),
    SYMBOL (create_response_from_buffer),
    SYMBOL (create_response_from_callback),
    SYMBOL (add_response_header),
    SYMBOL (set_response_options),
    SYMBOL (destroy_response),
    SYMBOL (suspend_connection),
    SYMBOL (resume_connection),
#undef SYMBOL
};

static pthread_once_t loaded_once = PTHREAD_ONCE_INIT;
static struct mhd_api api;
static const char *load_fault;

static void
load (void)
{
    void *library = dlopen ("libmicrohttpd.so.12", RTLD_LAZY | RTLD_LOCAL);
    if (! library) {
        load_fault = "libmicrohttpd.so.12 is not installed (Debian package libmicrohttpd12)";
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN (symbols); i++) {
        void *symbol = dlsym (library, symbols[i].name);
        if (! symbol) {
            load_fault = "libmicrohttpd.so.12 is too old: 0.9.75 or newer is needed";
            return;
        }
        *(void **)((char *)&api + symbols[i].offset) = symbol;
    }
}

const struct mhd_api *
mhd_api_get (const char **why)
{
    pthread_once (&loaded_once, load);
    *why = load_fault;
    return load_fault ? NULL : &api;
}
