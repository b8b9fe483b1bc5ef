/* SPDX-License-Identifier: Apache-2.0
 *
 * The YAML reader and writer: scalars, positions, bounds, JSON, and that what is written reads
 * back.
 */
#include "tests/unit/testing.h"

#include "base/json.h"
#include "manifest/text/yaml.h"
#include "manifest/text/yaml_tree.h"
#include "manifest/text/yaml_write.h"

#include <string.h>
#include <time.h>

static struct arena *arena;

static int
set_up (void **state _unused_)
{
    arena = arena_new ();
    return 0;
}

static int
tear_down (void **state _unused_)
{
    arena_free (arena);
    return 0;
}

static struct yaml_node *
parse (const char *text)
{
    struct mur_error *err = NULL;
    struct yaml_node *n = yaml_parse (arena, text, strlen (text), "f.yaml", E_MAN_002, &err);
    if (! n)
        fail_msg ("%s", err->message);
    return n;
}

static void
refuse_n (const char *text, size_t len, const char *words)
{
    _cleanup_error_ struct mur_error *err = NULL;
    assert_null (yaml_parse (arena, text, len, "f.yaml", E_MAN_002, &err));
    assert_int_equal (err->code, E_MAN_002);
    if (! strstr (err->message, words))
        fail_msg ("'%s' is not in: %s", words, err->message);
}

static void
refuse (const char *text, const char *words)
{
    refuse_n (text, strlen (text), words);
}

static void
test_plain_scalars_follow_the_core_schema (void **state _unused_)
{
    static const struct {
        const char *text;
        enum yaml_kind kind;
    } cases[] = {
        { "", YAML_NULL },
        { "~", YAML_NULL },
        { "null", YAML_NULL },
        { "NULL", YAML_NULL },
        { "nUll", YAML_STRING },
        { "true", YAML_BOOL },
        { "False", YAML_BOOL },
        { "on", YAML_STRING },
        { "off", YAML_STRING },
        { "yes", YAML_STRING },
        { "No", YAML_STRING },
        { "tRUE", YAML_STRING },
        { "0", YAML_INT },
        { "-0", YAML_INT },
        { "+12", YAML_INT },
        { "0x1F", YAML_INT },
        { "0o17", YAML_INT },
        { "0b101", YAML_INT },
        { "0x", YAML_STRING },
        { "0755", YAML_STRING },
        { "1.10", YAML_FLOAT },
        { "1.", YAML_FLOAT },
        { ".5", YAML_FLOAT },
        { ".", YAML_STRING },
        { "1e3", YAML_FLOAT },
        { "1e", YAML_STRING },
        { "-.inf", YAML_FLOAT },
        { ".NaN", YAML_FLOAT },
        { "1.4.0", YAML_STRING },
        { "1_000", YAML_STRING },
        { "2024-01-01", YAML_STRING },
        { "-", YAML_STRING },
        { "+", YAML_STRING },
        { "1:20", YAML_STRING },
        { "<<", YAML_STRING },
    };
    for (size_t i = 0; i < ARRAY_LEN (cases); i++)
        if (yaml_resolve (cases[i].text, strlen (cases[i].text)) != cases[i].kind)
            fail_msg ("'%s' is resolved wrongly", cases[i].text);
}

static void
test_text_is_kept_as_written (void **state _unused_)
{
    const struct yaml_node *root = parse ("v: 1.10\nh: 0x1F\nq: \"on\"\nr: on\n");
    assert_string_equal (yaml_text (yaml_get (root, "v")), "1.10");
    assert_string_equal (yaml_text (yaml_get (root, "h")), "0x1F");
    assert_int_equal (yaml_get (root, "q")->kind, YAML_STRING);
    assert_false (yaml_get (root, "q")->is_plain);
    assert_int_equal (yaml_get (root, "r")->kind, YAML_STRING);
}

static void
test_positions_count_from_one_in_characters (void **state _unused_)
{
    const struct yaml_node *root = parse ("a: 1\nb:\n  - é: x\n    k: y\n");
    const struct yaml_node *k = yaml_find_nearest (root, "b[0].k");
    assert_int_equal (k->line, 4);
    assert_int_equal (k->column, 8);
    const struct yaml_node *e = yaml_find_nearest (root, "b[0].é");
    assert_int_equal (e->line, 3);
    assert_int_equal (e->column, 8);
    assert_ptr_equal (yaml_find_nearest (root, "b[7].x"), yaml_get (root, "b"));
}

