/* SPDX-License-Identifier: Apache-2.0
 *
 * The retry rule: which failures come back, how long they wait, what stops them.
 */
#include "tests/unit/testing.h"

#include "session/model/retry.h"

static const struct retry_policy policy = { 3, 1000, 8000 };

static enum retry_verdict
decide (struct retry_failure f, uint32_t done, uint64_t left_ms, double chance,
        enum retry_reason *reason, uint64_t *delay_ms)
{
    return retry_decide (&policy, &f, done, left_ms, chance, reason, delay_ms);
}

static void
test_statuses_that_are_retried (void **state)
{
    (void)state;
    static const struct {
        int status;
        bool is_retried;
    } rows[] = { { 400, false }, { 404, false }, { 408, true }, { 429, true },  { 500, true },
                 { 501, false }, { 502, true },  { 503, true }, { 505, false }, { 529, true } };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        enum retry_reason reason;
        uint64_t delay_ms;
        struct retry_failure f = { .provider_status = rows[i].status };
        enum retry_verdict verdict = decide (f, 0, UINT64_MAX, 0.5, &reason, &delay_ms);
        assert_int_equal (verdict, rows[i].is_retried ? RETRY_AFTER_DELAY : RETRY_NEVER);
        if (rows[i].is_retried)
            assert_int_equal (reason, RETRY_BY_STATUS);
    }
}

static void
test_the_order_of_the_classes (void **state)
{
    (void)state;
    enum retry_reason reason;
    uint64_t delay_ms;
    struct retry_failure refused = { .connection = RETRY_CONNECTION_HARD };
    assert_int_equal (decide (refused, 0, UINT64_MAX, 0, &reason, &delay_ms), RETRY_NEVER);
    struct retry_failure reset = { .connection = RETRY_CONNECTION_TRANSIENT };
    assert_int_equal (decide (reset, 0, UINT64_MAX, 0, &reason, &delay_ms), RETRY_AFTER_DELAY);
    assert_int_equal (reason, RETRY_BY_CONNECTION);
    reset.word = RETRY_WORD_FINAL;
    assert_int_equal (decide (reset, 0, UINT64_MAX, 0, &reason, &delay_ms), RETRY_NEVER);
    struct retry_failure word = { .word = RETRY_WORD_TRANSIENT, .provider_status = 400 };
    assert_int_equal (decide (word, 0, UINT64_MAX, 0, &reason, &delay_ms), RETRY_AFTER_DELAY);
    assert_int_equal (reason, RETRY_BY_DRIVER);
    word.is_credential_rejected = true;
    assert_int_equal (decide (word, 0, UINT64_MAX, 0, &reason, &delay_ms), RETRY_NEVER);
}

static void
test_own_delays_double_between_half_and_whole (void **state)
{
    (void)state;
    static const uint64_t whole[] = { 1000, 2000, 4000 };
    struct retry_failure f = { .provider_status = 500 };
    for (uint32_t n = 0; n < 3; n++) {
        enum retry_reason reason;
        uint64_t low, high;
        decide (f, n, UINT64_MAX, 0.0, &reason, &low);
        decide (f, n, UINT64_MAX, 0.9999, &reason, &high);
        assert_int_equal (low, whole[n] / 2);
        assert_int_equal (high, whole[n]);
    }
}

static void
test_what_stops_retrying (void **state)
{
    (void)state;
    enum retry_reason reason;
    uint64_t delay_ms;
    struct retry_failure f = { .provider_status = 429 };
    assert_int_equal (decide (f, 3, UINT64_MAX, 0, &reason, &delay_ms), RETRY_SPENT);
    f.has_retry_after = true;
    f.retry_after_ms = 8001;
    assert_int_equal (decide (f, 0, UINT64_MAX, 0, &reason, &delay_ms), RETRY_ASKED_TOO_LONG);
    f.retry_after_ms = 700;
    assert_int_equal (decide (f, 0, 700, 0, &reason, &delay_ms), RETRY_PAST_DEADLINE);
    assert_int_equal (decide (f, 0, 701, 0, &reason, &delay_ms), RETRY_AFTER_DELAY);
    assert_int_equal (delay_ms, 700);
    assert_string_equal (retry_stopped_name (RETRY_ASKED_TOO_LONG), "retry_after");
    assert_null (retry_stopped_name (RETRY_NEVER));
}

int
unit_retry (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_statuses_that_are_retried),
        cmocka_unit_test (test_the_order_of_the_classes),
        cmocka_unit_test (test_own_delays_double_between_half_and_whole),
        cmocka_unit_test (test_what_stops_retrying),
    };
    return cmocka_run_group_tests_name ("session/retry", tests, NULL, NULL);
}
