/* SPDX-License-Identifier: Apache-2.0
 *
 * Scores as the conventions have them: an event gen_ai.evaluation.result each. They are known when
 * their task's span has left, so a span of their own below it carries them. A hook wrote the file:
 * lines that are no scores are passed over.
 */
#include "trace/export/gen_ai_internal.h"

#include "base/alloc.h"

#include <string.h>

#define SCORES_FILE        "hooks/eval.jsonl"
#define SCORES_LIMIT_BYTES (1u << 20)

static void
add_score (struct gen_ai *g, struct telemetry_span *s, const char *text, size_t len)
{
    _cleanup_json_ json_t *line = json_loadb (text, len, 0, NULL);
    const char *scorer = json_get_string (line, "scorer"),
               *result = json_get_string (line, "result");
    const json_t *score = json_object_get (line, "score");
    uint64_t ms = 0;
    if (! scorer || ! result || ! str_eq (json_get_string (line, "record_type"), "event_score"))
        return;
    if (! json_get_u64 (line, "ts", &ms) || ms * NS_PER_MS < s->start_ns)
        ms = s->start_ns / NS_PER_MS;
    struct attributes *a = span_event_add (s, "gen_ai.evaluation.result", ms * NS_PER_MS);
    if (! a)
        return;
    gen_ai_add_text (g, a, "gen_ai.evaluation.name", scorer);
    gen_ai_add_text (g, a, "gen_ai.evaluation.score.label", result);
    if (json_is_number (score))
        attributes_double (a, "gen_ai.evaluation.score.value", json_number_value (score));
    if (g->spec.content == GEN_AI_CONTENT_FULL)
        gen_ai_add_text (g, a, "gen_ai.evaluation.explanation", json_get_string (line, "reason"));
}

void
gen_ai_evaluations (struct gen_ai *g, const char *id, uint64_t ms)
{
    _cleanup_buf_ struct buf file = { 0 };
    if (! g->spec.records ||
        ! fs_read (g->spec.records, SCORES_FILE, SCORES_LIMIT_BYTES, &file, NULL))
        return;
    struct telemetry_span *s =
        gen_ai_span (g, "evaluation", SPAN_INTERNAL, "evaluation", g->task.context.span_id, ms, ms);
    span_id_of (id, "evaluation", s->id);
    for (const char *at = file.data, *end = at + file.len, *line_end; at < end; at = line_end + 1) {
        line_end = memchr (at, '\n', (size_t)(end - at));
        if (! line_end)
            break;
        add_score (g, s, at, (size_t)(line_end - at));
    }
    if (s->event_count)
        gen_ai_emit (g, s);
    else
        span_free (s);
}