static void
test_integers_that_satisfy_an_unsigned_key (void **state _unused_)
{
    uint64_t v = 0;
    const struct yaml_node *root =
        parse ("a: 0x10\nb: \"5\"\nc: -1\nd: 1.0\ne: 18446744073709551615\n"
               "f: 18446744073709551616\ng: +7\nh: -0\n");
    assert_true (yaml_as_u64 (yaml_get (root, "a"), &v) && v == 16);
    assert_false (yaml_as_u64 (yaml_get (root, "b"), &v));
    assert_false (yaml_as_u64 (yaml_get (root, "c"), &v));
    assert_false (yaml_as_u64 (yaml_get (root, "d"), &v));
    assert_true (yaml_as_u64 (yaml_get (root, "e"), &v) && v == UINT64_MAX);
    assert_false (yaml_as_u64 (yaml_get (root, "f"), &v));
    assert_true (yaml_as_u64 (yaml_get (root, "g"), &v) && v == 7);
    assert_true (yaml_as_u64 (yaml_get (root, "h"), &v) && v == 0);
}

static void
test_documents_that_are_refused (void **state _unused_)
{
    refuse ("a: 1\n---\nb: 2\n", "second document");
    refuse ("- a\n", "f.yaml:1:1: a map of keys belongs here, not a list");
    refuse ("just text\n", "not a text");
    refuse ("~\n", "not a null");
    refuse ("a: 1\nb: 2\na: 3\n", "f.yaml:3:1: the key 'a' is given twice");
    refuse ("x: {k: 1, \"k\": 2}\n", "'k' is given twice");
    refuse ("\xef\xbb\xbf"
            "a: 1\n",
            "byte-order mark");
    refuse ("a: *nowhere\n", "does not exist");
    refuse ("a: &x [1, *x]\n", "inside the value it stands for");
    refuse ("a: [1, 2\n", "f.yaml:");
    refuse ("a: \"\xff\"\n", "f.yaml:1:5: not UTF-8");
    refuse ("a: 1\nb: 2\nc: gr\xfcn\n", "f.yaml:3:6: not UTF-8");
    refuse ("a: 1\nb: \"\xc3\xbc\a\"\n", "f.yaml:2:6: the control character 0x07");
    refuse ("a: !!int many\n", "tag");
    refuse ("a: b: c\n", "f.yaml:1:5");
    refuse ("\tx: 1\n", "f.yaml:1:1");
}

static void
test_a_file_without_a_document_is_an_empty_map (void **state _unused_)
{
    static const char *const texts[] = { "", "# nothing\n", "---\n",
                                         "---\n# still nothing\n...\n" };
    for (size_t i = 0; i < ARRAY_LEN (texts); i++) {
        const struct yaml_node *root = parse (texts[i]);
        assert_int_equal (root->kind, YAML_MAP);
        assert_int_equal (root->len, 0);
    }
}

static void
test_many_duplicates_are_found_in_a_long_map (void **state _unused_)
{
    _cleanup_buf_ struct buf text = { 0 };
    for (int i = 0; i < 1000; i++)
        buf_printf (&text, "key-%d: 1\n", i);
    buf_puts (&text, "key-500: 2\nkey-3: 2\n");
    refuse_n (text.data, text.len, "f.yaml:1001:1: the key 'key-500' is given twice");
}

static void
test_128_levels_are_read_and_one_more_is_not (void **state _unused_)
{
    for (int below = 127; below <= 128; below++) {
        _cleanup_buf_ struct buf text = { 0 };
        buf_puts (&text, "a: ");
        for (int i = 0; i < below; i++)
            buf_putc (&text, '[');
        for (int i = 0; i < below; i++)
            buf_putc (&text, ']');
        buf_putc (&text, '\n');
        if (below == 127)
            parse (text.data);
        else
            refuse_n (text.data, text.len, "128 levels");
    }
}

static void
test_depth_counts_through_aliases (void **state _unused_)
{
    _cleanup_buf_ struct buf text = { 0 };
    buf_puts (&text, "a: &deep ");
    for (int i = 0; i < 70; i++)
        buf_putc (&text, '[');
    for (int i = 0; i < 70; i++)
        buf_putc (&text, ']');
    buf_puts (&text, "\nb: ");
    for (int i = 0; i < 60; i++)
        buf_putc (&text, '[');
    buf_puts (&text, "*deep");
    for (int i = 0; i < 60; i++)
        buf_putc (&text, ']');
    refuse_n (text.data, text.len, "128 levels");
}

