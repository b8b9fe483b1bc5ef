/* SPDX-License-Identifier: Apache-2.0 */
#include "roost/front/tls.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/fdio.h"
#include "roost/front/ssl_api.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define MOST_CONNECTIONS 128
#define HANDSHAKE_MS     5000
#define SILENCE_MS       60000 /* whoever waits for news of a child is answered sooner */
#define SEND_S           10
#define CHUNK            16384
#define STACK_BYTES      (256 * 1024)

struct tls_front {
    const struct ssl_api *api;
    char *certificate, *key;
    SSL_CTX *context; /* the accepting thread's alone */
    struct timespec loaded;
    uint16_t port, inner_port;
    int listen_fd, stop_fd, ended_fd;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t is_idle;
    size_t open_count;
};

struct passage {
    struct tls_front *front;
    SSL *ssl;
    int outer, inner;
};

/* --- the certificate --- */

static bool
refuse (const struct tls_front *t, const char *path, struct mur_error **err)
{
    char text[128];
    t->api->ERR_error_string_n (t->api->ERR_get_error (), text, sizeof text);
    t->api->ERR_clear_error ();
    mur_fail (err, E_IO_003, "--tls: cannot use %s: %s", path, text);
    return mur_hint (err, "tls.crt holds the certificate and those above it, tls.key its key, both "
                          "as PEM, as in a Secret of type kubernetes.io/tls");
}

/* Another one than was loaded last. */
static bool
load (struct tls_front *t, struct mur_error **err)
{
    struct stat st;
    if (stat (t->certificate, &st) < 0)
        return mur_fail_errno (err, E_IO_001, "--tls: cannot read %s", t->certificate);
    if (t->context && memcmp (&st.st_mtim, &t->loaded, sizeof st.st_mtim) == 0)
        return true;
    t->loaded = st.st_mtim;
    SSL_CTX *made = t->api->SSL_CTX_new (t->api->TLS_server_method ());
    if (! made)
        return refuse (t, t->certificate, err);
    t->api->SSL_CTX_ctrl (made, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL);
    t->api->SSL_CTX_ctrl (made, SSL_CTRL_MODE,
                          SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER,
                          NULL);
    t->api->SSL_CTX_ctrl (made, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL);
    bool has_certificate = t->api->SSL_CTX_use_certificate_chain_file (made, t->certificate) == 1;
    if (! has_certificate ||
        t->api->SSL_CTX_use_PrivateKey_file (made, t->key, SSL_FILETYPE_PEM) != 1 ||
        t->api->SSL_CTX_check_private_key (made) != 1) {
        t->api->SSL_CTX_free (made);
        return refuse (t, has_certificate ? t->key : t->certificate, err);
    }
    t->api->SSL_CTX_free (t->context);
    t->context = made;
    return true;
}

/* What cannot be used leaves the one we have. */
static void
load_again (struct tls_front *t)
{
    struct mur_error *err = NULL;
    if (! load (t, &err))
        diag_plain_warning ("%s", err->message);
    mur_error_free (err);
}

/* --- a connection --- */

/* Once more after what it waits for is there. False: it is over. */
static bool
wait_for (struct passage *p, int result, uint64_t deadline_ms)
{
    uint64_t now = clock_monotonic_ms ();
    int wants = p->front->api->SSL_get_error (p->ssl, result);
    short events = wants == SSL_ERROR_WANT_READ    ? POLLIN
                   : wants == SSL_ERROR_WANT_WRITE ? POLLOUT
                                                   : 0;
    return events && now < deadline_ms &&
           fd_wait (p->outer, events, (int64_t)(deadline_ms - now)) > 0;
}

static bool
shake_hands (struct passage *p)
{
    uint64_t deadline_ms = clock_monotonic_ms () + HANDSHAKE_MS;
    int done;
    while ((done = p->front->api->SSL_accept (p->ssl)) != 1)
        if (! wait_for (p, done, deadline_ms))
            return false;
    return true;
}

static int
connect_inner (uint16_t port)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons (port),
                              .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
    _cleanup_close_ int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && connect (fd, (struct sockaddr *)&to, sizeof to) == 0 ? steal_fd (&fd) : -1;
}

