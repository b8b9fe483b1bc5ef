/* SPDX-License-Identifier: Apache-2.0
 *
 * What a session hands work off with: the set of its delegations, what the model reads of one, its
 * standing with mur-roost.
 */
#include "tests/unit/session/stand.h"

#include "session/handoff/delegate.h"
#include "session/handoff/delegation_round.h"
#include "session/handoff/delegations.h"
#include "session/handoff/handoff.h"
#include "session/handoff/member_calls.h"
#include "session/handoff/member_round.h"

#include <string.h>

static int
open_stand (void **state)
{
    struct stand *st = x_new0 (struct stand);
    stand_open (st, "capabilities:\n  spawn: {allow: [local/child, acme/other]}\n");
    handoff_new (&st->s);
    handoff_begin (&st->s);
    *state = st;
    return 0;
}

static int
close_stand (void **state)
{
    struct stand *st = *state;
    handoff_end (&st->s);
    handoff_free (&st->s);
    stand_close (st);
    free (st);
    return 0;
}

static struct delegation *
add (struct stand *st, bool is_blocking)
{
    const struct delegate_ask ask = {
        .capsule = "child", .version = "1.0.0", .task = "go", .running = &st->task
    };
    struct delegation *d = delegation_new ("local/child", "1.0.0", &ask, is_blocking);
    delegations_add (handoff_delegations (&st->s), d);
    return d;
}

static void
test_what_the_model_reads_of_one (void **state)
{
    (void)state;
    const struct {
        struct delegate_result result;
        const char *text;
    } rows[] = {
        { { .status = DELEGATE_STARTED,
            .delegation_id = (char[]){ "dlg_1" },
            .session_id = (char[]){ "ses_1" },
            .capsule = (char[]){ "child" },
            .version = (char[]){ "1.0.0" },
            .child_workdir = (char[]){ "/w" } },
          "{'capsule':'child','child_workdir':'/w','delegation_id':'dlg_1','session_id':'ses_1','status':'started',"
          "'version':'1.0.0'}" },
        { { .status = DELEGATE_FAILED,
            .capsule = (char[]){ "child" },
            .version = (char[]){ "1.0.0" },
            .output = (char[]){ "it did not start" } },
          "{'capsule':'child','delegation_id':null,'session_id':null,'status':'failed','version':'1.0.0','output':"
          "'it did not start'}" },
        { { .status = DELEGATE_REFUSED, .capsule = (char[]){ "x" } },
          "{'capsule':'x','delegation_id':null,'session_id':null,'status':'refused','version':null,'output':''}" },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        _cleanup_free_ char *text = delegate_result_json (&rows[i].result);
        assert_same_json (text, rows[i].text);
    }
}

static void
test_the_words_of_both_ways (void **state)
{
    (void)state;
    static const char *const delegate[] = { "started",  "completed", "timed_out",
                                            "canceled", "failed",    "refused" };
    static const char *const member[] = { "started",   "busy",     "completed", "failed",
                                          "canceled",  "rejected", "timed_out", "unreachable",
                                          "abandoned", "no_answer" };
    for (size_t i = 0; i < ARRAY_LEN (delegate); i++)
        assert_string_equal (delegate_status_name ((enum delegate_status)i), delegate[i]);
    for (size_t i = 0; i < ARRAY_LEN (member); i++)
        assert_string_equal (member_call_status_name ((enum member_call_status)i), member[i]);
}

static void
test_the_set (void **state)
{
    struct stand *st = *state;
    struct delegations *set = handoff_delegations (&st->s);
    assert_int_equal (delegations_held (set), 0);
    struct delegation *a = add (st, false), *b = add (st, false), *blocking = add (st, true);
    assert_string_equal (delegation_bare (a), "child");
    assert_int_equal (delegations_held (set), 2); /* a plan's own is no outcome of the task */
    _cleanup_strv_ struct strv ids = { 0 }, others = { 0 };
    delegations_list (set, st->task.id, &ids);
    delegations_list (set, "tsk_other", &others);
    assert_int_equal (others.len, 0);
    for (size_t i = 1; i < ids.len; i++)
        assert_true (strcmp (ids.items[i - 1], ids.items[i]) < 0);
    assert_true (strv_contains (&ids, a->id.text) && strv_contains (&ids, b->id.text));
    delegations_remove (set, blocking);
    delegation_free (blocking);
    assert_int_equal (delegations_held (set), 2);
}

