/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts to numbers: what was put is found, the last number stands, and it grows.
 */
#include "tests/unit/testing.h"

#include "trace/read/text_index.h"

#include <stdio.h>

static void
test_what_was_put_is_found (void **state)
{
    (void)state;
    _cleanup_text_index_ struct text_index x = { 0 };
    uint32_t value;
    assert_false (text_index_get (&x, "nothing", &value));
    text_index_put (&x, "a", 1);
    text_index_put (&x, "", 2);
    text_index_put (&x, "a", 3);
    assert_true (text_index_get (&x, "a", &value));
    assert_int_equal (value, 3);
    assert_true (text_index_get (&x, "", &value));
    assert_int_equal (value, 2);
    assert_false (text_index_get (&x, "b", &value));
}

static void
test_it_grows_beyond_what_was_expected (void **state)
{
    (void)state;
    _cleanup_text_index_ struct text_index x;
    text_index_init (&x, 10);
    char text[16];
    uint32_t value;
    for (uint32_t i = 0; i < 5000; i++) {
        snprintf (text, sizeof (text), "text %u", i);
        text_index_put (&x, text, i);
    }
    for (uint32_t i = 0; i < 5000; i++) {
        snprintf (text, sizeof (text), "text %u", i);
        assert_true (text_index_get (&x, text, &value));
        assert_int_equal (value, i);
    }
    assert_false (text_index_get (&x, "text 5000", &value));
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_what_was_put_is_found),
        cmocka_unit_test (test_it_grows_beyond_what_was_expected),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
