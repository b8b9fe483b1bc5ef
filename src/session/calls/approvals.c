/* SPDX-License-Identifier: Apache-2.0 */
#include "session/calls/approvals.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "door/tasks/intake.h"
#include "session/calls/approval_match.h"
#include "session/commands/shell.h"
#include "session/state/command_line.h"
#include "session/state/held_hosts.h"
#include "session/state/person.h"
#include "session/state/running_task.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#define SHOWN_BYTES 4000 /* of the call, in the question's words */
#define LOOK_MS     100

/* The answers a question takes, in the order they are offered. */
enum approval_answer { ANSWER_ONCE, ANSWER_SESSION, ANSWER_NO, ANSWER_NEVER, ANSWER_COUNT };
static const char *const answer_words[ANSWER_COUNT] = { "once", "session", "no", "never" };

/* What was said of a rule for the rest of the session; one for what was seen to fall under it, one
 * for what may. */
struct remembered {
    bool is_set, is_allowed;
    char *question_id;
};

struct approval_state {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_taken; /* some call is judged, or its question is open */
    /* Below: whoever has the turn. */
    struct remembered (*of)[2]; /* by rule; [1]: unseen. Behind the rules, <asking> */
    size_t len;
    struct strv asking; /* tools of a harness that asks by itself */
};

void
approvals_new (struct session *s)
{
    size_t len = s->policy->approvals.len;
    const struct inference *inference = s->manifest->inference;
    if (! len && ! (inference && inference->transport == TRANSPORT_PROCESS))
        return;
    s->rooms.approvals = x_new0 (struct approval_state);
    pthread_mutex_init (&s->rooms.approvals->lock, NULL);
    pthread_cond_init (&s->rooms.approvals->changed, NULL);
    s->rooms.approvals->len = len;
    s->rooms.approvals->of = x_calloc (len, sizeof *s->rooms.approvals->of);
}

void
approvals_free (struct session *s)
{
    struct approval_state *a = s->rooms.approvals;
    if (! a)
        return;
    for (size_t i = 0; i < a->len; i++) {
        free (a->of[i][0].question_id);
        free (a->of[i][1].question_id);
    }
    free (a->of);
    strv_free (&a->asking);
    pthread_cond_destroy (&a->changed);
    pthread_mutex_destroy (&a->lock);
    free (a);
    s->rooms.approvals = NULL;
}

/* --- one call at a time --- */

/* False when the task was cancelled before it was this call's turn. */
static bool
take_turn (struct session *s, struct running_task *t)
{
    struct approval_state *a = s->rooms.approvals;
    bool was_mine = loop_lock_pause (&s->loop_lock);
    pthread_mutex_lock (&a->lock);
    while (a->is_taken && ! cancel_is_raised (t->cancel)) {
        struct timespec until;
        clock_gettime (CLOCK_REALTIME, &until);
        until.tv_nsec += LOOK_MS * 1000000L;
        if (until.tv_nsec >= 1000000000L) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000L;
        }
        pthread_cond_timedwait (&a->changed, &a->lock, &until);
    }
    bool is_mine = ! a->is_taken;
    a->is_taken = true;
    pthread_mutex_unlock (&a->lock);
    loop_lock_resume (&s->loop_lock, was_mine);
    return is_mine;
}

static void
give_turn (struct session *s)
{
    pthread_mutex_lock (&s->rooms.approvals->lock);
    s->rooms.approvals->is_taken = false;
    pthread_cond_signal (&s->rooms.approvals->changed);
    pthread_mutex_unlock (&s->rooms.approvals->lock);
}

/* --- one question --- */

struct asking {
    struct session *s;
    struct running_task *t;
    const struct call *call;
    const struct approval_hits *hits;
    char id[ID_LEN + 1];
    char *what;  /* the call in words, secrets taken out */
    char *rules; /* "commands: git push; hosts: example.com" */
    struct question_reply reply;
    uint64_t waited_ms;
};

/* A rule as it is told: of the manifest, or that a harness asks by itself. */
struct told_rule {
    const char *kind, *text;
};