static void
test_a_completion_nobody_waits_for_is_not_taken (void **state)
{
    struct stand *st = *state;
    struct delegations *set = handoff_delegations (&st->s);
    struct delegation *blocking = add (st, true);
    assert_false (delegations_take_completion (set, "dlg_unknown"));
    assert_false (delegations_take_completion (NULL, blocking->id.text));
    assert_false (delegations_take_completion (set, blocking->id.text));
    assert_false (blocking->has_arrived);
}

static void
test_without_a_set_nothing_is_out (void **state)
{
    (void)state;
    struct stand st;
    _cleanup_strv_ struct strv ids = { 0 };
    stand_open (&st, NULL);
    handoff_new (&st.s);
    handoff_begin (&st.s);
    assert_null (handoff_delegations (&st.s));
    assert_null (handoff_member_calls (&st.s));
    assert_int_equal (delegations_held (NULL), 0);
    assert_int_equal (delegations_out (NULL), 0);
    delegations_list (NULL, "tsk", &ids);
    assert_int_equal (ids.len, 0);
    assert_int_equal (member_calls_out (NULL), 0);
    member_calls_poke (NULL);
    handoff_end (&st.s);
    handoff_free (&st.s);
    stand_close (&st);
}

static void
test_how_long_a_delegation_may_take (void **state)
{
    struct stand *st = *state;
    static const struct {
        const char *variable;
        uint64_t secs; /* 0: as the manifest has it */
    } rows[] = { { "5", 5 },   { "0", 0 },  { "-1", 0 },         { "", 0 },
                 { "ten", 0 }, { "5x", 0 }, { "99999999999", 0 } };
    uint64_t declared = st->s.policy->lifecycle.delegation_deadline_secs.value;
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        setenv ("MURMUR_DELEGATION_TIMEOUT_SECS", rows[i].variable, 1);
        assert_int_equal (delegation_bound_secs (&st->s), rows[i].secs ? rows[i].secs : declared);
    }
    unsetenv ("MURMUR_DELEGATION_TIMEOUT_SECS");
    assert_int_equal (delegation_bound_secs (&st->s), declared);
}

static void
test_the_line_of_one_that_never_started (void **state)
{
    struct stand *st = *state;
    struct delegation *d = add (st, false);
    delegation_trace (&st->s, d, false, "refused", "mur-roost said no");
    _cleanup_json_ json_t *line = stand_line (st, "delegation");
    assert_string_equal (json_get_string (line, "capsule"), "local/child");
    assert_string_equal (json_get_string (line, "outcome"), "refused");
    assert_string_equal (json_get_string (line, "reason"), "mur-roost said no");
    assert_null (json_get_string (line, "delegation_id"));
    assert_null (json_get_string (line, "child_session_id"));
}

static void
test_the_standing_with_mur_roost (void **state)
{
    struct stand *st = *state;
    assert_null (handoff_credential (&st->s));
    handoff_join (&st->s, "http://127.0.0.1:1", secret_new ("cred", 4));
    assert_string_equal (secret_reveal (handoff_credential (&st->s)), "cred");
    assert_string_equal (handoff_roost_url (&st->s), "http://127.0.0.1:1");
    handoff_leave (&st->s);
    assert_null (handoff_credential (&st->s));
    handoff_leave (&st->s);
    handoff_join (&st->s, "http://127.0.0.1:1",
                  secret_new ("left behind", 11)); /* freed with the part */
}

int
unit_handoff (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_what_the_model_reads_of_one),
        cmocka_unit_test (test_the_words_of_both_ways),
        cmocka_unit_test_setup_teardown (test_the_set, open_stand, close_stand),
        cmocka_unit_test_setup_teardown (test_a_completion_nobody_waits_for_is_not_taken,
                                         open_stand, close_stand),
        cmocka_unit_test (test_without_a_set_nothing_is_out),
        cmocka_unit_test_setup_teardown (test_how_long_a_delegation_may_take, open_stand,
                                         close_stand),
        cmocka_unit_test_setup_teardown (test_the_line_of_one_that_never_started, open_stand,
                                         close_stand),
        cmocka_unit_test_setup_teardown (test_the_standing_with_mur_roost, open_stand, close_stand),
    };
    return cmocka_run_group_tests_name ("session/handoff", tests, NULL, NULL);
}
