/* SPDX-License-Identifier: Apache-2.0
 *
 * The egress thread. One epoll holds the listeners, the DNS socket, the resolver's descriptors and
 * both ends of every relay; nothing in it blocks.
 */
#include "sandbox/kernel/egress.h"
#include "net/own_names.h"
#include "net/url.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/diag.h"
#include "sandbox/kernel/dns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#define QUERIES_A_TURN     64
#define MAX_RELAYS         128
#define CONNECT_TIMEOUT_MS 15000
#define IDLE_TIMEOUT_MS    300000
#define BINDING_MS         300000 /* longer than the TTL on purpose */
#define BUFFER_BYTES       16384

/* What an epoll event is about: kind in the high half, index or descriptor in the low. */
enum tag {
    TAG_WAKE = 1,
    TAG_LISTENER,
    TAG_DNS,
    TAG_RESOLVER,
    TAG_CLIENT,
    TAG_UPSTREAM,
};

static uint64_t
tagged (enum tag tag, size_t index)
{
    return (uint64_t)tag << 32 | index;
}

/* An address an allowed name stood for when it was asked. */
struct binding {
    struct in_addr address;
    char *name;
    uint64_t expires_ms; /* UINT64_MAX: resolved from the allow list at the start */
};

struct pipe_buffer {
    char bytes[BUFFER_BYTES];
    size_t start, end;
    bool is_finished; /* the reading side saw end of file */
    bool is_shut;     /* and the writing side was told */
};

struct relay {
    bool is_connecting;
    int client_fd, upstream_fd;
    uint64_t deadline_ms;
    struct pipe_buffer up, down; /* client to upstream, upstream to client */
};

struct egress {
    const struct allow_list *rules;
    const uint16_t *ports;
    struct network_listeners listeners; /* borrowed descriptors */
    int epoll_fd, wake_fd;
    pthread_t thread;
    struct resolver *resolver;
    struct binding *bindings;
    size_t binding_len, binding_cap;
    struct relay *relays[MAX_RELAYS];
};

/* --- who may be dialled --- */

/* Whoever answers for a name must not decide that this host's own services are reached. */
static bool
is_rebound (struct in_addr address, const char *name)
{
    const struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = address };
    return address_needs_a_literal ((const struct sockaddr *)&a, name);
}

static void
bind_name (struct egress *e, struct in_addr address, const char *name, uint64_t expires_ms)
{
    if (is_rebound (address, name))
        return;
    for (size_t i = 0; i < e->binding_len; i++) {
        struct binding *b = &e->bindings[i];
        if (b->address.s_addr == address.s_addr && str_eq (b->name, name)) {
            if (b->expires_ms < expires_ms)
                b->expires_ms = expires_ms;
            return;
        }
    }
    x_grow (e->bindings, e->binding_len, e->binding_cap);
    e->bindings[e->binding_len++] = (struct binding){ address, x_strdup (name), expires_ms };
}

static void
forget_expired (struct egress *e, uint64_t now)
{
    for (size_t i = 0; i < e->binding_len;)
        if (e->bindings[i].expires_ms <= now) {
            free (e->bindings[i].name);
            e->bindings[i] = e->bindings[--e->binding_len];
        } else {
            i++;
        }
}

/* The scheme of a rule is not looked at: its port already stands for it. */
static bool
rule_allows (const struct allow_rule *r, const char *host, int port)
{
    return str_eq (r->host, host) && (r->port == ALLOW_ANY_PORT || r->port == port);
}

static bool
may_connect (const struct egress *e, struct in_addr address, int port)
{
    uint64_t now = clock_monotonic_ms ();
    const char *name = NULL;
    for (size_t i = 0; i < e->binding_len; i++) {
        const struct binding *b = &e->bindings[i];
        if (b->address.s_addr != address.s_addr || b->expires_ms <= now)
            continue;
        name = b->name;
        for (size_t n = 0; n < e->rules->len; n++)
            if (rule_allows (&e->rules->rules[n], b->name, port) &&
                ! allow_is_held (e->rules->hold, b->name, port))
                return true;
    }
    char text[INET_ADDRSTRLEN];
    inet_ntop (AF_INET, &address, text, sizeof text);
    allow_tell_refused (e->rules, name ? name : text, port);
    return false;
}

/* --- relays --- */

static void
relay_end (struct egress *e, size_t index)
{
    struct relay *r = e->relays[index];
    close (r->client_fd);
    close (r->upstream_fd);
    free (r);
    e->relays[index] = NULL;
}

