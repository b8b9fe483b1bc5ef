/* SPDX-License-Identifier: Apache-2.0 */
#include "session/harness/harness_tape.h"

#include "base/alloc.h"
#include "base/json.h"
#include "replay/play/play_harness.h"
#include "session/guests/recording.h"
#include "session/harness/bridge_call.h"
#include "session/state/running_task.h"
#include "session/state/session.h"
#include "session/toolbox/system_prompt.h"

#include <string.h>
#include <sys/wait.h>

/* --- texts --- */

/* What is another at each run, and what stands for it. */
struct stand_in {
    const char *text, *name;
};

#define STAND_INS 6

static void
stand_ins (const struct harness_run *run, struct stand_in out[STAND_INS])
{
    const struct session *s = run->session;
    const struct gateway_door *door = s->rooms.harness->door;
    const struct stand_in all[STAND_INS] = {
        { run->bridge ? bridge_url (run->bridge) : PLAYED_BRIDGE_URL, "{bridge}" },
        { run->bridge ? bridge_token (run->bridge) : PLAYED_TOKEN, "{token}" },
        { door ? gateway_door_url (door) : PLAYED_GATEWAY_URL, "{gateway}" },
        { door ? gateway_door_placeholder (door) : PLAYED_KEY, "{key}" },
        { run->log.then && run->log.then->work ? run->log.then->work : "", "{work}" },
        { s->places.work_path, "{work}" },
    };
    memcpy (out, all, sizeof all);
}

/* Owned. */
static char *
with_names (const struct harness_run *run, const char *text, size_t len)
{
    struct stand_in all[STAND_INS];
    struct buf out = { 0 };
    stand_ins (run, all);
    for (const char *at = text, *end = text + len; at < end;) {
        size_t i = 0, size = 0;
        for (; i < STAND_INS; i++) {
            size = strlen (all[i].text);
            if (size && size <= (size_t)(end - at) && memcmp (at, all[i].text, size) == 0)
                break;
        }
        if (i < STAND_INS)
            buf_puts (&out, all[i].name);
        else
            buf_putc (&out, *at);
        at += i < STAND_INS ? size : 1;
    }
    return buf_steal (&out);
}

/* Secrets taken out; what is no text stays as it is. Owned. */
static char *
clean (const struct harness_run *run, const char *text, size_t len, size_t *out_len)
{
    _cleanup_free_ char *copy = x_strndup (text ? text : "", text ? len : 0);
    bool is_text = strlen (copy) == len;
    char *out = is_text ? redactor_apply (run->session->redactor, copy) : steal_ptr (&copy);
    *out_len = is_text ? strlen (out) : len;
    return out;
}

/* A text that is compared. Owned. */
static char *
comparable (const struct harness_run *run, const char *text, size_t len, size_t *out_len)
{
    _cleanup_free_ char *plain = clean (run, text, len, out_len);
    if (strlen (plain) != *out_len)
        return steal_ptr (&plain);
    char *out = with_names (run, plain, *out_len);
    *out_len = strlen (out);
    return out;
}

static void
put (const struct harness_run *run, json_t *line, const char *key, const char *text, size_t len)
{
    size_t kept_len;
    _cleanup_free_ char *kept = comparable (run, text, len, &kept_len);
    tape_put (run->log.tape, line, key, kept, kept_len);
}

/* What is served: as it was. */
static void
put_served (const struct harness_run *run, json_t *line, const char *key, const char *text,
            size_t len)
{
    size_t kept_len;
    _cleanup_free_ char *kept = clean (run, text, len, &kept_len);
    tape_put (run->log.tape, line, key, kept, kept_len);
}

static void
put_name (json_t *o, const char *key, const char *text)
{
    json_object_set_new (o, key, text ? json_string (text) : json_null ());
}

/* --- the plan --- */

static json_t *
named (const struct harness_run *run, const char *text, size_t len)
{
    _cleanup_free_ char *clear = with_names (run, text ? text : "", text ? len : 0);
    json_t *o = json_string (clear);
    return o ? o : json_sprintf ("(%zu bytes)", len);
}

static char *
plan_text (const struct harness_run *run)
{
    const struct process_plan *p = &run->plan;
    _cleanup_json_ json_t *o = json_object ();
    json_t *args = json_array (), *env = json_object (), *files = json_object ();
    for (size_t i = 0; i < p->args.len; i++)
        json_array_append_new (args, named (run, p->args.items[i], strlen (p->args.items[i])));
    for (size_t i = 0; i < p->env_len; i++)
        json_object_set_new (env, p->env[i].name,
                             named (run, p->env[i].value, strlen (p->env[i].value)));
    for (size_t i = 0; i < p->file_count; i++)
        json_object_set_new (files, p->files[i].name,
                             named (run, p->files[i].contents, p->files[i].contents_len));
    json_object_set_new (o, "args", args);
    json_object_set_new (o, "env", env);
    json_object_set_new (o, "files", files);
    json_set_bool (o, "keeps_stdin_open", p->keeps_stdin_open);
    json_object_set_new (o, "stdin", named (run, p->stdin_bytes.data, p->stdin_bytes.len));
    return json_text (o, JSON_TEXT_SORTED);
}

