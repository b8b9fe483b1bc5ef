/* SPDX-License-Identifier: Apache-2.0
 *
 * The host of a native process driver. See process_host.h.
 */
#include "tests/native/process_host.h"
#include "tests/native/track_memory.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the driver keeps, made by state.h. */
extern char __start_mur_state[], __stop_mur_state[];

static size_t answers, ends;

/* --- what must hold --- */

static void
expect_text (const char *text)
{
    assert (text == NULL || mur_utf8_valid (text, strlen (text)));
}

/* Whole lines of JSON. */
static void
expect_lines (const char *bytes, size_t len)
{
    assert (len > 0 && bytes[len - 1] == '\n');
    for (size_t at = 0; at < len;) {
        const char *end = memchr (bytes + at, '\n', len - at);
        size_t line = (size_t)(end - bytes) - at;
        bool is_object = bytes[at] == '{' && mur_json_check (bytes + at, line, NULL);
        if (! is_object)
            fprintf (stderr, "no JSON: %.*s\n", (int)line, bytes + at);
        assert (is_object);
        at = (size_t)(end - bytes) + 1;
    }
}

/* The parts with words that try to break out between them. */
static void
expect_parts (const char *const *parts, size_t count)
{
    struct mur_text whole = { 0 };
    for (size_t i = 0; i < count; i++) {
        mur_text_puts (&whole, parts[i]);
        if (i + 1 < count)
            mur_text_json (&whole, "\"}]\n\\ it's \t said");
    }
    expect_lines (whole.data, whole.len);
    mur_text_free (&whole);
}

/* --- the plan --- */

struct mur_plan {
    bool is_refused;
};

void
mur_plan_arg (struct mur_plan *plan, const char *arg)
{
    (void)plan;
    assert (arg != NULL);
    expect_text (arg);
}

void
mur_plan_env (struct mur_plan *plan, const char *name, const char *value)
{
    (void)plan;
    assert (name != NULL && value != NULL);
    expect_text (name);
    expect_text (value);
}

void
mur_plan_file (struct mur_plan *plan, const char *name, const char *contents, size_t len)
{
    (void)plan;
    expect_text (name);
    assert (mur_utf8_valid (contents, len));
}

void
mur_plan_stdin (struct mur_plan *plan, const char *bytes, size_t len, bool stays_open)
{
    (void)plan;
    if (stays_open)
        expect_lines (bytes, len);
}

void
mur_plan_interrupt (struct mur_plan *plan, const char *bytes, size_t len)
{
    (void)plan;
    (void)bytes;
    (void)len;
}

void
mur_plan_refuse (struct mur_plan *plan, const char *format, ...)
{
    (void)format;
    plan->is_refused = true;
}

/* --- events --- */

void
mur_event_session (const char *id, const char *auth, const char *model)
{
    expect_text (id);
    assert (auth != NULL);
    expect_text (model);
}

void
mur_event_text_delta (const char *text)
{
    expect_text (text);
}

void
mur_event_text (const char *text)
{
    expect_text (text);
}

void
mur_event_thinking_delta (const char *text)
{
    expect_text (text);
}

void
mur_event_thinking (const char *text)
{
    expect_text (text);
}

void
mur_event_call_started (const char *id, const char *name)
{
    expect_text (id);
    expect_text (name);
}

void
mur_event_call_bytes (const char *id, uint64_t total_bytes)
{
    expect_text (id);
    (void)total_bytes;
}

void
mur_event_call (const char *id, const char *name, const char *input)
{
    expect_text (id);
    expect_text (name);
    expect_text (input);
}

void
mur_event_result (const char *id, const char *output, bool is_error)
{
    expect_text (id);
    expect_text (output);
    (void)is_error;
}

void
mur_event_retry (uint32_t attempt, const char *reason)
{
    (void)attempt;
    expect_text (reason);
}

void
mur_event_usage (const struct mur_process_usage *usage)
{
    assert (usage->input >= -1 && usage->output >= -1);
}

void
mur_event_note (const char *text)
{
    assert (text != NULL);
    expect_text (text);
}

void
mur_event_reply (const char *bytes, size_t len)
{
    answers++;
    expect_lines (bytes, len);
}

void
mur_event_interrupt (const char *bytes, size_t len)
{
    expect_lines (bytes, len);
}

void
mur_event_permission (const struct mur_permission *p)
{
    answers++;
    expect_text (p->id);
    expect_text (p->tool);
    expect_text (p->command);
    assert (p->tool != NULL);
    assert (p->input == NULL ||
            (p->input[0] == '{' && mur_json_check (p->input, strlen (p->input), NULL)));
    expect_lines (p->allow, strlen (p->allow));
    expect_parts (p->refuse, 2);
}

void
mur_event_questions (const struct mur_question *questions, size_t count, const char *const *answer,
                     const char *const refuse[2])
{
    answers++;
    for (size_t i = 0; i < count; i++) {
        assert (questions[i].text != NULL);
        expect_text (questions[i].text);
        for (size_t k = 0; questions[i].options != NULL && questions[i].options[k] != NULL; k++)
            expect_text (questions[i].options[k]);
    }
    expect_parts (answer, count + 1);
    expect_parts (refuse, 2);
}

void
mur_event_turn_end (const char *answer)
{
    ends++;
    assert (answer != NULL);
    expect_text (answer);
}

void
mur_event_turn_failed (enum mur_turn_failure kind, const char *format, ...)
{
    struct mur_text text = { 0 };
    va_list arguments;
    ends++;
    assert (kind <= MUR_TURN_OTHER);
    va_start (arguments, format);
    mur_text_vprintf (&text, format, arguments);
    va_end (arguments);
    expect_text (text.data);
}

/* --- a run --- */

/* The section begins as zeros. Its variables have the sanitizer's room between them, which is
 * written, too. */
__attribute__ ((no_sanitize ("address"))) static void
forget (void)
{
    for (volatile char *at = __start_mur_state; at < __stop_mur_state; at++)
        *at = 0;
}

bool
native_process_begin (const struct native_run *run)
{
    static const char *const tools[] = { "files", NULL };
    static const struct mur_bridge bridge = { "murmur", "http://127.0.0.1:1/bridge", "token",
                                              tools };
    ends = 0;
    struct mur_plan plan = { 0 };
    struct mur_harness harness = { 0 };
    mur_process_describe (&harness);
    assert (harness.harness != NULL && harness.binary != NULL);
    struct mur_launch launch = {
        .model = "some-model",
        .system_prompt = "be brief",
        .config = run->config != NULL ? mur_json_parse (run->config, strlen (run->config)) : NULL,
        .bridge = run->has_bridge ? &bridge : NULL,
        .session_id = "0f8fad5b-d9cb-469f-a165-70867728950e",
        .is_resumed = run->is_resumed,
        .harness_version = run->version,
        .task = "do \"it\"\nwell",
    };
    mur_process_launch (&launch, &plan);
    return ! plan.is_refused;
}

size_t
native_process_line (const char *line, size_t len)
{
    answers = 0;
    mur_process_line (line, len);
    return answers;
}

void
native_process_end (const char *stderr_tail)
{
    ends = 0;
    mur_process_exit (&(struct mur_exit){ .code = 1, .stderr_tail = stderr_tail });
    assert (ends == 1);
    track_free_all ();
    forget ();
}
