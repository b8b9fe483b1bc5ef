/* SPDX-License-Identifier: Apache-2.0 */
#include "net/resolver.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <ares.h>
#include <arpa/inet.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>

#define ROUND_MS  2000 /* one round of the name servers */
#define TRIES     3    /* the first and two retries */
#define LOOKUP_MS 5000 /* the whole lookup */

#define MAX_OPEN    256 /* lookups at once; nobody of ours asks for so many */
#define MAX_WAITING 64  /* for the same one */

struct waiter {
    resolve_fn *fn;
    void *ctx;
};

/* One question under way, and who waits for its answer. */
struct lookup {
    struct resolver *resolver;
    struct lookup *next, **link;
    uint64_t deadline_ms;
    char *name;
    int family;
    bool is_answered;
    struct waiter *waiting;
    size_t count, cap;
};

struct resolver {
    ares_channel channel;
    int epoll_fd;
    uint64_t tag;
    struct lookup *open; /* not yet returned by c-ares */
    size_t open_count;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
initialise (void)
{
    ares_library_init (ARES_LIB_INIT_ALL);
}

static void
watch (void *ctx, ares_socket_t fd, int readable, int writable)
{
    struct resolver *r = ctx;
    struct epoll_event e = { .events = (readable ? EPOLLIN : 0U) | (writable ? EPOLLOUT : 0U),
                             .data.u64 = r->tag | (uint32_t)fd };
    if (! readable && ! writable)
        epoll_ctl (r->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    else if (epoll_ctl (r->epoll_fd, EPOLL_CTL_MOD, fd, &e) < 0)
        epoll_ctl (r->epoll_fd, EPOLL_CTL_ADD, fd, &e);
}

struct resolver *
resolver_new (int epoll_fd, uint64_t tag, struct mur_error **err)
{
    pthread_once (&once, initialise);
    struct resolver *r = x_new0 (struct resolver);
    r->epoll_fd = epoll_fd;
    r->tag = tag;
    char lookups[] = "fb"; /* hosts file, then DNS: no other source, whatever nsswitch.conf says */
    struct ares_options options = { .timeout = ROUND_MS,
                                    .tries = TRIES,
                                    .lookups = lookups,
                                    .sock_state_cb = watch,
                                    .sock_state_cb_data = r };
    int status = ares_init_options (&r->channel, &options,
                                    ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS |
                                        ARES_OPT_SOCK_STATE_CB);
    if (status == ARES_SUCCESS)
        return r;
    free (r);
    mur_fail (err, E_IO_003, "cannot start the name resolver: %s", ares_strerror (status));
    return NULL;
}

void
resolver_free (struct resolver *r)
{
    if (! r)
        return;
    ares_destroy (r->channel);
    free (r);
}

static void
answer (struct lookup *l, const struct resolve_answer *a)
{
    if (l->is_answered)
        return;
    l->is_answered = true;
    for (size_t i = 0; i < l->count; i++)
        l->waiting[i].fn (l->waiting[i].ctx, a);
}

static enum resolve_status
status_of (int status)
{
    switch (status) {
    case ARES_SUCCESS:
    case ARES_ENODATA:
        return RESOLVED;
    case ARES_ENOTFOUND:
    case ARES_EBADNAME:
        return RESOLVE_NO_NAME;
    default:
        return RESOLVE_NO_ANSWER;
    }
}

static void
copy_addresses (const struct ares_addrinfo *info, struct resolve_answer *a)
{
    for (const struct ares_addrinfo_node *n = info->nodes; n && a->count < RESOLVE_MAX_ADDRESSES;
         n = n->ai_next) {
        if (n->ai_family != a->family)
            continue;
        if (a->family == AF_INET)
            memcpy (&a->v4[a->count++],
                    &((const struct sockaddr_in *)(const void *)n->ai_addr)->sin_addr,
                    sizeof a->v4[0]);
        else
            memcpy (&a->v6[a->count++],
                    &((const struct sockaddr_in6 *)(const void *)n->ai_addr)->sin6_addr,
                    sizeof a->v6[0]);
    }
}

static void
on_addresses (void *ctx, int status, int timeouts _unused_, struct ares_addrinfo *info)
{
    struct lookup *l = ctx;
    struct resolve_answer a = { .status = status_of (status), .family = l->family };
    if (info) {
        copy_addresses (info, &a);
        ares_freeaddrinfo (info);
    }
    *l->link = l->next;
    if (l->next)
        l->next->link = l->link;
    l->resolver->open_count--;
    answer (l, &a);
    free (l->waiting);
    free (l->name);
    free (l);
}

static bool
answer_literal (const char *name, int family, resolve_fn *fn, void *ctx)
{
    struct resolve_answer a = { .status = RESOLVED, .family = family };
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton (AF_INET, name, &v4) == 1) {
        if (family == AF_INET)
            a.v4[a.count++] = v4;
    } else if (inet_pton (AF_INET6, name, &v6) == 1) {
        if (family == AF_INET6)
            a.v6[a.count++] = v6;
    } else {
        return false;
    }
    fn (ctx, &a);
    return true;
}

/* Names are compared without case, as they are looked up. */
static struct lookup *
find_open (const struct resolver *r, const char *name, int family)
{
    for (struct lookup *l = r->open; l; l = l->next)
        if (! l->is_answered && l->family == family && strcasecmp (l->name, name) == 0)
            return l;
    return NULL;
}

static void
wait_for (struct lookup *l, resolve_fn *fn, void *ctx)
{
    x_grow (l->waiting, l->count, l->cap);
    l->waiting[l->count++] = (struct waiter){ fn, ctx };
}

void
resolver_lookup (struct resolver *r, const char *name, int family, resolve_fn *fn, void *ctx)
{
    if (answer_literal (name, family, fn, ctx))
        return;
    struct lookup *l = find_open (r, name, family);
    if (l ? l->count >= MAX_WAITING : r->open_count >= MAX_OPEN) {
        fn (ctx, &(struct resolve_answer){ .status = RESOLVE_NO_ANSWER, .family = family });
        return;
    }
    if (l) {
        wait_for (l, fn, ctx);
        return;
    }
    l = x_new0 (struct lookup);
    *l = (struct lookup){ .resolver = r,
                          .next = r->open,
                          .link = &r->open,
                          .deadline_ms = clock_monotonic_ms () + LOOKUP_MS,
                          .name = x_strdup (name),
                          .family = family };
    if (l->next)
        l->next->link = &l->next;
    r->open = l;
    r->open_count++;
    wait_for (l, fn, ctx);
    const struct ares_addrinfo_hints hints = { .ai_family = family,
                                               .ai_flags = ARES_AI_NOSORT,
                                               .ai_socktype = SOCK_STREAM };
    ares_getaddrinfo (r->channel, name, NULL, &hints, on_addresses, l);
}

void
resolver_process (struct resolver *r, int fd, uint32_t events)
{
    bool is_readable = events & (EPOLLIN | EPOLLERR | EPOLLHUP);
    bool is_writable = events & (EPOLLOUT | EPOLLERR | EPOLLHUP);
    ares_process_fd (r->channel, is_readable ? fd : ARES_SOCKET_BAD,
                     is_writable ? fd : ARES_SOCKET_BAD);
    uint64_t now = clock_monotonic_ms ();
    for (struct lookup *l = r->open; l; l = l->next)
        if (now >= l->deadline_ms)
            answer (l,
                    &(struct resolve_answer){ .status = RESOLVE_NO_ANSWER, .family = l->family });
}

int
resolver_timeout_ms (struct resolver *r, int max_ms)
{
    struct timeval most = { max_ms / 1000, max_ms % 1000 * 1000 }, wait;
    const struct timeval *t = ares_timeout (r->channel, &most, &wait);
    return (int)(t->tv_sec * 1000 + t->tv_usec / 1000) + 1;
}

static void
keep_answer (void *ctx, const struct resolve_answer *a)
{
    struct {
        struct resolve_answer *to;
        bool is_there;
    } *kept = ctx;
    *kept->to = *a;
    kept->is_there = true;
}

void
resolve_now (const char *name, int family, struct resolve_answer *a)
{
    struct {
        struct resolve_answer *to;
        bool is_there;
    } kept = { a, false };
    *a = (struct resolve_answer){ .status = RESOLVE_NO_ANSWER, .family = family };
    _cleanup_close_ int epoll_fd = epoll_create1 (EPOLL_CLOEXEC);
    struct resolver *r = epoll_fd < 0 ? NULL : resolver_new (epoll_fd, 0, NULL);
    if (! r)
        return;
    resolver_lookup (r, name, family, keep_answer, &kept);
    while (! kept.is_there) {
        struct epoll_event e;
        int n = epoll_wait (epoll_fd, &e, 1, resolver_timeout_ms (r, 200));
        resolver_process (r, n > 0 ? (int)(uint32_t)e.data.u64 : -1, n > 0 ? e.events : 0);
    }
    resolver_free (r);
}
