/* SPDX-License-Identifier: Apache-2.0
 *
 * Tool: runs {"do": "lines"} as a probe (../probe.h) and answers with the outcome.
 *
 * - emit TEXT, think TEXT, started ID NAME, bytes ID N, ask PROMPT, input, log
 * - fail TEXT, error TEXT, summary TEXT, nothing, truncated, meta KEY VALUE
 */
#include "probe.h"

#include "guest.h"

static struct {
    const struct mur_input *in;
    struct mur_result *out;
    bool says_nothing;
} call;

static void
emit (struct mur_text *out, char *rest)
{
    (void)out;
    mur_emit (rest, strlen (rest));
}

static void
think (struct mur_text *out, char *rest)
{
    (void)out;
    mur_emit_thinking (rest, strlen (rest));
}

static void
started (struct mur_text *out, char *rest)
{
    char *name = probe_split (rest);
    (void)out;
    mur_call_started (rest, name);
}

static void
bytes (struct mur_text *out, char *rest)
{
    char *count = probe_split (rest);
    (void)out;
    mur_call_bytes (rest, strtoull (count, NULL, 10));
}

static void
ask (struct mur_text *out, char *rest)
{
    guest_string_t prompt = { (uint8_t *)rest, strlen (rest) }, answer;
    murmur_task_task_request_input (&prompt, &answer);
    mur_text_printf (out, "answer: %.*s\n", (int)answer.len, (const char *)answer.ptr);
}

static void
input (struct mur_text *out, char *rest)
{
    (void)rest;
    mur_text_printf (out, "%s\n", call.in->data);
}

static void
log_line (struct mur_text *out, char *rest)
{
    (void)rest;
    mur_text_printf (out, "log: %s\n", call.in->log_path != NULL ? call.in->log_path : "none");
}

static void
fail (struct mur_text *out, char *rest)
{
    mur_text_printf (out, "%s\n", rest);
    call.out->status = MUR_FAILED;
}

static void
error (struct mur_text *out, char *rest)
{
    mur_text_printf (out, "%s\n", rest);
    call.out->status = MUR_ERROR;
}

static void
summary (struct mur_text *out, char *rest)
{
    (void)out;
    call.out->summary = mur_format ("%s", rest);
}

static void
nothing (struct mur_text *out, char *rest)
{
    (void)out;
    (void)rest;
    call.says_nothing = true;
}

static void
truncated (struct mur_text *out, char *rest)
{
    (void)out;
    (void)rest;
    call.out->truncated = true;
}

static void
meta (struct mur_text *out, char *rest)
{
    char *value = probe_split (rest);
    (void)out;
    mur_metadata (call.out, rest, value);
}

static const struct probe_word words[] = {
    { "emit", emit },   { "think", think },     { "started", started }, { "bytes", bytes },
    { "ask", ask },     { "input", input },     { "log", log_line },    { "fail", fail },
    { "error", error }, { "summary", summary }, { "nothing", nothing }, { "truncated", truncated },
    { "meta", meta },   { NULL, NULL },
};

void
mur_tool (const struct mur_input *in, struct mur_result *out)
{
    struct mur_text text = { 0 };
    char *script = mur_json_text (in->json, mur_json_get (in->json, 0, "do"));
    if (script == NULL) {
        mur_failed (out, "do: a string is needed");
        return;
    }
    call.in = in;
    call.out = out;
    probe_run (&text, script, words);
    enum mur_status status = out->status;
    if (! call.says_nothing)
        mur_passed_text (out, &text);
    out->status = status;
}
