/* SPDX-License-Identifier: Apache-2.0 */
#include "session/model/driver_answer.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/tokens.h"
#include "session/state/session.h"

#include <stdlib.h>
#include <string.h>

json_t *
driver_answer_load (const char *text, size_t len)
{
    json_t *body = json_loadb (text, len, JSON_DECODE_ANY, NULL);
    if (! body) {
        _cleanup_free_ char *mended = x_memdup (text, len);
        json_mend_escapes (mended, len);
        body = json_loadb (mended, len, JSON_DECODE_ANY, NULL);
    }
    if (json_is_object (body))
        return body;
    json_decref (body);
    return NULL;
}

static struct trace_num
usage_member (const json_t *usage, const char *key)
{
    uint64_t value;
    return json_get_u64 (usage, key, &value) ? TRACE_NUM (value) : TRACE_NO_NUM;
}

void
driver_answer_read_usage (const json_t *body, struct driver_answer *out)
{
    const json_t *usage = json_object_get (body, "usage");
    out->usage =
        (struct usage){ usage_member (usage, "input_tokens"), usage_member (usage, "output_tokens"),
                        usage_member (usage, "cached_tokens"),
                        usage_member (usage, "cache_write_tokens"),
                        usage_member (usage, "thinking_tokens") };
    out->has_report = out->usage.input.is_set && out->usage.output.is_set;
}

uint64_t
usage_request (const struct usage *u)
{
    return (uint64_t)(u->input.value + u->cached.value + u->cache_write.value);
}

void
driver_answer_clear (struct driver_answer *a)
{
    json_decref (a->body);
    free (a->text);
    free (a->continuation_id);
    free (a->reason);
    free (a->retry_note);
    mur_error_freep (&a->error);
    *a = (struct driver_answer){ 0 };
}

void
driver_answer_take (struct session *s, char *text, size_t len, json_t *body, uint64_t estimate,
                    struct driver_answer *out)
{
    out->text = text;
    out->text_len = len;
    out->body = body ? body : driver_answer_load (text, len);
    if (! out->body) {
        out->outcome = DRIVER_MALFORMED;
        spend_settle (s->spend, estimate, 0);
        mur_fail (&out->error, E_RUN_007, "the driver's response is not a JSON object");
        return;
    }
    out->outcome = DRIVER_RESPONSE;
    out->tokens = tokens_count (out->text, out->text_len);
    driver_answer_read_usage (out->body, out);
    if (out->has_report)
        spend_settle (s->spend, usage_request (&out->usage), (uint64_t)out->usage.output.value);
    else
        spend_settle (s->spend, estimate, out->tokens);
}
