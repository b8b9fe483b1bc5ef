/* SPDX-License-Identifier: Apache-2.0
 *
 * Egress: DNS decisions as pure functions, then a real namespace with a real client inside and a
 * server outside.
 */
#include "tests/unit/testing.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fdio.h"
#include "sandbox/egress/dns.h"
#include "sandbox/egress/egress.h"
#include "sandbox/space/namespaces.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void
allow (struct allow_list *list, const char *entry)
{
    assert_succeeds (allow_list_add (list, entry, &err));
}

/* A query for <name>; returns its length. */
static size_t
make_query (const char *name, unsigned type, unsigned char out[512])
{
    static const unsigned char head[12] = { 0x12, 0x34, 0x01, 0x00, 0, 1 };
    memcpy (out, head, 12);
    size_t len = 12;
    for (const char *at = name; *at;) {
        size_t label = strcspn (at, ".");
        out[len++] = (unsigned char)label;
        memcpy (out + len, at, label);
        len += label;
        at += label + (at[label] == '.');
    }
    out[len++] = 0;
    out[len++] = 0;
    out[len++] = (unsigned char)type;
    out[len++] = 0;
    out[len++] = 1;
    return len;
}

static void
test_containment_22_queries_are_decided_before_any_lookup (void **state _unused_)
{
    static const struct {
        const char *name;
        unsigned type;
        enum dns_verdict verdict;
    } cases[] = {
        { "api.example.com", 1, DNS_LOOK_UP },
        { "API.Example.COM", 28, DNS_LOOK_UP },
        { "api.example.com", 16, DNS_EMPTY },
        { "secret.api.example.com", 1, DNS_REFUSED },
        { "example.com", 1, DNS_REFUSED },
        { "127.0.0.1", 1, DNS_REFUSED },
        { "data-in-a-name.evil.org", 1, DNS_REFUSED },
    };
    struct allow_list rules = { 0 };
    allow (&rules, "https://api.example.com");
    allow (&rules, "127.0.0.1:8080");
    for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
        unsigned char packet[512];
        struct dns_query query;
        size_t len = make_query (cases[i].name, cases[i].type, packet);
        assert_int_equal (dns_decide (packet, len, &rules, &query), cases[i].verdict);
    }
    allow_list_free (&rules);
}

static void
test_malformed_queries_are_told_so_and_never_read_past_their_end (void **state _unused_)
{
    struct allow_list rules = { 0 };
    allow (&rules, "a.b");
    unsigned char packet[512];
    struct dns_query query;
    size_t len = make_query ("a.b", 1, packet);
    for (size_t cut = 0; cut < len; cut++) {
        unsigned char *exact = x_memdup (packet, cut);
        assert_int_equal (dns_decide (exact, cut, &rules, &query),
                          cut < 12 ? DNS_IGNORE : DNS_FORMERR);
        free (exact);
    }
    packet[12] = 0xc0; /* a compression pointer */
    assert_int_equal (dns_decide (packet, len, &rules, &query), DNS_FORMERR);
    len = make_query ("a.b", 1, packet);
    packet[2] |= 0x80;
    assert_int_equal (dns_decide (packet, len, &rules, &query), DNS_FORMERR);
    packet[2] = 1;
    packet[5] = 2;
    assert_int_equal (dns_decide (packet, len, &rules, &query), DNS_FORMERR);
    static unsigned char big[5000];
    memcpy (big, packet, len);
    big[5] = 1;
    assert_int_equal (dns_decide (big, sizeof big, &rules, &query), DNS_FORMERR);
    allow_list_free (&rules);
}

static void
test_ports_of_rules_are_sorted_unique_and_bounded (void **state _unused_)
{
    struct allow_list rules = { 0 };
    uint16_t ports[NETWORK_NAMESPACE_MAX_PORTS];
    assert_int_equal (egress_ports (&rules, ports), 0);
    allow (&rules, "example.com");
    allow (&rules, "https://other.org");
    allow (&rules, "h:8443");
    assert_int_equal (egress_ports (&rules, ports), 3);
    assert_int_equal (ports[0], 80);
    assert_int_equal (ports[1], 443);
    assert_int_equal (ports[2], 8443);
    for (int i = 0; i < 40; i++) {
        char entry[32];
        snprintf (entry, sizeof entry, "h:%d", 9000 + i);
        allow (&rules, entry);
    }
    assert_int_equal (egress_ports (&rules, ports), NETWORK_NAMESPACE_MAX_PORTS);
    allow_list_free (&rules);
}

/* --- with a namespace --- */

/* A server that upper-cases what it gets, then half-closes when the client does. */
static void *
shout (void *arg)
{
    int listener = *(int *)arg;
    for (;;) {
        int fd = accept (listener, NULL, NULL);
        if (fd < 0)
            return NULL;
        struct buf text = { 0 };
        fd_read_all (fd, 1 << 24, &text);
        for (size_t i = 0; i < text.len; i++)
            text.data[i] = (char)(text.data[i] >= 'a' ? text.data[i] - 32 : text.data[i]);
        fd_write_all (fd, text.data, text.len);
        buf_free (&text);
        close (fd);
    }
}

