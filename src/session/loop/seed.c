/* SPDX-License-Identifier: Apache-2.0 */
#include "session/loop/seed.h"

#include "base/alloc.h"
#include "door/tasks/tasks.h"
#include "session/hooks/hook_messages.h"
#include "session/loop/compaction.h"
#include "session/state/session.h"

#include <string.h>

#define BUDGET_DEFAULT 0.10
#define MARGIN_DEFAULT 0.10
#define OVERFLOW_LIMIT 3 /* times the budget */

static uint64_t
seed_budget (const struct session *s)
{
    const struct context *c = s->manifest->context;
    double share = c && c->seed_budget.is_set ? c->seed_budget.value : BUDGET_DEFAULT;
    return (uint64_t)((double)s->choices.primary.input_budget * share);
}

static double
margin_of (const struct session *s)
{
    const struct context *c = s->manifest->context;
    return c && c->seed_overflow_margin.is_set ? c->seed_overflow_margin.value : MARGIN_DEFAULT;
}

static uint64_t
tokens_of (struct message_list *list)
{
    uint64_t total = 0;
    for (size_t i = 0; i < list->len; i++)
        total += message_tokens (list->items[i]);
    return total;
}

/* A seed's messages are new ones; where they came from stays known. */
static void
take (const struct hook_messages *given, struct message_list *list)
{
    for (size_t i = 0; i < given->len; i++) {
        struct message *m = hook_message_take (&given->items[i]);
        if (! m)
            continue;
        if (! m->source_id && given->items[i].id)
            m->source_id = x_strdup (given->items[i].id);
        free (m->id);
        m->id = x_strdup (id_new ("msg_").text);
        m->inserted_by = x_strdup ("seed-context");
        message_list_add (list, m);
    }
}

/* Moves the first <count> messages to another list. */
static void
move_front (struct message_list *from, size_t count, struct message_list *to)
{
    for (size_t i = 0; i < count; i++)
        message_list_add (to, from->items[i]);
    from->len -= count;
    memmove (from->items, from->items + count, from->len * sizeof (*from->items));
}

/* How many of the oldest must go so that the rest fits beside <taken> tokens. */
static size_t
surplus (struct message_list *list, uint64_t taken, uint64_t budget)
{
    uint64_t total = taken + tokens_of (list);
    size_t count = 0;
    while (count < list->len && total > budget)
        total -= message_tokens (list->items[count++]);
    return count;
}

static void
trim (struct message_list *list, uint64_t taken, uint64_t budget)
{
    _cleanup_messages_ struct message_list dropped = { 0 };
    move_front (list, surplus (list, taken, budget), &dropped);
}

/* The front that does not fit becomes what compaction hooks make of it. False: they made nothing
 * that fits. */
static bool
summarise (struct session *s, struct running_task *t, struct message_list *seed, uint64_t budget)
{
    _cleanup_arena_ struct arena *arena = arena_new ();
    _cleanup_messages_ struct message_list front = { 0 }, summary = { 0 };
    struct hook_messages given;
    const char *hook, *failure;
    size_t count = surplus (seed, 0, budget);
    for (size_t i = 0; i < count; i++)
        message_list_add (&front, seed->items[i]);
    bool is_answered =
        compaction_ask (s, t, &front, tokens_of (&front), arena, &given, &hook, &failure);
    front.len = 0; /* still the seed's */
    if (! is_answered || ! given.len)
        return false;
    take (&given, &summary);
    uint64_t taken = tokens_of (&summary);
    if (! summary.len || taken > budget)
        return false;
    _cleanup_messages_ struct message_list dropped = { 0 };
    move_front (seed, count, &dropped);
    trim (seed, taken, budget);
    for (size_t i = 0; i < seed->len; i++)
        message_list_add (&summary, seed->items[i]);
    seed->len = 0;
    struct message_list empty = *seed;
    *seed = summary;
    summary = empty;
    return true;
}

