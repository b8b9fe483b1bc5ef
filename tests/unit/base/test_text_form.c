/* SPDX-License-Identifier: Apache-2.0
 *
 * Text as people's programs write it becomes UTF-8 without a mark.
 */
#include "tests/unit/testing.h"

#include "base/text.h"

#include <string.h>

static void
assert_becomes (const char *from, size_t len, const char *expected)
{
    _cleanup_buf_ struct buf text = { 0 };
    buf_append (&text, from, len);
    text_form_normalise (&text);
    assert_string_equal (text.data ? text.data : "", expected);
    assert_int_equal (text.len, strlen (expected));
}
#define BECOMES(from, expected) assert_becomes (from, sizeof (from) - 1, expected)

static void
test_marks_and_utf16 (void **state _unused_)
{
    BECOMES ("", "");
    BECOMES ("plain \xc3\xa9", "plain \xc3\xa9");
    BECOMES ("\xef\xbb\xbfmarked", "marked");
    BECOMES ("\xef\xbb\xbf", "");
    BECOMES ("\xff\xfeh\0i\0", "hi");
    BECOMES ("\xfe\xff\0h\0i", "hi");
    BECOMES ("\xff\xfe", "");
    BECOMES ("h\0i\0", "hi");
    BECOMES ("\0h\0i", "hi");
    BECOMES ("\xff\xfe\x3d\xd8\x00\xde", "\xf0\x9f\x98\x80");
    BECOMES ("\xff\xfe\x3d\xd8x\0", "\xef\xbf\xbdx");
    BECOMES ("\xff\xfe\x00\xdex\0", "\xef\xbf\xbdx");
    BECOMES ("\xff\xfeh\0i", "h\xef\xbf\xbd");
    BECOMES ("\xff\xfe\x22\x6f", "\xe6\xbc\xa2");
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_marks_and_utf16),
    };
    return cmocka_run_group_tests_name ("base/text_form", tests, NULL, NULL);
}
