/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a failed driver call is tried again, and when (docs/spec/session.md 5.7). Pure: clock,
 * deadline and chance are given.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct retry_policy {
    uint32_t max_retries;
    uint64_t initial_delay_ms;
    uint64_t max_delay_ms;
};

#define RETRY_DEFAULTS ((struct retry_policy){ 6, 1000, 60000 })

enum retry_word {
    RETRY_WORD_NONE,
    RETRY_WORD_TRANSIENT, /* transient: "true" */
    RETRY_WORD_FINAL,     /* transient: "false" */
};

enum retry_connection {
    RETRY_CONNECTION_FINE,
    RETRY_CONNECTION_TRANSIENT, /* reset, terminated, timed out, incomplete */
    RETRY_CONNECTION_HARD,      /* refused, name not found, TLS */
};

/* What is known of one failed attempt. */
struct retry_failure {
    bool is_credential_rejected;
    enum retry_word word;
    enum retry_connection connection;
    int provider_status; /* 0: none seen */
    bool has_retry_after;
    uint64_t retry_after_ms; /* what the provider asked */
};

enum retry_reason {
    RETRY_BY_STATUS,
    RETRY_BY_CONNECTION,
    RETRY_BY_DRIVER,
};

enum retry_verdict {
    RETRY_NEVER,          /* this failure is not retried */
    RETRY_AFTER_DELAY,    /* wait *delay_ms, then again */
    RETRY_SPENT,          /* max_retries */
    RETRY_ASKED_TOO_LONG, /* retry_after */
    RETRY_PAST_DEADLINE,  /* deadline */
};

/* "status", "connection", "driver". */
const char *retry_reason_name (enum retry_reason reason);
/* "max_retries", "retry_after", "deadline", or NULL for the two verdicts that stop nothing. */
const char *retry_stopped_name (enum retry_verdict verdict);

/* Judges the failure of an attempt when <retries_done> retries were already made. <left_ms> is the
 * time to the session's deadline (UINT64_MAX: none); <chance> is uniform in [0, 1). *reason is set
 * whenever the failure is of a kind that is retried. */
enum retry_verdict retry_decide (const struct retry_policy *policy, const struct retry_failure *f,
                                 uint32_t retries_done, uint64_t left_ms, double chance,
                                 enum retry_reason *reason, uint64_t *delay_ms);

/* "40 ms", "12 s". Owned. */
char *retry_wait_text (uint64_t ms);
/* "the provider is busy (429), attempt 2 of 7, again in 3 s": for a person who waits. Owned. */
char *retry_words (const struct retry_policy *policy, const struct retry_failure *f,
                   uint32_t retries_done, uint64_t delay_ms);
