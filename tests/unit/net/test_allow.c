/* SPDX-License-Identifier: Apache-2.0
 *
 * Allow rules, row by row of spec/containment.md 3.1, and the address pieces beneath them.
 */
#include "net/allow.h"
#include "net/sse.h"
#include "net/url.h"
#include "tests/unit/testing.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

static void
test_accepted_entries_and_their_rules (void **state)
{
    (void)state;
    static const struct {
        const char *entry, *scheme, *host;
        int port;
    } rows[] = {
        { "https://api.example.com", "https", "api.example.com", 443 },
        { "http://h:8080", "http", "h", 8080 },
        { "HTTPS://API.Example.com/", "https", "api.example.com", 443 },
        { "http://h:", "http", "h", 80 },
        { "https://user:pw@h", "https", "h", 443 },
        { "example.com", NULL, "example.com", ALLOW_ANY_PORT },
        { "  Example.COM\t", NULL, "example.com", ALLOW_ANY_PORT },
        { "example.com:8443", NULL, "example.com", 8443 },
        { "127.0.0.1:41235", NULL, "127.0.0.1", 41235 },
        { "host:80", NULL, "host", 80 },
        { "host:0", NULL, "host", 0 },
        { "host:", NULL, "host", ALLOW_ANY_PORT },
        { "host:65535", NULL, "host", 65535 },
        { "[::1]", NULL, "[::1]", ALLOW_ANY_PORT },
        { "[::1]:80", NULL, "[::1]", 80 },
        { "[0:0:0:0:0:0:0:1]:80", NULL, "[::1]", 80 },
        { "http://[::1]:80", "http", "[::1]", 80 },
        { "*", NULL, "*", ALLOW_ANY_PORT },
        { "*.example.com", NULL, "*.example.com", ALLOW_ANY_PORT },
        { "127.1", NULL, "127.0.0.1", ALLOW_ANY_PORT },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        _cleanup_allow_list_ struct allow_list list = { 0 };
        assert_succeeds (allow_list_add (&list, rows[i].entry, &err));
        const struct allow_rule *rule = &list.rules[0];
        assert_string_equal (rule->host, rows[i].host);
        assert_int_equal (rule->port, rows[i].port);
        assert_true (str_eq (rule->scheme, rows[i].scheme));
    }
}

static void
test_refused_entries_quote_the_entry (void **state)
{
    (void)state;
    static const char *const entries[] = {
        "",
        "   ",
        "ftp://h",
        "wss://h",
        "https://api.example.com/v1",
        "https://h/?q",
        "https://h?",
        "https://h#f",
        "https://h/#",
        "https://",
        "https:///x",
        "http://:80",
        ":80",
        "h:65536",
        "h:99999999999999999999",
        "https://h:70000",
        "h:x",
        "a b",
        "https://a b",
        "::1",
        "fe80::1:80",
        "[::1",
        "[::1]x",
        "[::g]",
        "*.0.0.1",
        "1.2.3.256",
        "host/path",
        "host?q",
        "host#f",
        "user@host",
        "ho%73t",
        "https:h",
        "h\xc3\xb6st",
    };
    for (size_t i = 0; i < ARRAY_LEN (entries); i++) {
        struct allow_list list = { 0 };
        struct mur_error *err = NULL;
        if (allow_list_add (&list, entries[i], &err))
            fail_msg ("accepted: \"%s\"", entries[i]);
        assert_string_equal (diag_code_name (err->code), "E-CAP-001");
        _cleanup_free_ char *quoted = x_asprintf ("\"%s\"", entries[i]);
        assert_non_null (strstr (err->message, quoted));
        assert_non_null (err->hint);
        assert_int_equal (list.len, 0);
        mur_error_free (err);
    }
}

static bool
matches (const char *entry, const char *scheme, const char *authority)
{
    _cleanup_allow_list_ struct allow_list list = { 0 };
    struct mur_error *err = NULL;
    assert_true (allow_list_add (&list, entry, &err));
    return allow_list_matches_authority (&list, scheme, authority);
}

static void
test_matching_is_exact (void **state)
{
    (void)state;
    assert_true (matches ("example.com", "https", "EXAMPLE.com"));
    assert_true (matches ("example.com", "http", "example.com:1234"));
    assert_false (matches ("example.com", "https", "a.example.com"));
    assert_false (matches ("*.example.com", "https", "a.example.com"));
    assert_false (matches ("*", "https", "example.com"));
    assert_true (matches ("https://h", "https", "h"));
    assert_true (matches ("https://h", "https", "h:443"));
    assert_false (matches ("https://h", "http", "h"));
    assert_false (matches ("https://h", "https", "h:8443"));
    assert_true (matches ("host:80", "http", "host"));
    assert_false (matches ("host:80", "https", "host"));
    assert_true (matches ("host:443", "https", "host"));
    assert_true (matches ("[::1]:80", "http", "[::1]"));
    assert_true (matches ("127.0.0.1:9", "http", "127.0.0.1:9"));
    assert_false (matches ("good.com", "http", "good.com@evil.com"));
    assert_false (matches ("good.com", "http", ""));
    assert_false (matches ("good.com", "http", NULL));
    assert_false (matches ("good.com", "http", "good.com:99999"));
    struct allow_list empty = { 0 };
    assert_false (allow_list_matches_authority (&empty, "https", "example.com"));
}