/* What the other side says, as far as it has come. False: it says no more. */
static bool
take_in (struct passage *p, char *chunk)
{
    for (;;) {
        int n = p->front->api->SSL_read (p->ssl, chunk, CHUNK);
        if (n <= 0)
            return p->front->api->SSL_get_error (p->ssl, n) == SSL_ERROR_WANT_READ;
        if (! fd_send_all (p->inner, chunk, (size_t)n, SEND_S))
            return false;
    }
}

static bool
give_out (struct passage *p, char *chunk)
{
    ssize_t len = recv (p->inner, chunk, CHUNK, 0);
    uint64_t deadline_ms = clock_monotonic_ms () + SEND_S * 1000;
    for (ssize_t sent = 0; len > 0 && sent < len;) {
        int n = p->front->api->SSL_write (p->ssl, chunk + sent, (int)(len - sent));
        if (n > 0)
            sent += n;
        else if (! wait_for (p, n, deadline_ms))
            return false;
    }
    return len > 0;
}

/* Until the daemon has answered, or is no longer waited for. */
static void
pass (struct passage *p)
{
    char *chunk = x_malloc (CHUNK);
    bool is_heard = take_in (p, chunk);
    for (;;) {
        struct pollfd fds[] = { { .fd = p->inner, .events = POLLIN },
                                { .fd = is_heard ? p->outer : -1, .events = POLLIN },
                                { .fd = p->front->stop_fd, .events = POLLIN } };
        if (poll (fds, ARRAY_LEN (fds), SILENCE_MS) <= 0 || fds[2].revents)
            break;
        if (fds[0].revents && ! give_out (p, chunk))
            break;
        if (fds[1].revents && ! take_in (p, chunk)) {
            is_heard = false;
            shutdown (p->inner, SHUT_WR);
        }
    }
    explicit_bzero (chunk, CHUNK); /* credentials went through */
    free (chunk);
}

static void
note_end (struct tls_front *t)
{
    pthread_mutex_lock (&t->lock);
    t->open_count--;
    eventfd_write (t->ended_fd, 1);
    pthread_cond_signal (&t->is_idle);
    pthread_mutex_unlock (&t->lock);
}

static void *
serve_passage (void *arg)
{
    struct passage *p = arg;
    struct tls_front *t = p->front;
    if (shake_hands (p) && (p->inner = connect_inner (t->inner_port)) >= 0) {
        pass (p);
        t->api->SSL_shutdown (p->ssl);
        close (p->inner);
    }
    t->api->SSL_free (p->ssl);
    fd_end_answer (p->outer, 200);
    close (p->outer);
    free (p);
    t->api->ERR_clear_error ();
    note_end (t);
    return NULL;
}

/* --- listening --- */

static void
take_passage (struct tls_front *t, int fd, const pthread_attr_t *attributes)
{
    pthread_t thread;
    load_again (t);
    struct passage *p = x_new0 (struct passage);
    *p = (struct passage){
        .front = t, .ssl = t->api->SSL_new (t->context), .outer = fd, .inner = -1
    };
    pthread_mutex_lock (&t->lock);
    t->open_count++;
    pthread_mutex_unlock (&t->lock);
    if (p->ssl && t->api->SSL_set_fd (p->ssl, fd) == 1 &&
        pthread_create (&thread, attributes, serve_passage, p) == 0)
        return;
    t->api->SSL_free (p->ssl);
    close (fd);
    free (p);
    note_end (t);
}

static bool
has_place (struct tls_front *t)
{
    pthread_mutex_lock (&t->lock);
    bool has = t->open_count < MOST_CONNECTIONS;
    pthread_mutex_unlock (&t->lock);
    return has;
}

