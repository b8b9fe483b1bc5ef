/* SPDX-License-Identifier: Apache-2.0
 *
 * What every room asks of a session: its names, its tools, its provided rows, its last acts, who
 * acts as the loop.
 */
#include "tests/unit/session/stand.h"

#include "session/state/inventory.h"
#include "session/state/last_acts.h"
#include "session/state/loop_lock.h"
#include "session/state/provided.h"
#include "session/state/signals.h"

#include <pthread.h>
#include <string.h>

static void
test_who_it_is (void **state)
{
    (void)state;
    struct stand st;
    stand_open (&st, NULL);
    assert_true (session_is_agent (&st.s));
    assert_string_equal (session_id (&st.s), st.s.id.text);
    assert_string_equal (session_workdir (&st.s), st.work_dir);
    assert_string_equal (session_records_dir (&st.s), st.records_dir);
    assert_string_equal (session_capsule_name (&st.s), "local/stand");
    st.asked.capsule.artifact = "acme/stand";
    assert_string_equal (session_capsule_name (&st.s), "acme/stand");
    stand_close (&st);
    stand_open_manifest (&st, "name: script\nversion: \"0.1.0\"\n");
    assert_false (session_is_agent (&st.s));
    stand_close (&st);
}

static void
test_the_words_of_an_ending (void **state)
{
    (void)state;
    static const struct {
        enum session_ending ending;
        const char *word;
    } rows[] = { { ENDING_OK, "ok" },
                 { ENDING_FAILED, "failed" },
                 { ENDING_TRAPPED, "trapped" },
                 { ENDING_MAX_TURNS, "max_turns_reached" },
                 { ENDING_SPEND_CEILING, "spend_ceiling_reached" },
                 { ENDING_CANCELED, "canceled" },
                 { ENDING_NO_ANSWER, "no_answer" },
                 { ENDING_DEADLINE, "deadline_reached" },
                 { ENDING_FORMATION, "formation_ended" } };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++)
        assert_string_equal (session_ending_name (rows[i].ending), rows[i].word);
}

static void
test_what_it_may (void **state)
{
    (void)state;
    static const struct {
        const char *capabilities, *words;
    } rows[] = {
        { "", "" },
        { "capabilities:\n  network: {allow: [localhost]}\n", "network" },
        { "capabilities:\n  filesystem: {scope: out}\n", "filesystem" },
        { "capabilities:\n  shell: {allow: [ls]}\n", "shell" },
        { "capabilities:\n  network: {allow: [localhost]}\n  shell: {allow: [ls]}\n",
          "network|shell" },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        struct stand st;
        _cleanup_strv_ struct strv words = { 0 };
        stand_open (&st, rows[i].capabilities);
        session_list_capabilities (&st.s, &words);
        _cleanup_free_ char *joined = strv_join (&words, "|");
        assert_string_equal (joined ? joined : "", rows[i].words);
        stand_close (&st);
    }
}

static void
test_the_first_cause_is_the_one_asked_for (void **state)
{
    (void)state;
    struct stand st;
    stand_open (&st, NULL);
    assert_int_equal (termination_cause (&st.s), NOT_TERMINATED);
    st.s.cause = TERMINATED_BY_DEADLINE;
    assert_int_equal (termination_cause (&st.s), TERMINATED_BY_DEADLINE);
    stand_close (&st);
}

/* --- the kit --- */

static void
test_finding_tools (void **state)
{
    (void)state;
    struct stand st;
    stand_open (&st, NULL);
    static const char *const names[] = { "zeta", "alpha", "mid", "a", "zz" };
    for (size_t i = 0; i < ARRAY_LEN (names); i++)
        stand_artifact (&st, names[i], ROLE_TOOL, NULL);
    stand_tools (&st);
    for (size_t i = 0; i < ARRAY_LEN (names); i++) {
        assert_string_equal (session_tool (&st.s, names[i])->name, names[i]);
        assert_ptr_equal (session_artifact (&st.s, names[i]),
                          session_tool (&st.s, names[i])->artifact);
    }
    for (size_t i = 1; i < st.s.kit.tool_count; i++)
        assert_true (strcmp (st.s.kit.tools[i - 1].name, st.s.kit.tools[i].name) < 0);
    assert_null (session_tool (&st.s, "none"));
    assert_null (session_artifact (&st.s, "none"));
    assert_false (session_has_removed (&st.s, "none"));
    stand_close (&st);
}

