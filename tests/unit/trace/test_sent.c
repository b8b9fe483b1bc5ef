/* SPDX-License-Identifier: Apache-2.0
 *
 * What an inference line need not say again of its messages, and reading it back.
 */
#include "tests/unit/testing.h"

#include "trace/read/sent_messages.h"

#include <stdio.h>
#include <string.h>

#define MESSAGES 40

/* Messages <name>0, <name>1, ... with digests of their own. */
struct conversation {
    char ids[MESSAGES][16], shas[MESSAGES][16];
    struct sent_message items[MESSAGES];
};

static void
converse (struct conversation *c, const char *name)
{
    for (int i = 0; i < MESSAGES; i++) {
        snprintf (c->ids[i], sizeof (c->ids[i]), "%s%d", name, i);
        snprintf (c->shas[i], sizeof (c->shas[i]), "s%s%d", name, i);
        c->items[i] = (struct sent_message){ c->ids[i], c->shas[i] };
    }
}

/* Sends the first <count>, and gives how many its line takes over. */
static size_t
say (struct sent_lists *l, const char *event_id, struct conversation *c, size_t count)
{
    struct sent_base base = sent_lists_find (l, c->items, count);
    sent_lists_add (l, event_id, &base, c->items, count);
    return base.kept;
}

static void
test_a_line_goes_on_from_the_one_that_shares_most (void **state)
{
    (void)state;
    _cleanup_ (sent_lists_freep) struct sent_lists *l = sent_lists_new ();
    struct conversation a, b;
    converse (&a, "a");
    converse (&b, "b");
    assert_int_equal (say (l, "evt_1", &a, SENT_IN_FULL), 0);
    assert_int_equal (say (l, "evt_2", &a, 20), 0); /* short lists are not remembered */
    assert_int_equal (say (l, "evt_3", &b, 20), 0);
    assert_int_equal (say (l, "evt_4", &a, 22), 20);
    assert_int_equal (say (l, "evt_5", &b, 24), 20);
    assert_int_equal (say (l, "evt_6", &a, 10), 0);
    struct sent_base base = sent_lists_find (l, a.items, 30);
    assert_string_equal (base.after, "evt_4");
    assert_int_equal (base.kept, 22);
    a.items[19].sha = "another view of it";
    assert_int_equal (sent_lists_find (l, a.items, 30).kept, 19);
    for (int i = 0; i < 30; i++)
        a.items[i].sha = "";
    assert_int_equal (sent_lists_find (l, a.items, 30).kept, 22);
}

static void
test_only_so_many_lists_are_remembered (void **state)
{
    (void)state;
    _cleanup_ (sent_lists_freep) struct sent_lists *l = sent_lists_new ();
    struct conversation c[SENT_LISTS + 1];
    for (int i = 0; i <= SENT_LISTS; i++) {
        char name[] = { (char)('a' + i), '\0' }, id[8];
        snprintf (id, sizeof (id), "evt_%d", i);
        converse (&c[i], name);
        assert_int_equal (say (l, id, &c[i], 20), 0);
    }
    assert_int_equal (sent_lists_find (l, c[0].items, 20).kept, 0);
    assert_int_equal (sent_lists_find (l, c[1].items, 20).kept, 20);
    assert_null (sent_lists_first (l, "evt_0", 1));
    assert_null (sent_lists_first (l, "evt_1", 21));
}

static void
test_an_id_that_is_none_of_ours_is_not_remembered (void **state)
{
    (void)state;
    _cleanup_ (sent_lists_freep) struct sent_lists *l = sent_lists_new ();
    struct conversation c;
    converse (&c, "a");
    c.items[18].id = "an id that is longer than any that is minted here, by far";
    assert_int_equal (say (l, "evt_1", &c, 20), 0);
    assert_int_equal (say (l, "evt_2", &c, 20), 0);
}

/* A line that lists messages first..count) of <c>. */
static json_t *
line_of (const char *event_id, const char *after, const struct conversation *c, size_t first,
         size_t count)
{
    json_t *line =
        json_pack ("{s:s, s:[], s:[]}", "event_id", event_id, "message_ids", "message_shas");
    if (after) {
        json_object_set_new (line, "messages_after", json_string (after));
        json_object_set_new (line, "message_count", json_integer ((json_int_t)count));
    }
    for (size_t i = first; i < count; i++) {
        json_array_append_new (json_object_get (line, "message_ids"), json_string (c->ids[i]));
        json_array_append_new (json_object_get (line, "message_shas"), json_string (c->shas[i]));
    }
    return line;
}

static void
assert_sent (struct sent_lists *l, json_t *line, const struct conversation *c, size_t known,
             size_t count)
{
    _cleanup_json_ json_t *owned = line, *shas = sent_shas (l, line);
    assert_int_equal (sent_count (line), count);
    assert_int_equal (json_array_size (shas), count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal (json_string_value (json_array_get (shas, i)),
                             i < known ? "" : c->shas[i]);
}

static void
test_all_messages_of_a_line_are_found_again (void **state)
{
    (void)state;
    _cleanup_ (sent_lists_freep) struct sent_lists *l = sent_lists_new ();
    struct conversation c;
    converse (&c, "a");
    assert_sent (l, line_of ("evt_1", NULL, &c, 0, 20), &c, 0, 20); /* as older releases wrote */
    assert_sent (l, line_of ("evt_2", "evt_1", &c, 20, 22), &c, 0, 22);
    assert_sent (l, line_of ("evt_3", "evt_2", &c, 18, 30), &c, 0, 30);
    assert_sent (l, line_of ("evt_5", "evt_4", &c, 30, 32), &c, 30, 32); /* evt_4 was lost */
    _cleanup_json_ json_t *unhashed = json_pack ("{s:[s]}", "message_ids", "m");
    assert_null (sent_shas (l, unhashed));
    assert_int_equal (sent_count (unhashed), 1);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_line_goes_on_from_the_one_that_shares_most),
        cmocka_unit_test (test_only_so_many_lists_are_remembered),
        cmocka_unit_test (test_an_id_that_is_none_of_ours_is_not_remembered),
        cmocka_unit_test (test_all_messages_of_a_line_are_found_again),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