static struct told_rule
rule_of (const struct session *s, const struct approval_hit *hit)
{
    const struct approval_rules *rules = &s->policy->approvals;
    if (hit->rule >= rules->len)
        return (struct told_rule){ "harness",
                                   s->rooms.approvals->asking.items[hit->rule - rules->len] };
    const struct approval_rule *r = &rules->items[hit->rule];
    return (struct told_rule){ approval_kind_name (r->kind), r->text };
}

static char *
describe_rules (const struct session *s, const struct approval_hits *hits)
{
    struct buf out = { 0 };
    for (size_t i = 0; i < hits->len; i++) {
        const struct told_rule r = rule_of (s, &hits->items[i]);
        buf_printf (&out, "%s%s: %s%s", i ? "; " : "", r.kind, r.text,
                    hits->items[i].is_unseen ? " (it cannot be seen whether it does)" : "");
    }
    return buf_steal (&out);
}

static char *
describe_call (struct session *s, const struct call *call)
{
    _cleanup_free_ char *line = NULL;
    if (call->script)
        return redactor_apply (s->redactor, call->script);
    if (! session_artifact (s, call->name) && shell_is_offered (s, call->name)) {
        const char *command = json_get_string (call->input, "command");
        line = command_line_text (call->name, command ? command : "");
    }
    return redactor_apply (s->redactor, line ? line : call->input_text);
}

static char *
words_of (const struct asking *a)
{
    struct buf out = { 0 };
    size_t len = strlen (a->what), shown = utf8_cut (a->what, len, SHOWN_BYTES);
    buf_printf (&out, "%s asks before it is called: ", a->call->name);
    buf_append (&out, a->what, shown);
    if (shown < len)
        buf_printf (&out, " [%zu bytes more]", len - shown);
    buf_printf (&out, "\nAsked for by approvals: %s\nAnswer once, session, no or never.", a->rules);
    return buf_steal (&out);
}

static json_t *
data_of (const struct asking *a)
{
    const struct session *s = a->s;
    json_t *o = json_object (), *rules = json_array (), *answers = json_array ();
    for (size_t i = 0; i < a->hits->len; i++) {
        const struct told_rule r = rule_of (s, &a->hits->items[i]);
        json_array_append_new (rules, json_pack ("{s:s, s:s, s:b}", "kind", r.kind, "rule", r.text,
                                                 "unseen", a->hits->items[i].is_unseen));
    }
    for (size_t i = 0; i < ANSWER_COUNT; i++)
        json_array_append_new (answers, json_string (answer_words[i]));
    json_set_string (o, "kind", "approval");
    json_set_string (o, "question_id", a->id);
    json_set_string (o, "capsule", s->manifest->name);
    json_set_string (o, "session_id", s->id.text);
    json_set_string (o, "tool", a->call->name);
    json_set_string (o, "what", a->what);
    json_object_set_new (o, "rules", rules);
    json_object_set_new (o, "answers", answers);
    json_set_u64 (o, "timeout_secs", s->policy->approvals.timeout_secs);
    json_set_string (o, "on_timeout", s->policy->approvals.allows_on_timeout ? "once" : "no");
    return o;
}

static bool
record_question (struct asking *a)
{
    struct mur_error *err = NULL;
    if (TRACE (a->s->trace, &err, approval_requested, .turn = a->call->turn,
               .task_id = a->t->task->id, .question_id = a->id, .target = a->call->name,
               .what = a->what, .rules = a->rules,
               .timeout_secs = a->s->policy->approvals.timeout_secs))
        return true;
    a->t->fatal = err;
    return false;
}

static bool
record_answer (struct asking *a, const char *answer, bool is_allowed)
{
    struct mur_error *err = NULL;
    if (TRACE (a->s->trace, &err, approval_answered, .turn = a->call->turn,
               .task_id = a->t->task->id, .question_id = a->id, .target = a->call->name,
               .answer = answer, .is_allowed = is_allowed, .by = a->reply.by,
               .waited_ms = a->waited_ms))
        return true;
    a->t->fatal = err;
    return false;
}

