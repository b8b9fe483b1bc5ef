/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/record/trace_lines.h"

#include "base/alloc.h"
#include "base/json.h"

#include <string.h>

static struct rec_task *
last_task (struct record *r)
{
    return r->task_count ? &r->tasks[r->task_count - 1] : NULL;
}

static const char *
take_string (struct record *r, const json_t *line, const char *key)
{
    return record_keep (r, json_get_string (line, key));
}

/* The compact text of a member, NULL without it. */
static const char *
take_json (struct record *r, const json_t *line, const char *key)
{
    const json_t *value = json_object_get (line, key);
    _cleanup_free_ char *text = value ? json_text (value, JSON_TEXT_SORTED) : NULL;
    return record_keep (r, text);
}

static uint64_t
number_of (const json_t *line, const char *key)
{
    uint64_t value = 0;
    return json_get_u64 (line, key, &value) ? value : 0;
}

/* --- session --- */

static void
take_artifacts (struct record *r, const json_t *list)
{
    size_t i;
    const json_t *one;
    r->code.artifacts = arena_new_array (r->arena, struct rec_artifact, json_array_size (list) + 1);
    json_array_foreach (list, i, one)
    {
        r->code.artifacts[r->code.artifact_count++] =
            (struct rec_artifact){ take_string (r, one, "name"), take_string (r, one, "version"),
                                   take_string (r, one, "role"), take_string (r, one, "sha256") };
    }
}

/* What the command line of the launch said in the manifest's place. */
static void
take_changed (struct record *r, const json_t *line)
{
    const json_t *key;
    size_t i;
    json_array_foreach (json_object_get (line, "changed_keys"), i, key)
    {
        if (str_eq (json_string_value (key), "inference.model"))
            r->code.launch_model = r->model;
        if (str_eq (json_string_value (key), "inference.max_session_tokens"))
            r->code.launch_ceiling = number_of (line, "max_session_tokens");
    }
}

static void
take_callees (struct record *r, const json_t *names)
{
    r->formation.callees = arena_new_array (r->arena, const char *, json_array_size (names) + 1);
    for (size_t i = 0; i < json_array_size (names); i++) {
        const char *name = json_string_value (json_array_get (names, i));
        if (name)
            r->formation.callees[r->formation.callee_count++] = record_keep (r, name);
    }
}

static void
take_session_start (struct record *r, const json_t *line)
{
    const struct {
        const char *key;
        const char **to;
    } strings[] = {
        { "session_id", &r->session_id },
        { "model", &r->model },
        { "context_id", &r->context_id },
        { "formation_id", &r->formation.id },
        { "formation_member", &r->formation.member },
        { "capture", &r->capture },
        { "fence_word", &r->fence_word },
        { "mur_version", &r->code.mur_version },
        { "arch", &r->code.arch },
        { "manifest_sha256", &r->code.manifest_sha },
        { "manifest_path", &r->code.manifest_path },
        { "lock_sha256", &r->code.lock_sha },
        { "system_prompt_sha256", &r->code.prompt_sha },
        { "system_prompt_source", &r->code.prompt_source },
    };
    for (size_t i = 0; i < ARRAY_LEN (strings); i++)
        *strings[i].to = take_string (r, line, strings[i].key);
    r->replay_of =
        record_keep (r, json_get_string (json_object_get (line, "replay_of"), "session_id"));
    take_artifacts (r, json_object_get (line, "artifacts"));
    take_callees (r, json_object_get (line, "formation_callees"));
    take_changed (r, line);
}

static void
take_session_end (struct record *r, const json_t *line)
{
    r->is_complete = true;
    r->ending = take_string (r, line, "exit_status");
}

/* --- task --- */

static void
take_task_start (struct record *r, const json_t *line)
{
    x_grow (r->tasks, r->task_count, r->task_cap);
    struct rec_task *t = &r->tasks[r->task_count];
    *t = (struct rec_task){
        .ordinal = r->task_count,
        .id = take_string (r, line, "task_id"),
        .context_id = take_string (r, line, "context_id"),
        .source = take_string (r, line, "source"),
        .origin = take_string (r, line, "origin"),
        .is_trusted = str_eq (json_get_string (line, "trust"), "trusted"),
        .parts_bytes = number_of (line, "message_parts_bytes"),
        .text_sha = take_string (r, line, "text_sha"),
    };
    r->task_count++;
}

