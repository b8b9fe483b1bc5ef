/* SPDX-License-Identifier: Apache-2.0 */
#include "session/loop/compaction.h"
#include "base/json_write.h"
#include "fs/paths.h"

#include "base/alloc.h"
#include "door/tasks/tasks.h"
#include "session/hooks/hook_messages.h"
#include "session/loop/going.h"
#include "session/state/session.h"
#include "session/task/attempt_end.h"

#include <string.h>

#define THRESHOLD_DEFAULT  0.98
#define PROMPT_LIMIT_BYTES ((size_t)16 * 1024 * 1024)

static const struct compaction *
block_of (const struct session *s)
{
    return s->manifest->inference ? s->manifest->inference->compaction : NULL;
}

static double
threshold_of (const struct session *s)
{
    const struct compaction *c = block_of (s);
    return c && c->threshold.is_set ? c->threshold.value : THRESHOLD_DEFAULT;
}

/* --- staging --- */

static bool
read_prompt (struct session *s, const struct compaction *c, struct mur_error **err)
{
    going_set_compaction_prompt (s, c->system_prompt);
    if (! c->system_prompt_file)
        return true;
    _cleanup_free_ char *path =
        c->system_prompt_file[0] == '/'
            ? x_strdup (c->system_prompt_file)
            : x_asprintf ("%s/%s", s->asked->file.dir, c->system_prompt_file);
    _cleanup_buf_ struct buf text = { 0 };
    _cleanup_error_ struct mur_error *caught = NULL;
    if (! fs_read_path (path, PROMPT_LIMIT_BYTES, &text, &caught))
        return mur_fail (err, E_RUN_009, "inference.compaction.system_prompt_file %s: %s", path,
                         caught->message);
    going_set_compaction_prompt (s, arena_strndup (s->arena, text.data ? text.data : "", text.len));
    return true;
}

static bool
check_cap (struct session *s, const struct compaction *c, struct mur_error **err)
{
    const struct choice *d = &s->choices.primary;
    const char *model = c->model ? c->model : d->model;
    if (! c->max_tokens.is_set)
        return true;
    for (size_t i = 0; i < d->model_cap_count; i++)
        if (str_eq (d->model_caps[i].model, model) && c->max_tokens.value > d->model_caps[i].cap)
            return mur_fail (err, E_RUN_054,
                             "inference.compaction.max_tokens (%llu) is above the %llu output "
                             "tokens driver %s lists for model %s",
                             (unsigned long long)c->max_tokens.value,
                             (unsigned long long)d->model_caps[i].cap, d->artifact->full_name,
                             model);
    if (d->window && c->max_tokens.value >= d->window)
        return mur_fail (err, E_RUN_055,
                         "no input budget is left for compaction: an output cap of %llu tokens "
                         "fills the context window of %llu",
                         (unsigned long long)c->max_tokens.value, (unsigned long long)d->window);
    return true;
}

bool
stage_compaction (struct session *s, struct mur_error **err)
{
    const struct compaction *c = block_of (s);
    if (s->asked->resume.mode == RESUME_COMPACT && ! session_has_compaction_hook (s))
        return mur_fail (err, E_RUN_018,
                         "--resume-mode compact: no artifact of this capsule hooks on-compaction");
    return ! c || (read_prompt (s, c, err) && check_cap (s, c, err));
}

/* --- asking --- */

static void
hand_out (const struct message_list *list, struct arena *arena, struct hook_messages *out)
{
    out->items = arena_new_array (arena, struct hook_message, list->len + 1);
    out->len = list->len;
    for (size_t i = 0; i < list->len; i++)
        hook_message_fill (list->items[i], arena, &out->items[i]);
}

bool
compaction_ask (struct session *s, struct running_task *t, const struct message_list *list,
                uint64_t tokens, struct arena *arena, struct hook_messages *out,
                const char **failed_hook, const char **failure)
{
    const struct compaction *c = block_of (s);
    struct hook_answers answers;
    struct hook_event event = { .kind = HOOK_ON_COMPACTION,
                                .compaction = { .session_tokens = tokens,
                                                .threshold = threshold_of (s),
                                                .model = c ? c->model : NULL,
                                                .system_prompt = going_compaction_prompt (s) } };
    *out = (struct hook_messages){ 0 };
    if (! hooks_watch (s, HOOK_ON_COMPACTION))
        return true;
    hand_out (list, arena, &event.compaction.messages);
    hooks_tell (s, t, &event, HOOK_REPLACE_CONTEXT, arena, &answers);
    *failed_hook = answers.failed_hook;
    *failure = answers.failure;
    if (answers.len)
        *out = answers.items[0].output->messages;
    return answers.failed_hook == NULL;
}

