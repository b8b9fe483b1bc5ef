/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/export/trace_ids.h"

#include "base/digest.h"

#include <stdio.h>
#include <string.h>

static bool
is_id (const char *text, size_t len)
{
    bool is_zero = true;
    for (size_t i = 0; i < len; i++) {
        if (! text[i] || ! strchr ("0123456789abcdef", text[i]))
            return false;
        is_zero &= text[i] == '0';
    }
    return ! is_zero;
}

bool
trace_context_parse (const char *text, struct trace_context *out)
{
    *out = (struct trace_context){ .is_sampled = true };
    if (! text || strlen (text) != TRACEPARENT_LEN || strncmp (text, "00-", 3) != 0 ||
        text[35] != '-' || text[52] != '-' || ! is_id (text + 3, TRACE_ID_LEN) ||
        ! is_id (text + 36, SPAN_ID_LEN) || strspn (text + 53, "0123456789abcdef") != 2)
        return false;
    memcpy (out->trace_id, text + 3, TRACE_ID_LEN);
    memcpy (out->span_id, text + 36, SPAN_ID_LEN);
    out->is_sampled = strchr ("13579bdf", text[54]) != NULL;
    return true;
}

void
trace_context_text (const struct trace_context *c, char out[TRACEPARENT_LEN + 1])
{
    snprintf (out, TRACEPARENT_LEN + 1, "00-%s-%s-%s", c->trace_id, c->span_id,
              c->is_sampled ? "01" : "00");
}

static void
derive (const char *event_id, const char *what, size_t hex_len, char *out)
{
    char text[160], digest[SHA256_HEX_LEN + 1];
    int len = snprintf (text, sizeof text, "%s:%s", what, event_id);
    sha256_hex (text, (size_t)len < sizeof text ? (size_t)len : sizeof text - 1, digest);
    memcpy (out, digest, hex_len);
    out[hex_len] = '\0';
}

static void
trace_id_of (const char *event_id, char out[TRACE_ID_LEN + 1])
{
    derive (event_id, "trace", TRACE_ID_LEN, out);
}

void
span_id_of (const char *event_id, const char *what, char out[SPAN_ID_LEN + 1])
{
    derive (event_id, what, SPAN_ID_LEN, out);
}

void
trace_context_of_task (const char *task_start_id, const struct trace_context *caller,
                       struct trace_context *out)
{
    if (caller->trace_id[0])
        memcpy (out->trace_id, caller->trace_id, sizeof out->trace_id);
    else
        trace_id_of (task_start_id, out->trace_id);
    span_id_of (task_start_id, "agent", out->span_id);
    out->is_sampled = caller->is_sampled;
}