static void
take_task_end (struct record *r, const json_t *line)
{
    struct rec_task *t = last_task (r);
    if (! t)
        return;
    t->end.is_ended = true;
    t->end.status = take_string (r, line, "exit_status");
    t->end.turns = number_of (line, "turns");
}

static void
take_task_canceled (struct record *r, const json_t *line)
{
    struct rec_task *t = last_task (r);
    if (! t || ! str_eq (t->id, json_get_string (line, "task_id")))
        return;
    t->end.canceled_phase = take_string (r, line, "phase");
    t->end.has_canceled_turn = json_get_u64 (line, "turn", &t->end.canceled_turn);
}

static void
take_seed (struct record *r, const json_t *line)
{
    struct rec_task *t = last_task (r);
    if (t)
        t->seed_count += json_array_size (json_object_get (line, "message_ids"));
}

static void
take_continued (struct record *r, const json_t *line)
{
    struct rec_task *t = last_task (r);
    (void)line;
    if (t)
        t->continued++;
}

static void
take_check (struct record *r, const json_t *line)
{
    struct rec_task *t = last_task (r);
    if (! t)
        return;
    const json_t *code = json_object_get (line, "exit_code");
    x_grow (t->checks.items, t->checks.count, t->checks.cap);
    t->checks.items[t->checks.count++] = (struct rec_check){
        .outcome = take_string (r, line, "outcome"),
        .has_exit_code = json_is_integer (code),
        .exit_code = (int)json_integer_value (code),
        .has_reopened = json_is_true (json_object_get (line, "reopened")),
    };
}

static void
take_refusal (struct record *r, const json_t *line)
{
    struct rec_task *t = last_task (r);
    if (! t)
        return;
    x_grow (t->refusals.items, t->refusals.count, t->refusals.cap);
    t->refusals.items[t->refusals.count++] = (struct rec_refusal){
        number_of (line, "turn"),        take_string (r, line, "limit"),
        take_string (r, line, "origin"), number_of (line, "ceiling"),
        number_of (line, "used"),        number_of (line, "requested"),
    };
}

static void
take_control (struct record *r, const json_t *line)
{
    struct rec_task *t = last_task (r);
    const json_t *value = json_object_get (line, "value");
    if (! t || ! value)
        return;
    _cleanup_free_ char *text = json_text (value, JSON_TEXT_SORTED);
    x_grow (t->controls.items, t->controls.count, t->controls.cap);
    t->controls.items[t->controls.count++] =
        (struct rec_control){ number_of (line, "turn"), take_string (r, line, "name"),
                              record_keep (r, text) };
}

/* --- turn --- */

static const struct rec_model *
last_with_messages (const struct rec_task *t)
{
    for (size_t i = t->models.count; i > 0; i--)
        if (t->models.items[i - 1].has_messages && ! t->models.items[i - 1].origin)
            return &t->models.items[i - 1];
    return NULL;
}

/* The request of that line, of whatever task; NULL when it is not there. */
static const struct rec_model *
request_of_line (const struct record *r, const char *event_id)
{
    for (size_t t = r->task_count; t > 0; t--)
        for (size_t i = r->tasks[t - 1].models.count; i > 0; i--)
            if (str_eq (r->tasks[t - 1].models.items[i - 1].event_id, event_id))
                return &r->tasks[t - 1].models.items[i - 1];
    return NULL;
}

/* How many of the first messages are those of <before>, where the line lists them all. */
static size_t
count_kept (const struct rec_model *before, const json_t *list)
{
    size_t count = 0, kept = 0;
    _cleanup_free_ const char **old = before ? record_messages (before, &count) : NULL;
    while (kept < count && kept < json_array_size (list) &&
           str_eq (old[kept], json_string_value (json_array_get (list, kept))))
        kept++;
    return kept;
}