/* --- what came back --- */

/* Calls of assistant messages not answered yet; each must be answered once, later. */
static bool
pairs (const struct message_list *list)
{
    _cleanup_strv_ struct strv open = { 0 };
    for (size_t i = 0; i < list->len; i++) {
        const struct message *m = list->items[i];
        _cleanup_json_ json_t *wire = json_loadb (m->wire, m->wire_len, 0, NULL);
        const json_t *content = json_object_get (wire, "content");
        for (size_t b = 0; m->role == MESSAGE_ASSISTANT && b < json_array_size (content); b++) {
            const json_t *block = json_array_get (content, b);
            const char *id = json_get_string (block, "id");
            if (str_eq (json_get_string (block, "type"), "tool_call"))
                strv_push (&open, id ? id : "");
        }
        if (m->role != MESSAGE_TOOL)
            continue;
        const char *id = json_get_string (wire, "tool_call_id");
        size_t at = 0;
        while (at < open.len && ! str_eq (open.items[at], id))
            at++;
        if (at == open.len)
            return false;
        free (open.items[at]);
        open.items[at] = open.items[--open.len];
        open.items[open.len] = NULL;
    }
    return open.len == 0;
}

/* The same message as one that was handed out: it stays what it was. */
static bool
is_unchanged (const struct message *old, const struct message *m)
{
    return old->role == m->role && old->wire_len == m->wire_len &&
           memcmp (old->wire, m->wire, m->wire_len) == 0;
}

/* Takes an unchanged message out of the old list, so that it keeps all the runtime knows of it. */
static struct message *
reuse (struct message_list *old, struct message *m)
{
    long at = message_list_find (old, m->id);
    if (at < 0) {
        m->inserted_by = x_strdup ("replace-context");
        return m;
    }
    struct message *was = old->items[at];
    if (! is_unchanged (was, m)) {
        m->inserted_by = x_strdup ("replace-context");
        if (was->produced_by_driver)
            message_set_producer (m, was->produced_by_driver, was->produced_by_model);
        m->is_recorded = was->is_recorded; /* an id is never written twice */
        return m;
    }
    memmove (&old->items[at], &old->items[at + 1],
             (old->len - (size_t)at - 1) * sizeof (*old->items));
    old->len--;
    message_free (m);
    return was;
}

/* False: a tool message without its envelope was dropped or a call and its result do not pair. */
static bool
rebuild (const struct hook_messages *given, struct message_list *list)
{
    for (size_t i = 0; i < given->len; i++) {
        struct message *m = hook_message_take (&given->items[i]);
        if (m)
            message_list_add (list, m);
    }
    return list->len > 0 && pairs (list);
}

static void
insert_first (struct message_list *list, struct message *m)
{
    message_list_add (list, m);
    memmove (&list->items[1], &list->items[0], (list->len - 1) * sizeof (*list->items));
    list->items[0] = m;
}

static void
commit (struct session *s, struct running_task *t, struct message_list *fresh)
{
    struct message_list next = { 0 };
    for (size_t i = 0; i < fresh->len; i++)
        message_list_add (&next, reuse (&t->list, fresh->items[i]));
    fresh->len = 0;
    if (t->task_message_id && message_list_find (&next, t->task_message_id) < 0) {
        long at = message_list_find (&t->list, t->task_message_id);
        if (at >= 0) {
            struct message *task = t->list.items[at];
            memmove (&t->list.items[at], &t->list.items[at + 1],
                     (t->list.len - (size_t)at - 1) * sizeof (*t->list.items));
            t->list.len--;
            insert_first (&next, task);
        }
    }
    message_list_clear (&t->list);
    t->list = next;
    t->occupancy.has_provider_count = false;
    free (t->held.continuation_id);
    t->held.continuation_id = NULL;
    t->held.acknowledged = 0;
    t->occupancy.has_compacted = true;
    for (size_t i = 0; i < t->list.len; i++)
        if (! t->list.items[i]->is_recorded)
            conversation_append_one (t->record, t->list.items[i]);
    (void)s;
}

/* --- records --- */