static void
test_what_was_removed_answers_as_removed (void **state)
{
    (void)state;
    struct stand st;
    stand_open (&st, NULL);
    stand_artifact (&st, "tool", ROLE_TOOL, NULL)->is_removed = true;
    assert_null (session_artifact (&st.s, "tool"));
    assert_true (session_has_removed (&st.s, "tool"));
    struct staged_artifact *again = stand_artifact (&st, "tool", ROLE_TOOL, NULL);
    assert_ptr_equal (session_artifact (&st.s, "tool"), again);
    assert_false (session_has_removed (&st.s, "tool"));
    stand_close (&st);
}

static void
test_which_hooks_may_compact (void **state)
{
    (void)state;
    static const struct {
        enum artifact_role role;
        struct hook_contract contract;
        bool may;
    } rows[] = {
        { ROLE_HOOK, { .binding = BIND_ALL, .mode = HOOK_BLOCKING }, true },
        { ROLE_HOOK, { .binding = BIND_ON_COMPACTION, .mode = HOOK_BLOCKING }, true },
        { ROLE_HOOK, { .binding = BIND_ALL, .mode = HOOK_ASYNC }, false },
        { ROLE_HOOK, { .binding = BIND_ON_COMPACTION, .mode = HOOK_ASYNC }, false },
        { ROLE_HOOK, { .binding = BIND_ON_STAGE, .mode = HOOK_BLOCKING }, false },
        { ROLE_TOOL, { .binding = BIND_ALL, .mode = HOOK_BLOCKING }, false },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        struct stand st;
        stand_open (&st, NULL);
        stand_artifact (&st, "other", ROLE_TOOL, NULL);
        stand_artifact (&st, "hook", rows[i].role, NULL)->contract = rows[i].contract;
        assert_int_equal (session_has_compaction_hook (&st.s), rows[i].may);
        stand_close (&st);
    }
}

static const char *
made_schema (const struct session *s)
{
    return arena_printf (s->arena, "{\"made_for\":\"%s\"}", s->manifest->name);
}

static void
test_provided_rows_come_with_the_session (void **state)
{
    (void)state;
    struct stand st;
    stand_open (&st, NULL);
    static const struct provided_tool fixed = { .name = "fixed", .parameters = "{}" },
                                      made = { .name = "made", .parameters_of = made_schema };
    static const struct provided_tool *const rows[] = { &fixed, &made };
    assert_null (provided_find (&st.s, "fixed"));
    st.s.kit.provided = rows;
    st.s.kit.provided_count = ARRAY_LEN (rows);
    assert_ptr_equal (provided_find (&st.s, "fixed"), &fixed);
    assert_ptr_equal (provided_find (&st.s, "made"), &made);
    assert_null (provided_find (&st.s, "mad"));
    assert_string_equal (provided_parameters (&st.s, &fixed), "{}");
    assert_string_equal (provided_parameters (&st.s, &made), "{\"made_for\":\"stand\"}");
    stand_close (&st);
}

static void
test_driver_entries_are_those_of_the_http_loop (void **state)
{
    (void)state;
    struct stand st;
    stand_open (
        &st,
        "  alternates:\n    - {name: fast, model: m, driver: {artifact: std/driver-scripted}}\n"
        "control: {agent_settings: [inference.driver]}\n");
    const struct artifact_entry *driver = &st.manifest->artifacts.items[0];
    struct artifact_entry other = { .name = "std/other" };
    assert_true (session_is_driver_entry (&st.s, driver));
    assert_false (session_is_driver_entry (&st.s, &other));
    stand_close (&st);
    stand_open_manifest (&st, "name: script\nversion: \"0.1.0\"\n");
    assert_false (session_is_driver_entry (&st.s, &other));
    stand_close (&st);
}

/* --- last acts --- */

static char acts[16];

static void
act_a (struct session *s)
{
    (void)s;
    strcat (acts, "a");
}

static void
act_b (struct session *s)
{
    (void)s;
    strcat (acts, "b");
}