static void *
accept_until_stopped (void *arg)
{
    struct tls_front *t = arg;
    pthread_attr_t attributes;
    pthread_attr_init (&attributes);
    pthread_attr_setstacksize (&attributes, STACK_BYTES);
    pthread_attr_setdetachstate (&attributes, PTHREAD_CREATE_DETACHED);
    for (;;) {
        /* Who comes when all places are taken waits in the kernel's queue. */
        struct pollfd fds[] = { { .fd = t->stop_fd, .events = POLLIN },
                                { .fd = has_place (t) ? t->listen_fd : -1, .events = POLLIN },
                                { .fd = t->ended_fd, .events = POLLIN } };
        if ((poll (fds, ARRAY_LEN (fds), -1) < 0 && errno != EINTR) || fds[0].revents)
            break;
        eventfd_t ended;
        if (fds[2].revents)
            eventfd_read (t->ended_fd, &ended);
        int fd =
            fds[1].revents ? accept4 (t->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
        if (fd >= 0)
            take_passage (t, fd, &attributes);
    }
    pthread_attr_destroy (&attributes);
    return NULL;
}

/* Every address of both kinds, or of IPv4 where there is no other. */
static int
listen_everywhere (uint16_t port, uint16_t *bound, struct mur_error **err)
{
    struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons (port) };
    struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons (port) };
    int one = 1, none = 0;
    _cleanup_close_ int fd = socket (AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_six = fd >= 0;
    if (! is_six)
        fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (is_six)
        setsockopt (fd, IPPROTO_IPV6, IPV6_V6ONLY, &none, sizeof none);
    if (fd >= 0)
        setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    const struct sockaddr *at = is_six ? (struct sockaddr *)&six : (struct sockaddr *)&four;
    socklen_t len = is_six ? sizeof six : sizeof four;
    if (fd < 0 || bind (fd, at, len) < 0 || listen (fd, 1024) < 0 ||
        getsockname (fd, (struct sockaddr *)&six, &len) < 0)
        return mur_fail_errno (err, E_RUN_010, "--tls: cannot listen on port %u", port), -1;
    *bound = ntohs (six.sin6_port); /* where an address of IPv4 has its port, too */
    return steal_fd (&fd);
}

static void
front_free (struct tls_front *t)
{
    const int fds[] = { t->listen_fd, t->stop_fd, t->ended_fd };
    for (size_t i = 0; i < ARRAY_LEN (fds); i++)
        if (fds[i] >= 0)
            close (fds[i]);
    if (t->context)
        t->api->SSL_CTX_free (t->context);
    free (t->certificate);
    free (t->key);
    free (t);
}

struct tls_front *
tls_front_start (const char *folder, uint16_t port, uint16_t inner_port, struct mur_error **err)
{
    const char *why;
    const struct ssl_api *api = ssl_api_get (&why);
    if (! api)
        return mur_fail (err, E_IO_001, "--tls: %s", why), NULL;
    struct tls_front *t = x_new0 (struct tls_front);
    *t = (struct tls_front){ .api = api,
                             .certificate = x_asprintf ("%s/tls.crt", folder),
                             .key = x_asprintf ("%s/tls.key", folder),
                             .inner_port = inner_port,
                             .listen_fd = -1,
                             .stop_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK),
                             .ended_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK),
                             .lock = PTHREAD_MUTEX_INITIALIZER,
                             .is_idle = PTHREAD_COND_INITIALIZER };
    signal (SIGPIPE, SIG_IGN); /* a library writes to those who went away */
    bool is_up = load (t, err) && (t->listen_fd = listen_everywhere (port, &t->port, err)) >= 0;
    if (is_up && (errno = pthread_create (&t->thread, NULL, accept_until_stopped, t)) != 0)
        is_up = mur_fail_errno (err, E_RUN_010, "--tls: no thread");
    if (is_up)
        return t;
    front_free (t);
    return NULL;
}

uint16_t
tls_front_port (const struct tls_front *t)
{
    return t->port;
}

void
tls_front_stop (struct tls_front *t)
{
    eventfd_write (t->stop_fd, 1);
    pthread_join (t->thread, NULL);
    pthread_mutex_lock (&t->lock);
    while (t->open_count)
        pthread_cond_wait (&t->is_idle, &t->lock);
    pthread_mutex_unlock (&t->lock);
    front_free (t);
}