static double
seconds_now (void)
{
    struct timespec t;
    clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
test_manifest_40_an_alias_bomb_is_refused_at_once (void **state _unused_)
{
    _cleanup_buf_ struct buf text = { 0 };
    buf_puts (&text, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i <= 20; i++) {
        buf_printf (&text, "a%d: &a%d [", i, i);
        for (int j = 0; j < 10; j++)
            buf_printf (&text, "%s*a%d", j ? ", " : "", i - 1);
        buf_puts (&text, "]\n");
    }
    double start = seconds_now ();
    refuse_n (text.data, text.len, "too many values");
    assert_true (seconds_now () - start < 1.0);
}

static void
test_a_huge_file_is_refused_before_it_is_read (void **state _unused_)
{
    size_t len = 50u << 20;
    char *text = x_malloc (len);
    memset (text, 'a', len);
    double start = seconds_now ();
    refuse_n (text, len, "has at most 8388608");
    assert_true (seconds_now () - start < 1.0);
    free (text);
}

static void
test_json_of_a_tree (void **state _unused_)
{
    static const struct {
        const char *yaml, *json;
    } cases[] = {
        { "b: 1\na: 2\n", "{\"b\":1,\"a\":2}" },
        { "x: [1.0, 0.1, 1e3, 0x1F, -5, +5, .inf, .nan, ~, true, on, 2024-01-01]\n",
          "{\"x\":[1.0,0.1,1000.0,31,-5,5,null,null,null,true,\"on\",\"2024-01-01\"]}" },
        { "x: {1: a, true: b, 1.5: c, ~: d}\n",
          "{\"x\":{\"1\":\"a\",\"true\":\"b\",\"1.5\":\"c\",\"null\":\"d\"}}" },
        { "x: {<<: {a: 1}}\n", "{\"x\":{\"<<\":{\"a\":1}}}" },
        { "x: !secret v\n", "{\"x\":{\"!secret\":\"v\"}}" },
        { "x: 18446744073709551615\ny: -9223372036854775808\n",
          "{\"x\":18446744073709551615,\"y\":-9223372036854775808}" },
        { "x: 36893488147419103232\n", "{\"x\":3.6893488147419103e+19}" },
        { "x: \"a\\nb\\\"c\"\n", "{\"x\":\"a\\nb\\\"c\"}" },
    };
    for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
        _cleanup_buf_ struct buf out = { 0 };
        assert_succeeds (yaml_put_json (&out, parse (cases[i].yaml), E_CAP_010, &err));
        assert_string_equal (out.data, cases[i].json);
    }
    _cleanup_buf_ struct buf out = { 0 };
    assert_fails (yaml_put_json (&out, parse ("x: {[1]: 2}\n"), E_CAP_010, &err), E_CAP_010);
}

static void
test_what_is_written_reads_back (void **state _unused_)
{
    static const char *const texts[] = {
        "plain",
        "1.4.0",
        "1.10",
        "on",
        "No",
        "",
        " x",
        "x ",
        "a: b",
        "a #b",
        "#a",
        "'q'",
        "\"",
        "\\",
        "- a",
        "-a",
        "?x",
        "{a}",
        "[",
        "*x",
        "&x",
        "!t",
        "|",
        ">",
        "%d",
        "@a",
        "`",
        "null",
        "~",
        "0x1F",
        "0755",
        "1:20",
        "2024-01-01",
        "1_000",
        "a\nb",
        "tab\t",
        "\x01",
        "\x7f",
        "é",
        "\xe2\x80\xa8",
        "\xef\xbb\xbf",
        "\xc2\x85",
        "日本",
        "---",
        "...",
        "--- a",
        "key:",
        "a:b",
        "<<",
        "=",
        "+1",
        ".5",
        "1e3",
        ".inf",
        "0190a1b2c3d4e5f60190a1b2c3d4e5f60190a1b2c3d4e5f60190a1b2c3d4e5f6",
    };
    struct yaml_writer w;
    yaml_writer_init (&w);
    yaml_open_list (&w, "texts");
    for (size_t i = 0; i < ARRAY_LEN (texts); i++)
        yaml_add_text (&w, NULL, texts[i]);
    yaml_close (&w);
    _cleanup_free_ char *text = yaml_writer_finish (&w);
    const struct yaml_node *list = yaml_get (parse (text), "texts");
    assert_int_equal (list->len, ARRAY_LEN (texts));
    for (size_t i = 0; i < ARRAY_LEN (texts); i++) {
        assert_int_equal (list->items[i]->kind, YAML_STRING);
        assert_string_equal (list->items[i]->text, texts[i]);
    }
}

