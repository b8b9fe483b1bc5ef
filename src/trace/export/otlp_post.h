/* SPDX-License-Identifier: Apache-2.0
 *
 * One body to a collector: sent, retried as it asks for, and what it said about it.
 */
#pragma once

#include "base/cancel.h"
#include "net/http_client.h"
#include "trace/export/otel_settings.h"

enum otlp_fate {
    OTLP_SENT,
    OTLP_REFUSED, /* it said no, or did not answer */
    OTLP_UNKNOWN, /* 404 or 405: it takes no such signal */
};

struct otlp_post {
    struct http_client *http;
    const struct otel_settings *settings;
    const char *url;
    const void *body;
    size_t body_len;
    uint64_t patience_ms;  /* for all tries together */
    struct cancel *cancel; /* breaks it off */
    struct cancel *hurry;  /* ends a wait between two tries: one more follows */
};

/* *why (owned, may come back NULL) is one line for people, also of a partial success: it never
 * holds a header's value. */
enum otlp_fate otlp_post (const struct otlp_post *post, char **why);
/* What a collector's answer says it did not take: the count, and its words in *message (owned,
 * NULL without). 0 for an answer without a word about it. */
int64_t otlp_rejected (enum otlp_encoding encoding, const char *body, size_t len, char **message);
