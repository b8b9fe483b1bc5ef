/* SPDX-License-Identifier: Apache-2.0
 *
 * Asking systemd for a scope. The bus is libsystemd's, loaded here alone.
 */
#include "sandbox/kernel/service_manager.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/dl_table.h"
#include "fs/paths.h"
#include "fs/root.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS  2000
#define PAUSE_NS 5000000

typedef struct sd_bus sd_bus;
typedef struct sd_bus_message sd_bus_message;

/* sd-bus(3); the types of the values follow the signature. */
struct bus_api {
    int (*open_user) (sd_bus **bus);
    int (*set_method_call_timeout) (sd_bus *bus, uint64_t usec);
    int (*call_method) (sd_bus *bus, const char *destination, const char *path,
                        const char *interface, const char *member, void *error,
                        sd_bus_message **reply, const char *types, ...);
    sd_bus_message *(*message_unref) (sd_bus_message *m);
    sd_bus *(*flush_close_unref) (sd_bus *bus);
};

#define SYMBOL(member)                                                                             \
    {                                                                                              \
        "sd_bus_" #member, offsetof (struct bus_api, member)                                       \
    }
static const struct dl_symbol symbols[] = {
    SYMBOL (open_user),     SYMBOL (set_method_call_timeout), SYMBOL (call_method),
    SYMBOL (message_unref), SYMBOL (flush_close_unref),
};
#undef SYMBOL

static const char *const file_names[] = { "libsystemd.so.0", NULL };

bool
service_manager_is_there (void)
{
    char path[64];
    if (access ("/run/systemd/system", F_OK) != 0)
        return false;
    snprintf (path, sizeof path, "/run/user/%u/bus", geteuid ());
    return getenv ("DBUS_SESSION_BUS_ADDRESS") || getenv ("XDG_RUNTIME_DIR") ||
           access (path, F_OK) == 0;
}

/* Whether this process has arrived in the unit. */
static bool
is_in (const char *unit)
{
    _cleanup_buf_ struct buf own = { 0 };
    return fs_read_path ("/proc/self/cgroup", (size_t)1 << 20, &own, NULL) && own.data &&
           strstr (own.data, unit);
}

static bool
ask (const struct bus_api *api, sd_bus *bus, const char *unit)
{
    sd_bus_message *reply = NULL;
    api->set_method_call_timeout (bus, (uint64_t)WAIT_MS * 1000);
    int status = api->call_method (bus, "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
                                   "org.freedesktop.systemd1.Manager", "StartTransientUnit", NULL,
                                   &reply, "ssa(sv)a(sa(sv))", unit, "fail", 4u,       /* */
                                   "Description", "s", "Commands of a murmur session", /* */
                                   "Delegate", "b", 1,                                 /* */
                                   "CollectMode", "s", "inactive-or-failed",           /* */
                                   "PIDs", "au", 1u, (uint32_t)getpid (),              /* */
                                   0u);
    api->message_unref (reply);
    return status >= 0;
}

bool
service_manager_give_scope (void)
{
    static atomic_uint next;
    struct bus_api api;
    sd_bus *bus = NULL;
    if (dl_table_load (file_names, symbols, ARRAY_LEN (symbols), &api) != DL_LOADED ||
        api.open_user (&bus) < 0)
        return false;
    _cleanup_free_ char *unit =
        x_asprintf ("murmur-%d-%u.scope", getpid (), atomic_fetch_add (&next, 1));
    uint64_t end = clock_monotonic_ms () + WAIT_MS;
    bool is_asked = ask (&api, bus, unit), is_there = is_asked && is_in (unit);
    const struct timespec pause = { .tv_nsec = PAUSE_NS };
    while (is_asked && ! is_there && clock_monotonic_ms () < end) {
        nanosleep (&pause, NULL);
        is_there = is_in (unit);
    }
    api.flush_close_unref (bus);
    return is_there;
}
