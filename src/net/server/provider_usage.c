/* SPDX-License-Identifier: Apache-2.0 */
#include "net/server/provider_usage.h"

#include "base/json.h"

#include <string.h>

#define KEPT_LIMIT_BYTES (8u << 20)
#define BYTES_A_TOKEN    4

static uint64_t
number_of (const json_t *usage, const char *first, const char *second)
{
    uint64_t value = 0;
    if (! json_get_u64 (usage, first, &value) && second)
        json_get_u64 (usage, second, &value);
    return value;
}

static void
raise_to (uint64_t *value, uint64_t to)
{
    if (to > *value)
        *value = to;
}

/* Later counts of one answer include the earlier ones. */
static void
take_usage (struct provider_usage *seen, const json_t *usage)
{
    if (! json_is_object (usage))
        return;
    static const char *const details[] = { "input_tokens_details", "prompt_tokens_details" };
    uint64_t input = number_of (usage, "input_tokens", "prompt_tokens"), cached = 0;
    for (size_t i = 0; i < 2; i++)
        raise_to (&cached, number_of (json_object_get (usage, details[i]), "cached_tokens", NULL));
    raise_to (&seen->input, input >= cached ? input - cached : 0);
    raise_to (&seen->cache_read, cached);
    raise_to (&seen->cache_read, number_of (usage, "cache_read_input_tokens", NULL));
    raise_to (&seen->cache_creation, number_of (usage, "cache_creation_input_tokens", NULL));
    raise_to (&seen->output, number_of (usage, "output_tokens", "completion_tokens"));
    seen->is_told = true;
}

/* Of generateContent: the cached tokens are within the prompt's, the thoughts beside the answer's.
 */
static void
take_metadata (struct provider_usage *seen, const json_t *metadata)
{
    if (! json_is_object (metadata))
        return;
    uint64_t prompt = number_of (metadata, "promptTokenCount", NULL) +
                      number_of (metadata, "toolUsePromptTokenCount", NULL),
             cached = number_of (metadata, "cachedContentTokenCount", NULL);
    raise_to (&seen->input, prompt >= cached ? prompt - cached : 0);
    raise_to (&seen->cache_read, cached);
    raise_to (&seen->output, number_of (metadata, "candidatesTokenCount", NULL) +
                                 number_of (metadata, "thoughtsTokenCount", NULL));
    seen->is_told = true;
}

static void
take_value (struct provider_usage *seen, const json_t *value)
{
    const json_t *item;
    size_t i;
    json_array_foreach (value, i, item) /* a stream of generateContent that is no events */
        take_value (seen, item);
    static const char *const within[] = { "message", "response" };
    take_usage (seen, json_object_get (value, "usage"));
    take_metadata (seen, json_object_get (value, "usageMetadata"));
    for (size_t k = 0; k < ARRAY_LEN (within); k++) {
        const json_t *part = json_object_get (value, within[k]);
        take_usage (seen, json_object_get (part, "usage"));
        take_metadata (seen, json_object_get (part, "usageMetadata"));
    }
}

static void
take_json (struct provider_usage_reader *r, const char *text, size_t len)
{
    if (! memmem (text, len, "\"usage", 6))
        return;
    _cleanup_json_ json_t *value = json_loadb (text, len, 0, NULL);
    take_value (&r->seen, value);
}

static void
take_line (struct provider_usage_reader *r)
{
    const char *line = r->line.data;
    if (r->line.len > 5 && strncmp (line, "data:", 5) == 0) {
        r->deltas += memmem (line, r->line.len, "delta", 5) != NULL;
        take_json (r, line + 5, r->line.len - 5);
    }
    buf_truncate (&r->line, 0);
}

void
provider_usage_feed (struct provider_usage_reader *r, const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        bool is_end = data[i] == '\n' || data[i] == '\r';
        if (! r->line.len && ! r->is_events && ! is_end && ! strchr ("{[ \t", data[i]))
            r->is_events = true;
        if (r->is_events && is_end) {
            if (r->line.len)
                take_line (r);
            r->is_skipping = false;
        } else if (! r->is_skipping) {
            buf_putc (&r->line, data[i]);
            if ((r->is_skipping = r->line.len > KEPT_LIMIT_BYTES))
                buf_truncate (&r->line, 0);
        }
    }
}

void
provider_usage_end (struct provider_usage_reader *r, size_t request_bytes)
{
    if (r->line.len && r->is_events)
        take_line (r);
    else if (r->line.len)
        take_json (r, r->line.data, r->line.len);
    if (r->seen.is_told || ! r->deltas)
        return;
    r->seen.input = request_bytes / BYTES_A_TOKEN;
    r->seen.output = r->deltas; /* one piece is about a token */
    r->seen.is_estimated = true;
}

void
provider_usage_free (struct provider_usage_reader *r)
{
    buf_free (&r->line);
}