/* Edge-triggered, once for all: every event pumps both directions until neither moves. */
static bool
relay_watch (struct egress *e, size_t index)
{
    const struct relay *r = e->relays[index];
    struct epoll_event client = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                  .data.u64 = tagged (TAG_CLIENT, index) };
    struct epoll_event upstream = client;
    upstream.data.u64 = tagged (TAG_UPSTREAM, index);
    return epoll_ctl (e->epoll_fd, EPOLL_CTL_ADD, r->client_fd, &client) == 0 &&
           epoll_ctl (e->epoll_fd, EPOLL_CTL_ADD, r->upstream_fd, &upstream) == 0;
}

/* Reads once and writes once. False: the relay must end; *has_moved is set when a byte or the end
 * moved. */
static bool
pump_once (int from_fd, int to_fd, struct pipe_buffer *b, bool *has_moved)
{
    if (! b->is_finished && b->end < BUFFER_BYTES) {
        ssize_t n = read (from_fd, b->bytes + b->end, BUFFER_BYTES - b->end);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        if (n >= 0) {
            *has_moved = true;
            b->is_finished = n == 0;
            b->end += (size_t)n;
        }
    }
    if (b->start < b->end) {
        ssize_t n = send (to_fd, b->bytes + b->start, b->end - b->start, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        if (n > 0) {
            *has_moved = true;
            b->start += (size_t)n;
        }
    }
    if (b->start == b->end) {
        b->start = b->end = 0;
        if (b->is_finished && ! b->is_shut) {
            b->is_shut = true;
            shutdown (to_fd, SHUT_WR);
        }
    }
    return true;
}

/* Moves both directions until nothing moves. False: the relay must end. */
static bool
pump (struct relay *r)
{
    for (bool has_moved = true; has_moved;) {
        has_moved = false;
        if (! pump_once (r->client_fd, r->upstream_fd, &r->up, &has_moved) ||
            ! pump_once (r->upstream_fd, r->client_fd, &r->down, &has_moved))
            return false;
        if (has_moved)
            r->deadline_ms = clock_monotonic_ms () + IDLE_TIMEOUT_MS;
    }
    return ! (r->up.is_shut && r->down.is_shut);
}

static bool
is_connected (const struct relay *r)
{
    int error = 0;
    socklen_t len = sizeof error;
    return getsockopt (r->upstream_fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0;
}

static void
relay_event (struct egress *e, size_t index, enum tag tag, uint32_t events)
{
    struct relay *r = e->relays[index];
    if (! r)
        return;
    if (r->is_connecting) {
        bool is_gone = tag == TAG_CLIENT && (events & (EPOLLERR | EPOLLHUP));
        if (! is_gone && tag == TAG_CLIENT)
            return;
        if (is_gone || ! is_connected (r)) {
            relay_end (e, index);
            return;
        }
        r->is_connecting = false;
        r->deadline_ms = clock_monotonic_ms () + IDLE_TIMEOUT_MS;
    }
    if (! pump (r))
        relay_end (e, index);
}

static void
set_no_delay (int fd)
{
    int one = 1;
    setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/* Dials, from the host's network, the address the client dialled. Takes client_fd over. */
static void
relay_start (struct egress *e, int client_fd, const struct sockaddr_in *dialled)
{
    size_t index = 0;
    while (index < MAX_RELAYS && e->relays[index])
        index++;
    int upstream =
        index == MAX_RELAYS ? -1 : socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (upstream < 0) {
        close (client_fd);
        return;
    }
    if (connect (upstream, (const struct sockaddr *)dialled, sizeof *dialled) < 0 &&
        errno != EINPROGRESS) {
        close (upstream);
        close (client_fd);
        return;
    }
    set_no_delay (upstream);
    set_no_delay (client_fd);
    struct relay *r = e->relays[index] = x_new0 (struct relay);
    r->is_connecting = true;
    r->client_fd = client_fd;
    r->upstream_fd = upstream;
    r->deadline_ms = clock_monotonic_ms () + CONNECT_TIMEOUT_MS;
    if (! relay_watch (e, index))
        relay_end (e, index);
}

static void
accept_all (struct egress *e, size_t listener)
{
    for (;;) {
        int fd = accept4 (e->listeners.tcp_fds[listener], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        struct sockaddr_in dialled;
        socklen_t len = sizeof dialled;
        if (getsockname (fd, (struct sockaddr *)&dialled, &len) == 0 &&
            may_connect (e, dialled.sin_addr, ntohs (dialled.sin_port)))
            relay_start (e, fd, &dialled);
        else
            close (fd);
    }
}

/* --- DNS --- */

/* One query under way: where the answer goes. */
struct asked {
    struct egress *egress;
    struct sockaddr_in client;
    struct in_pktinfo queried;
    struct dns_query query;
    unsigned char question[260];
};

/* From the address that was asked, or the client will not take it. */
static void
send_reply (const struct asked *a, enum dns_code code, const struct resolve_answer *answer)
{
    unsigned char reply[DNS_MAX_REPLY];
    struct iovec data = { reply, dns_reply (&a->query, a->question, code, answer, reply) };
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE (sizeof (struct in_pktinfo))];
    } control = { 0 };
    struct sockaddr_in client = a->client;
    struct msghdr message = { .msg_name = &client,
                              .msg_namelen = sizeof client,
                              .msg_iov = &data,
                              .msg_iovlen = 1,
                              .msg_control = control.bytes,
                              .msg_controllen = sizeof control.bytes };
    struct cmsghdr *c = CMSG_FIRSTHDR (&message);
    c->cmsg_level = IPPROTO_IP;
    c->cmsg_type = IP_PKTINFO;
    c->cmsg_len = CMSG_LEN (sizeof (struct in_pktinfo));
    struct in_pktinfo info = { .ipi_spec_dst = a->queried.ipi_addr };
    memcpy (CMSG_DATA (c), &info, sizeof info);
    (void)sendmsg (a->egress->listeners.dns_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void
on_resolved (void *ctx, const struct resolve_answer *answer)
{
    struct asked *a = ctx;
    static const enum dns_code codes[] = { [RESOLVED] = DNS_CODE_NOERROR,
                                           [RESOLVE_NO_NAME] = DNS_CODE_NXDOMAIN,
                                           [RESOLVE_NO_ANSWER] = DNS_CODE_SERVFAIL };
    for (size_t i = 0; answer->family == AF_INET && i < answer->count; i++)
        bind_name (a->egress, answer->v4[i], a->query.name, clock_monotonic_ms () + BINDING_MS);
    send_reply (a, codes[answer->status], answer);
    free (a);
}

static bool
receive_query (struct egress *e, unsigned char packet[8192], size_t *len, struct asked *a)
{
    union {
        struct cmsghdr head;
        char bytes[256];
    } control;
    struct iovec data = { packet, 8192 };
    struct msghdr message = { .msg_name = &a->client,
                              .msg_namelen = sizeof a->client,
                              .msg_iov = &data,
                              .msg_iovlen = 1,
                              .msg_control = control.bytes,
                              .msg_controllen = sizeof control.bytes };
    ssize_t n = recvmsg (e->listeners.dns_fd, &message, MSG_DONTWAIT);
    if (n < 0)
        return false;
    *len = (size_t)n;
    for (struct cmsghdr *c = CMSG_FIRSTHDR (&message); c; c = CMSG_NXTHDR (&message, c))
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO)
            memcpy (&a->queried, CMSG_DATA (c), sizeof a->queried);
    return true;
}

static void
answer_queries (struct egress *e)
{
    unsigned char packet[8192];
    size_t len;
    struct asked here = { .egress = e };
    /* A flood is answered in turns, so that relays and the end of the session come between. */
    for (int i = 0; i < QUERIES_A_TURN && receive_query (e, packet, &len, &here); i++) {
        enum dns_verdict verdict = dns_decide (packet, len, e->rules, &here.query);
        if (here.query.question_len)
            memcpy (here.question, packet + 12, here.query.question_len);
        switch (verdict) {
        case DNS_IGNORE:
            break;
        case DNS_FORMERR:
            send_reply (&here, DNS_CODE_FORMERR, NULL);
            break;
        case DNS_REFUSED:
            allow_tell_refused (e->rules, here.query.name, 0);
            send_reply (&here, DNS_CODE_REFUSED, NULL);
            break;
        case DNS_EMPTY:
            send_reply (&here, DNS_CODE_NOERROR, NULL);
            break;
        case DNS_LOOK_UP:
            resolver_lookup (e->resolver, here.query.name, dns_family (&here.query), on_resolved,
                             x_memdup (&here, sizeof here));
            break;
        }
    }
}

/* --- the thread --- */

static void
end_late_relays (struct egress *e, uint64_t now)
{
    for (size_t i = 0; i < MAX_RELAYS; i++)
        if (e->relays[i] && now >= e->relays[i]->deadline_ms)
            relay_end (e, i);
}

static void *
serve (void *arg)
{
    struct egress *e = arg;
    struct epoll_event events[64];
    pthread_setname_np (pthread_self (), "mur-egress");
    for (;;) {
        int n = epoll_wait (e->epoll_fd, events, ARRAY_LEN (events),
                            resolver_timeout_ms (e->resolver, 60000));
        for (int i = 0; i < n; i++) {
            size_t index = (uint32_t)events[i].data.u64;
            switch ((enum tag) (events[i].data.u64 >> 32)) {
            case TAG_WAKE:
                return NULL;
            case TAG_LISTENER:
                accept_all (e, index);
                break;
            case TAG_DNS:
                answer_queries (e);
                break;
            case TAG_RESOLVER:
                resolver_process (e->resolver, (int)index, events[i].events);
                break;
            case TAG_CLIENT:
            case TAG_UPSTREAM:
                relay_event (e, index, (enum tag) (events[i].data.u64 >> 32), events[i].events);
                break;
            }
        }
        uint64_t now = clock_monotonic_ms ();
        resolver_process (e->resolver, -1, 0);
        end_late_relays (e, now);
        forget_expired (e, now);
    }
}

static int
compare_ports (const void *a, const void *b)
{
    return (int)*(const uint16_t *)a - (int)*(const uint16_t *)b;
}

size_t
egress_ports (const struct allow_list *rules, uint16_t ports[NETWORK_NAMESPACE_MAX_PORTS])
{
    _cleanup_free_ uint16_t *all = x_new_array (uint16_t, 2 * rules->len + 1);
    size_t len = 0, kept = 0;
    for (size_t i = 0; i < rules->len; i++) {
        if (rules->rules[i].port == ALLOW_ANY_PORT) {
            all[len++] = 80;
            all[len++] = 443;
        } else if (rules->rules[i].port > 0) {
            all[len++] = (uint16_t)rules->rules[i].port;
        }
    }
    qsort (all, len, sizeof *all, compare_ports);
    for (size_t i = 0; i < len && kept < NETWORK_NAMESPACE_MAX_PORTS; i++)
        if (kept == 0 || ports[kept - 1] != all[i])
            ports[kept++] = all[i];
    return kept;
}

static void
bind_allow_list (struct egress *e)
{
    for (size_t i = 0; i < e->rules->len; i++) {
        const char *host = e->rules->rules[i].host;
        struct resolve_answer answer;
        bool is_known = false;
        for (size_t n = 0; n < i && ! is_known; n++)
            is_known = str_eq (e->rules->rules[n].host, host);
        if (is_known || host[0] == '[')
            continue;
        resolve_now (host, AF_INET, &answer);
        for (size_t n = 0; n < answer.count; n++)
            bind_name (e, answer.v4[n], host, UINT64_MAX);
        if (answer.status == RESOLVE_NO_ANSWER)
            diag_plain_warning (
                "network.allow: nobody answered for %s; commands can reach it once a "
                "lookup of theirs succeeds",
                host);
    }
}

static bool
watch (struct egress *e, int fd, uint64_t data)
{
    struct epoll_event event = { .events = EPOLLIN, .data.u64 = data };
    return epoll_ctl (e->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

struct egress *
egress_new (const struct network_listeners *listeners, const struct allow_list *rules,
            const uint16_t *ports, struct mur_error **err)
{
    _cleanup_ (egress_freep) struct egress *e = x_new0 (struct egress);
    e->rules = rules;
    e->ports = ports;
    e->listeners = *listeners;
    e->epoll_fd = epoll_create1 (EPOLL_CLOEXEC);
    e->wake_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (e->epoll_fd < 0 || e->wake_fd < 0)
        return mur_fail_errno (err, E_IO_003, "cannot start the egress relay"), NULL;
    e->resolver = resolver_new (e->epoll_fd, tagged (TAG_RESOLVER, 0), err);
    if (! e->resolver)
        return NULL;
    bind_allow_list (e);
    bool is_watched = watch (e, e->wake_fd, tagged (TAG_WAKE, 0));
    for (size_t i = 0; i < listeners->count; i++)
        is_watched &= watch (e, listeners->tcp_fds[i], tagged (TAG_LISTENER, i));
    if (listeners->dns_fd >= 0)
        is_watched &= watch (e, listeners->dns_fd, tagged (TAG_DNS, 0));
    if (! is_watched || pthread_create (&e->thread, NULL, serve, e) != 0)
        return mur_fail_errno (err, E_IO_003, "cannot start the egress relay"), NULL;
    return steal_ptr (&e);
}

void
egress_free (struct egress *e)
{
    if (! e)
        return;
    if (e->thread) {
        eventfd_write (e->wake_fd, 1);
        pthread_join (e->thread, NULL);
    }
    for (size_t i = 0; i < MAX_RELAYS; i++)
        if (e->relays[i])
            relay_end (e, i);
    resolver_free (e->resolver);
    for (size_t i = 0; i < e->binding_len; i++)
        free (e->bindings[i].name);
    free (e->bindings);
    if (e->epoll_fd >= 0)
        close (e->epoll_fd);
    if (e->wake_fd >= 0)
        close (e->wake_fd);
    free (e);
}