static void
test_last_acts_run_once_each_in_order (void **state)
{
    (void)state;
    struct stand st;
    stand_open (&st, NULL);
    last_acts_run (&st.s);
    assert_string_equal (acts, "");
    last_acts_add (&st.s, act_b);
    last_acts_add (&st.s, act_a);
    last_acts_add (&st.s, act_b);
    last_acts_run (&st.s);
    assert_string_equal (acts, "ba");
    stand_close (&st);
}

/* --- the loop's lock --- */

struct counted {
    struct loop_lock *lock;
    uint64_t value;
};

static void *
count_up (void *arg)
{
    struct counted *c = arg;
    for (int i = 0; i < 20000; i++) {
        loop_lock_take (c->lock);
        c->value++;
        loop_lock_release (c->lock);
    }
    return NULL;
}

static void
test_where_a_harness_shares_it_one_acts_at_a_time (void **state)
{
    (void)state;
    struct loop_lock lock = { .mutex = PTHREAD_MUTEX_INITIALIZER, .is_shared = true };
    struct counted c = { &lock, 0 };
    pthread_t threads[3];
    for (size_t i = 0; i < ARRAY_LEN (threads); i++)
        assert_int_equal (pthread_create (&threads[i], NULL, count_up, &c), 0);
    for (size_t i = 0; i < ARRAY_LEN (threads); i++)
        pthread_join (threads[i], NULL);
    assert_int_equal (c.value, 60000);
}

static void
test_without_a_harness_it_costs_nothing_and_locks_nothing (void **state)
{
    (void)state;
    struct loop_lock lock = { .mutex = PTHREAD_MUTEX_INITIALIZER };
    loop_lock_take (&lock);
    loop_lock_take (&lock); /* would never return, were it one */
    assert_int_equal (pthread_mutex_trylock (&lock.mutex), 0);
    pthread_mutex_unlock (&lock.mutex);
}

/* --- signals --- */

static void
test_held_signals_are_those_of_an_ending (void **state)
{
    (void)state;
    sigset_t before, now, set = signals_of_ending ();
    assert_true (sigismember (&set, SIGTERM) == 1 && sigismember (&set, SIGINT) == 1);
    void (*hangup) (int) = signal (SIGHUP, SIG_DFL);
    set = signals_of_ending ();
    assert_true (sigismember (&set, SIGHUP) == 1);
    signal (SIGHUP, SIG_IGN); /* as nohup leaves it */
    set = signals_of_ending ();
    assert_false (sigismember (&set, SIGHUP));
    signal (SIGHUP, hangup);
    signals_hold (&before);
    pthread_sigmask (SIG_BLOCK, NULL, &now);
    assert_true (sigismember (&now, SIGTERM) == 1 && sigismember (&now, SIGINT) == 1);
    signals_release (&before);
    pthread_sigmask (SIG_BLOCK, NULL, &now);
    assert_int_equal (sigismember (&now, SIGTERM), sigismember (&before, SIGTERM));
}

static void
test_usage_adds_up_and_stays_unknown_until_somebody_says (void **state)
{
    (void)state;
    struct usage_count c = { 0 };
    usage_count_add (&c, false, 0);
    assert_false (c.is_known);
    usage_count_add (&c, true, 5);
    usage_count_add (&c, false, 0);
    usage_count_add (&c, true, 7);
    assert_true (c.is_known);
    assert_int_equal (c.value, 12);
}

int
unit_session (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_who_it_is),
        cmocka_unit_test (test_the_words_of_an_ending),
        cmocka_unit_test (test_what_it_may),
        cmocka_unit_test (test_the_first_cause_is_the_one_asked_for),
        cmocka_unit_test (test_finding_tools),
        cmocka_unit_test (test_what_was_removed_answers_as_removed),
        cmocka_unit_test (test_which_hooks_may_compact),
        cmocka_unit_test (test_provided_rows_come_with_the_session),
        cmocka_unit_test (test_driver_entries_are_those_of_the_http_loop),
        cmocka_unit_test (test_last_acts_run_once_each_in_order),
        cmocka_unit_test (test_where_a_harness_shares_it_one_acts_at_a_time),
        cmocka_unit_test (test_without_a_harness_it_costs_nothing_and_locks_nothing),
        cmocka_unit_test (test_held_signals_are_those_of_an_ending),
        cmocka_unit_test (test_usage_adds_up_and_stays_unknown_until_somebody_says),
    };
    return cmocka_run_group_tests_name ("session/state/session", tests, NULL, NULL);
}
