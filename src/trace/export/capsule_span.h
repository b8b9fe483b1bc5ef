/* SPDX-License-Identifier: Apache-2.0
 *
 * One capsule.* span as OTLP's JSON.
 */
#pragma once

#include "base/secret.h"
#include "trace/lines/events.h"

struct span {
    const char *name;
    const char *trace_id, *span_id; /* 32 and 16 hex digits */
    const char *parent_id;          /* NULL: none */
    uint64_t start_ns, end_ns;      /* Unix */
    struct buf attributes;          /* of the JSON list, without brackets */
};

void span_string (struct span *s, struct redactor *redactor, const char *key, const char *value);
void span_int (struct span *s, const char *key, int64_t value);
/* Left out when there is none. */
void
span_maybe_string (struct span *s, struct redactor *redactor, const char *key, const char *value);
void span_maybe_int (struct span *s, const char *key, struct trace_num value);
/* The whole body of a request that carries it; the span's attributes are freed. Owned. */
char *span_body (struct span *s, const char *service_name, const char *service_version);
