/* SPDX-License-Identifier: Apache-2.0
 *
 * The cause of a difference: the earliest thing behind it that is known to be other than it was.
 */
#include "base/alloc.h"
#include "base/json.h"
#include "replay/play/player_internal.h"

#include <string.h>

static const struct rec_artifact *
find_artifact (const struct rec_artifact *all, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq (all[i].name, name))
            return &all[i];
    return NULL;
}

/* The part of a full name after its scope. */
static const char *
bare (const char *name)
{
    const char *slash = strchr (name, '/');
    return slash ? slash + 1 : name;
}

static char *
short_sha (const char *sha)
{
    return sha ? x_strndup (sha, 12) : x_strdup ("none");
}

/* "artifact local/wc: 0a1b... -> 9f8e..." of the first artifact that is another now, of this role
 * (NULL: any) and tool name (NULL: any); NULL when none is. */
static char *
changed_artifact (const struct player *p, const char *role, const char *tool)
{
    const struct record *r = p->record;
    for (size_t i = 0; i < r->code.artifact_count; i++) {
        const struct rec_artifact *then = &r->code.artifacts[i];
        if (! then->name || (role && ! str_eq (then->role, role)) ||
            (tool && strcmp (bare (then->name), tool) != 0))
            continue;
        const struct rec_artifact *now =
            find_artifact (p->facts->artifacts, p->facts->artifact_count, then->name);
        if (now && str_eq (now->sha256, then->sha256))
            continue;
        if (! now)
            return x_asprintf ("artifact %s is not there any more", then->name);
        _cleanup_free_ char *before = short_sha (then->sha256), *after = short_sha (now->sha256);
        return x_asprintf ("%s %s: digest %s -> %s",
                           str_eq (then->role, "hook") ? "hook" : "artifact", then->name, before,
                           after);
    }
    for (size_t i = 0; r->code.artifact_count && i < p->facts->artifact_count; i++) {
        const struct rec_artifact *now = &p->facts->artifacts[i];
        bool is_asked = (! role || str_eq (now->role, role)) &&
                        (! tool || strcmp (bare (now->name), tool) == 0);
        if (is_asked && ! find_artifact (r->code.artifacts, r->code.artifact_count, now->name))
            return x_asprintf ("%s %s was not there then",
                               str_eq (now->role, "hook") ? "hook" : "artifact", now->name);
    }
    return NULL;
}

static char *
changed_version (const struct player *p)
{
    const struct record *r = p->record;
    if (r->code.mur_version && ! str_eq (r->code.mur_version, p->facts->mur_version))
        return x_asprintf ("mur version: %s -> %s", r->code.mur_version, p->facts->mur_version);
    if (r->code.arch && ! str_eq (r->code.arch, p->facts->arch))
        return x_asprintf ("architecture: %s -> %s", r->code.arch, p->facts->arch);
    return NULL;
}

static char *
changed_prompt (const struct player *p)
{
    return str_eq (p->record->code.prompt_sha, p->facts->prompt_sha) ? NULL : x_strdup ("prompt");
}

/* The line of the manifest that differs first, as text: its keys are its own index. */
static char *
changed_manifest (const struct player *p)
{
    const struct record *r = p->record;
    _cleanup_buf_ struct buf then = { 0 };
    if (! r->code.manifest_sha || str_eq (r->code.manifest_sha, p->facts->manifest_sha))
        return NULL;
    if (! record_body (r, r->code.manifest_sha, &then, NULL) || ! p->facts->manifest_text)
        return x_strdup ("manifest");
    const char *a = then.data ? then.data : "", *b = p->facts->manifest_text, *line = b;
    size_t number = 1;
    for (size_t i = 0; a[i] && a[i] == b[i]; i++)
        if (a[i] == '\n') {
            number++;
            line = b + i + 1;
        }
    line += strspn (line, " -");
    size_t len = strcspn (line, ":\n");
    return len ? x_asprintf ("manifest key %.*s (line %zu)", (int)len, line, number)
               : x_asprintf ("manifest line %zu", number);
}

/* --- by part --- */

/* The tool whose entry differs: "/3/description" of the recorded or the present array. */
static char *
tool_of (const struct difference *d, const char *pointer)
{
    if (pointer[0] != '/' || ! d->now)
        return NULL;
    size_t index = strtoul (pointer + 1, NULL, 10);
    const char *texts[] = { d->now, d->recorded };
    for (size_t i = 0; i < ARRAY_LEN (texts); i++) {
        _cleanup_json_ json_t *tools =
            texts[i] ? json_loads (texts[i], JSON_DECODE_ANY, NULL) : NULL;
        const char *name = json_get_string (json_array_get (tools, index), "name");
        if (name)
            return x_strdup (name);
    }
    return NULL;
}

static char *
cause_of_tools (const struct player *p, const struct difference *d, const char *pointer)
{
    _cleanup_free_ char *tool = tool_of (d, pointer);
    char *cause = tool ? changed_artifact (p, NULL, tool) : NULL;
    cause = cause ? cause : changed_artifact (p, "tool", NULL);
    return cause ? cause : changed_artifact (p, "skill", NULL);
}

static char *
cause_of_system (const struct player *p, const struct difference *d, const char *pointer)
{
    (void)d;
    (void)pointer;
    return changed_prompt (p);
}

static char *
cause_of_request (const struct player *p, const struct difference *d, const char *pointer)
{
    (void)d;
    (void)pointer;
    return changed_manifest (p);
}

