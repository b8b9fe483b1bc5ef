/* SPDX-License-Identifier: Apache-2.0
 *
 * What may be changed while a session runs: which choice, which cap, whose secrets, whose turn a
 * driver is - by hand and by several threads at once.
 */
#include "tests/unit/session/stand.h"

#include "session/model/credential.h"
#include "session/model/selection.h"
#include "session/model/steering.h"
#include "session/model/steering_internal.h"
#include "session/model/supplied.h"

#include <pthread.h>
#include <string.h>

static struct choice primary, fast, slow;
static struct choice *choices[] = { &primary, &fast, &slow };
static struct staged_artifact artifact;
static struct artifact_entry entry;

static int
open_stand (void **state)
{
    struct stand *st = x_new0 (struct stand);
    stand_open (
        st, "  alternates:\n    - {name: fast, model: f, driver: {artifact: std/driver-scripted}}\n"
            "control: {agent_settings: [inference.driver], settings: [inference.max_tokens]}\n");
    artifact = (struct staged_artifact){ .entry = &entry };
    primary = (struct choice){
        .name = "primary", .model = "m", .artifact = &artifact, .output_cap = 100, .window = 1000
    };
    fast =
        (struct choice){ .name = "fast", .model = "f", .artifact = &artifact, .output_cap = 200 };
    slow = (struct choice){ .name = "slow",
                            .model = "s",
                            .artifact = &artifact,
                            .output_cap = 300,
                            .window = 600,
                            .input_ceiling = 50 };
    st->s.choices.all = choices;
    st->s.choices.count = ARRAY_LEN (choices);
    steering_new (&st->s);
    st->s.rooms.steering->selection = selection_new ();
    *state = st;
    return 0;
}

static int
close_stand (void **state)
{
    struct stand *st = *state;
    steering_free (&st->s);
    stand_close (st);
    free (st);
    return 0;
}

static const struct selection_principal agent = { .name = "agent" };

static void
test_the_verdicts (void **state)
{
    (void)state;
    static const struct {
        enum selection_verdict verdict;
        const char *reason;
        unsigned status;
    } rows[] = { { SELECTION_DONE, NULL, 200 },
                 { SELECTION_UNDECLARED_DRIVER, "undeclared_driver", 422 },
                 { SELECTION_CREDENTIAL_UNRESOLVABLE, "credential_unresolvable", 409 },
                 { SELECTION_NO_INPUT_BUDGET, "no_input_budget", 422 } };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        assert_true (str_eq (selection_reason (rows[i].verdict), rows[i].reason));
        assert_int_equal (selection_status (rows[i].verdict), rows[i].status);
    }
}

static void
test_who_may_change_what (void **state)
{
    struct stand *st = *state;
    assert_true (selection_agent_may (&st->s, "inference.driver"));
    assert_false (selection_agent_may (&st->s, "inference.max_tokens"));
    assert_true (selection_controller_may (&st->s, "inference.max_tokens"));
    assert_false (selection_controller_may (&st->s, "inference.driver"));
    assert_false (selection_agent_may (&st->s, "anything"));
}

static void
test_what_the_next_call_uses (void **state)
{
    struct stand *st = *state;
    static const struct {
        const char *choice;
        uint64_t cap, budget;
        const char *basis;
    } rows[] = { { "primary", 100, 900, "context_window_less_output_cap" },
                 { "fast", 200, 0, "none" },
                 { "slow", 300, 50, "max_input_tokens" } };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        const char *previous;
        struct call_choice now;
        assert_int_equal (selection_set_driver (&st->s, &agent, rows[i].choice, &previous),
                          SELECTION_DONE);
        selection_peek (&st->s, &now);
        assert_string_equal (now.driver->name, rows[i].choice);
        assert_int_equal (now.output_cap, rows[i].cap);
        assert_int_equal (now.input_budget, rows[i].budget);
        assert_string_equal (now.budget_basis, rows[i].basis);
    }
}

