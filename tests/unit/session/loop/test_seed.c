/* SPDX-License-Identifier: Apache-2.0
 *
 * What a hook puts before a task's first message: what fits, what is trimmed or summed up, what is
 * rejected. This program is the hooks: it proposes the messages and answers for the summary.
 */
#include "tests/unit/session/stand.h"

#include "session/hooks/hooks.h"
#include "session/loop/compaction.h"
#include "session/loop/seed.h"

#include <string.h>

#define PROPOSED_MAX 8

/* What the hooks do; set by a test. */
static struct {
    bool is_watching;
    struct hook_message proposed[PROPOSED_MAX];
    size_t proposed_len;
    bool is_answered;            /* the compaction hook gives <summary> */
    struct hook_message summary; /* no content: nothing */
    size_t told, asked;          /* on-task-start, on-compaction */
    size_t front_len;            /* messages it was given */
    uint64_t budget_told;
} hooks_do;

bool
hooks_watch (const struct session *s, enum hook_event_kind kind)
{
    (void)s;
    return kind == HOOK_ON_TASK_START && hooks_do.is_watching;
}

void
hooks_tell (struct session *s, struct running_task *t, const struct hook_event *event,
            enum hook_arm honoured, struct arena *arena, struct hook_answers *out)
{
    (void)s, (void)t;
    assert_int_equal (event->kind, HOOK_ON_TASK_START);
    assert_int_equal (honoured, HOOK_SEED_CONTEXT);
    hooks_do.told++;
    hooks_do.budget_told = event->task_start.budget_tokens;
    *out = (struct hook_answers){ 0 };
    if (! hooks_do.proposed_len)
        return;
    struct hook_output *output = arena_new0 (arena, struct hook_output);
    *output = (struct hook_output){ .arm = HOOK_SEED_CONTEXT,
                                    .messages = { hooks_do.proposed, hooks_do.proposed_len } };
    out->items = arena_new0 (arena, struct hook_answer);
    out->items[0] = (struct hook_answer){ "local/memory", output };
    out->len = 1;
}

bool
compaction_ask (struct session *s, struct running_task *t, const struct message_list *list,
                uint64_t tokens, struct arena *arena, struct hook_messages *out,
                const char **failed_hook, const char **failure)
{
    (void)s, (void)t, (void)tokens, (void)arena, (void)failed_hook, (void)failure;
    hooks_do.asked++;
    hooks_do.front_len = list->len;
    *out = (struct hook_messages){ &hooks_do.summary, hooks_do.summary.content ? 1 : 0 };
    return hooks_do.is_answered;
}

/* --- the stand --- */

static uint64_t
tokens_of_text (const char *text)
{
    struct message *m = message_new_user (text, strlen (text), NULL);
    uint64_t tokens = message_tokens (m);
    message_free (m);
    return tokens;
}

static const char one[] = "one remembered line about the capital of a country";

static void
propose (size_t count, const char *text)
{
    hooks_do.proposed_len = count;
    for (size_t i = 0; i < count; i++)
        hooks_do.proposed[i] = (struct hook_message){ .role = "user",
                                                      .content = text,
                                                      .content_len = strlen (text),
                                                      .id = "msg_of_another_day" };
}

/* A stand whose whole input budget a seed may take. */
static void
open_stand (struct stand *st, uint64_t budget)
{
    memset (&hooks_do, 0, sizeof hooks_do);
    hooks_do.is_watching = true;
    stand_open (st, "context: {seed_budget: 1.0}\n");
    st->s.choices.primary.input_budget = budget;
}

static void
assert_outcome (struct stand *st, const char *outcome, const char *reason)
{
    _cleanup_json_ json_t *line = stand_line (st, "context_seed");
    assert_non_null (line);
    assert_string_equal (json_get_string (line, "outcome"), outcome);
    const char *given = json_get_string (line, "reason");
    if (reason)
        assert_string_equal (given, reason);
    else
        assert_null (given);
    assert_int_equal (json_array_size (json_object_get (line, "message_ids")), st->t.seed.len);
    assert_string_equal (json_get_string (line, "hook_name"), "local/memory");
}

/* --- tests --- */

