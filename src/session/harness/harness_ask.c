/* SPDX-License-Identifier: Apache-2.0 */
#include "session/harness/harness_ask.h"

#include "base/alloc.h"
#include "base/json_write.h"
#include "door/tasks/intake.h"
#include "session/calls/approvals.h"
#include "session/harness/harness_tape.h"
#include "session/state/session.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

void
harness_note (struct harness_run *run, const char *text)
{
    _cleanup_free_ char *clean = redactor_apply (run->session->redactor, text);
    TRACE (run->session->trace, NULL, harness_note, .task_id = run->task->task->id, .text = clean);
}

/* --- the answer --- */

/* The parts with the values, as JSON strings, between them. */
static void
write_parts (struct harness_run *run, const json_t *parts, const struct strv *values)
{
    _cleanup_buf_ struct buf out = { 0 };
    for (size_t i = 0; i < json_array_size (parts); i++) {
        buf_puts (&out, json_string_value (json_array_get (parts, i)));
        if (i + 1 < json_array_size (parts) && i < values->len)
            json_append_string (&out, values->items[i], strlen (values->items[i]));
    }
    if (out.len)
        harness_tape_write (run, out.data, out.len);
}

static void
write_refusal (struct harness_run *run, const json_t *asked, const char *why)
{
    _cleanup_strv_ struct strv reason = { 0 };
    strv_push (&reason, why);
    write_parts (run, json_object_get (asked, "refuse"), &reason);
}

/* --- may it --- */

static void
keep_open (struct harness_run *run, const struct call *call, struct call_outcome *o)
{
    x_grow (run->asked.items, run->asked.len, run->asked.cap);
    run->asked.items[run->asked.len++] =
        (struct asked_call){ x_strdup (call->id), x_strdup (call->input_text), *o };
    *o = (struct call_outcome){ 0 };
}

/* Some ask twice about one call: before it, and when their own mode does not know. A third time is
 * a call of its own. */
static bool
was_approved (struct harness_run *run, const struct call *call)
{
    for (size_t i = 0; call->id[0] && i < run->asked.len; i++) {
        struct asked_call *c = &run->asked.items[i];
        if (! c->outcome.is_approved || ! str_eq (c->id, call->id) ||
            ! str_eq (c->input_text, call->input_text))
            continue;
        c->outcome.is_approved = false;
        return true;
    }
    return false;
}

void
harness_ask_end (struct harness_run *run, const char *id)
{
    for (size_t i = run->asked.len; i-- > 0;) {
        struct asked_call *c = &run->asked.items[i];
        if (id && ! str_eq (c->id, id))
            continue;
        approvals_end (run->session, &c->outcome);
        call_outcome_clear (&c->outcome);
        free (c->id);
        free (c->input_text);
        *c = run->asked.items[--run->asked.len];
    }
}

/* In a run that is served, as it was answered then. */
static bool
may_go_on (struct harness_run *run, const struct call *call, struct call_outcome *o)
{
    bool is_allowed;
    if (harness_tape_next_word (run, &is_allowed, &o->text))
        return is_allowed;
    is_allowed = approvals_allow (run->session, run->task, call, o);
    harness_tape_word (run, is_allowed, o->text.data);
    return is_allowed;
}

static void
ask_permission (struct harness_run *run, const json_t *asked)
{
    struct running_task *t = run->task;
    const char *written = json_get_string (asked, "input"), *id = json_get_string (asked, "id");
    _cleanup_json_ json_t *input = written ? json_loads (written, 0, NULL) : NULL;
    _cleanup_free_ char *text = json_is_object (input) ? json_text (input, JSON_TEXT_SORTED)
                                                       : x_strdup (written ? written : "{}");
    const struct call call = {
        .turn = t->counts.turns,
        .id = id ? id : "",
        .name = json_get_string (asked, "tool") ? json_get_string (asked, "tool") : "tool",
        .input = input,
        .input_text = text,
        .by = "harness",
        .script = json_get_string (asked, "command"),
        .is_harness_asking = true,
        .only_reads = json_is_true (json_object_get (asked, "only_reads")),
        .is_asked_anyway = json_is_true (json_object_get (asked, "is_asked_anyway")),
    };
    _cleanup_outcome_ struct call_outcome o = { 0 };
    if (was_approved (run, &call) || may_go_on (run, &call, &o)) {
        write_parts (run, json_object_get (asked, "allow"), &(struct strv){ 0 });
        keep_open (run, &call, &o);
    } else {
        write_refusal (run, asked, o.text.data ? o.text.data : "it was not approved");
    }
    /* What could not be recorded was refused; it does not end the session. */
    mur_error_freep (&t->fatal);
    t->fatal = NULL;
}