static int
listen_on_loopback (uint16_t *port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal (bind (fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal (listen (fd, 8), 0);
    getsockname (fd, (struct sockaddr *)&address, &len);
    *port = ntohs (address.sin_port);
    return fd;
}

static int
dial (const char *ip, uint16_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons (port) };
    inet_pton (AF_INET, ip, &address.sin_addr);
    int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect (fd, (struct sockaddr *)&address, sizeof address) < 0) {
        int saved = errno;
        close (fd);
        errno = saved;
        return -1;
    }
    return fd;
}

/* Asks the DNS half from inside; returns the reply's code, or 99. */
static int
ask (const char *server, const char *name)
{
    unsigned char packet[512];
    size_t len = make_query (name, 1, packet);
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons (53) };
    inet_pton (AF_INET, server, &address.sin_addr);
    int fd = socket (AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (connect (fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        send (fd, packet, len, 0) < 0 || fd_wait (fd, POLLIN, 5000) != 1)
        return 99;
    ssize_t n = recv (fd, packet, sizeof packet, 0);
    close (fd);
    return n < 12 ? 99 : packet[3] & 15;
}

#define BIG (1 << 20)

/* What a command would see; runs in a child inside the namespace. Returns the number of the failed
 * check. */
static int
inside (uint16_t allowed, uint16_t unlisted)
{
    int fd = dial ("127.0.0.1", allowed);
    if (fd < 0)
        return 1;
    char *big = x_malloc (BIG);
    memset (big, 'a', BIG);
    if (! fd_write_all (fd, big, BIG) || shutdown (fd, SHUT_WR) < 0)
        return 2;
    struct buf answer = { 0 };
    if (! fd_read_all (fd, 2 * BIG, &answer) || answer.len != BIG || answer.data[BIG - 1] != 'A')
        return 3;
    uint64_t start = clock_monotonic_ms ();
    if (dial ("127.0.0.1", unlisted) >= 0 || errno != ECONNREFUSED)
        return 4;
    if (dial ("93.184.216.34", unlisted) >= 0 || errno != ECONNREFUSED)
        return 5;
    if (clock_monotonic_ms () - start > 3000)
        return 6;
    /* The port has a listener, the address is on no list: accepted by the kernel, closed without a
     * byte. */
    fd = dial ("93.184.216.34", allowed);
    char byte;
    if (fd < 0 || read (fd, &byte, 1) > 0)
        return 7;
    if (ask ("9.9.9.9", "unlisted.example.org") != DNS_CODE_REFUSED)
        return 8;
    if (ask ("8.8.8.8", "localhost") != DNS_CODE_NOERROR)
        return 9;
    return 0;
}

static void
test_containment_12_13_only_listed_addresses_are_relayed (void **state _unused_)
{
    uint16_t allowed, unlisted, ports[NETWORK_NAMESPACE_MAX_PORTS];
    int listener = listen_on_loopback (&allowed), other = listen_on_loopback (&unlisted);
    struct allow_list rules = { 0 };
    char entry[64];
    snprintf (entry, sizeof entry, "127.0.0.1:%u", allowed);
    allow (&rules, entry);
    allow (&rules, "localhost:1");
    size_t count = egress_ports (&rules, ports);
    struct session_namespaces ns;
    struct namespace_failure failure;
    const struct namespace_request request = { .ports = ports, .port_count = count };
    if (! session_namespaces_make (&request, &ns, &failure)) {
        print_message ("skipped: no network namespace here (%s)\n", failure.attempt.step);
        skip ();
    }
    pthread_t server;
    pthread_create (&server, NULL, shout, &listener);
    struct mur_error *err = NULL;
    struct egress *egress = egress_new (&ns.listeners, &rules, ports, &err);
    assert_non_null (egress);
    pid_t pid = fork ();
    if (pid == 0)
        _exit (session_namespaces_join_outer (&ns) || session_namespaces_join (&ns)
                   ? 100
                   : inside (allowed, unlisted));
    int status;
    waitpid (pid, &status, 0);
    assert_int_equal (status, 0);
    egress_free (egress);
    session_namespaces_close (&ns);
    shutdown (listener, SHUT_RDWR);
    pthread_join (server, NULL);
    close (listener);
    close (other);
    allow_list_free (&rules);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_containment_22_queries_are_decided_before_any_lookup),
        cmocka_unit_test (test_malformed_queries_are_told_so_and_never_read_past_their_end),
        cmocka_unit_test (test_ports_of_rules_are_sorted_unique_and_bounded),
        cmocka_unit_test (test_containment_12_13_only_listed_addresses_are_relayed),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
