/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http_names.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "net/resolver.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/epoll.h>

#define KEPT_MS ((uint64_t)60000)

struct asker {
    http_names_fn *fn;
    void *ctx;
    struct asker *next;
};

struct name {
    struct http_names *names;
    char *host;
    struct buf addresses;
    enum resolve_status status; /* the better one of the families */
    unsigned open;              /* lookups not answered yet */
    uint64_t until_ms;          /* once answered */
    struct asker *askers;
    struct name *next;
};

struct http_names {
    struct resolver *resolver;
    int epoll_fd;
    struct name *first;
    unsigned open;
};

struct http_names *
http_names_new (struct mur_error **err)
{
    struct http_names *n = x_new0 (struct http_names);
    n->epoll_fd = epoll_create1 (EPOLL_CLOEXEC);
    n->resolver = n->epoll_fd >= 0 ? resolver_new (n->epoll_fd, 0, err) : NULL;
    if (n->resolver)
        return n;
    if (n->epoll_fd >= 0)
        close (n->epoll_fd);
    else
        mur_fail_errno (err, E_IO_003, "cannot start the name resolver");
    free (n);
    return NULL;
}

static void
name_free (struct name *name)
{
    buf_free (&name->addresses);
    free (name->host);
    free (name);
}

void
http_names_free (struct http_names *n)
{
    if (! n)
        return;
    resolver_free (n->resolver); /* answers what is open */
    while (n->first) {
        struct name *name = n->first;
        n->first = name->next;
        name_free (name);
    }
    close (n->epoll_fd);
    free (n);
}

/* --- answers --- */

static void
add_addresses (struct name *name, const struct resolve_answer *a)
{
    for (size_t i = 0; i < a->count; i++) {
        char text[INET6_ADDRSTRLEN];
        bool is_v4 = a->family == AF_INET;
        const void *address = is_v4 ? (const void *)&a->v4[i] : (const void *)&a->v6[i];
        inet_ntop (a->family, address, text, sizeof text);
        buf_printf (&name->addresses, is_v4 ? "%s%s" : "%s[%s]", name->addresses.len ? "," : "",
                    text);
    }
}

static void
tell (const struct name *name, http_names_fn *fn, void *ctx)
{
    if (name->addresses.len)
        fn (ctx, name->addresses.data, NULL);
    else
        fn (ctx, NULL,
            name->status == RESOLVE_NO_ANSWER ? "no name server answered"
            : name->status == RESOLVE_NO_NAME ? "the name does not exist"
                                              : "the name has no address");
}

static void
on_answer (void *ctx, const struct resolve_answer *a)
{
    struct name *name = ctx;
    add_addresses (name, a);
    /* That it exists says more than that it does not, and that more than silence. */
    if (name->open == 2 || a->status < name->status)
        name->status = a->status;
    if (--name->open)
        return;
    name->names->open--;
    /* Silence is not remembered. */
    name->until_ms = clock_monotonic_ms () + (name->status == RESOLVE_NO_ANSWER ? 0 : KEPT_MS);
    while (name->askers) {
        struct asker *asker = name->askers;
        name->askers = asker->next;
        tell (name, asker->fn, asker->ctx);
        free (asker);
    }
}

/* --- asking --- */

/* Drops what is no longer true; returns the one of this host, if it is there. */
static struct name *
find (struct http_names *n, const char *host)
{
    uint64_t now = clock_monotonic_ms ();
    struct name *found = NULL;
    for (struct name **at = &n->first; *at;) {
        struct name *name = *at;
        if (! name->open && name->until_ms <= now) {
            *at = name->next;
            name_free (name);
            continue;
        }
        if (strcmp (name->host, host) == 0)
            found = name;
        at = &name->next;
    }
    return found;
}

static void
add_asker (struct name *name, http_names_fn *fn, void *ctx)
{
    struct asker *asker = x_new0 (struct asker), **end = &name->askers;
    *asker = (struct asker){ fn, ctx, NULL };
    while (*end)
        end = &(*end)->next;
    *end = asker;
}

void
http_names_find (struct http_names *n, const char *host, http_names_fn *fn, void *ctx)
{
    struct name *name = find (n, host);
    if (name && ! name->open) {
        tell (name, fn, ctx);
        return;
    }
    bool is_new = ! name;
    if (is_new) {
        name = x_new0 (struct name);
        name->names = n;
        name->host = x_strdup (host);
        name->open = 2;
        name->next = n->first;
        n->first = name;
        n->open++;
    }
    add_asker (name, fn, ctx);
    if (! is_new)
        return;
    resolver_lookup (n->resolver, host, AF_INET, on_answer, name);
    resolver_lookup (n->resolver, host, AF_INET6, on_answer, name);
}

/* --- waiting --- */

int
http_names_fd (const struct http_names *n)
{
    return n->epoll_fd;
}

int
http_names_timeout_ms (struct http_names *n, int max_ms)
{
    return n->open ? resolver_timeout_ms (n->resolver, max_ms < 200 ? max_ms : 200) : max_ms;
}

void
http_names_process (struct http_names *n)
{
    struct epoll_event events[8];
    if (! n->open)
        return;
    int count = epoll_wait (n->epoll_fd, events, (int)ARRAY_LEN (events), 0);
    for (int i = 0; i < count; i++)
        resolver_process (n->resolver, (int)(uint32_t)events[i].data.u64, events[i].events);
    resolver_process (n->resolver, -1, 0);
}
