/* SPDX-License-Identifier: Apache-2.0
 *
 * The HTTP client: names, what is left of it when it ends, fetching, proxies.
 */
#include "base/clock.h"
#include "net/http_client.h"
#include "net/http_fetch.h"
#include "net/http_prepare.h"
#include "net/resolver.h"
#include "tests/unit/net/http_client_stand.h"
#include "tests/unit/net/loop_server.h"
#include "tests/unit/testing.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

static void
test_a_name_for_a_metadata_address_is_refused (void **state)
{
    (void)state;
    struct log log = { 0 };
    struct loop_server *server = loop_server_new (answer_all, &log);
    struct http_client *c = http_client_new ();
    int status;
    assert_int_equal (get (c, "http://meta.test/latest", &status), HTTP_DENIED);
    _cleanup_free_ char *url = x_asprintf ("http://loop.localhost:%d/", loop_server_port (server));
    assert_int_equal (get (c, url, &status), HTTP_OK);
    assert_int_equal (status, 200);
    http_client_free (c);
    loop_server_free (server);
}

static void
test_names_are_looked_up_by_us_and_once_a_minute (void **state)
{
    (void)state;
    struct log log = { 0 };
    struct loop_server *server = loop_server_new (answer_all, &log);
    struct http_client *c = http_client_new ();
    _cleanup_free_ char *named =
        x_asprintf ("http://loop.localhost:%d/", loop_server_port (server));
    _cleanup_free_ char *literal = url_of (server, "/");
    int status;
    unsigned before = lookups;
    for (int i = 0; i < 3; i++)
        assert_int_equal (get (c, named, &status), HTTP_OK);
    assert_int_equal (lookups - before, 2); /* one a family */
    assert_int_equal (get (c, literal, &status), HTTP_OK);
    assert_int_equal (lookups - before, 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal (get (c, "http://nowhere.test/", &status), HTTP_DNS_FAILED);
    assert_int_equal (lookups - before, 4); /* that it does not exist is known, too */
    http_client_free (c);
    loop_server_free (server);
}

static void
test_a_lookup_may_be_left_and_ends_with_the_client (void **state)
{
    (void)state;
    struct http_client *c = http_client_new ();
    struct seen left, waiting;
    seen_init (&left);
    seen_init (&waiting);
    const struct http_request request = { .method = "GET", .url = "http://silent.test/" };
    unsigned before = lookups;
    struct http_transfer *a = http_start (c, &request, &events, &left);
    struct http_transfer *b = http_start (c, &request, &events, &waiting);
    while (lookups == before)
        sched_yield ();
    http_transfer_release (a);
    http_client_free (c);
    assert_int_equal (left.ends, 0);
    assert_int_equal (waiting.ends, 1);
    assert_int_equal (waiting.failure, HTTP_INTERNAL);
    http_transfer_release (b);
    seen_free (&left);
    seen_free (&waiting);
}

static void
test_every_socket_is_close_on_exec (void **state)
{
    (void)state;
    struct log log = { 0 };
    struct loop_server *server = loop_server_new (send_head_and_stall, &log);
    struct http_client *c = http_client_new ();
    _cleanup_free_ char *url = url_of (server, "/");
    struct seen seen;
    seen_init (&seen);
    struct http_transfer *t =
        http_start (c, &(struct http_request){ .method = "GET", .url = url }, &events, &seen);
    wait_until (&seen, seen.body.len == 4);
    for (int fd = 3; fd < 256; fd++) {
        int type;
        socklen_t len = sizeof type;
        if (getsockopt (fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0)
            assert_true (fcntl (fd, F_GETFD) & FD_CLOEXEC);
    }
    http_transfer_release (t);
    http_client_free (c);
    loop_server_free (server);
    seen_free (&seen);
}

static void
test_freeing_the_client_ends_what_still_runs (void **state)
{
    (void)state;
    struct log log = { 0 };
    struct loop_server *server = loop_server_new (read_and_say_nothing, &log);
    struct http_client *c = http_client_new ();
    _cleanup_free_ char *url = url_of (server, "/");
    struct seen seen;
    seen_init (&seen);
    struct http_transfer *t =
        http_start (c, &(struct http_request){ .method = "GET", .url = url }, &events, &seen);
    wait_until (&seen, atomic_load (&log.requests) == 1);
    http_client_free (c);
    assert_int_equal (seen.ends, 1);
    assert_int_equal (seen.failure, HTTP_INTERNAL);
    http_transfer_resume (t);
    http_transfer_release (t);
    seen_free (&seen);
    loop_server_free (server);
}

static void
test_fetch_waits_and_can_follow_when_asked (void **state)
{
    (void)state;
    struct log log = { 0 };
    struct loop_server *server = loop_server_new (redirect, &log);
    struct loop_server *fine = loop_server_new (answer_all, &log);
    struct http_client *c = http_client_new ();
    _cleanup_free_ char *url = url_of (fine, "/x");
    _cleanup_http_response_ struct http_response r = { 0 };
    struct http_fetch fetch = { .request = { .method = "GET", .url = url },
                                .limit_bytes = 100,
                                .redirect_limit = 2 };
    assert_succeeds (http_fetch (c, &fetch, &r, NULL, &err));
    assert_int_equal (r.status, 200);
    assert_string_equal (http_response_header (&r, "content-length"), "4");
    assert_string_equal (r.body.data, "fine");
    http_response_free (&r);

    fetch.limit_bytes = 3;
    assert_fails (http_fetch (c, &fetch, &r, NULL, &err), E_IO_003);

    fetch.limit_bytes = 100;
    fetch.total_timeout_ms = 200;
    _cleanup_free_ char *elsewhere = url_of (server, "/here");
    fetch.request.url = elsewhere;
    enum http_failure failure;
    /* The redirecting script takes /elsewhere and says nothing more before it closes. */
    assert_fails (http_fetch (c, &fetch, &r, &failure, &err), E_IO_003);
    assert_true (strstr (log.head, "GET /elsewhere ") == log.head);
    http_client_free (c);
    loop_server_free (server);
    loop_server_free (fine);
}

static void
test_a_fetch_can_be_cancelled (void **state)
{
    (void)state;
    struct log log = { 0 };
    struct loop_server *server = loop_server_new (read_and_say_nothing, &log);
    struct http_client *c = http_client_new ();
    struct cancel *cancel = cancel_new ();
    _cleanup_free_ char *url = url_of (server, "/");
    struct http_fetch fetch = { .request = { .method = "GET", .url = url },
                                .limit_bytes = 100,
                                .cancel = cancel };
    struct http_response r;
    cancel_raise (cancel);
    uint64_t start = clock_monotonic_ms ();
    assert_fails (http_fetch (c, &fetch, &r, NULL, &err), E_IO_003);
    assert_true (clock_monotonic_ms () - start < 150);
    cancel_unref (cancel);
    http_client_free (c);
    loop_server_free (server);
}

static char *
proxy_for (const char *address)
{
    _cleanup_url_ struct url url = { 0 };
    assert_null (url_parse (address, &url));
    return http_find_proxy (&url);
}

static void
test_proxies_come_from_our_environment_only (void **state)
{
    (void)state;
    _cleanup_free_ char *none = proxy_for ("https://api.example.com/");
    assert_null (none);
    setenv ("https_proxy", "http://proxy:3128", 1);
    setenv ("HTTP_PROXY", "http://never:1", 1);
    setenv ("no_proxy", "internal.example.com, .corp", 1);
    _cleanup_free_ char *used = proxy_for ("https://api.example.com/");
    assert_string_equal (used, "http://proxy:3128");
    assert_null (proxy_for ("http://api.example.com/"));
    assert_null (proxy_for ("https://localhost:8443/"));
    assert_null (proxy_for ("https://127.0.0.1/"));
    assert_null (proxy_for ("https://a.internal.example.com/"));
    assert_null (proxy_for ("https://x.corp/"));
    unsetenv ("https_proxy");
    unsetenv ("HTTP_PROXY");
    unsetenv ("no_proxy");
}

int
main (void)
{
    static const char *const proxies[] = { "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                           "ALL_PROXY",  "no_proxy",    "NO_PROXY" };
    for (size_t i = 0; i < ARRAY_LEN (proxies); i++)
        unsetenv (proxies[i]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_name_for_a_metadata_address_is_refused),
        cmocka_unit_test (test_names_are_looked_up_by_us_and_once_a_minute),
        cmocka_unit_test (test_a_lookup_may_be_left_and_ends_with_the_client),
        cmocka_unit_test (test_every_socket_is_close_on_exec),
        cmocka_unit_test (test_freeing_the_client_ends_what_still_runs),
        cmocka_unit_test (test_fetch_waits_and_can_follow_when_asked),
        cmocka_unit_test (test_a_fetch_can_be_cancelled),
        cmocka_unit_test (test_proxies_come_from_our_environment_only),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