/* The one reader of a request's messages: what was sent, as what it adds to an earlier request. */
static void
take_messages (struct record *r, const struct rec_task *t, const json_t *line, struct rec_model *m)
{
    const json_t *list = json_object_get (line, "message_shas");
    const char *after = json_get_string (line, "messages_after");
    size_t count = json_array_size (list), listed_from = 0;
    uint64_t total = number_of (line, "message_count");
    if (! json_is_array (list))
        return;
    const struct rec_model *before = after       ? request_of_line (r, after)
                                     : m->origin ? NULL
                                                 : last_with_messages (t);
    if (after && (! before || total < count))
        return;
    size_t kept = after ? (size_t)total - count : count_kept (before, list);
    listed_from = after ? 0 : kept;
    if (before && kept) {
        struct rec_messages *copy = arena_new0 (r->arena, struct rec_messages);
        *copy = before->messages;
        m->messages.before = copy;
    }
    m->messages.kept = kept;
    m->messages.added_count = count - listed_from;
    m->messages.added = arena_new_array (r->arena, const char *, count - listed_from + 1);
    for (size_t i = listed_from; i < count; i++)
        m->messages.added[i - listed_from] =
            record_keep (r, json_string_value (json_array_get (list, i)));
    m->has_messages = true;
}

static size_t
number_in_turn (const struct rec_task *t, const char *origin, uint64_t turn)
{
    size_t number = 0;
    for (size_t i = 0; i < t->models.count; i++)
        number += t->models.items[i].turn == turn && str_eq (t->models.items[i].origin, origin);
    return number;
}

static void
take_inference (struct record *r, const json_t *line)
{
    struct rec_task *t = last_task (r);
    if (! t)
        return;
    struct rec_model m = {
        .event_id = take_string (r, line, "event_id"),
        .turn = number_of (line, "turn"),
        .origin = take_string (r, line, "origin"),
        .system_sha = take_string (r, line, "system_sha"),
        .tools_sha = take_string (r, line, "tools_sha"),
        .response_sha = take_string (r, line, "response_sha"),
        .decision = take_string (r, line, "decision"),
        .tool_name = take_string (r, line, "tool_name"),
        .model = take_string (r, line, "model"),
        .max_tokens = number_of (line, "max_output_tokens"),
        .driver_config = take_json (r, line, "driver_config"),
        .continuation_id = take_string (r, line, "continuation_id"),
        .attempts = (uint32_t)number_of (line, "attempts"),
        .error_code = take_string (r, line, "error_code"),
        .error = take_string (r, line, "error"),
        .retry_stopped = take_string (r, line, "retry_stopped"),
        .provider_status = (int)number_of (line, "provider_status"),
    };
    m.number = number_in_turn (t, m.origin, m.turn);
    m.charged_tokens = t->pending_charge;
    t->pending_charge = 0;
    take_messages (r, t, line, &m);
    x_grow (t->models.items, t->models.count, t->models.cap);
    t->models.items[t->models.count++] = m;
}

/* Added to the call it belongs to once that is there: retries come before their call's line. */
static void
take_retry (struct record *r, const json_t *line)
{
    struct rec_task *t = last_task (r);
    if (t)
        t->pending_charge += number_of (line, "charged_tokens");
}

static size_t
call_number (const struct rec_task *t, uint64_t turn)
{
    size_t number = 0;
    for (size_t i = 0; i < t->calls.count; i++)
        number += t->calls.items[i].turn == turn;
    return number;
}

static struct rec_call *
add_call (struct record *r, const json_t *line, const char *name_key)
{
    struct rec_task *t = last_task (r);
    if (! t)
        return NULL;
    uint64_t turn = number_of (line, "turn");
    x_grow (t->calls.items, t->calls.count, t->calls.cap);
    struct rec_call *c = &t->calls.items[t->calls.count];
    *c = (struct rec_call){ .turn = turn,
                            .number = call_number (t, turn),
                            .name = take_string (r, line, name_key),
                            .duration_ms = number_of (line, "duration_ms"),
                            .is_ok = str_eq (json_get_string (line, "status"), "ok") };
    t->calls.count++;
    return c;
}

static void
take_tool_call (struct record *r, const json_t *line)
{
    struct rec_call *c = add_call (r, line, "tool_name");
    const json_t *output = json_object_get (line, "output");
    const json_t *input = json_object_get (line, "input");
    if (! c)
        return;
    _cleanup_free_ char *text = json_text (input ? input : json_null (), JSON_TEXT_SORTED);
    c->id = take_string (r, line, "tool_call_id");
    c->input = record_keep (r, text);
    c->error = take_string (r, line, "error");
    c->state_effect = take_string (r, line, "state_effect");
    c->resource_id = take_string (r, line, "resource_id");
    c->has_output = json_is_string (output);
    if (! c->has_output)
        return;
    c->output_len = json_string_length (output);
    c->output = arena_strndup (r->arena, json_string_value (output), c->output_len);
}

