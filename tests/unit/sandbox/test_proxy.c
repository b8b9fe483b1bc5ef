/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/testing.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "sandbox/egress/proxy_request.h"
#include "sandbox/egress/pump.h"

#include <string.h>

static enum proxy_verdict
read_text (const char *text, struct proxy_request *out)
{
    return proxy_request_read (text, strlen (text), out);
}

static void
test_a_tunnel_and_a_forward_name_host_and_port (void **state)
{
    (void)state;
    struct proxy_request q;
    assert_int_equal (read_text ("CONNECT API.example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n", &q),
                      PROXY_TUNNEL);
    assert_string_equal (q.host, "api.example.com");
    assert_int_equal (q.port, 443);
    assert_int_equal (read_text ("GET http://a.example./p?q HTTP/1.1\r\n\r\nbody", &q),
                      PROXY_FORWARD);
    assert_string_equal (q.host, "a.example");
    assert_int_equal (q.port, 80);
    assert_int_equal (q.head_len, 38);
}

static void
test_what_is_no_request_of_a_proxy_is_malformed (void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "GET / HTTP/1.1\r\n\r\n",
        "GET https://a/ HTTP/1.1\r\n\r\n",
        "CONNECT a:0 HTTP/1.1\r\n\r\n",
        "CONNECT a:65536 HTTP/1.1\r\n\r\n",
        "CONNECT a:99999999999999999999 HTTP/1.1\r\n\r\n",
        "CONNECT user@a:1 HTTP/1.1\r\n\r\n",
        "CONNECT [::1]:1 HTTP/1.1\r\n\r\n",
        "CONNECT :1 HTTP/1.1\r\n\r\n",
        "CONNECT a:1 HTTP/2\r\n\r\n",
        "GET http://a@b/ HTTP/1.1\r\n\r\n",
        "\r\n\r\n",
    };
    struct proxy_request q;
    for (size_t i = 0; i < ARRAY_LEN (wrong); i++)
        assert_int_equal (read_text (wrong[i], &q), PROXY_MALFORMED);
    assert_int_equal (read_text ("CONNECT a:1 HTTP/1.1\r\n", &q), PROXY_INCOMPLETE);
    assert_int_equal (proxy_request_read ("CONNECT a\0b:1 HTTP/1.1\r\n\r\n", 26, &q),
                      PROXY_MALFORMED);
}

static void
test_a_forwarded_head_has_a_path_and_no_line_for_a_proxy (void **state)
{
    (void)state;
    static const char asked[] = "POST http://a:81?x=1 HTTP/1.1\r\nHost: a:81\r\nproxy-connection: "
                                "keep-alive\r\nConnection: x\r\nX: y\r\n\r\nrest";
    struct proxy_request q;
    _cleanup_buf_ struct buf head = { 0 };
    assert_int_equal (read_text (asked, &q), PROXY_FORWARD);
    proxy_request_rewrite (asked, &q, &head);
    assert_string_equal (head.data,
                         "POST /?x=1 HTTP/1.1\r\nHost: a:81\r\nX: y\r\nConnection: close\r\n\r\n");
    static struct pipe_buffer b;
    memcpy (b.bytes, asked, sizeof asked - 1);
    b.end = sizeof asked - 1;
    pipe_buffer_replace (&b, q.head_len, head.data, head.len);
    assert_int_equal (b.end, head.len + 4);
    assert_memory_equal (b.bytes + head.len, "rest", 4);
}

static void
test_a_forwarded_head_names_the_host_that_is_dialled (void **state)
{
    (void)state;
    static const char *const asked[] = {
        "GET http://A.example/x HTTP/1.1\r\nHost: other.example\r\nhost: third\r\n\r\n",
        "GET http://A.example/x HTTP/1.1\r\n\r\n",
    };
    for (size_t i = 0; i < ARRAY_LEN (asked); i++) {
        struct proxy_request q;
        _cleanup_buf_ struct buf head = { 0 };
        assert_int_equal (read_text (asked[i], &q), PROXY_FORWARD);
        proxy_request_rewrite (asked[i], &q, &head);
        assert_string_equal (head.data,
                             "GET /x HTTP/1.1\r\nHost: A.example\r\nConnection: close\r\n\r\n");
    }
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_tunnel_and_a_forward_name_host_and_port),
        cmocka_unit_test (test_what_is_no_request_of_a_proxy_is_malformed),
        cmocka_unit_test (test_a_forwarded_head_has_a_path_and_no_line_for_a_proxy),
        cmocka_unit_test (test_a_forwarded_head_names_the_host_that_is_dialled),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
