/* SPDX-License-Identifier: Apache-2.0
 *
 * The component section reader and level fit (spec/artifacts.md 11).
 */
#include "artifact/names/wit.h"
#include "artifact/names/wit_reader.h"
#include "tests/unit/testing.h"

#include <string.h>

static const unsigned char preamble[] = { 0x00, 0x61, 0x73, 0x6d, 0x0d, 0x00, 0x01, 0x00 };

static void
put_name (struct buf *b, const char *name)
{
    buf_putc (b, 0);
    buf_putc (b, (char)strlen (name));
    buf_puts (b, name);
}

static void
put_section (struct buf *b, char id, const struct buf *body)
{
    buf_putc (b, id);
    buf_putc (b, (char)(body->len & 0x7f) | (body->len > 127 ? (char)0x80 : 0));
    if (body->len > 127)
        buf_putc (b, (char)(body->len >> 7));
    buf_append (b, body->data, body->len);
}

/* A component importing and exporting one instance, with a nested component that must not count. */
static struct buf
component (const char *import, const char *export)
{
    struct buf b = { 0 };
    _cleanup_buf_ struct buf nested = { 0 }, inner = { 0 }, imports = { 0 }, exports = { 0 };
    buf_append (&b, preamble, 8);
    buf_putc (&inner, 1);
    put_name (&inner, "murmur:nested/never@1.0.0");
    buf_append (&inner, "\x05\x00", 2);
    buf_append (&nested, preamble, 8);
    put_section (&nested, 10, &inner);
    put_section (&b, 4, &nested);
    buf_putc (&imports, 2);
    put_name (&imports, import);
    buf_append (&imports, "\x05\x00", 2);
    put_name (&imports, "bare-function");
    buf_append (&imports, "\x01\x00", 2);
    put_section (&b, 10, &imports);
    buf_putc (&exports, 1);
    put_name (&exports, export);
    buf_append (&exports, "\x05\x00\x00", 3);
    put_section (&b, 11, &exports);
    return b;
}

static void
test_only_the_outermost_instances_count (void **state)
{
    (void)state;
    _cleanup_buf_ struct buf b = component ("wasi:io/poll@0.2.0", "murmur:tool/run@0.1.0");
    _cleanup_contracts_ struct wit_contracts c = { 0 };
    assert_int_equal (wit_read (b.data, b.len, &c), WIT_READ);
    assert_int_equal (c.imports.len, 1);
    assert_string_equal (c.imports.items[0], "wasi:io/poll@0.2.0");
    assert_int_equal (c.exports.len, 1);
    assert_true (wit_exports (&c, "murmur:tool/run@0.1.0"));
    assert_true (wit_fits (&c, 1, NULL));
}

static void
test_a_core_module_is_no_component (void **state)
{
    (void)state;
    struct wit_contracts c;
    assert_int_equal (wit_read ("\0asm\1\0\0\0", 8, &c), WIT_CORE_MODULE);
    assert_int_equal (wit_read ("\0asm\2\0\0\0", 8, &c), WIT_UNREADABLE);
    assert_int_equal (wit_read ("\0asm", 4, &c), WIT_UNREADABLE);
    assert_int_equal (wit_read ("", 0, &c), WIT_UNREADABLE);
}

static void
test_a_cut_or_overlong_section_does_not_parse (void **state)
{
    (void)state;
    _cleanup_buf_ struct buf b = component ("wasi:io/poll@0.2.0", "murmur:tool/run@0.1.0");
    size_t sections = 0;
    for (size_t len = 8; len < b.len; len++) {
        unsigned char *copy = x_memdup (b.data, len);
        struct wit_contracts c;
        sections += wit_read (copy, len, &c) == WIT_READ;
        wit_contracts_clear (&c);
        free (copy);
    }
    /* Only a cut between two sections leaves a component. */
    assert_int_equal (sections, 3);
    static const unsigned char huge[] = { 0x00, 0x61, 0x73, 0x6d, 0x0d, 0x00, 0x01,
                                          0x00, 0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f };
    struct wit_contracts c;
    assert_int_equal (wit_read (huge, sizeof (huge), &c), WIT_UNREADABLE);
}

static void
test_pieces_of_any_size_read_like_the_whole (void **state)
{
    (void)state;
    _cleanup_buf_ struct buf b = component ("wasi:io/poll@0.2.0", "murmur:tool/run@0.1.0");
    for (size_t piece = 1; piece < b.len; piece++) {
        _cleanup_wit_stream_ struct wit_stream *s = wit_stream_new ();
        for (size_t at = 0; at < b.len; at += piece)
            wit_stream_feed (s, b.data + at, b.len - at < piece ? b.len - at : piece);
        _cleanup_contracts_ struct wit_contracts c = { 0 };
        assert_int_equal (wit_stream_finish (s, &c), WIT_READ);
        assert_int_equal (c.imports.len, 1);
        assert_true (wit_exports (&c, "murmur:tool/run@0.1.0"));
    }
}