static void
take_skill_call (struct record *r, const json_t *line)
{
    struct rec_call *c = add_call (r, line, "skill_name");
    if (c)
        c->is_skill = true;
}

/* The command of the call before it. */
static void
take_shell (struct record *r, const json_t *line)
{
    struct rec_task *t = last_task (r);
    if (! t || ! t->calls.count)
        return;
    struct rec_call *c = &t->calls.items[t->calls.count - 1];
    struct rec_shell *shell = arena_new0 (r->arena, struct rec_shell);
    *shell = (struct rec_shell){
        .binary = take_string (r, line, "binary"),
        .command = take_string (r, line, "command"),
        .work_id = take_string (r, line, "work_id"),
        .resource_limit = take_string (r, line, "resource_limit"),
        .exit_code = (int)json_integer_value (json_object_get (line, "exit_code")),
        .stdout_bytes = number_of (line, "stdout_bytes"),
        .stderr_bytes = number_of (line, "stderr_bytes"),
        .duration_ms = number_of (line, "duration_ms"),
        .grace_ms = number_of (line, "grace_ms"),
    };
    c->shell = shell;
}

static void
take_background (struct record *r, const json_t *line)
{
    take_shell (r, line);
    if (last_task (r))
        last_task (r)->has_background = true;
}

/* --- approvals --- */

static void
take_approval_asked (struct record *r, const json_t *line)
{
    r->asked_rules = take_string (r, line, "rules");
}

/* Nothing else is on record of a call that a person did not let through. */
static void
add_refusal (struct record *r, const json_t *line, const char *rules)
{
    struct rec_call *c = add_call (r, line, "target");
    if (! c)
        return;
    c->is_refused = true;
    c->rules = rules ? rules : "";
    c->answer = take_string (r, line, "answer");
}

static void
take_approval_answered (struct record *r, const json_t *line)
{
    if (! json_is_true (json_object_get (line, "is_allowed")) &&
        ! json_object_get (line, "delegation_id"))
        add_refusal (r, line, r->asked_rules);
}

static void
take_approval_applied (struct record *r, const json_t *line)
{
    if (str_eq (json_get_string (line, "answer"), "never"))
        add_refusal (r, line, take_string (r, line, "rule"));
}

static void
take_harness (struct record *r, const json_t *line)
{
    struct rec_task *t = last_task (r);
    (void)line;
    if (t)
        t->has_harness = true;
}

static void
take_delegation (struct record *r, const json_t *line)
{
    const char *dir = json_get_string (line, "child_records_dir");
    if (! dir)
        return;
    x_grow (r->children, r->child_count, r->child_cap);
    r->children[r->child_count++] =
        (struct rec_child){ take_string (r, line, "child_session_id"), record_keep (r, dir) };
}

/* --- the table --- */

static const struct {
    const char *type;
    void (*take) (struct record *r, const json_t *line);
} kinds[] = {
    { "inference", take_inference },
    { "tool_call", take_tool_call },
    { "skill_call", take_skill_call },
    { "inference_retry", take_retry },
    { "shell", take_shell },
    { "shell_detached", take_background },
    { "approval_requested", take_approval_asked },
    { "approval_answered", take_approval_answered },
    { "approval_applied", take_approval_applied },
    { "task_start", take_task_start },
    { "task_end", take_task_end },
    { "task_canceled", take_task_canceled },
    { "task_continued", take_continued },
    { "context_seed", take_seed },
    { "done_check", take_check },
    { "spend_ceiling_reached", take_refusal },
    { "control_applied", take_control },
    { "harness_start", take_harness },
    { "delegation_start", take_delegation },
    { "session_start", take_session_start },
    { "session_end", take_session_end },
};

void
record_take_line (struct record *r, const json_t *line)
{
    const char *type = json_get_string (line, "event_type");
    for (size_t i = 0; type && i < ARRAY_LEN (kinds); i++)
        if (strcmp (kinds[i].type, type) == 0)
            kinds[i].take (r, line);
}
