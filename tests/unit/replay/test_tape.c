/* SPDX-License-Identifier: Apache-2.0
 *
 * The tape: what was written is read back as it was, at its place; what was altered, is of another
 * format or follows the end is refused; what was cut ends there.
 */
#include "tests/unit/testing.h"

#include "base/json.h"
#include "replay/play/differ.h"
#include "replay/record/record_read.h"
#include "replay/record/tape_read.h"
#include "replay/record/tree_restore.h"
#include "replay/tape/clock.h"
#include "replay/tape/tree_store.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir_path[64];
static struct fs_root *records;
static const unsigned char seed[TAPE_SEED_BYTES] = { 1, 2, 3 };

static void
write_file (const char *name, const char *text)
{
    assert_succeeds (fs_write (records, name, text, strlen (text), 0600, true, &err));
}

static int
set_up (void **state)
{
    (void)state;
    snprintf (dir_path, sizeof (dir_path), "%s/tape-XXXXXX",
              getenv ("TMPDIR") ? getenv ("TMPDIR") : "/tmp");
    if (! mkdtemp (dir_path))
        return -1;
    records =
        fs_root_new (open (dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), dir_path, NULL, true);
    write_file (
        "trace.jsonl",
        "{\"event_type\":\"session_start\",\"session_id\":\"ses_1\",\"capture\":\"replay\"}\n"
        "{\"event_type\":\"session_end\",\"exit_status\":\"ok\"}\n");
    return 0;
}

static int
tear_down (void **state)
{
    (void)state;
    fs_root_free (records);
    _cleanup_free_ char *command = x_asprintf ("rm -rf '%s'", dir_path);
    return system (command);
}

static struct tape *
new_tape (void)
{
    struct mur_error *err = NULL;
    struct tape *t = tape_new (records, seed, &err);
    char hex[2 * TAPE_SEED_BYTES + 1];
    json_t *head = json_object ();
    assert_non_null (t);
    hex_encode (seed, sizeof seed, hex);
    json_set_u64 (head, "format", TAPE_FORMAT);
    json_set_string (head, "seed", hex);
    json_set_string (head, "url", "localhost:1");
    tape_write (t, "head", head);
    return t;
}

static void
put_line (struct tape *t, const char *kind, const char *key, const char *body, size_t len)
{
    json_t *line = json_object ();
    tape_put (t, line, key, body, len);
    tape_write (t, kind, line);
}

static struct record *
read_back (void)
{
    struct record *r = NULL;
    assert_succeeds ((r = record_read (dir_path, &err)) != NULL);
    assert_non_null (r->tape);
    return r;
}

static char *
tape_text (void)
{
    struct buf text = { 0 };
    assert_succeeds (fs_read (records, TAPE_FILE, SIZE_MAX / 2, &text, &err));
    return buf_steal (&text);
}

static void
assert_body (const struct record *r, const struct rec_body *b, const char *expected, size_t len)
{
    _cleanup_buf_ struct buf text = { 0 };
    assert_succeeds (record_fetch (r, b, &text, &err));
    assert_int_equal (text.len, len);
    assert_memory_equal (text.data ? text.data : "", expected, len);
}

/* --- lines --- */

static void
test_bodies_of_any_size_and_kind_come_back_as_they_were (void **state)
{
    (void)state;
    char large[2000];
    memset (large, 'x', sizeof large);
    const struct {
        const char *data;
        size_t len;
    } bodies[] = {
        { "", 0 }, { "text", 4 }, { "\xff\xfe", 2 }, { "a\0b", 3 }, { large, sizeof large }
    };
    struct tape *t = new_tape ();
    for (size_t i = 0; i < ARRAY_LEN (bodies); i++)
        put_line (t, "input", "prompt", bodies[i].data, bodies[i].len);
    tape_close (t);

    _cleanup_record_ struct record *r = read_back ();
    assert_true (r->tape->is_whole);
    assert_string_equal (r->tape->url, "localhost:1");
    assert_memory_equal (r->tape->seed, seed, sizeof seed);
    for (size_t i = 0; i < ARRAY_LEN (bodies); i++)
        assert_body (r, &record_input (r, 0, i)->prompt, bodies[i].data, bodies[i].len);
    assert_null (record_input (r, 0, ARRAY_LEN (bodies)));
    assert_int_equal (r->tape->bodies.len, 3); /* those that are no short text */
}

