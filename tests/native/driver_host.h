/* SPDX-License-Identifier: Apache-2.0
 *
 * A bundled driver on the build machine: the SDK's host is played by a provider whose bytes are
 * given, in pieces of a given size, ending well or broken off. For the generator and the fuzzers,
 * which want thousands of answers a second and the sanitizers' eyes on them.
 *
 * Always true: whatever the driver and the SDK allocated is freed when a call is over, as the end
 * of an instance does in the runtime.
 */
#pragma once

#include "murmur_sdk.h"

struct native_answer {
    unsigned status;
    const char *content_type; /* NULL: none */
    const char *body;
    size_t len;
    size_t piece;    /* bytes a read; 0: as many as are asked for */
    bool is_broken;  /* the connection breaks behind the last byte */
    bool is_refused; /* there is no connection */
};

struct native_outcome {
    char *json; /* what the driver handed over; the caller frees it */
    bool is_failed;
    int transient; /* -1: not told */
    char *continuation_id;
    size_t requests;
    char *request; /* the body that was sent last; NULL: none */
};

/* One call of the driver this program was built with. */
struct native_outcome native_call (const char *request, const struct native_answer *answer);
void native_outcome_free (struct native_outcome *outcome);