static enum approval_answer
answer_of (const struct asking *a)
{
    for (int i = 0; i < ANSWER_COUNT; i++)
        if (str_eq (answer_words[i], a->reply.text))
            return (enum approval_answer)i;
    return ANSWER_NO;
}

static void
remember (struct asking *a, bool is_allowed)
{
    for (size_t i = 0; i < a->hits->len; i++) {
        const struct approval_hit *hit = &a->hits->items[i];
        struct remembered *r = &a->s->rooms.approvals->of[hit->rule][hit->is_unseen];
        free (r->question_id);
        *r = (struct remembered){ true, is_allowed, x_strdup (a->id) };
    }
}

/* Opens the hosts among what was approved. */
static void
open_hosts (struct session *s, const struct approval_hits *hits, bool is_for_session,
            struct call_outcome *out)
{
    for (size_t i = 0; i < hits->len; i++) {
        size_t rule = hits->items[i].rule;
        if (rule >= s->policy->approvals.len ||
            s->policy->approvals.items[rule].kind != APPROVAL_HOST)
            continue;
        held_hosts_open (s, rule, is_for_session);
        if (is_for_session)
            continue;
        x_grow (out->opened.rules, out->opened.len, out->opened.cap);
        out->opened.rules[out->opened.len++] = rule;
    }
}

static void
refuse (struct call_outcome *out, const struct call *call, const char *rules, const char *why)
{
    outcome_set_error (out,
                       "%s was not approved: %s. Nothing ran. It was asked about for approvals "
                       "(%s); the same by another way falls under the same rule.",
                       call->name, why, rules);
    out->is_refused = true;
}

void
approvals_refuse (struct call_outcome *out, const struct call *call, const char *rules,
                  const char *answer)
{
    static const struct {
        const char *answer, *why;
    } reasons[] = {
        { "no", "the answer was no" },
        { "never", "the answer was no, for the rest of this session" },
        { "timeout", "nobody answered in time" },
        { "canceled", "the task was stopped while it waited for the answer" },
    };
    for (size_t i = 0; i < ARRAY_LEN (reasons); i++)
        if (str_eq (reasons[i].answer, answer))
            refuse (out, call, rules, reasons[i].why);
}

/* What came of the question: what the model is told when it was no. */
static bool
settle (struct asking *a, struct call_outcome *out)
{
    const struct approval_rules *rules = &a->s->policy->approvals;
    if (! a->reply.text && ! a->reply.has_timed_out) {
        (void)record_answer (a, "canceled", false);
        a->t->end.wait_phase = "input";
        approvals_refuse (out, a->call, a->rules, "canceled");
        out->is_canceled = true;
        return false;
    }
    enum approval_answer answer = a->reply.text              ? answer_of (a)
                                  : rules->allows_on_timeout ? ANSWER_ONCE
                                                             : ANSWER_NO;
    bool is_allowed = answer == ANSWER_ONCE || answer == ANSWER_SESSION;
    if (! record_answer (a, a->reply.text ? answer_words[answer] : "timeout", is_allowed)) {
        refuse (out, a->call, a->rules, "the answer could not be recorded");
        return false;
    }
    if (answer == ANSWER_SESSION || answer == ANSWER_NEVER)
        remember (a, is_allowed);
    if (is_allowed)
        open_hosts (a->s, a->hits, answer == ANSWER_SESSION, out);
    else
        approvals_refuse (out, a->call, a->rules, a->reply.text ? answer_words[answer] : "timeout");
    return is_allowed;
}

static bool
ask (struct asking *a, struct call_outcome *out)
{
    struct session *s = a->s;
    a->rules = describe_rules (s, a->hits);
    if (! person_may_approve (s, a->t)) {
        refuse (out, a->call, a->rules, "there is nobody here who could be asked");
        return false;
    }
    memcpy (a->id, id_new ("apr_").text, sizeof a->id);
    a->what = describe_call (s, a->call);
    if (! record_question (a)) {
        refuse (out, a->call, a->rules, "the question could not be recorded");
        return false;
    }
    _cleanup_free_ char *text = words_of (a);
    _cleanup_json_ json_t *data = data_of (a);
    const struct question question = { text, data };
    uint64_t from_ms = clock_monotonic_ms ();
    bool was_mine = loop_lock_pause (&s->loop_lock);
    person_ask (s, a->t, &question, s->policy->approvals.timeout_secs * 1000, &a->reply);
    loop_lock_resume (&s->loop_lock, was_mine);
    a->waited_ms = clock_monotonic_ms () - from_ms;
    return settle (a, out);
}

