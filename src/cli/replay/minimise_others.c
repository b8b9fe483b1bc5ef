/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/replay/minimise_others.h"

#include "base/alloc.h"
#include "base/json.h"

#include <string.h>

static const char *const names[OTHER_KINDS] = { "calls", "tools", "paragraphs" };

static void
add (struct other_list *list, char *text)
{
    x_grow (list->items, list->len, list->cap);
    list->items[list->len++] = (struct other_part){ text, true };
}

static void
read_calls (const struct record *r, struct other_list *out)
{
    for (size_t i = 0; i < r->task_count; i++)
        for (size_t k = 0; k < r->tasks[i].calls.count; k++) {
            const struct rec_call *c = &r->tasks[i].calls.items[k];
            add (out, x_asprintf ("task %zu, turn %llu, call %zu (%s)", i,
                                  (unsigned long long)c->turn, c->number, c->name));
        }
}

/* As they were offered first. */
static void
read_tools (const struct record *r, struct other_list *out)
{
    _cleanup_buf_ struct buf text = { 0 };
    const char *sha =
        r->task_count && r->tasks[0].models.count ? r->tasks[0].models.items[0].tools_sha : NULL;
    if (! sha || ! record_body (r, sha, &text, NULL))
        return;
    _cleanup_json_ json_t *tools = json_loadb (text.data ? text.data : "", text.len, 0, NULL);
    for (size_t i = 0; i < json_array_size (tools); i++) {
        const char *name = json_get_string (json_array_get (tools, i), "name");
        if (name)
            add (out, x_strdup (name));
    }
}

/* A paragraph ends with the blank lines behind it. */
static void
read_paragraphs (const struct record *r, const struct run_replay *run, struct other_list *out)
{
    _cleanup_buf_ struct buf text = { 0 };
    if (run->has_prompt)
        buf_puts (&text, run->prompt ? run->prompt : "");
    else if (! r->code.prompt_sha || ! record_body (r, r->code.prompt_sha, &text, NULL))
        return;
    for (const char *at = text.data; at && *at;) {
        const char *end = strstr (at, "\n\n");
        end = end ? end + strspn (end, "\n") : at + strlen (at);
        add (out, x_strndup (at, (size_t)(end - at)));
        at = end;
    }
}

void
other_parts_read (const struct record *r, const struct run_replay *run, struct other_parts *out)
{
    read_calls (r, &out->of[OTHER_CALLS]);
    read_tools (r, &out->of[OTHER_TOOLS]);
    read_paragraphs (r, run, &out->of[OTHER_PARAGRAPHS]);
}

void
other_parts_clear (struct other_parts *p)
{
    for (int kind = 0; kind < OTHER_KINDS; kind++) {
        for (size_t i = 0; i < p->of[kind].len; i++)
            free (p->of[kind].items[i].text);
        free (p->of[kind].items);
    }
}

static size_t
count_kept (const struct other_list *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->len; i++)
        kept += list->items[i].is_kept;
    return kept;
}

static void
apply_calls (const struct other_list *list, struct record *r)
{
    size_t at = 0;
    for (size_t i = 0; i < r->task_count; i++)
        for (size_t k = 0; k < r->tasks[i].calls.count && at < list->len; k++)
            r->tasks[i].calls.items[k].is_left_out = ! list->items[at++].is_kept;
}

void
other_parts_apply (const struct other_parts *p, struct record *r, struct run_replay *run,
                   struct play_modes *modes)
{
    const struct other_list *tools = &p->of[OTHER_TOOLS], *prompt = &p->of[OTHER_PARAGRAPHS];
    const char **without = arena_new_array (r->arena, const char *, tools->len + 1);
    size_t gone = 0;
    apply_calls (&p->of[OTHER_CALLS], r);
    for (size_t i = 0; i < tools->len; i++)
        if (! tools->items[i].is_kept)
            without[gone++] = tools->items[i].text;
    without[gone] = NULL;
    modes->without = without;
    if (count_kept (prompt) == prompt->len)
        return;
    _cleanup_buf_ struct buf text = { 0 };
    for (size_t i = 0; i < prompt->len; i++)
        if (prompt->items[i].is_kept)
            buf_puts (&text, prompt->items[i].text);
    run->has_prompt = true;
    run->prompt = text.len ? arena_strdup (r->arena, text.data) : NULL;
}

void
other_parts_text (const struct other_parts *p, struct buf *out)
{
    for (int kind = 0; kind < OTHER_KINDS; kind++)
        if (p->of[kind].len)
            buf_printf (out, ", %zu of %zu %s", count_kept (&p->of[kind]), p->of[kind].len,
                        names[kind]);
}

void
other_parts_json (const struct other_parts *p, json_t *out)
{
    for (int kind = 0; kind < OTHER_KINDS; kind++) {
        const struct other_list *list = &p->of[kind];
        json_t *kept = json_array ();
        for (size_t i = 0; i < list->len; i++)
            if (list->items[i].is_kept)
                json_array_append_new (kept, json_string (list->items[i].text));
        json_object_set_new (out, names[kind],
                             json_pack ("{s:I,s:I,s:o}", "before", (json_int_t)list->len, "after",
                                        (json_int_t)count_kept (list), "kept", kept));
    }
}
