/* SPDX-License-Identifier: Apache-2.0 */
#include "session/conversation/request.h"
#include "base/json_write.h"

#include "base/alloc.h"
#include "base/tokens.h"

#include <string.h>

#define CACHE_KEY_MAX  64
#define CACHE_KEY_HEAD 47

char *
request_cache_key (const char *name, const char *version, const char *context_id)
{
    char *key = x_asprintf ("%s:%s:%s", name, version, context_id);
    size_t len = strlen (key);
    if (len <= CACHE_KEY_MAX)
        return key;
    char sha[SHA256_HEX_LEN + 1];
    sha256_hex (key, len, sha);
    char *cut = x_asprintf ("%.*s:%.16s", (int)utf8_cut (key, len, CACHE_KEY_HEAD), key, sha);
    free (key);
    return cut;
}

void
request_init (struct request *r, const char *model, char *tools, char *system, const char *name,
              const char *version, const char *context_id)
{
    *r = (struct request){ 0 };
    r->model = x_strdup (model);
    r->tools = tools;
    r->system = system;
    r->cache_key = request_cache_key (name, version, context_id);
    sha256_hex (system, strlen (system), r->system_sha);
    sha256_hex (tools, strlen (tools), r->tools_sha);
}

void
request_set_tools (struct request *r, char *tools)
{
    free (r->tools);
    r->tools = tools;
    sha256_hex (tools, strlen (tools), r->tools_sha);
    r->fixed_tokens = 0;
}

void
request_set_reader (struct request *r, const struct request_reader *reader)
{
    bool is_same = str_eq (r->reader.driver, reader->driver) && str_eq (r->model, reader->model);
    r->reader = *reader;
    if (is_same)
        return;
    free (r->model);
    r->model = x_strdup (reader->model);
    r->fixed_tokens = 0;
    request_forget (r);
}

struct message *
request_view (const struct request *r, struct message *m)
{
    const struct request_reader *reader = &r->reader;
    if (! reader->driver || m->role != MESSAGE_ASSISTANT)
        return m;
    bool says = m->produced_by_driver != NULL;
    const char *driver = says ? m->produced_by_driver : reader->primary_driver,
               *model = says ? m->produced_by_model : reader->primary_model;
    return str_eq (driver, reader->driver) && str_eq (model, reader->model)
               ? m
               : message_without_thinking (m);
}

void
request_free (struct request *r)
{
    free (r->model);
    free (r->tools);
    free (r->system);
    free (r->cache_key);
    free (r->continuation_id);
    buf_free (&r->text);
    *r = (struct request){ 0 };
}

static void
request_append (struct buf *b, const char *key, const char *value)
{
    buf_printf (b, "\"%s\":", key);
    json_append_string (b, value, strlen (value));
}

/* Everything before the first message. */
static void
append_head (struct request *r)
{
    buf_truncate (&r->text, 0);
    buf_putc (&r->text, '{');
    if (r->continuation_id) {
        request_append (&r->text, "continuation_id", r->continuation_id);
        buf_putc (&r->text, ',');
    }
    buf_printf (&r->text, "\"max_tokens\":%llu,\"messages\":[", (unsigned long long)r->max_tokens);
    r->messages_end = r->text.len;
    r->count = 0;
    r->has_messages = false;
}

static void
append_tail (struct request *r)
{
    struct buf *b = &r->text;
    buf_puts (b, "],");
    request_append (b, "model", r->model);
    buf_puts (b, ",\"params\":{},");
    request_append (b, "prompt_cache_key", r->cache_key);
    buf_putc (b, ',');
    request_append (b, "system", r->system);
    buf_puts (b, ",\"tools\":");
    buf_puts (b, r->tools);
    buf_putc (b, '}');
}

/* True when the text already holds the list from <first> on, up to some message, under the same
 * head. */
static bool
is_prefix (const struct request *r, const struct message_list *list, size_t first,
           uint64_t max_tokens, const char *continuation_id)
{
    return r->text.len && r->first == first && first + r->count <= list->len &&
           r->max_tokens == max_tokens && str_eq (r->continuation_id, continuation_id);
}

void
request_build (struct request *r, struct message_list *list, size_t first, uint64_t max_tokens,
               const char *continuation_id)
{
    if (! is_prefix (r, list, first, max_tokens, continuation_id)) {
        char *copy = continuation_id ? x_strdup (continuation_id) : NULL;
        free (r->continuation_id);
        r->continuation_id = copy;
        r->max_tokens = max_tokens;
        r->first = first;
        append_head (r);
    }
    buf_truncate (&r->text, r->messages_end);
    for (size_t i = first + r->count; i < list->len; i++) {
        const struct message *m = request_view (r, list->items[i]);
        r->count++;
        if (! m)
            continue;
        if (r->has_messages)
            buf_putc (&r->text, ',');
        r->has_messages = true;
        buf_append (&r->text, m->wire, m->wire_len);
    }
    r->messages_end = r->text.len;
    append_tail (r);
}

void
request_forget (struct request *r)
{
    buf_truncate (&r->text, 0);
    r->count = 0;
}

uint64_t
request_tokens (struct request *r, struct message_list *list)
{
    if (! r->fixed_tokens) {
        struct request bare = { .model = r->model,
                                .tools = r->tools,
                                .system = r->system,
                                .cache_key = r->cache_key,
                                .max_tokens = r->max_tokens };
        append_head (&bare);
        append_tail (&bare);
        r->fixed_tokens = tokens_count (bare.text.data, bare.text.len);
        buf_free (&bare.text);
    }
    uint64_t total = r->fixed_tokens;
    for (size_t i = 0; i < list->len; i++) {
        struct message *m = request_view (r, list->items[i]);
        total += m ? message_tokens (m) : 0;
    }
    return total;
}
