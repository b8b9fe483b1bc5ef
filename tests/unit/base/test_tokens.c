/* SPDX-License-Identifier: Apache-2.0
 *
 * Token counts against counts made with another implementation of cl100k_base. Without the table
 * only the fallback is tested, and the program says so.
 */
#include "tests/unit/testing.h"

#include "base/tokens.h"

#include <string.h>

static const struct {
    const char *text;
    uint64_t tokens;
} known[] = {
    { "", 0 },
    { "hello world", 2 },
    { "  a\n\n b", 4 },
    { "it's I'LL we'Ve x'\xc5\xbf", 12 },
    { "<|endoftext|>x<|fim", 6 },
    { "x  \t\n \n  y  ", 6 },
    { "12345 678", 4 },
    { "\xc2\xa0\xe3\x80\x80 x", 3 },
};

static void
test_counts_equal_the_published_encoding (void **state _unused_)
{
    if (! tokens_are_exact ()) {
        print_message ("skipped: no cl100k.tokens beside this program\n");
        skip ();
    }
    for (size_t i = 0; i < ARRAY_LEN (known); i++)
        assert_int_equal (tokens_count (known[i].text, strlen (known[i].text)), known[i].tokens);
}

static void
test_a_long_word_is_counted_in_near_linear_time (void **state _unused_)
{
    size_t len = 1 << 20;
    char *text = x_malloc (len);
    memset (text, 'a', len);
    uint64_t tokens = tokens_count (text, len);
    assert_true (tokens > 1000 && tokens <= len / 2);
    free (text);
}

static void
test_malformed_bytes_are_counted_and_end (void **state _unused_)
{
    char bytes[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    assert_true (tokens_count (bytes, sizeof bytes) > 0);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_counts_equal_the_published_encoding),
        cmocka_unit_test (test_a_long_word_is_counted_in_near_linear_time),
        cmocka_unit_test (test_malformed_bytes_are_counted_and_end),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
