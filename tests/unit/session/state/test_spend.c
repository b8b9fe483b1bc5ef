/* SPDX-License-Identifier: Apache-2.0
 *
 * The spend meter and the ledger sessions of one machine share.
 */
#include "tests/unit/testing.h"

#include "session/state/spend.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char home[64];

static int
set_home (void **state)
{
    (void)state;
    snprintf (home, sizeof (home), "%s/spend-XXXXXX",
              getenv ("TMPDIR") ? getenv ("TMPDIR") : "/tmp");
    return mkdtemp (home) && setenv ("HOME", home, 1) == 0 ? 0 : -1;
}

static int
remove_home (void **state)
{
    (void)state;
    _cleanup_free_ char *command = x_asprintf ("rm -rf '%s'", home);
    return system (command);
}

static void
test_a_session_refusal_latches (void **state)
{
    (void)state;
    struct spend_refusal refusal;
    struct spend_meter *m = spend_meter_new ("ses_1", 100, 0, NULL);
    assert_true (spend_admit (m, 40, 20, &refusal));
    assert_true (spend_is_open (m));
    spend_settle (m, 40, 5);
    assert_false (spend_is_open (m));
    assert_false (spend_admit (m, 50, 10, &refusal));
    assert_int_equal (refusal.limit, SPEND_SESSION);
    assert_int_equal (refusal.used, 45);
    assert_int_equal (refusal.requested, 60);
    assert_false (spend_admit (m, 1, 1, &refusal)); /* would fit, but the refusal stands */
    spend_meter_free (m);
}

static void
test_release_costs_nothing (void **state)
{
    (void)state;
    struct spend_refusal refusal;
    struct spend_totals totals;
    struct spend_meter *m = spend_meter_new ("ses_1", 100, 0, NULL);
    assert_true (spend_admit (m, 90, 10, &refusal));
    spend_release (m);
    spend_totals (m, &totals);
    assert_int_equal (totals.used, 0);
    assert_true (spend_admit (m, 90, 10, &refusal));
    spend_meter_free (m);
}

static void
test_two_sessions_share_the_ledger (void **state)
{
    (void)state;
    struct spend_refusal refusal;
    struct mur_error *err = NULL;
    struct spend_meter *a = spend_meter_new ("ses_a", 0, 1000, &err);
    struct spend_meter *b = spend_meter_new ("ses_b", 0, 1000, &err);
    assert_non_null (a);
    assert_non_null (b);
    assert_true (spend_admit (a, 300, 100, &refusal));
    spend_settle (a, 300, 400);
    assert_false (spend_admit (b, 200, 200, &refusal));
    assert_int_equal (refusal.limit, SPEND_MACHINE);
    assert_int_equal (refusal.used, 700);
    assert_true (spend_admit (b, 200, 50, &refusal)); /* a machine refusal does not latch */
    spend_settle (b, 10, 10);
    struct spend_totals totals;
    spend_totals (a, &totals);
    assert_int_equal (totals.machine_used, 720);
    spend_meter_free (a);
    spend_meter_free (b);
}

static void
test_foreign_and_torn_ledger_lines_count_nothing (void **state)
{
    (void)state;
    struct mur_error *err = NULL;
    struct spend_meter *m = spend_meter_new ("ses_a", 0, 1000, &err);
    struct spend_totals totals;
    _cleanup_free_ char *command =
        x_asprintf ("f=$(ls '%s'/.murmur/spend/*.jsonl) && printf 'junk\\n{\"input_tokens\":7,"
                    "\"output_tokens\":3}\\n{\"input_tokens\":9' >> \"$f\"",
                    home);
    assert_int_equal (system (command), 0);
    uint64_t before = 0;
    spend_totals (m, &totals);
    before = totals.machine_used;
    assert_true (before >= 10);
    struct stat st;
    _cleanup_free_ char *dir = x_asprintf ("%s/.murmur/spend", home);
    assert_int_equal (stat (dir, &st), 0);
    assert_int_equal (st.st_mode & 0777, 0700);
    spend_meter_free (m);
}

int
unit_spend (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_session_refusal_latches),
        cmocka_unit_test (test_release_costs_nothing),
        cmocka_unit_test (test_two_sessions_share_the_ledger),
        cmocka_unit_test (test_foreign_and_torn_ledger_lines_count_nothing),
    };
    return cmocka_run_group_tests_name ("session/spend", tests, set_home, remove_home);
}
