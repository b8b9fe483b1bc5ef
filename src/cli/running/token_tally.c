/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/running/token_tally.h"

#include "base/alloc.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define TRACE_READ_MAX (4 * 1024 * 1024)

void
token_tally_open (struct token_tally *t, const char *records_dir)
{
    _cleanup_free_ char *trace = x_asprintf ("%s/trace.jsonl", records_dir);
    *t = (struct token_tally){ .fd = open (trace, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) };
}

/* What is in a request counts against the context, whoever held it. */
static void
take_inference (struct token_tally *t, const json_t *event)
{
    /* A harness reports its provider's counts, and nothing of ours is beside them. */
    bool is_of_harness = ! json_object_get (event, "max_output_tokens");
    const char *input = is_of_harness ? "input_tokens" : "input_tokens_actual";
    const char *output = is_of_harness ? "output_tokens" : "output_tokens_actual";
    const char *const held[] = { input, "cached_tokens", "cache_write_tokens", output };
    uint64_t tokens, context = 0;
    for (size_t i = 0; i < ARRAY_LEN (held); i++)
        if (json_get_u64 (event, held[i], &tokens))
            context += tokens;
    if (json_get_u64 (event, input, &tokens))
        t->input += tokens;
    if (json_get_u64 (event, output, &tokens))
        t->output += tokens;
    /* One that failed was asked and spent nothing. */
    bool has_failed = str_eq (json_get_string (event, "decision"), "error");
    bool counts = ! has_failed || is_of_harness;
    if (counts && json_get_u64 (event, "input_tokens", &tokens))
        t->counted_input += tokens;
    if (counts && json_get_u64 (event, "output_tokens", &tokens))
        t->counted_output += tokens;
    if (context)
        t->context = context;
    if (json_get_u64 (event, "input_budget", &tokens))
        t->budget = tokens;
}

static void
take_line (struct token_tally *t)
{
    const char *line = t->line.data ? t->line.data : "";
    bool is_start = ! t->start && strstr (line, "\"session_start\"");
    if (is_start || strstr (line, "\"inference\"")) {
        _cleanup_json_ json_t *event = json_loads (line, 0, NULL);
        if (str_eq (json_get_string (event, "event_type"), "inference"))
            take_inference (t, event);
        if (is_start && str_eq (json_get_string (event, "event_type"), "session_start"))
            t->start = json_incref (event);
    }
    buf_truncate (&t->line, 0);
}

void
token_tally_read (struct token_tally *t)
{
    char piece[65536];
    ssize_t len;
    for (size_t total = 0; t->fd >= 0 && total < TRACE_READ_MAX; total += (size_t)len) {
        len = read (t->fd, piece, sizeof (piece));
        if (len <= 0)
            return;
        for (const char *at = piece, *end = piece + len; at < end;) {
            const char *stop = memchr (at, '\n', (size_t)(end - at));
            buf_append (&t->line, at, (size_t)((stop ? stop : end) - at));
            if (! stop)
                break;
            take_line (t);
            at = stop + 1;
        }
    }
}

/* 1234567 as "1,234,567". */
static void
put_grouped (struct buf *out, uint64_t n)
{
    char digits[24];
    int len = snprintf (digits, sizeof (digits), "%" PRIu64, n);
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            buf_putc (out, ',');
        buf_putc (out, digits[i]);
    }
}

char *
token_tally_words (void *tally)
{
    struct token_tally *t = tally;
    if (t->fd < 0)
        return NULL;
    token_tally_read (t);
    struct buf words = { 0 };
    put_grouped (&words, t->input);
    buf_puts (&words, " tokens in, ");
    put_grouped (&words, t->output);
    buf_puts (&words, " out");
    return buf_steal (&words);
}

char *
token_tally_status (struct token_tally *t)
{
    struct buf words = { 0 };
    _cleanup_free_ char *spent = token_tally_words (t);
    buf_puts (&words, spent ? spent : "");
    if (t->context) {
        buf_puts (&words, ", context ");
        put_grouped (&words, t->context);
    }
    if (t->context && t->budget)
        buf_printf (&words, " (%" PRIu64 " %%)", t->context * 100 / t->budget);
    return buf_steal (&words);
}

void
token_tally_clear (struct token_tally *t)
{
    if (t->fd >= 0)
        close (t->fd);
    buf_free (&t->line);
    json_decref (t->start);
}
