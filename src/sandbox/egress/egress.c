/* SPDX-License-Identifier: Apache-2.0
 *
 * The egress thread. One epoll holds the listeners, the DNS socket, the resolver's descriptors and
 * both ends of every relay; nothing in it blocks.
 */
#include "sandbox/egress/egress.h"
#include "net/url.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/diag.h"
#include "sandbox/egress/dns.h"
#include "sandbox/egress/name_bindings.h"
#include "sandbox/egress/proxy_request.h"
#include "sandbox/egress/pump.h"
#include "sandbox/kernel/syscall_filter.h"

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
#define REFUSED_TIMEOUT_MS 2000
#define BINDING_MS         300000 /* longer than the TTL on purpose */

/* What an epoll event is about: kind in the high half, index or descriptor in the low. */
enum tag {
    TAG_WAKE = 1,
    TAG_LISTENER,
    TAG_PROXY,
    TAG_DNS,
    TAG_RESOLVER,
    TAG_CLIENT,
    TAG_UPSTREAM,
    TAG_SOCKETS,
};

static uint64_t
tagged (enum tag tag, size_t index)
{
    return (uint64_t)tag << 32 | index;
}

enum relay_state {
    RELAY_ASKING,     /* the request of a proxy's client is read */
    RELAY_RESOLVING,  /* its host's address is looked up */
    RELAY_CONNECTING, /* to the address that was dialled, or looked up */
    RELAY_OPEN,
    RELAY_REFUSED, /* it was answered; what it still sends is read and dropped */
};

struct relay {
    enum relay_state state;
    int client_fd, upstream_fd;
    uint64_t deadline_ms;
    uint64_t serial;              /* of a lookup under way */
    struct pipe_buffer up, down;  /* client to upstream, upstream to client */
    enum proxy_verdict verdict;   /* PROXY_INCOMPLETE: it was dialled */
    struct proxy_request request; /* of a tunnel, or one that is forwarded */
};

struct egress {
    const struct allow_list *rules;
    const uint16_t *ports;
    struct network_listeners listeners; /* borrowed descriptors */
    int epoll_fd, wake_fd;
    pthread_t thread;
    struct resolver *resolver;
    struct name_bindings bindings;
    struct relay *relays[MAX_RELAYS];
    uint64_t serial;
};

/* --- who may be dialled --- */

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
    for (size_t i = 0; i < e->bindings.len; i++) {
        const struct name_binding *b = &e->bindings.items[i];
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
    if (r->upstream_fd >= 0)
        close (r->upstream_fd);
    free (r);
    e->relays[index] = NULL;
}