static void
test_a_change_is_applied_by_the_call_that_uses_it (void **state)
{
    struct stand *st = *state;
    const char *previous;
    struct call_choice now;
    selection_take (&st->s, "tsk_1", 0, &now);
    assert_int_equal (stand_lines (st, "control_applied"), 0);
    assert_int_equal (selection_set_driver (&st->s, &agent, "fast", &previous), SELECTION_DONE);
    assert_string_equal (previous, "primary");
    assert_int_equal (selection_set_driver (&st->s, &agent, "slow", &previous), SELECTION_DONE);
    assert_string_equal (previous, "fast");
    selection_peek (&st->s, &now); /* looking applies nothing */
    assert_int_equal (stand_lines (st, "control_applied"), 0);
    selection_take (&st->s, "tsk_1", 1, &now);
    selection_take (&st->s, "tsk_1", 2, &now);
    assert_int_equal (stand_lines (st, "control_change"), 2);
    assert_int_equal (stand_lines (st, "control_applied"),
                      1); /* what was replaced before is never applied */
    _cleanup_json_ json_t *applied = stand_line (st, "control_applied"),
                          *change = stand_line (st, "control_change");
    assert_string_equal (json_get_string (applied, "value"), "slow");
    assert_string_equal (json_get_string (applied, "change_id"),
                         json_get_string (change, "event_id"));
}

static void
test_refused_choices_change_nothing (void **state)
{
    struct stand *st = *state;
    static const char *const names[] = { "nobody", "", "Fast", "primary " };
    for (size_t i = 0; i < ARRAY_LEN (names); i++) {
        const char *previous = "x";
        struct call_choice now;
        assert_int_equal (selection_set_driver (&st->s, &agent, names[i], &previous),
                          SELECTION_UNDECLARED_DRIVER);
        assert_null (previous);
        selection_peek (&st->s, &now);
        assert_string_equal (now.driver->name, "primary");
    }
    assert_int_equal (stand_lines (st, "control_change"), 0);
}

static void
test_a_cap_must_leave_room_in_every_window (void **state)
{
    struct stand *st = *state;
    static const struct {
        uint64_t tokens;
        enum selection_verdict verdict;
    } rows[] = { { 599, SELECTION_DONE },
                 { 600, SELECTION_NO_INPUT_BUDGET },
                 { 5000, SELECTION_NO_INPUT_BUDGET },
                 { 1, SELECTION_DONE } };
    uint64_t expected = 100;
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        uint64_t previous;
        assert_int_equal (selection_set_max_tokens (&st->s, &agent, rows[i].tokens, &previous),
                          rows[i].verdict);
        assert_int_equal (previous, rows[i].verdict == SELECTION_DONE ? expected : 0);
        if (rows[i].verdict == SELECTION_DONE)
            expected = rows[i].tokens;
    }
    const char *previous;
    struct call_choice now;
    selection_set_driver (&st->s, &agent, "fast", &previous);
    selection_peek (&st->s, &now);
    assert_int_equal (now.output_cap, 1); /* of every choice */
}

static bool was_called;

static void
note_call (void *ctx)
{
    (void)ctx;
    was_called = true;
}

static void
test_a_secret_of_the_selected_choice_is_not_taken_away (void **state)
{
    struct stand *st = *state;
    struct gateway_block gateway = { .key_reference = "KEY_A" };
    entry.gateway = &gateway;
    was_called = false;
    assert_false (selection_unless_keyed_by (&st->s, "KEY_A", note_call, NULL));
    assert_false (was_called);
    assert_true (selection_unless_keyed_by (&st->s, "KEY_B", note_call, NULL));
    assert_true (was_called);
    entry.gateway = NULL;
    assert_true (selection_unless_keyed_by (&st->s, "KEY_A", note_call, NULL));
}

static void
test_a_refusal_is_a_line (void **state)
{
    struct stand *st = *state;
    selection_refuse (&st->s, &agent, 422, "undeclared_driver", "inference.driver");
    _cleanup_json_ json_t *line = stand_line (st, "control_refused");
    assert_string_equal (json_get_string (line, "principal"), "agent");
    assert_int_equal (json_integer_value (json_object_get (line, "status")), 422);
}

/* --- two threads --- */

struct switcher {
    struct stand *st;
    const char *names[2];
    unsigned done;
};

static void *
switch_often (void *arg)
{
    struct switcher *w = arg;
    for (int i = 0; i < 300; i++) {
        const char *previous;
        if (selection_set_driver (&w->st->s, &agent, w->names[i % 2], &previous) == SELECTION_DONE)
            w->done++;
    }
    return NULL;
}