/* A reader looks ahead only so far for a key's colon. Found by fuzzing. */
static void
test_long_keys_read_back (void **state _unused_)
{
    static const size_t lengths[] = { 900, 1000, 1001, 1024, 1025, 5000 };
    for (size_t i = 0; i < ARRAY_LEN (lengths); i++) {
        _cleanup_buf_ struct buf key = { 0 };
        while (key.len < lengths[i])
            buf_putc (&key, key.len % 7 ? 'k' : ' ');
        struct yaml_writer w;
        yaml_writer_init (&w);
        yaml_add_text (&w, key.data, "first");
        yaml_open_map (&w, "map");
        yaml_open_map (&w, key.data);
        yaml_add_text (&w, "inner", "second");
        yaml_close (&w);
        yaml_close (&w);
        yaml_open_list (&w, "list");
        yaml_open_map (&w, NULL);
        yaml_open_list (&w, key.data);
        yaml_add_text (&w, NULL, "third");
        yaml_close (&w);
        yaml_add_text (&w, "more", "fourth");
        yaml_close (&w);
        yaml_close (&w);
        _cleanup_free_ char *text = yaml_writer_finish (&w);
        const struct yaml_node *root = parse (text);
        assert_string_equal (yaml_text (yaml_get (root, key.data)), "first");
        assert_string_equal (
            yaml_text (yaml_get (yaml_get (yaml_get (root, "map"), key.data), "inner")), "second");
        const struct yaml_node *item = yaml_get (root, "list")->items[0];
        assert_string_equal (yaml_text (yaml_get (item, key.data)->items[0]), "third");
        assert_string_equal (yaml_text (yaml_get (item, "more")), "fourth");
    }
}

static void
test_the_writers_layout (void **state _unused_)
{
    struct yaml_writer w;
    yaml_writer_init (&w);
    yaml_add_u64 (&w, "lock_version", 3);
    yaml_open_list (&w, "artifacts");
    yaml_open_map (&w, NULL);
    yaml_add_text (&w, "name", "ana/tool-git");
    yaml_add_text (&w, "resolved_version", "1.4.0");
    yaml_add_text (&w, "absent", NULL);
    yaml_open_map (&w, "sha256");
    yaml_add_text (&w, "any", "3f0c");
    yaml_close (&w);
    yaml_add_bool (&w, "flag", true);
    yaml_close (&w);
    yaml_open_map (&w, NULL);
    yaml_open_list (&w, "empty");
    yaml_close (&w);
    yaml_close (&w);
    yaml_close (&w);
    yaml_open_map (&w, "nothing");
    _cleanup_free_ char *text = yaml_writer_finish (&w);
    assert_string_equal (text, "lock_version: 3\n"
                               "artifacts:\n"
                               "- name: ana/tool-git\n"
                               "  resolved_version: 1.4.0\n"
                               "  sha256:\n"
                               "    any: 3f0c\n"
                               "  flag: true\n"
                               "- empty: []\n"
                               "nothing: {}\n");
}

static void
test_a_tree_is_copied (void **state _unused_)
{
    const char *text = "a: 1.10\nb: \"1.10\"\nc:\n- x\n- - 1\n  - 2\n- k: {}\nd: ~\n";
    struct yaml_writer w;
    yaml_writer_init (&w);
    const struct yaml_node *root = parse (text);
    for (uint32_t i = 0; i < root->len; i++)
        yaml_add_node (&w, root->pairs[i].key->text, root->pairs[i].value);
    _cleanup_free_ char *copy = yaml_writer_finish (&w);
    assert_string_equal (copy, "a: 1.10\nb: '1.10'\nc:\n- x\n- - 1\n  - 2\n- k: {}\nd: ~\n");
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (test_plain_scalars_follow_the_core_schema, set_up,
                                         tear_down),
        cmocka_unit_test_setup_teardown (test_text_is_kept_as_written, set_up, tear_down),
        cmocka_unit_test_setup_teardown (test_positions_count_from_one_in_characters, set_up,
                                         tear_down),
        cmocka_unit_test_setup_teardown (test_integers_that_satisfy_an_unsigned_key, set_up,
                                         tear_down),
        cmocka_unit_test_setup_teardown (test_documents_that_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown (test_a_file_without_a_document_is_an_empty_map, set_up,
                                         tear_down),
        cmocka_unit_test_setup_teardown (test_many_duplicates_are_found_in_a_long_map, set_up,
                                         tear_down),
        cmocka_unit_test_setup_teardown (test_128_levels_are_read_and_one_more_is_not, set_up,
                                         tear_down),
        cmocka_unit_test_setup_teardown (test_depth_counts_through_aliases, set_up, tear_down),
        cmocka_unit_test_setup_teardown (test_manifest_40_an_alias_bomb_is_refused_at_once, set_up,
                                         tear_down),
        cmocka_unit_test_setup_teardown (test_a_huge_file_is_refused_before_it_is_read, set_up,
                                         tear_down),
        cmocka_unit_test_setup_teardown (test_json_of_a_tree, set_up, tear_down),
        cmocka_unit_test_setup_teardown (test_what_is_written_reads_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown (test_long_keys_read_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown (test_the_writers_layout, set_up, tear_down),
        cmocka_unit_test_setup_teardown (test_a_tree_is_copied, set_up, tear_down),
    };
    return cmocka_run_group_tests_name ("manifest/yaml", tests, NULL, NULL);
}
