/* SPDX-License-Identifier: Apache-2.0 */
#include "session/model/retry.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *
retry_reason_name (enum retry_reason reason)
{
    static const char *const names[] = { "status", "connection", "driver" };
    return names[reason];
}

const char *
retry_stopped_name (enum retry_verdict verdict)
{
    static const char *const names[] = { NULL, NULL, "max_retries", "retry_after", "deadline" };
    return names[verdict];
}

static bool
is_retryable_status (int status)
{
    return status == 408 || status == 429 ||
           (status >= 500 && status <= 599 && status != 501 && status != 505);
}

/* The order is the spec's: a veto before a hint, the connection before the status. */
static bool
is_retryable (const struct retry_failure *f, enum retry_reason *reason)
{
    *reason = f->connection == RETRY_CONNECTION_TRANSIENT ? RETRY_BY_CONNECTION
              : is_retryable_status (f->provider_status)  ? RETRY_BY_STATUS
                                                          : RETRY_BY_DRIVER;
    if (f->is_credential_rejected || f->word == RETRY_WORD_FINAL)
        return false;
    return f->word == RETRY_WORD_TRANSIENT || *reason != RETRY_BY_DRIVER;
}

/* Uniform in [d/2, d] with d = min (max, initial * 2^n). */
static uint64_t
own_delay (const struct retry_policy *policy, uint32_t retries_done, double chance)
{
    uint64_t d = policy->initial_delay_ms;
    for (uint32_t n = 0; n < retries_done && d < policy->max_delay_ms; n++)
        d *= 2;
    if (d > policy->max_delay_ms)
        d = policy->max_delay_ms;
    return d / 2 + (uint64_t)((double)(d - d / 2) * chance + 0.5);
}

enum retry_verdict
retry_decide (const struct retry_policy *policy, const struct retry_failure *f,
              uint32_t retries_done, uint64_t left_ms, double chance, enum retry_reason *reason,
              uint64_t *delay_ms)
{
    if (! is_retryable (f, reason))
        return RETRY_NEVER;
    if (retries_done >= policy->max_retries)
        return RETRY_SPENT;
    if (f->has_retry_after && f->retry_after_ms > policy->max_delay_ms)
        return RETRY_ASKED_TOO_LONG;
    /* "Come back at once" is no reason to press harder than we would by ourselves. */
    *delay_ms = own_delay (policy, retries_done, chance);
    if (f->has_retry_after && f->retry_after_ms > *delay_ms)
        *delay_ms = f->retry_after_ms;
    if (*delay_ms >= left_ms)
        return RETRY_PAST_DEADLINE;
    return RETRY_AFTER_DELAY;
}

static const char *
trouble_of (const struct retry_failure *f)
{
    if (f->provider_status == 429)
        return "the provider is busy";
    if (f->provider_status == 503 || f->provider_status == 529)
        return "the provider is overloaded";
    if (f->provider_status >= 500)
        return "the provider failed";
    if (f->connection != RETRY_CONNECTION_FINE)
        return "the connection to the provider broke";
    return "the provider gave no answer";
}

char *
retry_wait_text (uint64_t ms)
{
    return ms < 1000 ? x_asprintf ("%" PRIu64 " ms", ms) : x_asprintf ("%.0f s", (double)ms / 1000);
}

char *
retry_words (const struct retry_policy *policy, const struct retry_failure *f,
             uint32_t retries_done, uint64_t delay_ms)
{
    char status[16] = "";
    if (f->provider_status >= 300)
        snprintf (status, sizeof (status), " (%d)", f->provider_status);
    /* "again in 0 s" would read as never waiting. */
    bool in_tenths = delay_ms >= 100 && delay_ms < 10000;
    _cleanup_free_ char *wait =
        in_tenths ? x_asprintf ("%" PRIu64 ".%" PRIu64 " s", delay_ms / 1000, delay_ms % 1000 / 100)
                  : retry_wait_text (delay_ms);
    return x_asprintf ("%s%s, attempt %" PRIu32 " of %" PRIu32 ", again in %s", trouble_of (f),
                       status, retries_done + 2, policy->max_retries + 1, wait);
}
