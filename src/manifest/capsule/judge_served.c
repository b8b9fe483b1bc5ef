/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/capsule/judge_served.h"

#include <string.h>

#define PROMPTS_MAX 64

/* "ask_" and lower-case letters, digits, underscores. */
static bool
is_agent_name (const char *name)
{
    return str_starts (name, "ask_") && name[4] && strlen (name) <= 64 &&
           strspn (name, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen (name);
}

/* "notes://", "wiki://team/". */
static bool
judge_files_uri (struct reading *rd, const struct exported_mcp *m, struct mur_error **err)
{
    const char *uri = m->files_uri;
    size_t scheme = uri ? strspn (uri, "abcdefghijklmnopqrstuvwxyz0123456789+.-") : 0;
    if (! uri)
        return true;
    bool is_good = scheme > 0 && uri[0] >= 'a' && str_starts (uri + scheme, "://") &&
                   uri[strlen (uri) - 1] == '/' && ! str_starts (uri, "skill:") &&
                   ! strpbrk (uri, " \t\"<>{}%?#\\");
    return is_good || refuse_value (rd, err, "exports.mcp.files_uri",
                                    "'%s' is refused: it is a scheme of your own and ends with /, "
                                    "such as notes://",
                                    uri);
}

/* --- prompts --- */

static bool
is_word (const char *text, const char *more)
{
    size_t len = text ? strlen (text) : 0, at = 0;
    while (at < len &&
           (strchr (more, text[at]) || (text[at] >= 'a' && text[at] <= 'z') ||
            (text[at] >= 'A' && text[at] <= 'Z') || (text[at] >= '0' && text[at] <= '9')))
        at++;
    return len > 0 && len <= 64 && at == len;
}

static const struct exported_argument *
find_argument (const struct exported_prompt *p, const char *name, size_t len)
{
    for (size_t i = 0; i < p->arguments.len; i++)
        if (strlen (p->arguments.items[i].name) == len &&
            memcmp (p->arguments.items[i].name, name, len) == 0)
            return &p->arguments.items[i];
    return NULL;
}

/* Each {{NAME}} of a text is an argument. */
static bool
judge_places (struct reading *rd, const struct exported_prompt *p, const char *text,
              const char *path, struct mur_error **err)
{
    for (const char *at = text; (at = strstr (at, "{{"));) {
        const char *name = at + 2, *end = strstr (name, "}}");
        if (! end)
            return refuse_value (rd, err, path, "a {{ has no }}");
        if (! find_argument (p, name, (size_t)(end - name)))
            return refuse_value (rd, err, path, "{{%.*s}} is none of its arguments",
                                 (int)(end - name), name);
        at = end + 2;
    }
    return true;
}

static bool
judge_arguments (struct reading *rd, const struct exported_prompt *p, const char *path,
                 struct mur_error **err)
{
    for (size_t i = 0; i < p->arguments.len; i++) {
        const char *name = p->arguments.items[i].name;
        const char *at = path_of (rd, "%s.arguments[%zu].name", path, i);
        if (! is_word (name, "_-"))
            return refuse_value (rd, err, at,
                                 "'%s' is refused: letters, digits, _ and -, 64 at most",
                                 name ? name : "");
        if (find_argument (p, name, strlen (name)) != &p->arguments.items[i])
            return refuse_value (rd, err, at, "%s is there twice", name);
    }
    return true;
}

static bool
judge_prompt (struct reading *rd, const struct exports *e, size_t index, struct mur_error **err)
{
    const struct exported_prompt *p = &e->mcp->prompts.items[index];
    const char *path = path_of (rd, "exports.mcp.prompts[%zu]", index);
    if (! is_word (p->name, "_.-"))
        return refuse_value (rd, err, path_of (rd, "%s.name", path),
                             "'%s' is refused: letters, digits, _, . and -, 64 at most",
                             p->name ? p->name : "");
    for (size_t i = 0; i < index; i++)
        if (str_eq (e->mcp->prompts.items[i].name, p->name))
            return refuse_value (rd, err, path_of (rd, "%s.name", path), "%s is there twice",
                                 p->name);
    if (! p->text || ! p->text[strspn (p->text, " \t\r\n")])
        return refuse_value (rd, err, path_of (rd, "%s.text", path), "a prompt says something");
    if (p->attach.len && ! e->files)
        return refuse_value (rd, err, path_of (rd, "%s.attach", path),
                             "there is no exports.files it could be taken from");
    if (! judge_arguments (rd, p, path, err) ||
        ! judge_places (rd, p, p->text, path_of (rd, "%s.text", path), err))
        return false;
    for (size_t i = 0; i < p->attach.len; i++)
        if (! judge_places (rd, p, p->attach.items[i], path_of (rd, "%s.attach[%zu]", path, i),
                            err))
            return false;
    return true;
}

static bool
judge_prompts (struct reading *rd, const struct exports *e, struct mur_error **err)
{
    if (e->mcp->prompts.len > PROMPTS_MAX)
        return refuse_value (rd, err, "exports.mcp.prompts", "there are more than %d", PROMPTS_MAX);
    for (size_t i = 0; i < e->mcp->prompts.len; i++)
        if (! judge_prompt (rd, e, i, err))
            return false;
    return true;
}

/* --- tasks --- */

static bool
judge_tasks (struct reading *rd, const struct exported_mcp *m, struct mur_error **err)
{
    for (size_t i = 0; i < m->tasks.len; i++) {
        const char *tool = m->tasks.items[i].tool;
        const char *path = path_of (rd, "exports.mcp.tasks[%zu].tool", i);
        if (! tool || ! str_list_has (&m->tools, tool))
            return refuse_value (rd, err, path, "'%s' is none of exports.mcp.tools",
                                 tool ? tool : "");
        for (size_t k = 0; k < i; k++)
            if (str_eq (m->tasks.items[k].tool, tool))
                return refuse_value (rd, err, path, "%s is there twice", tool);
    }
    return true;
}

/* --- the whole --- */

bool
judge_exported_mcp (struct reading *rd, const struct exports *e, struct mur_error **err)
{
    const struct exported_mcp *m = e->mcp;
    if (! m)
        return true;
    for (size_t i = 0; i < m->tools.len; i++)
        if (! m->tools.items[i][0])
            return refuse_value (rd, err, "exports.mcp.tools", "the name of a tool is blank");
    if (m->agent && ! (m->agent->name && is_agent_name (m->agent->name)))
        return refuse_value (rd, err, "exports.mcp.agent.name",
                             "'%s' is refused: it must be ask_ and a-z, 0-9 or _, 64 at most",
                             m->agent->name ? m->agent->name : "");
    if (m->agent && ! (m->agent->description && m->agent->description[0]))
        return refuse_value (rd, err, "exports.mcp.agent.description",
                             "a client's model needs it to know when to ask");
    if (m->files.value && ! e->files)
        return refuse_value (rd, err, "exports.mcp.files",
                             "there is no exports.files whose files could be served");
    return judge_files_uri (rd, m, err) && judge_prompts (rd, e, err) && judge_tasks (rd, m, err);
}