struct started {
    char *system, *tools, *plan;
};

static void
started_clear (struct started *t)
{
    free (t->system);
    free (t->tools);
    free (t->plan);
}

static struct started
started_of (const struct harness_run *run)
{
    _cleanup_json_ json_t *tools = bridge_tool_list (run->session);
    return (struct started){ system_text_process (run->session),
                             json_text (tools, JSON_TEXT_SORTED), plan_text (run) };
}

static bool
same (struct harness_run *run, struct play_harness now, struct mur_error **err)
{
    size_t len = 0;
    _cleanup_free_ char *text = now.now ? comparable (run, now.now, now.now_len, &len) : NULL;
    now.turn = run->task->counts.turns;
    now.line = run->log.lines;
    now.now = text;
    now.now_len = len;
    return player_harness_same (run->session->asked->player, &now, err);
}

static bool
same_text (struct harness_run *run, const char *part, const struct rec_body *then, const char *now,
           size_t len, bool is_json, struct mur_error **err)
{
    return same (run,
                 (struct play_harness){
                     .part = part, .then = then, .now = now, .now_len = len, .is_json = is_json },
                 err);
}

static void
keep_start (struct harness_run *run, const char *version, const struct started *t,
            const struct buf *told)
{
    json_t *line = json_object ();
    json_set_u64 (line, "task", recording_task_number (run->session));
    put_name (line, "version", version);
    json_set_string (line, "session_id", run->session_id);
    json_set_bool (line, "resume", run->is_resume);
    json_t *used = run->session->rooms.harness->counts_thread ? json_array () : NULL;
    for (int m = 0; used && m < USAGE_MEMBERS; m++)
        json_array_append_new (used, json_integer ((json_int_t)run->attributed.value[m]));
    if (used)
        json_object_set_new (line, "used", used);
    json_set_string (line, "work",
                     run->log.then && run->log.then->work ? run->log.then->work
                                                          : run->session->places.work_path);
    put (run, line, "system", t->system, strlen (t->system));
    put (run, line, "tools", t->tools, strlen (t->tools));
    put (run, line, "told", told->data, told->len);
    put (run, line, "plan", t->plan, strlen (t->plan));
    tape_write (run->log.tape, "harness", line);
}

bool
harness_tape_begin (struct harness_run *run, struct mur_error **err)
{
    struct session *s = run->session;
    size_t number = s->rooms.harness->runs++;
    run->log = (struct harness_log){ .tape = recording_tape (s) };
    if (! s->asked->player)
        return true;
    run->log.then = player_harness_run (s->asked->player, number, err);
    return run->log.then != NULL;
}

bool
harness_tape_plan (struct harness_run *run, const char *version, const struct buf *told,
                   struct mur_error **err)
{
    const struct rec_harness *then = run->log.then;
    if (! then && ! run->log.tape)
        return true;
    _cleanup_ (started_clear) struct started t = started_of (run);
    if (run->log.tape)
        keep_start (run, version, &t, told);
    return ! then ||
           (same_text (run, "system", &then->system, t.system, strlen (t.system), false, err) &&
            same_text (run, "tools", &then->tools, t.tools, strlen (t.tools), true, err) &&
            same_text (run, "task_text", &then->told, told->data ? told->data : "", told->len,
                       false, err) &&
            same_text (run, "harness_plan", &then->plan, t.plan, strlen (t.plan), true, err));
}

/* --- lines --- */

/* By what differs from nothing alone. */
static json_t *
event_json (const struct process_event *e)
{
    static const char *const names[] = { "input", "output", "cache_read", "cache_creation",
                                         "thinking" };
    static const char *const kinds[] = { "session_started",
                                         "text_delta",
                                         "text",
                                         "thinking_delta",
                                         "thinking",
                                         "tool_call",
                                         "tool_result",
                                         "retry",
                                         "usage",
                                         "turn_end",
                                         "turn_failed",
                                         "note",
                                         "tool_call_started",
                                         "tool_call_progress" };
    const struct stand_in texts[] = {
        { e->id, "id" }, { e->name, "name" }, { e->model, "model" }, { e->input, "input" }
    };
    json_t *o = json_object ();
    json_set_string (o, "kind", kinds[e->kind]);
    for (size_t i = 0; i < ARRAY_LEN (texts); i++)
        if (texts[i].text)
            json_set_string (o, texts[i].name, texts[i].text);
    if (e->text)
        json_set_string_n (o, "text", e->text, e->text_len);
    if (e->kind == PROCESS_TURN_FAILED)
        json_set_string (o, "failure", failure_kind_name (e->failure));
    if (e->is_error)
        json_set_bool (o, "is_error", true);
    if (e->input_bytes)
        json_set_u64 (o, "input_bytes", e->input_bytes);
    if (e->attempt)
        json_set_u64 (o, "attempt", e->attempt);
    for (size_t m = 0; m < USAGE_MEMBERS; m++)
        if (e->kind == PROCESS_USAGE && e->usage.is_set[m])
            json_set_u64 (o, names[m], e->usage.value[m]);
    return o;
}