static bool
covers (const char *ceiling, const char *narrower)
{
    _cleanup_allow_list_ struct allow_list a = { 0 }, b = { 0 };
    struct mur_error *err = NULL;
    assert_true (allow_list_add (&a, ceiling, &err));
    assert_true (allow_list_add (&b, narrower, &err));
    return allow_list_covers (&a, &b.rules[0]);
}

static void
test_a_broader_entry_is_not_covered (void **state)
{
    (void)state;
    assert_true (covers ("h", "h"));
    assert_true (covers ("h", "https://h"));
    assert_true (covers ("h", "h:80"));
    assert_true (covers ("https://h", "https://h:443"));
    assert_false (covers ("https://h", "h"));
    assert_false (covers ("https://h", "http://h"));
    assert_false (covers ("https://h", "h:443"));
    assert_false (covers ("h:80", "h"));
    assert_true (covers ("h:80", "http://h"));
    assert_false (covers ("h", "other.com"));
}

static bool
is_local_service (const char *text)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
    if (inet_pton (AF_INET, text, &v4.sin_addr) == 1)
        return address_is_local_service ((struct sockaddr *)&v4);
    assert_int_equal (inet_pton (AF_INET6, text, &v6.sin6_addr), 1);
    return address_is_local_service ((struct sockaddr *)&v6);
}

static void
test_link_local_and_metadata_addresses (void **state)
{
    (void)state;
    static const char *const refused[] = { "169.254.169.254",    "169.254.0.1",
                                           "100.100.100.200",    "fe80::1",
                                           "::ffff:169.254.1.1", "fd00:ec2::254",
                                           "64:ff9b::a9fe:a9fe" };
    static const char *const fine[] = { "127.0.0.1", "10.0.0.1",    "192.168.1.1",
                                        "::1",       "2001:db8::1", "169.253.1.1" };
    for (size_t i = 0; i < ARRAY_LEN (refused); i++)
        assert_true (is_local_service (refused[i]));
    for (size_t i = 0; i < ARRAY_LEN (fine); i++)
        assert_false (is_local_service (fine[i]));
}

static void
test_loopback_hosts (void **state)
{
    (void)state;
    assert_true (host_is_loopback ("localhost"));
    assert_true (host_is_loopback ("127.0.0.1"));
    assert_true (host_is_loopback ("127.255.0.1"));
    assert_true (host_is_loopback ("[::1]"));
    assert_false (host_is_loopback ("0.0.0.0"));
    assert_false (host_is_loopback ("[::ffff:127.0.0.1]"));
    assert_false (host_is_loopback ("localhost.example.com"));
}

struct events {
    char text[256];
};

static bool
note_event (void *ctx, const char *id, const char *data, size_t len)
{
    struct events *e = ctx;
    assert_int_equal (strlen (data), len);
    snprintf (e->text + strlen (e->text), sizeof e->text - strlen (e->text), "[%s|%s]", id, data);
    return true;
}

static void
test_sse_is_read_back_however_it_is_cut (void **state)
{
    (void)state;
    struct buf wire = { 0 };
    sse_append (&wire, 7, "{\"a\":1}", 7);
    buf_puts (&wire, SSE_HEARTBEAT);
    sse_append (&wire, 0, "{}", 2);
    assert_string_equal (wire.data, "id: 7\ndata: {\"a\":1}\n\n:heartbeat\n\ndata: {}\n\n");
    buf_puts (&wire, "data: x\r\ndata:y\r\n\r\nevent: z\n\n");
    for (size_t cut = 1; cut <= wire.len; cut++) {
        struct events seen = { { 0 } };
        struct sse_parser parser = { 0 };
        for (size_t at = 0; at < wire.len; at += cut) {
            size_t len = wire.len - at < cut ? wire.len - at : cut;
            assert_true (sse_feed (&parser, wire.data + at, len, note_event, &seen));
        }
        assert_string_equal (seen.text, "[7|{\"a\":1}][|{}][|x\ny]");
        sse_parser_free (&parser);
    }
    buf_free (&wire);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_accepted_entries_and_their_rules),
        cmocka_unit_test (test_refused_entries_quote_the_entry),
        cmocka_unit_test (test_matching_is_exact),
        cmocka_unit_test (test_a_broader_entry_is_not_covered),
        cmocka_unit_test (test_link_local_and_metadata_addresses),
        cmocka_unit_test (test_loopback_hosts),
        cmocka_unit_test (test_sse_is_read_back_however_it_is_cut),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