static void
test_lines_and_values_change_in_one_order (void **state)
{
    struct stand *st = *state;
    struct switcher a = { st, { "fast", "slow" }, 0 }, b = { st, { "primary", "slow" }, 0 };
    pthread_t threads[2];
    pthread_create (&threads[0], NULL, switch_often, &a);
    pthread_create (&threads[1], NULL, switch_often, &b);
    for (int i = 0; i < 200; i++) {
        struct call_choice now;
        selection_take (&st->s, "tsk_1", (uint64_t)i, &now);
        assert_int_equal (now.output_cap, now.driver->output_cap);
    }
    pthread_join (threads[0], NULL);
    pthread_join (threads[1], NULL);
    assert_int_equal (a.done + b.done, 600);
    assert_int_equal (stand_lines (st, "control_change"), 600);
    /* The last line is what is selected, and each line's `previous` the value of the line before
     * it. */
    _cleanup_free_ char *text = stand_read (st, "records/trace.jsonl");
    char last[16] = "primary";
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr (line, '\n');
        *next++ = '\0';
        _cleanup_json_ json_t *o = json_loads (line, 0, NULL);
        if (! str_eq (json_get_string (o, "event_type"), "control_change"))
            continue;
        assert_string_equal (json_get_string (o, "previous"), last);
        snprintf (last, sizeof last, "%s", json_get_string (o, "value"));
    }
    struct call_choice now;
    selection_peek (&st->s, &now);
    assert_string_equal (now.driver->name, last);
}

/* --- supplied secrets --- */

static void
test_supplied_secrets (void **state)
{
    (void)state;
    char *names[] = { (char[]){ "KEY_A" }, (char[]){ "KEY_B" } };
    const struct str_list list = { (void *)names, 2 };
    struct supplied_secrets *s = supplied_secrets_new (&list);
    assert_true (supplied_secrets_owns (s, "KEY_A") && supplied_secrets_owns (s, "KEY_B"));
    assert_false (supplied_secrets_owns (s, "KEY_C"));
    assert_false (supplied_secrets_owns (NULL, "KEY_A"));
    assert_null (supplied_secrets_get (s, "KEY_A"));
    assert_false (supplied_secrets_put (s, "KEY_A", secret_new ("one", 3)));
    assert_true (supplied_secrets_put (s, "KEY_A", secret_new ("two", 3)));
    struct secret *copy = supplied_secrets_get (s, "KEY_A");
    assert_string_equal (secret_reveal (copy), "two");
    assert_true (supplied_secrets_put (s, "KEY_A", NULL));
    assert_false (supplied_secrets_put (s, "KEY_A", NULL));
    assert_null (supplied_secrets_get (s, "KEY_A"));
    assert_string_equal (secret_reveal (copy), "two"); /* a copy outlives what it is of */
    secret_free (copy);
    supplied_secrets_put (s, "KEY_B", secret_new ("left", 4));
    supplied_secrets_free (s);
    supplied_secrets_free (NULL);
}

/* --- credentials --- */