/* Edge-triggered, once for all: every event pumps both directions until neither moves. */
static bool
relay_watch (struct egress *e, int fd, enum tag tag, size_t index)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                 .data.u64 = tagged (tag, index) };
    return epoll_ctl (e->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* Moves both directions until nothing moves. False: the relay must end. */
static bool
relay_pump (struct relay *r)
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
set_no_delay (int fd)
{
    int one = 1;
    setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static struct relay *
relay_new (struct egress *e, int client_fd, enum relay_state state, size_t *index)
{
    for (*index = 0; *index < MAX_RELAYS && e->relays[*index];)
        ++*index;
    if (*index == MAX_RELAYS) {
        close (client_fd);
        return NULL;
    }
    set_no_delay (client_fd);
    struct relay *r = e->relays[*index] = x_new0 (struct relay);
    *r = (struct relay){ .state = state,
                         .client_fd = client_fd,
                         .upstream_fd = -1,
                         .deadline_ms = clock_monotonic_ms () + CONNECT_TIMEOUT_MS };
    if (relay_watch (e, client_fd, TAG_CLIENT, *index))
        return r;
    relay_end (e, *index);
    return NULL;
}

/* Connects, from the host's network. False: it cannot even begin. */
static bool
relay_dial (struct egress *e, size_t index, const struct sockaddr_in *address)
{
    struct relay *r = e->relays[index];
    r->upstream_fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (r->upstream_fd < 0 ||
        (connect (r->upstream_fd, (const struct sockaddr *)address, sizeof *address) < 0 &&
         errno != EINPROGRESS))
        return false;
    set_no_delay (r->upstream_fd);
    r->state = RELAY_CONNECTING;
    r->deadline_ms = clock_monotonic_ms () + CONNECT_TIMEOUT_MS;
    return relay_watch (e, r->upstream_fd, TAG_UPSTREAM, index);
}

/* --- requests of a proxy --- */

static void
refuse_request (struct egress *e, size_t index, const char *status, const char *why)
{
    struct relay *r = e->relays[index];
    _cleanup_free_ char *text = x_asprintf ("HTTP/1.1 %s\r\nContent-Type: text/plain\r\n"
                                            "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                                            status, strlen (why), why);
    /* Short, into an empty buffer. */
    (void)send (r->client_fd, text, strlen (text), MSG_NOSIGNAL);
    shutdown (r->client_fd, SHUT_WR);
    r->state = RELAY_REFUSED;
    r->deadline_ms = clock_monotonic_ms () + REFUSED_TIMEOUT_MS;
}

static void
refuse_host (struct egress *e, size_t index)
{
    const struct proxy_request *q = &e->relays[index]->request;
    allow_tell_refused (e->rules, q->host, q->port);
    _cleanup_free_ char *why =
        x_asprintf ("murmur: %s:%d is not in capabilities.network.allow\n", q->host, q->port);
    refuse_request (e, index, "403 Forbidden", why);
}

/* A rule without a port stands for the two it stands for everywhere. */
static bool
may_ask (const struct egress *e, const char *host, int port)
{
    for (size_t i = 0; i < e->rules->len; i++) {
        const struct allow_rule *r = &e->rules->rules[i];
        bool is_usual = r->port != ALLOW_ANY_PORT || port == 80 || port == 443;
        if (is_usual && rule_allows (r, host, port))
            return ! allow_is_held (e->rules->hold, host, port);
    }
    return false;
}

/* One lookup under way: whose it is, should that still be there. */
struct looked_up {
    struct egress *egress;
    size_t index;
    uint64_t serial;
};

static void
on_host_resolved (void *ctx, const struct resolve_answer *answer)
{
    _cleanup_free_ struct looked_up *l = ctx;
    struct relay *r = l->egress->relays[l->index];
    if (! r || r->serial != l->serial)
        return;
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons ((uint16_t)r->request.port) };
    bool is_rebinding = false;
    for (size_t i = 0; answer->family == AF_INET && i < answer->count; i++) {
        address.sin_addr = answer->v4[i];
        if ((is_rebinding = name_is_rebound (address.sin_addr, r->request.host)))
            continue;
        if (! relay_dial (l->egress, l->index, &address))
            refuse_request (l->egress, l->index, "502 Bad Gateway", "murmur: cannot connect\n");
        return;
    }
    if (is_rebinding)
        refuse_host (l->egress, l->index);
    else
        refuse_request (l->egress, l->index, "502 Bad Gateway", "murmur: no address\n");
}

static void
read_request (struct egress *e, size_t index)
{
    struct relay *r = e->relays[index];
    ssize_t n;
    do {
        r->verdict = proxy_request_read (r->up.bytes, r->up.end, &r->request);
        if (r->verdict != PROXY_INCOMPLETE)
            break;
        n = read (r->client_fd, r->up.bytes + r->up.end, PROXY_HEAD_MAX - r->up.end);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
            relay_end (e, index);
            return;
        }
        r->up.end += n > 0 ? (size_t)n : 0;
    } while (n > 0);
    if (r->verdict == PROXY_INCOMPLETE)
        return;
    if (r->verdict == PROXY_MALFORMED) {
        refuse_request (e, index, "400 Bad Request", "murmur: not a request of a proxy\n");
        return;
    }
    if (! may_ask (e, r->request.host, r->request.port)) {
        refuse_host (e, index);
        return;
    }
    r->state = RELAY_RESOLVING;
    r->serial = ++e->serial;
    const struct looked_up here = { e, index, r->serial };
    resolver_lookup (e->resolver, r->request.host, AF_INET, on_host_resolved,
                     x_memdup (&here, sizeof here));
}

/* What the two sides read first: the tunnel is there, the request as the server knows it. */
static void
begin_answer (struct relay *r)
{
    static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
    _cleanup_buf_ struct buf head = { 0 };
    if (r->verdict == PROXY_INCOMPLETE)
        return;
    if (r->verdict == PROXY_TUNNEL) {
        memcpy (r->down.bytes, established, sizeof established - 1);
        r->down.end = sizeof established - 1;
    } else {
        proxy_request_rewrite (r->up.bytes, &r->request, &head);
    }
    pipe_buffer_replace (&r->up, r->request.head_len, head.data, head.len);
}

/* --- events --- */

static void
relay_connected (struct egress *e, size_t index, enum tag tag, uint32_t events)
{
    struct relay *r = e->relays[index];
    bool is_gone = tag == TAG_CLIENT && (events & (EPOLLERR | EPOLLHUP));
    if (! is_gone && tag == TAG_CLIENT)
        return;
    if (! is_gone && is_connected (r)) {
        r->state = RELAY_OPEN;
        r->deadline_ms = clock_monotonic_ms () + IDLE_TIMEOUT_MS;
        begin_answer (r);
    } else if (is_gone || r->verdict == PROXY_INCOMPLETE) {
        relay_end (e, index);
    } else {
        refuse_request (e, index, "502 Bad Gateway", "murmur: nobody answers there\n");
    }
}

/* False: it is at its end. */
static bool
relay_drop_input (const struct relay *r)
{
    char dropped[4096];
    ssize_t n;
    while ((n = read (r->client_fd, dropped, sizeof dropped)) > 0)
        ;
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static void
relay_event (struct egress *e, size_t index, enum tag tag, uint32_t events)
{
    struct relay *r = e->relays[index];
    if (r && r->state == RELAY_CONNECTING) {
        relay_connected (e, index, tag, events);
        r = e->relays[index];
    }
    if (! r)
        return;
    switch (r->state) {
    case RELAY_ASKING:
        read_request (e, index);
        break;
    case RELAY_RESOLVING:
    case RELAY_CONNECTING:
        break;
    case RELAY_OPEN:
        if (! relay_pump (r))
            relay_end (e, index);
        break;
    case RELAY_REFUSED:
        if (! relay_drop_input (r))
            relay_end (e, index);
        break;
    }
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
        size_t index;
        if (getsockname (fd, (struct sockaddr *)&dialled, &len) < 0 ||
            ! may_connect (e, dialled.sin_addr, ntohs (dialled.sin_port)))
            close (fd);
        else if (relay_new (e, fd, RELAY_CONNECTING, &index) && ! relay_dial (e, index, &dialled))
            relay_end (e, index);
    }
}

static void
accept_proxied (struct egress *e)
{
    int fd;
    size_t index;
    while ((fd = accept4 (e->listeners.proxy_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
        (void)relay_new (e, fd, RELAY_ASKING, &index);
}

static void
give_sockets (struct egress *e, int listener_fd, uint32_t events)
{
    uint64_t told = 0;
    if ((events & (EPOLLHUP | EPOLLERR)) || ! syscall_filter_answer (listener_fd, &told))
        epoll_ctl (e->epoll_fd, EPOLL_CTL_DEL, listener_fd, NULL);
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
        name_bindings_add (&a->egress->bindings, answer->v4[i], a->query.name,
                           clock_monotonic_ms () + BINDING_MS);
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
            case TAG_PROXY:
                accept_proxied (e);
                break;
            case TAG_SOCKETS:
                give_sockets (e, (int)index, events[i].events);
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
        name_bindings_forget (&e->bindings, now);
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
            name_bindings_add (&e->bindings, answer.v4[n], host, UINT64_MAX);
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
    if (listeners->proxy_fd >= 0)
        is_watched &= watch (e, listeners->proxy_fd, tagged (TAG_PROXY, 0));
    if (listeners->dns_fd >= 0)
        is_watched &= watch (e, listeners->dns_fd, tagged (TAG_DNS, 0));
    if (! is_watched || pthread_create (&e->thread, NULL, serve, e) != 0)
        return mur_fail_errno (err, E_IO_003, "cannot start the egress relay"), NULL;
    return steal_ptr (&e);
}

bool
egress_give_sockets (struct egress *e, int listener_fd)
{
    return watch (e, listener_fd, tagged (TAG_SOCKETS, (size_t)listener_fd));
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
    name_bindings_free (&e->bindings);
    if (e->epoll_fd >= 0)
        close (e->epoll_fd);
    if (e->wake_fd >= 0)
        close (e->wake_fd);
    free (e);
}