/* Why a seed is rejected, NULL: it is not. */
static const char *
rejection (const struct session *s, struct message_list *seed, uint64_t total, uint64_t budget)
{
    if (s->rooms.harness) /* the conversation is its own */
        return "unsupported_transport";
    if (! budget)
        return "no_budget";
    for (size_t i = 0; i < seed->len; i++)
        if (message_tokens (seed->items[i]) > budget)
            return "message_over_budget";
    return total > budget && total - budget > OVERFLOW_LIMIT * budget ? "overflow_over_limit"
                                                                      : NULL;
}

static const char *
fit (struct session *s, struct running_task *t, struct message_list *seed, uint64_t total,
     uint64_t budget)
{
    if (total <= budget)
        return "seeded";
    bool is_near = (double)(total - budget) <= margin_of (s) * (double)budget;
    if (! is_near && summarise (s, t, seed, budget))
        return "compacted";
    trim (seed, 0, budget);
    return "trimmed";
}

static void
judge (struct session *s, struct running_task *t, const struct hook_answer *answer)
{
    uint64_t budget = seed_budget (s);
    take (&answer->output->messages, &t->seed);
    uint64_t total = tokens_of (&t->seed);
    const char *reason = rejection (s, &t->seed, total, budget);
    if (reason)
        message_list_clear (&t->seed);
    const char *outcome = reason ? "rejected" : fit (s, t, &t->seed, total, budget);
    _cleanup_strv_ struct strv ids = { 0 };
    for (size_t i = 0; i < t->seed.len; i++)
        strv_push (&ids, t->seed.items[i]->id);
    static char *const none[] = { NULL };
    TRACE (s->trace, NULL, context_seed, .task_id = t->task->id, .hook_name = answer->hook_name,
           .tokens = tokens_of (&t->seed), .proposed_tokens = total, .budget_tokens = budget,
           .outcome = outcome, .reason = reason, .message_ids = ids.len ? ids.items : none);
    if (reason)
        TRACE (s->trace, NULL, hook_dispatch_error, .hook_name = answer->hook_name,
               .event = "on-task-start", .arm = "seed-rejected");
}

/* Tokens of what the conversation held before this task. */
static uint64_t
prior_tokens (struct session *s, struct running_task *t)
{
    _cleanup_messages_ struct message_list list = { 0 };
    if (s->policy->lifecycle.conversation.value != CONVERSATION_THREADED &&
        s->asked->resume.mode == RESUME_NONE)
        return 0;
    conversation_load (t->record, &s->fence_word, &list);
    return tokens_of (&list);
}

void
seed_ask (struct session *s, struct running_task *t, uint64_t input_bytes)
{
    if (! hooks_watch (s, HOOK_ON_TASK_START))
        return;
    _cleanup_arena_ struct arena *arena = arena_new ();
    struct hook_answers answers;
    const struct hook_event event = { .kind = HOOK_ON_TASK_START,
                                      .task_start = { .task_id = t->task->id,
                                                      .context_id = t->task->context_id,
                                                      .source = t->task->source,
                                                      .input_bytes = input_bytes,
                                                      .budget_tokens = seed_budget (s),
                                                      .context_window = s->choices.primary.window,
                                                      .prior_tokens = prior_tokens (s, t) } };
    hooks_tell (s, t, &event, HOOK_SEED_CONTEXT, arena, &answers);
    if (answers.len)
        judge (s, t, &answers.items[0]);
}

void
seed_place (struct running_task *t)
{
    struct message_list whole = { 0 };
    if (! t->seed.len)
        return;
    for (size_t i = 0; i < t->seed.len; i++) {
        message_list_add (&whole, t->seed.items[i]);
        conversation_append_one (t->record, t->seed.items[i]);
    }
    for (size_t i = 0; i < t->list.len; i++)
        message_list_add (&whole, t->list.items[i]);
    t->seed.len = t->list.len = 0;
    message_list_clear (&t->seed);
    message_list_clear (&t->list);
    t->list = whole;
}
