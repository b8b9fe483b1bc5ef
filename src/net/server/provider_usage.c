/* SPDX-License-Identifier: Apache-2.0 */
#include "net/server/provider_usage.h"

#include "base/json.h"

#include <string.h>

#define KEPT_LIMIT_BYTES (1u << 20)

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

static void
take_json (struct provider_usage_reader *r, const char *text, size_t len)
{
    if (! memmem (text, len, "\"usage\"", 7))
        return;
    _cleanup_json_ json_t *value = json_loadb (text, len, 0, NULL);
    take_usage (&r->seen, json_object_get (value, "usage"));
    take_usage (&r->seen, json_object_get (json_object_get (value, "message"), "usage"));
    take_usage (&r->seen, json_object_get (json_object_get (value, "response"), "usage"));
}

static void
take_line (struct provider_usage_reader *r)
{
    const char *line = r->line.data;
    if (r->line.len > 5 && strncmp (line, "data:", 5) == 0)
        take_json (r, line + 5, r->line.len - 5);
    buf_truncate (&r->line, 0);
}

void
provider_usage_feed (struct provider_usage_reader *r, const char *data, size_t len)
{
    for (size_t i = 0; i < len && ! r->is_over; i++) {
        if (! r->line.len && ! r->is_events && data[i] != '{' && data[i] != ' ')
            r->is_events = true;
        if (r->is_events && (data[i] == '\n' || data[i] == '\r')) {
            if (r->line.len)
                take_line (r);
            continue;
        }
        buf_putc (&r->line, data[i]);
        r->is_over = r->line.len > KEPT_LIMIT_BYTES;
    }
}

void
provider_usage_end (struct provider_usage_reader *r)
{
    if (r->is_over || ! r->line.len)
        return;
    if (r->is_events)
        take_line (r);
    else
        take_json (r, r->line.data, r->line.len);
}

void
provider_usage_free (struct provider_usage_reader *r)
{
    buf_free (&r->line);
}