static void
test_a_run_of_a_harness_is_its_items_in_order_and_calls_have_their_answers (void **state)
{
    (void)state;
    struct tape *t = new_tape ();
    static const char *const lines[] = {
        "{\"session_id\":\"h1\",\"task\":2,\"resume\":true,\"version\":null}",
        "{\"text_text\":\"one\",\"made_text\":\"[]\"}",
        "{\"n\":4,\"name\":\"a\",\"text_text\":\"{}\"}",
        "{\"n\":5,\"name\":\"b\",\"text_text\":\"{}\"}",
        "{\"n\":5,\"made_text\":\"of b\",\"ok\":true}",
        "{\"n\":4,\"made_text\":\"of a\",\"refused\":true}",
        "{\"text_text\":\"no\",\"ok\":false}",
        "{\"signal\":9,\"cause\":\"eof\",\"killed\":true}",
    };
    static const char *const kinds[] = { "harness",      "harness_line",   "harness_call",
                                         "harness_call", "harness_result", "harness_result",
                                         "harness_word", "harness_end" };
    for (size_t i = 0; i < ARRAY_LEN (lines); i++)
        tape_write (t, kinds[i], json_loads (lines[i], 0, NULL));
    tape_close (t);

    _cleanup_record_ struct record *r = read_back ();
    assert_int_equal (r->tape->harness_count, 1);
    const struct rec_harness *h = &r->tape->harness[0];
    assert_int_equal (h->task, 2);
    assert_true (h->is_resume && ! h->version);
    assert_int_equal (h->count, 4);
    assert_int_equal (h->items[0].what, REC_HARNESS_LINE);
    assert_body (r, &h->items[1].made, "of a", 4);
    assert_body (r, &h->items[2].made, "of b", 4);
    assert_true (h->items[1].is_refused && ! h->items[1].is_good && h->items[2].is_good);
    assert_true (h->end.is_set && h->end.was_killed && ! h->end.has_code);
    assert_int_equal (h->end.signal, 9);
}

static void
test_what_is_no_line_of_a_run_is_refused (void **state)
{
    (void)state;
    static const char *const lines[][2] = {
        { "harness", "{\"task\":0}" },
        { "harness_line", "{\"text_text\":\"before any run\"}" },
        { "harness_result", "{\"n\":1}" },
        { "harness_end", "{\"code\":0}" },
        { "http", "{\"place\":\"p\",\"n\":2000000}" },
        { "tree", "{\"sha256\":\"../../etc/passwd\"}" },
        { "guest", "{\"place\":\"p\",\"clock\":\"7\"}" },
    };
    for (size_t i = 0; i < ARRAY_LEN (lines); i++) {
        unlinkat (fs_root_fd (records), TAPE_FILE, 0);
        struct tape *t = new_tape ();
        tape_write (t, lines[i][0], json_loads (lines[i][1], 0, NULL));
        tape_close (t);
        assert_fails (record_read (dir_path, &err), E_RPL_004);
    }
}

static void
test_every_cut_ends_it_there_and_every_other_change_is_refused (void **state)
{
    (void)state;
    struct tape *t = new_tape ();
    put_line (t, "input", "reply", "first", 5);
    put_line (t, "input", "reply", "second", 6);
    tape_close (t);
    _cleanup_free_ char *whole = tape_text ();
    const size_t head = strcspn (whole, "\n") + 1, len = strlen (whole);

    for (size_t cut = head; cut < len; cut++) {
        _cleanup_free_ char *part = x_strndup (whole, cut);
        write_file (TAPE_FILE, part);
        _cleanup_record_ struct record *r = read_back ();
        assert_false (r->tape->is_whole);
        assert_true (r->tape->input_count <= 2);
    }
    for (size_t at = head; at < strlen (whole) - 1; at++) {
        _cleanup_free_ char *other = x_strdup (whole);
        _cleanup_record_ struct record *r = NULL;
        if (other[at] == '\n')
            continue;
        other[at] = other[at] == 'z' ? 'y' : 'z';
        write_file (TAPE_FILE, other);
        r = record_read (dir_path, NULL);
        assert_false (r && r->tape->is_whole);
    }
    _cleanup_free_ char *more = x_asprintf ("%s{\"kind\":\"input\"}\n", whole);
    write_file (TAPE_FILE, more);
    assert_fails (record_read (dir_path, &err), E_RPL_004);
    write_file (TAPE_FILE, "{\"kind\":\"head\",\"format\":2}\n");
    assert_fails (record_read (dir_path, &err), E_RPL_004);
}

/* --- clocks and keys --- */

static void
test_readings_of_clocks_come_back_in_their_order_only (void **state)
{
    (void)state;
    const uint64_t times[] = { 5, 1700000000000000000u, 3, UINT64_MAX, 0 };
    struct clock_state in = { 0 }, out = { 0 };
    _cleanup_buf_ struct buf kept = { 0 };
    for (size_t i = 0; i < ARRAY_LEN (times); i++)
        clock_reading_append (&in, i % 2 ? CLOCK_WALL : CLOCK_MONOTONIC, times[i], &kept);
    size_t at = 0;
    uint64_t now;
    assert_false (clock_reading_take (&out, CLOCK_WALL, kept.data, kept.len, &at, &now));
    assert_int_equal (at, 0);
    for (size_t i = 0; i < ARRAY_LEN (times); i++) {
        assert_true (clock_reading_take (&out, i % 2 ? CLOCK_WALL : CLOCK_MONOTONIC, kept.data,
                                         kept.len, &at, &now));
        assert_true (now == times[i]);
    }
    assert_false (clock_reading_take (&out, CLOCK_MONOTONIC, kept.data, kept.len, &at, &now));
}