static void
dump_summary (struct session *s, const struct hook_messages *given, uint64_t turn, uint64_t before,
              uint64_t after)
{
    const struct compaction *c = block_of (s);
    if (! c || ! c->dump_summaries.is_set || ! c->dump_summaries.value)
        return;
    _cleanup_buf_ struct buf text = { 0 }, line = { 0 };
    for (size_t i = 0; i < given->len; i++)
        buf_printf (&text, "%s%s", i ? "\n" : "", given->items[i].content);
    buf_puts (&line, "{\"summary\":");
    json_append_string (&line, text.data ? text.data : "", text.len);
    buf_printf (&line, ",\"tokens_after\":%llu,\"tokens_before\":%llu,\"turn\":%llu}\n",
                (unsigned long long)after, (unsigned long long)before, (unsigned long long)turn);
    fs_make_dirs (s->places.records, "out", 0777, false, NULL);
    _cleanup_close_ int fd =
        fs_open_append (s->places.records, "out/compaction-summaries.jsonl", 0666, NULL);
    if (fd >= 0 && write (fd, line.data, line.len) < 0)
        return; /* a copy for people: the trace has the numbers */
}

static enum compaction_end
decline (struct session *s, struct running_task *t, uint64_t turn, uint64_t tokens,
         const char *reason)
{
    TRACE (s->trace, NULL, compaction_declined, .turn = turn, .task_id = t->task->id,
           .tokens = tokens, .tokens_source = t->occupancy.is_actual ? "actual" : "estimate",
           .reason = reason);
    return COMPACTION_NONE;
}

static enum compaction_end
fail (struct session *s, struct running_task *t, uint64_t turn, const char *hook,
      const char *failure)
{
    if (t->refusal.is_refused)
        return COMPACTION_REFUSED;
    _cleanup_free_ char *text = x_asprintf ("hook %s failed at on-compaction: %s", hook, failure);
    _cleanup_free_ char *clean = redactor_apply (s->redactor, text);
    attempt_fail (s, t, "compaction_hook", clean, NULL, TRACE_NUM (turn));
    return COMPACTION_FAILED;
}

/* <request> NULL: nothing is built yet, the messages alone are counted. */
static uint64_t
count_list (struct running_task *t, struct request *request)
{
    if (request)
        return request_tokens (request, &t->list);
    uint64_t total = 0;
    for (size_t i = 0; i < t->list.len; i++)
        total += message_tokens (t->list.items[i]);
    return total;
}

static enum compaction_end
compact (struct session *s, struct running_task *t, struct request *request, uint64_t turn,
         uint64_t before)
{
    _cleanup_arena_ struct arena *arena = arena_new ();
    _cleanup_messages_ struct message_list fresh = { 0 };
    struct hook_messages given;
    const char *hook = NULL, *failure = NULL;
    t->refusal.is_refused = false;
    if (! compaction_ask (s, t, &t->list, before, arena, &given, &hook, &failure))
        return fail (s, t, turn, hook, failure);
    if (! given.len)
        return decline (s, t, turn, before, "no_hook_replacement");
    if (! rebuild (&given, &fresh))
        return decline (s, t, turn, before, "unresolved_tool_call");
    const char *source = t->occupancy.is_actual ? "actual" : "estimate";
    commit (s, t, &fresh);
    if (request)
        request_forget (request);
    t->occupancy.tokens = count_list (t, request);
    t->occupancy.is_actual = false;
    TRACE (s->trace, NULL, compaction, .turn = turn, .task_id = t->task->id,
           .tokens_before = before, .tokens_before_source = source,
           .tokens_after = t->occupancy.tokens);
    dump_summary (s, &given, turn, before, t->occupancy.tokens);
    return COMPACTION_DONE;
}

enum compaction_end
compaction_after_turn (struct session *s, struct running_task *t, struct request *request,
                       uint64_t turn)
{
    uint64_t budget = t->choice.input_budget;
    if (! budget || (double)t->occupancy.tokens < threshold_of (s) * (double)budget)
        return COMPACTION_NONE;
    return compact (s, t, request, turn, t->occupancy.tokens);
}

enum compaction_end
compaction_on_resume (struct session *s, struct running_task *t)
{
    if (! t->list.len)
        return COMPACTION_NONE;
    t->occupancy.is_actual = false;
    return compact (s, t, NULL, t->counts.turns, count_list (t, NULL));
}