/* What is kept has a bound of its own: a section that declares more is refused before it comes. */
static void
test_names_without_end_are_not_kept (void **state)
{
    (void)state;
    _cleanup_wit_stream_ struct wit_stream *s = wit_stream_new ();
    wit_stream_feed (s, preamble, sizeof (preamble));
    wit_stream_feed (s, "\x0a\xff\xff\xff\x0f", 5); /* 32 MiB of imports */
    struct wit_contracts c;
    assert_int_equal (wit_stream_finish (s, &c), WIT_UNREADABLE);
}

static void
test_a_count_beyond_its_section_does_not_parse (void **state)
{
    (void)state;
    static const unsigned char b[] = { 0x00, 0x61, 0x73, 0x6d, 0x0d, 0x00, 0x01, 0x00,
                                       0x0a, 0x05, 0xff, 0xff, 0xff, 0xff, 0x0f };
    struct wit_contracts c;
    assert_int_equal (wit_read (b, sizeof (b), &c), WIT_UNREADABLE);
}

static void
test_versions_are_compared_as_text_and_wasi_is_never_judged (void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool fits;
    } cases[] = {
        { "murmur:tool/run@0.1.0", true },
        { "murmur:tool/run@0.1.1", false },
        { "murmur:tool/run", false },
        { "murmur:text/chunks@0.1.0", false },
        { "murmur:driver/process@0.2.0", false },
        { "wasi:http/types@9.9.9", true },
        { "ana:x/y@1.0.0", true },
        { "murmur:tool/anything@0.1.0", true },
        { "murmur:toolx/run@0.1.0", false },
    };
    for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
        _cleanup_misfits_ struct wit_misfits m = { 0 };
        wit_judge (cases[i].name, WIT_IMPORTS, 1, &m);
        assert_int_equal (m.len == 0, cases[i].fits);
    }
}

static void
test_the_refusal_lists_every_clause (void **state)
{
    (void)state;
    _cleanup_buf_ struct buf b =
        component ("murmur:text/chunks@0.1.0", "murmur:driver/process@0.2.0");
    _cleanup_contracts_ struct wit_contracts c = { 0 };
    _cleanup_misfits_ struct wit_misfits m = { 0 };
    wit_read (b.data, b.len, &c);
    assert_false (wit_fits (&c, wit_served_level (), &m));
    struct mur_error *err = NULL;
    wit_refuse ("ana/d", "1.0.0", &m, &err);
    assert_int_equal (err->code, E_WIT_LEVEL_001);
    static const char *const wanted[] = { "ana/d@1.0.0",
                                          "level 1",
                                          "exports murmur:driver/process@0.2.0",
                                          "murmur:driver@0.3.0",
                                          "imports murmur:text/chunks@0.1.0",
                                          "no version of murmur:text" };
    for (size_t i = 0; i < ARRAY_LEN (wanted); i++)
        assert_non_null (strstr (err->message, wanted[i]));
    mur_error_free (err);
    assert_int_equal (wit_newest_fit (&c), 0);
}

static void
test_the_level_table_keeps_its_shape (void **state)
{
    (void)state;
    size_t count;
    const struct wit_level_row *rows = wit_level_rows (&count);
    assert_int_equal (rows[0].level, 1);
    for (size_t i = 1; i < count; i++) {
        bool same = rows[i].level == rows[i - 1].level;
        assert_true (same ? strcmp (rows[i - 1].package, rows[i].package) < 0
                          : rows[i].level == rows[i - 1].level + 1);
    }
    assert_string_equal (wit_level_version (1, "murmur:hook", 11), "0.9.0");
    assert_null (wit_level_version (1, "murmur:hoo", 10));
    assert_null (wit_level_version (2, "murmur:hook", 11));
    assert_int_equal (wit_newest_fit (&(struct wit_contracts){ 0 }), wit_newest_level ());
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_only_the_outermost_instances_count),
        cmocka_unit_test (test_a_core_module_is_no_component),
        cmocka_unit_test (test_a_cut_or_overlong_section_does_not_parse),
        cmocka_unit_test (test_pieces_of_any_size_read_like_the_whole),
        cmocka_unit_test (test_names_without_end_are_not_kept),
        cmocka_unit_test (test_a_count_beyond_its_section_does_not_parse),
        cmocka_unit_test (test_versions_are_compared_as_text_and_wasi_is_never_judged),
        cmocka_unit_test (test_the_refusal_lists_every_clause),
        cmocka_unit_test (test_the_level_table_keeps_its_shape),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