/* --- what was answered before --- */

static bool
record_remembered (struct session *s, struct running_task *t, const struct call *call,
                   const struct approval_hit *hit, const struct remembered *r)
{
    const struct told_rule rule = rule_of (s, hit);
    _cleanup_free_ char *text = x_asprintf ("%s: %s", rule.kind, rule.text);
    struct mur_error *err = NULL;
    if (TRACE (s->trace, &err, approval_applied, .turn = call->turn, .task_id = t->task->id,
               .question_id = r->question_id, .target = call->name, .rule = text,
               .answer = r->is_allowed ? "session" : "never"))
        return true;
    t->fatal = err;
    return false;
}

/* Keeps in <hits> what must still be asked. False: an earlier answer forbids the call. */
static bool
apply_remembered (struct session *s, struct running_task *t, const struct call *call,
                  struct approval_hits *hits, struct call_outcome *out)
{
    size_t kept = 0;
    for (size_t i = 0; i < hits->len; i++) {
        const struct approval_hit hit = hits->items[i];
        const struct remembered *r = &s->rooms.approvals->of[hit.rule][hit.is_unseen];
        const struct approval_hits one = { (struct approval_hit *)(uintptr_t)&hit, 1 };
        _cleanup_free_ char *rules = describe_rules (s, &one);
        if (! r->is_set)
            hits->items[kept++] = hit;
        else if (! record_remembered (s, t, call, &hit, r) || ! r->is_allowed) {
            approvals_refuse (out, call, rules, "never");
            return false;
        }
    }
    hits->len = kept;
    return true;
}

/* A harness asks by itself: what is answered for the session holds for that tool of its. */
static void
add_asking (struct session *s, const struct call *call, struct approval_hits *hits)
{
    struct approval_state *a = s->rooms.approvals;
    const size_t rules = s->policy->approvals.len;
    size_t at = 0;
    while (at < a->asking.len && ! str_eq (a->asking.items[at], call->name))
        at++;
    if (at == a->asking.len) {
        strv_push (&a->asking, call->name);
        a->of = x_reallocarray (a->of, a->len + 1, sizeof *a->of);
        memset (a->of[a->len++], 0, sizeof *a->of);
    }
    hits->items[hits->len++] = (struct approval_hit){ .rule = rules + at };
}

/* --- the gate --- */

static bool
judge (struct session *s, struct running_task *t, const struct call *call, struct call_outcome *out)
{
    _cleanup_approval_hits_ struct approval_hits hits = { 0 };
    approval_match (s, call, &hits);
    if (! hits.len && call->is_asked_anyway)
        add_asking (s, call, &hits);
    out->is_approved = hits.len > 0; /* or it is refused below */
    if (! apply_remembered (s, t, call, &hits, out))
        return false;
    if (! hits.len)
        return true;
    struct asking a = { .s = s, .t = t, .call = call, .hits = &hits };
    bool is_allowed = ask (&a, out);
    question_reply_clear (&a.reply);
    free (a.what);
    free (a.rules);
    return is_allowed;
}

bool
approvals_allow (struct session *s, struct running_task *t, const struct call *call,
                 struct call_outcome *out)
{
    if (! s->rooms.approvals)
        return true;
    if (! take_turn (s, t)) {
        refuse (out, call, "another question was open", "the task was stopped");
        out->is_canceled = true;
        return false;
    }
    bool is_allowed = judge (s, t, call, out);
    give_turn (s);
    return is_allowed;
}

void
approvals_end (struct session *s, struct call_outcome *out)
{
    for (size_t i = 0; i < out->opened.len; i++)
        held_hosts_close (s, out->opened.rules[i]);
    out->opened.len = 0;
}
