/* SPDX-License-Identifier: Apache-2.0
 *
 * Which session of a harness belongs to which conversation, in this launch and on disk.
 */
#include "tests/unit/session/stand.h"

#include "session/harness/harness_memory.h"
#include "session/resume.h"

#include <string.h>
#include <sys/stat.h>

static int
open_stand (void **state)
{
    struct stand *st = x_new0 (struct stand);
    stand_open (st, NULL);
    *state = st;
    return 0;
}

static int
close_stand (void **state)
{
    stand_close (*state);
    free (*state);
    return 0;
}

static void
assert_known (const struct harness_memory *m, const char *context, const char *session)
{
    _cleanup_free_ char *found = harness_memory_find (m, context, NULL);
    assert_true (str_eq (found, session));
}

static void
test_it_outlives_the_launch (void **state)
{
    (void)state;
    struct harness_memory *m = harness_memory_new ("store");
    assert_known (m, "ctx_a", NULL);
    assert_false (harness_memory_exists ("store", "ctx_a"));
    assert_true (harness_memory_keep (m, "ctx_a", "sess-1", "tool", "local/d", NULL));
    assert_known (m, "ctx_a", "sess-1");
    harness_memory_free (m);
    m = harness_memory_new ("store");
    assert_known (m, "ctx_a", "sess-1");
    assert_known (m, "ctx_b", NULL);
    assert_true (harness_memory_exists ("store", "ctx_a"));
    assert_false (harness_memory_exists ("other", "ctx_a"));
    harness_memory_free (m);
}

static void
test_the_newest_session_is_the_one (void **state)
{
    (void)state;
    struct harness_memory *m = harness_memory_new ("store");
    for (int i = 0; i < 5; i++) {
        _cleanup_free_ char *id = x_asprintf ("sess-%d", i);
        assert_true (harness_memory_keep (m, "ctx_n", id, "tool", "local/d", NULL));
        assert_known (m, "ctx_n", id);
    }
    harness_memory_free (m);
    m = harness_memory_new ("store");
    assert_known (m, "ctx_n", "sess-4");
    harness_memory_free (m);
}

static void
test_what_is_forgotten_stays_forgotten (void **state)
{
    (void)state;
    struct harness_memory *m = harness_memory_new ("store");
    assert_true (harness_memory_keep (m, "ctx_f", "sess-1", "tool", "local/d", NULL));
    _cleanup_free_ char *dropped = harness_memory_forget (m, "ctx_f");
    assert_string_equal (dropped, "sess-1");
    assert_known (m, "ctx_f", NULL);
    assert_null (harness_memory_forget (m, "ctx_f"));
    assert_false (harness_memory_exists ("store", "ctx_f"));
    harness_memory_free (m);
}

static void
test_without_a_store_it_lasts_for_the_launch (void **state)
{
    (void)state;
    struct harness_memory *m = harness_memory_new (NULL);
    (void)harness_memory_keep (m, "ctx_l", "sess-1", "tool", "local/d", NULL);
    assert_known (m, "ctx_l", "sess-1");
    harness_memory_free (m);
    m = harness_memory_new (NULL);
    assert_known (m, "ctx_l", NULL);
    harness_memory_free (m);
    harness_memory_free (NULL);
}

static void
test_a_context_that_is_no_path_segment (void **state)
{
    struct stand *st = *state;
    static const char *const contexts[] = { "../up", "a/b", ".", "" };
    for (size_t i = 0; i < ARRAY_LEN (contexts); i++) {
        struct harness_memory *m = harness_memory_new ("store");
        assert_false (harness_memory_keep (m, contexts[i], "sess-1", "tool", "local/d", NULL));
        assert_known (m, contexts[i], "sess-1"); /* the launch remembers it all the same */
        assert_false (harness_memory_exists ("store", contexts[i]));
        harness_memory_free (m);
    }
    _cleanup_free_ char *up = stand_read (st, ".murmur/conversations/up/" HARNESS_SESSION_FILE);
    assert_null (up);
}

static void
test_a_file_that_is_none_of_ours (void **state)
{
    struct stand *st = *state;
    static const char *const texts[] = { "", "{", "[]", "{\"type\":\"other\",\"session_id\":\"x\"}",
                                         "{\"session_id\":\"x\"}" };
    for (size_t i = 0; i < ARRAY_LEN (texts); i++) {
        struct harness_memory *m = harness_memory_new ("store");
        assert_true (harness_memory_keep (m, "ctx_o", "sess-1", "tool", "local/d", NULL));
        harness_memory_free (m);
        stand_write (st, ".murmur/conversations/store/ctx_o/" HARNESS_SESSION_FILE, texts[i]);
        m = harness_memory_new ("store");
        assert_known (m, "ctx_o", NULL);
        harness_memory_free (m);
    }
}

int
unit_harness_memory (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_it_outlives_the_launch),
        cmocka_unit_test (test_the_newest_session_is_the_one),
        cmocka_unit_test (test_what_is_forgotten_stays_forgotten),
        cmocka_unit_test (test_without_a_store_it_lasts_for_the_launch),
        cmocka_unit_test (test_a_context_that_is_no_path_segment),
        cmocka_unit_test (test_a_file_that_is_none_of_ours),
    };
    return cmocka_run_group_tests_name ("session/harness/harness_memory", tests, open_stand,
                                        close_stand);
}