static void
test_where_a_key_comes_from (void **state)
{
    struct stand *st = *state;
    static const struct {
        const char *reference, *literal, *in_env, *in_config;
        enum gateway_source source;
        const char *value; /* NULL: none */
    } rows[] = {
        { NULL, "lit", NULL, NULL, GATEWAY_SOURCE_MANIFEST, "lit" },
        { "A_KEY", NULL, "from env", NULL, GATEWAY_SOURCE_ENVIRONMENT, "from env" },
        { "A_KEY", NULL, "from env", "from config", GATEWAY_SOURCE_CONFIG, "from config" },
        { "A_KEY", NULL, NULL, "from config", GATEWAY_SOURCE_CONFIG, "from config" },
        { "A_KEY", NULL, NULL, NULL, GATEWAY_SOURCE_NONE, NULL },
        { "A_KEY", NULL, "", NULL, GATEWAY_SOURCE_NONE, NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        _cleanup_free_ char *path = x_asprintf ("%s/.murmur/config.yaml", st->dir);
        _cleanup_free_ char *folder = x_asprintf ("mkdir -p %s/.murmur && rm -f %s", st->dir, path);
        assert_int_equal (system (folder), 0);
        if (rows[i].in_config) {
            _cleanup_free_ char *text =
                x_asprintf ("credentials:\n  A_KEY: %s\n", rows[i].in_config);
            stand_write (st, ".murmur/config.yaml", text);
            assert_int_equal (chmod (path, 0600), 0);
        }
        if (rows[i].in_env)
            setenv ("A_KEY", rows[i].in_env, 1);
        else
            unsetenv ("A_KEY");
        struct secret *literal =
            rows[i].literal ? secret_new (rows[i].literal, strlen (rows[i].literal)) : NULL;
        const struct gateway_block block = { .key_reference = rows[i].reference,
                                             .key_literal = literal };
        struct credential *c = credential_new (&st->s, "local/d", true, &block, path);
        struct gateway_key key;
        credential_read (c, &key);
        assert_int_equal (credential_source (c), rows[i].source);
        if (rows[i].value)
            assert_string_equal (secret_reveal (key.value), rows[i].value);
        else
            assert_null (key.value);
        secret_free (key.value);
        credential_free (c);
        secret_free (literal);
    }
    unsetenv ("A_KEY");
}

/* --- whose turn it is --- */

struct caller {
    struct stand *st;
    struct cancel *cancel;
    unsigned *inside;
    unsigned taken;
    bool was_refused;
};

static void *
call_often (void *arg)
{
    struct caller *c = arg;
    for (int i = 0; i < 500; i++) {
        if (! steering_take_driver (&c->st->s, c->cancel))
            continue;
        assert_int_equal (++*c->inside, 1);
        c->taken++;
        --*c->inside;
        steering_release_driver (&c->st->s);
    }
    return NULL;
}

static void
test_one_call_of_a_driver_at_a_time (void **state)
{
    struct stand *st = *state;
    unsigned inside = 0;
    struct caller callers[3];
    pthread_t threads[3];
    for (size_t i = 0; i < ARRAY_LEN (callers); i++) {
        callers[i] = (struct caller){ .st = st, .cancel = cancel_new (), .inside = &inside };
        pthread_create (&threads[i], NULL, call_often, &callers[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN (callers); i++) {
        pthread_join (threads[i], NULL);
        assert_int_equal (callers[i].taken, 500);
        cancel_unref (callers[i].cancel);
    }
}

static void *
wait_for_turn (void *arg)
{
    struct caller *c = arg;
    c->was_refused = ! steering_take_driver (&c->st->s, c->cancel);
    return NULL;
}

static void
test_a_cancel_ends_the_wait_for_a_turn (void **state)
{
    struct stand *st = *state;
    struct caller waiter = { .st = st, .cancel = cancel_new () };
    pthread_t thread;
    assert_true (steering_take_driver (&st->s, NULL));
    pthread_create (&thread, NULL, wait_for_turn, &waiter);
    cancel_raise (waiter.cancel); /* whenever it comes: before the wait or in it */
    pthread_join (thread, NULL);
    assert_true (waiter.was_refused);
    steering_release_driver (&st->s);
    assert_true (
        steering_take_driver (&st->s, waiter.cancel)); /* free: a raised cancel is no reason */
    steering_release_driver (&st->s);
    cancel_unref (waiter.cancel);
}

int
unit_selection (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_the_verdicts),
        cmocka_unit_test_setup_teardown (test_who_may_change_what, open_stand, close_stand),
        cmocka_unit_test_setup_teardown (test_what_the_next_call_uses, open_stand, close_stand),
        cmocka_unit_test_setup_teardown (test_a_change_is_applied_by_the_call_that_uses_it,
                                         open_stand, close_stand),
        cmocka_unit_test_setup_teardown (test_refused_choices_change_nothing, open_stand,
                                         close_stand),
        cmocka_unit_test_setup_teardown (test_a_cap_must_leave_room_in_every_window, open_stand,
                                         close_stand),
        cmocka_unit_test_setup_teardown (test_a_secret_of_the_selected_choice_is_not_taken_away,
                                         open_stand, close_stand),
        cmocka_unit_test_setup_teardown (test_a_refusal_is_a_line, open_stand, close_stand),
        cmocka_unit_test_setup_teardown (test_lines_and_values_change_in_one_order, open_stand,
                                         close_stand),
        cmocka_unit_test (test_supplied_secrets),
        cmocka_unit_test_setup_teardown (test_where_a_key_comes_from, open_stand, close_stand),
        cmocka_unit_test_setup_teardown (test_one_call_of_a_driver_at_a_time, open_stand,
                                         close_stand),
        cmocka_unit_test_setup_teardown (test_a_cancel_ends_the_wait_for_a_turn, open_stand,
                                         close_stand),
    };
    return cmocka_run_group_tests_name ("session/model/selection", tests, NULL, NULL);
}