static char *
events_text (const struct process_event *events, size_t count)
{
    _cleanup_json_ json_t *all = json_array ();
    for (size_t i = 0; i < count; i++)
        json_array_append_new (all, event_json (&events[i]));
    return json_text (all, JSON_TEXT_SORTED);
}

/* The item of that kind which stands at <n>, NULL: there is none. */
static const struct rec_harness_item *
item_at (const struct rec_harness *h, enum rec_harness_what what, size_t n)
{
    for (size_t i = 0; i < h->count; i++)
        if (h->items[i].what == what && n-- == 0)
            return &h->items[i];
    return NULL;
}

bool
harness_tape_line (struct harness_run *run, const char *text, size_t len,
                   const struct process_events *events, struct mur_error **err)
{
    const struct rec_harness *then = run->log.then;
    size_t number = run->log.lines++;
    if (! then && ! run->log.tape)
        return true;
    _cleanup_free_ char *made = events_text (events->items, events->len);
    if (run->log.tape) {
        json_t *line = json_object ();
        put_served (run, line, "text", text, len);
        put (run, line, "made", made, strlen (made));
        tape_write (run->log.tape, "harness_line", line);
    }
    const struct rec_harness_item *item = then ? item_at (then, REC_HARNESS_LINE, number) : NULL;
    return ! item || same_text (run, "harness_line", &item->made, made, strlen (made), true, err);
}

/* --- what it is written --- */

void
harness_tape_write (struct harness_run *run, const char *data, size_t len)
{
    const struct rec_harness *then = run->log.then;
    struct mur_error *err = NULL;
    if (run->log.tape) {
        json_t *line = json_object ();
        put (run, line, "text", data, len);
        tape_write (run->log.tape, "harness_told", line);
    }
    if (! then) {
        harness_child_write (&run->child, data, len);
        return;
    }
    const struct rec_harness_item *item = item_at (then, REC_HARNESS_TOLD, run->log.told++);
    if (! same_text (run, "harness_told", item ? &item->text : NULL, data, len, false, &err))
        harness_tape_stop (run, err);
}

/* --- what people say --- */

void
harness_tape_word (struct harness_run *run, bool is_good, const char *text)
{
    if (! run->log.tape)
        return;
    json_t *line = json_object ();
    json_set_bool (line, "ok", is_good);
    put_served (run, line, "text", text ? text : "", text ? strlen (text) : 0);
    tape_write (run->log.tape, "harness_word", line);
}

bool
harness_tape_next_word (struct harness_run *run, bool *is_good, struct buf *text)
{
    const struct rec_harness *then = run->log.then;
    struct player *p = run->session->asked->player;
    struct mur_error *err = NULL;
    *is_good = false;
    if (! then)
        return false;
    const struct rec_harness_item *item = item_at (then, REC_HARNESS_WORD, run->log.words++);
    if (! item)
        player_harness_missing (p, run->task->counts.turns, "no word of a person here", &err);
    else if (record_fetch (player_record (p), &item->text, text, &err))
        *is_good = item->is_good;
    if (err)
        harness_tape_stop (run, err);
    else
        harness_tape_word (run, *is_good, text->data);
    return true;
}

/* --- the end --- */

bool
harness_tape_end (struct harness_run *run, const char *cause, const struct process_event *made,
                  struct mur_error **err)
{
    const struct harness_child *c = &run->child;
    const struct rec_harness *then = run->log.then;
    _cleanup_free_ char *text = made ? events_text (made, 1) : NULL;
    if (run->log.tape) {
        size_t len;
        const char *tail = harness_child_tail (c, &len);
        json_t *line = json_object ();
        bool was_signalled = WIFSIGNALED (c->status);
        json_set_u64 (line, was_signalled ? "signal" : "code",
                      (uint64_t)(was_signalled ? WTERMSIG (c->status) : WEXITSTATUS (c->status)));
        json_set_string (line, "cause", cause);
        json_set_bool (line, "killed", c->was_killed);
        put_served (run, line, "errors", tail, len);
        if (text)
            put (run, line, "made", text, strlen (text));
        tape_write (run->log.tape, "harness_end", line);
    }
    return ! then || ! text || ! rec_body_is_set (&then->end.made) ||
           same_text (run, "harness_end", &then->end.made, text, strlen (text), true, err);
}

void
harness_tape_stop (struct harness_run *run, struct mur_error *why)
{
    run->end.cause = HARNESS_DRIVER_ERROR;
    mur_error_freep (&run->end.error);
    run->end.error = why;
}