static void
test_how_much_is_proposed_and_what_becomes_of_it (void **state)
{
    (void)state;
    const uint64_t each = tokens_of_text (one);
    const struct {
        size_t proposed;
        uint64_t budget;
        const char *outcome, *reason;
        size_t kept;
    } rows[] = {
        { 2, 2 * each, "seeded", NULL, 2 },      /* to the last token */
        { 2, 5 * each, "seeded", NULL, 2 },      /* with room left */
        { 2, 2 * each - 1, "trimmed", NULL, 1 }, /* the oldest goes */
        { 4, each, "trimmed", NULL, 1 },         /* three too many: just within the limit */
        { 5, each, "rejected", "overflow_over_limit", 0 }, /* four too many */
        { 1, each - 1, "rejected", "message_over_budget", 0 },
        { 1, 0, "rejected", "no_budget", 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        struct stand st;
        open_stand (&st, rows[i].budget);
        propose (rows[i].proposed, one);
        seed_ask (&st.s, &st.t, 7);
        assert_int_equal (hooks_do.budget_told, rows[i].budget);
        assert_int_equal (st.t.seed.len, rows[i].kept);
        assert_outcome (&st, rows[i].outcome, rows[i].reason);
        assert_int_equal (stand_lines (&st, "hook_dispatch_error"), rows[i].reason != NULL);
        stand_close (&st);
    }
}

static void
test_what_is_kept_is_new_and_says_where_it_came_from (void **state)
{
    (void)state;
    struct stand st;
    open_stand (&st, 1000);
    propose (1, one);
    seed_ask (&st.s, &st.t, 0);
    assert_int_equal (st.t.seed.len, 1);
    const struct message *m = st.t.seed.items[0];
    assert_string_equal (m->source_id, "msg_of_another_day");
    assert_string_not_equal (m->id, "msg_of_another_day");
    assert_string_equal (m->inserted_by, "seed-context");
    stand_close (&st);
}

static void
test_a_message_that_is_none_is_left_out (void **state)
{
    (void)state;
    struct stand st;
    open_stand (&st, 1000);
    propose (3, one);
    hooks_do.proposed[1].role = "tool"; /* of no call */
    seed_ask (&st.s, &st.t, 0);
    assert_int_equal (st.t.seed.len, 2);
    assert_outcome (&st, "seeded", NULL);
    stand_close (&st);
}

static void
test_a_front_that_does_not_fit_is_summed_up_where_a_hook_can (void **state)
{
    (void)state;
    static const char summary[] = "short";
    const uint64_t each = tokens_of_text (one), of_summary = tokens_of_text (summary);
    const struct {
        bool is_answered;
        const char *summary;
        uint64_t budget;
        const char *outcome;
        size_t kept;
    } rows[] = {
        { true, summary, 2 * each + of_summary, "compacted", 3 }, /* two of four, and the summary */
        { true, summary, 2 * each, "compacted", 2 },              /* the summary takes one's room */
        { true, NULL, 2 * each, "trimmed", 2 },                   /* it gave nothing */
        { false, summary, 2 * each, "trimmed", 2 },               /* it failed */
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        struct stand st;
        open_stand (&st, rows[i].budget);
        propose (4, one);
        hooks_do.is_answered = rows[i].is_answered;
        hooks_do.summary = (struct hook_message){ .role = "user", .content = rows[i].summary };
        hooks_do.summary.content_len = rows[i].summary ? strlen (rows[i].summary) : 0;
        seed_ask (&st.s, &st.t, 0);
        assert_int_equal (hooks_do.asked, 1);
        assert_int_equal (hooks_do.front_len, 2); /* the oldest, no more than must go */
        assert_int_equal (st.t.seed.len, rows[i].kept);
        assert_outcome (&st, rows[i].outcome, NULL);
        stand_close (&st);
    }
}

static void
test_a_small_overflow_is_trimmed_without_asking (void **state)
{
    (void)state;
    const uint64_t each = tokens_of_text (one);
    struct stand st;
    open_stand (&st, 4 * each - 1); /* well within the margin of a tenth */
    propose (4, one);
    hooks_do.is_answered = true;
    seed_ask (&st.s, &st.t, 0);
    assert_int_equal (hooks_do.asked, 0);
    assert_outcome (&st, "trimmed", NULL);
    stand_close (&st);
}

static void
test_nobody_is_told_and_nothing_written_where_nobody_watches (void **state)
{
    (void)state;
    struct stand st;
    open_stand (&st, 1000);
    hooks_do.is_watching = false;
    seed_ask (&st.s, &st.t, 0);
    assert_int_equal (hooks_do.told, 0);
    hooks_do.is_watching = true; /* and who watches may have nothing to say */
    seed_ask (&st.s, &st.t, 0);
    assert_int_equal (hooks_do.told, 1);
    assert_int_equal (stand_lines (&st, "context_seed"), 0);
    assert_int_equal (st.t.seed.len, 0);
    stand_close (&st);
}

static void
test_the_seed_goes_before_the_tasks_message (void **state)
{
    (void)state;
    struct stand st;
    open_stand (&st, 1000);
    message_list_add (&st.t.list, message_new_user ("the task", 8, NULL));
    seed_place (&st.t); /* nothing waits: nothing changes */
    assert_int_equal (st.t.list.len, 1);
    propose (2, one);
    seed_ask (&st.s, &st.t, 0);
    seed_place (&st.t);
    assert_int_equal (st.t.seed.len, 0);
    assert_int_equal (st.t.list.len, 3);
    assert_string_equal (st.t.list.items[0]->inserted_by, "seed-context");
    assert_string_equal (st.t.list.items[1]->inserted_by, "seed-context");
    assert_null (st.t.list.items[2]->inserted_by);
    stand_close (&st);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_how_much_is_proposed_and_what_becomes_of_it),
        cmocka_unit_test (test_what_is_kept_is_new_and_says_where_it_came_from),
        cmocka_unit_test (test_a_message_that_is_none_is_left_out),
        cmocka_unit_test (test_a_front_that_does_not_fit_is_summed_up_where_a_hook_can),
        cmocka_unit_test (test_a_small_overflow_is_trimmed_without_asking),
        cmocka_unit_test (test_nobody_is_told_and_nothing_written_where_nobody_watches),
        cmocka_unit_test (test_the_seed_goes_before_the_tasks_message),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