static void
test_keys_of_two_places_are_two_and_the_same_again (void **state)
{
    (void)state;
    unsigned char a[32], b[32], again[32];
    tape_key (seed, "0/1/0/t#0", a);
    tape_key (seed, "0/1/0/t#1", b);
    tape_key (seed, "0/1/0/t#0", again);
    assert_memory_equal (a, again, 32);
    assert_memory_not_equal (a, b, 32);
}

/* --- files --- */

static void
test_a_folder_is_put_back_as_it_was (void **state)
{
    (void)state;
    assert_int_equal (mkdirat (fs_root_fd (records), "work", 0700), 0);
    assert_int_equal (mkdirat (fs_root_fd (records), "work/sub", 0755), 0);
    write_file ("work/a b", "one");
    write_file ("work/sub/x", "two");
    assert_int_equal (symlinkat ("a b", fs_root_fd (records), "work/link"), 0);
    _cleanup_close_ int work =
        openat (fs_root_fd (records), "work", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct tree_limits limits = { 1 << 20, 1 << 20, NULL, 0 };
    _cleanup_ (tree_store_freep) struct tree_look_store *trees = tree_store_new (&limits);
    struct tree_taken before, after;
    struct tape *t = new_tape ();
    assert_true (tree_take (trees, t, work, &before));
    write_file ("work/sub/x", "three");
    write_file ("work/new", "more");
    assert_int_equal (unlinkat (work, "link", 0), 0);
    assert_true (tree_take (trees, t, work, &after));
    tape_close (t);
    assert_string_not_equal (before.sha, after.sha);

    _cleanup_record_ struct record *r = read_back ();
    assert_succeeds (tree_check (r, before.sha, &err));
    _cleanup_free_ char *path = tree_first_change (r, before.sha, dir_path, after.sha);
    assert_non_null (path);
    assert_succeeds (tree_restore (r, before.sha, work, &err));
    struct tree_taken again;
    assert_true (tree_take (trees, NULL, work, &again));
    assert_string_equal (again.sha, before.sha);
    tree_taken_clear (&before);
    tree_taken_clear (&after);
    tree_taken_clear (&again);
}

/* --- where two texts part --- */

static void
test_where_texts_part_is_a_byte_a_pointer_and_whole_characters (void **state)
{
    (void)state;
    assert_int_equal (differ_offset ("abc", 3, "abd", 3), 2);
    assert_int_equal (differ_offset ("abc", 3, "ab", 2), 2);
    static const char *const pairs[][3] = {
        { "{\"a\":[1,2]}", "{\"a\":[1,3]}", "/a/1" },
        { "{\"a\":1}", "{\"b\":1}", "/a" },
        { "[1]", "[1]", "" },
        { "no json", "[1]", "" },
        { "{\"a/b~\":1}", "{\"a/b~\":2}", "/a~1b~0" },
    };
    for (size_t i = 0; i < ARRAY_LEN (pairs); i++) {
        _cleanup_free_ char *pointer = differ_pointer_text (pairs[i][0], strlen (pairs[i][0]),
                                                            pairs[i][1], strlen (pairs[i][1]));
        assert_string_equal (pointer, pairs[i][2]);
    }
    char text[400];
    for (size_t i = 0; i < sizeof text; i += 2)
        memcpy (text + i, "\xc3\xa4", 2);
    for (size_t at = 0; at <= sizeof text; at++) {
        _cleanup_free_ char *excerpt = differ_excerpt (text, sizeof text, at);
        assert_true (utf8_is_valid (excerpt, strlen (excerpt)));
    }
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (test_bodies_of_any_size_and_kind_come_back_as_they_were,
                                         set_up, tear_down),
        cmocka_unit_test_setup_teardown (
            test_a_run_of_a_harness_is_its_items_in_order_and_calls_have_their_answers, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown (test_what_is_no_line_of_a_run_is_refused, set_up,
                                         tear_down),
        cmocka_unit_test_setup_teardown (
            test_every_cut_ends_it_there_and_every_other_change_is_refused, set_up, tear_down),
        cmocka_unit_test (test_readings_of_clocks_come_back_in_their_order_only),
        cmocka_unit_test (test_keys_of_two_places_are_two_and_the_same_again),
        cmocka_unit_test_setup_teardown (test_a_folder_is_put_back_as_it_was, set_up, tear_down),
        cmocka_unit_test (test_where_texts_part_is_a_byte_a_pointer_and_whole_characters),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
