/* SPDX-License-Identifier: Apache-2.0
 *
 * When a server says to come back: every form is read or refused, none is cut short.
 */
#include "tests/unit/testing.h"

#include "net/retry_after.h"

#define NOW_MS 1000

static void
test_forms_that_are_read (void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t ms;
    } rows[] = {
        { "2", 2000 },
        { " 2 ", 2000 },
        { "2s", 2000 },
        { "1.5", 1500 },
        { "0.0001", 1 },
        { "0", 0 },
        { "Thu, 01 Jan 1970 00:00:05 GMT", 4000 },
        { "Thursday, 01-Jan-70 00:00:05 GMT", 4000 },
        { "Thu Jan  1 00:00:05 1970", 4000 },
        { "1970-01-01T00:00:05Z", 4000 },
        { "Thu, 01 Jan 1970 00:00:00 GMT", 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        uint64_t ms = 77;
        assert_true (retry_after_read (rows[i].text, NOW_MS, &ms));
        assert_int_equal (ms, rows[i].ms);
    }
}

static void
test_forms_that_are_none (void **state)
{
    (void)state;
    static const char *const texts[] = { "", " ", "soon", "-1", "2 minutes", "Thu, 99 Foo", "1e3" };
    uint64_t ms;
    for (size_t i = 0; i < ARRAY_LEN (texts); i++)
        assert_false (retry_after_read (texts[i], NOW_MS, &ms));
    assert_false (retry_after_read_ms ("-1", &ms));
    assert_false (retry_after_read_ms ("", &ms));
}

static void
test_milliseconds_and_long_waits (void **state)
{
    (void)state;
    uint64_t ms;
    assert_true (retry_after_read_ms ("150", &ms));
    assert_int_equal (ms, 150);
    assert_true (retry_after_read_ms ("150.2", &ms));
    assert_int_equal (ms, 151);
    assert_true (retry_after_read ("99999999999999999999999999", NOW_MS, &ms));
    assert_true (ms > 1000000000000u);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_forms_that_are_read),
        cmocka_unit_test (test_forms_that_are_none),
        cmocka_unit_test (test_milliseconds_and_long_waits),
    };
    return cmocka_run_group_tests_name ("net/retry_after", tests, NULL, NULL);
}