/* The text of a tool's message. */
static bool
says_output (const char *message, const struct rec_call *c)
{
    _cleanup_json_ json_t *m = message ? json_loads (message, JSON_DECODE_ANY, NULL) : NULL;
    _cleanup_buf_ struct buf text = { 0 };
    const json_t *content = json_object_get (m, "content"), *block;
    size_t i;
    if (json_is_string (content))
        buf_puts (&text, json_string_value (content));
    json_array_foreach (content, i, block)
    {
        const char *part = json_get_string (block, "text");
        buf_puts (&text, part ? part : "");
    }
    return c->has_output && text.len == c->output_len &&
           (! text.len || memcmp (text.data, c->output, text.len) == 0);
}

/* A served result says what the record says; another text is what a gate said in its place. */
static char *
cause_of_output (const struct player *p, const struct difference *d, const struct rec_call *c)
{
    char *gate = d->now && ! says_output (d->now, c) ? changed_artifact (p, "hook", NULL) : NULL;
    if (! gate && d->now && ! says_output (d->now, c))
        gate = changed_manifest (p);
    return gate ? gate
                : x_asprintf ("result of turn %llu call %zu (%s)", (unsigned long long)c->turn,
                              c->number, c->name);
}

/* Which earlier thing a message is made of: an answer, a result, or what a hook or a person said.
 */
static char *
cause_of_message (const struct player *p, const struct difference *d, const char *pointer)
{
    (void)pointer;
    const char *text = d->recorded ? d->recorded : d->now;
    _cleanup_json_ json_t *m = text ? json_loads (text, JSON_DECODE_ANY, NULL) : NULL;
    const char *role = json_get_string (m, "role");
    if (str_eq (role, "assistant"))
        return d->turn ? x_asprintf ("answer of turn %llu", (unsigned long long)d->turn - 1)
                       : x_strdup ("conversation before the task");
    if (str_eq (role, "tool")) {
        const char *id = json_get_string (m, "tool_call_id");
        for (size_t i = 0; p->task && i < p->task->calls.count; i++) {
            const struct rec_call *c = &p->task->calls.items[i];
            if (id && str_eq (c->id, id) && c->turn < d->turn)
                return cause_of_output (p, d, c);
        }
        /* No call of the record: a gate spoke. */
        char *gate = changed_artifact (p, "hook", NULL);
        return gate ? gate : changed_manifest (p);
    }
    char *hook = changed_artifact (p, "hook", NULL);
    return hook ? hook : changed_manifest (p);
}

static char *
cause_of_result (const struct player *p, const struct difference *d, const char *pointer)
{
    (void)pointer;
    const struct rec_call *c = p->task ? record_call (p->task, d->turn, d->call) : NULL;
    return c ? changed_artifact (p, NULL, c->name) : NULL;
}

/* Another call, or another input, is what the answer it stands in says. */
static char *
cause_of_call (const struct player *p, const struct difference *d, const char *pointer)
{
    (void)pointer;
    char *hook = changed_artifact (p, "hook", NULL);
    if (! hook && ! d->recorded) /* a gate that stood in its way then let it through */
        hook = changed_manifest (p);
    if (hook)
        return hook;
    for (size_t i = 0; d->now && p->task && i < p->task->calls.count; i++) {
        const struct rec_call *c = &p->task->calls.items[i];
        bool is_elsewhere = c->turn == d->turn && c->number != d->call;
        if (is_elsewhere && (str_eq (c->name, d->now) || str_eq (c->input, d->now)))
            return x_asprintf ("order of calls: it is call %zu of the record", c->number);
    }
    return x_asprintf ("answer of turn %llu", (unsigned long long)d->turn);
}

/* What is made of a line is the driver's; the line itself is the program's. */
static char *
cause_of_line (const struct player *p, const struct difference *d, const char *pointer)
{
    (void)pointer;
    char *driver = changed_artifact (p, "driver", NULL);
    return driver ? driver : x_asprintf ("line %zu of the harness", d->message);
}

static char *
cause_of_plan (const struct player *p, const struct difference *d, const char *pointer)
{
    (void)pointer;
    (void)d;
    char *driver = changed_artifact (p, "driver", NULL);
    return driver ? driver : changed_manifest (p);
}

static const struct {
    const char *part;
    char *(*find) (const struct player *p, const struct difference *d, const char *pointer);
} parts[] = {
    { "request", cause_of_request },    { "system", cause_of_system },
    { "tools", cause_of_tools },        { "message", cause_of_message },
    { "tool_result", cause_of_result }, { "call", cause_of_call },
    { "tool_input", cause_of_call },    { "harness_line", cause_of_line },
    { "harness_end", cause_of_line },   { "harness_told", cause_of_line },
    { "harness_plan", cause_of_plan },
};

char *
play_cause (const struct player *p, const struct difference *d, const char *pointer)
{
    char *cause = NULL;
    if (! p->facts)
        return x_strdup ("unknown");
    for (size_t i = 0; i < ARRAY_LEN (parts) && ! cause; i++)
        if (str_eq (parts[i].part, d->part))
            cause = parts[i].find (p, d, pointer);
    cause = cause ? cause : changed_prompt (p);
    cause = cause ? cause : changed_artifact (p, NULL, NULL);
    cause = cause ? cause : changed_manifest (p);
    cause = cause ? cause : changed_version (p);
    return cause ? cause : x_strdup ("unknown: nothing that is recorded of what ran differs");
}