/* --- what it wants to know --- */

static char *
words_of (const struct harness_run *run, const json_t *question)
{
    _cleanup_buf_ struct buf out = { 0 };
    const json_t *options = json_object_get (question, "options"), *option;
    const char *text = json_get_string (question, "text");
    size_t i;
    buf_printf (&out, "%s asks: %s", run->session->rooms.harness->is.harness, text ? text : "");
    json_array_foreach (options, i, option)
        buf_printf (&out, "\n  %zu. %s", i + 1, json_string_value (option));
    if (json_array_size (options))
        buf_puts (&out, "\nAnswer with a number, or in your own words.");
    return redactor_apply (run->session->redactor, out.data);
}

/* A number, or an option in another case, means that option; else the words are the answer. */
static const char *
chosen (const json_t *question, const char *said)
{
    const json_t *options = json_object_get (question, "options"), *option;
    _cleanup_free_ char *word = x_strdup (said + strspn (said, " \t\r\n"));
    size_t len = strlen (word), i;
    while (len && isspace ((unsigned char)word[len - 1]))
        word[--len] = '\0';
    bool is_number = len && strspn (word, "0123456789") == len;
    unsigned long number = strtoul (word, NULL, 10);
    json_array_foreach (options, i, option)
    {
        const char *label = json_string_value (option);
        if (is_number ? i + 1 == number : strcasecmp (label, word) == 0)
            return label;
    }
    return said;
}

/* The words in which nobody answered. */
static const char *
silence (bool has_timed_out)
{
    return has_timed_out ? "nobody answered in time" : "nobody answered";
}

/* In a run that is served, what was said then. */
static bool
said_then (struct harness_run *run, struct strv *answers, const char **why)
{
    _cleanup_buf_ struct buf text = { 0 };
    bool is_answered;
    if (! harness_tape_next_word (run, &is_answered, &text))
        return false;
    if (is_answered)
        strv_push (answers, text.data ? text.data : "");
    else
        *why = silence (str_eq (text.data, silence (true)));
    return true;
}

/* False: nobody answered, and <why> says so. */
static bool
ask_one (struct harness_run *run, const json_t *question, struct strv *answers, const char **why)
{
    struct session *s = run->session;
    if (said_then (run, answers, why))
        return ! *why;
    const struct opt_u64 *timeout = &s->policy->lifecycle.input_timeout_secs;
    _cleanup_free_ char *words = words_of (run, question);
    const struct question asked = { .text = words };
    _cleanup_ (question_reply_clear) struct question_reply reply = { 0 };
    bool was_mine = loop_lock_pause (&s->loop_lock);
    bool is_answered = registry_ask (s->registry, run->task->task, &asked,
                                     timeout->is_set ? timeout->value * 1000 : UINT64_MAX, &reply);
    loop_lock_resume (&s->loop_lock, was_mine);
    if (! is_answered) {
        *why = silence (reply.has_timed_out);
        harness_tape_word (run, false, *why);
        return false;
    }
    strv_push (answers, chosen (question, reply.text));
    harness_tape_word (run, true, answers->items[answers->len - 1]);
    _cleanup_free_ char *note =
        x_asprintf ("%s\nanswered%s%s: %s", words, reply.by ? " by " : "", reply.by ? reply.by : "",
                    answers->items[answers->len - 1]);
    harness_note (run, note);
    return true;
}

static void
ask_questions (struct harness_run *run, const json_t *asked)
{
    const json_t *questions = json_object_get (asked, "questions"), *question;
    _cleanup_strv_ struct strv answers = { 0 };
    const char *why = NULL;
    size_t i;
    json_array_foreach (questions, i, question)
    {
        if (! why && ! ask_one (run, question, &answers, &why))
            break;
    }
    if (why)
        write_refusal (run, asked, why);
    else
        write_parts (run, json_object_get (asked, "answer"), &answers);
}

void
harness_ask (struct harness_run *run, const char *text, size_t len)
{
    _cleanup_json_ json_t *asked = json_loadb (text, len, 0, NULL);
    if (! json_is_object (asked))
        harness_note (run, "the driver asked for what cannot be read");
    else if (json_object_get (asked, "questions"))
        ask_questions (run, asked);
    else
        ask_permission (run, asked);
}
