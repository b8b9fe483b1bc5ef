/* SPDX-License-Identifier: Apache-2.0
 *
 * Where an address leads, and whether one may be led there.
 */
#include "tests/unit/testing.h"

#include "net/url.h"

static void
test_a_secure_address_leads_to_a_secure_one (void **state)
{
    (void)state;
    static const struct {
        const char *from, *to;
        bool is_kept;
    } rows[] = {
        { "https://a/", "https://b/", true }, { "https://a/", "http://a/", false },
        { "HTTPS://a/", "http://a/", false }, { "https://a/", "HTTPS://a/", true },
        { "http://a/", "http://b/", true },   { "http://a/", "https://b/", true },
        { "HtTpS://a/", "HTTP://a/", false }, { "http://a/", "ftp://a/", false },
        { "https://a/", "https:/a", false },  { "http://a/", "file:///a", false },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++)
        assert_int_equal (url_keeps_secure (rows[i].from, rows[i].to), rows[i].is_kept);
}

static void
test_origins_are_compared_as_addresses_are (void **state)
{
    (void)state;
    assert_true (url_same_origin ("https://a/x", "HTTPS://A:443/y"));
    assert_false (url_same_origin ("https://a/", "http://a/"));
    assert_false (url_same_origin ("https://a/", "https://a:444/"));
    assert_false (url_same_origin ("https://a/", "a"));
}

static void
test_where_a_location_leads (void **state)
{
    (void)state;
    static const struct {
        const char *from, *location, *to;
    } rows[] = {
        { "https://a:1/x/y?z", "/w", "https://a:1/w" },
        { "https://a/x", "//b/w", "https://b/w" },
        { "https://a/x", "http://b/w", "http://b/w" },
        { "https://a/x", "w", NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        _cleanup_free_ char *to = url_resolve (rows[i].from, rows[i].location);
        if (rows[i].to)
            assert_string_equal (to, rows[i].to);
        else
            assert_null (to);
    }
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_secure_address_leads_to_a_secure_one),
        cmocka_unit_test (test_origins_are_compared_as_addresses_are),
        cmocka_unit_test (test_where_a_location_leads),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
