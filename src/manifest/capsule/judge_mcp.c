/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/capsule/judge_mcp.h"

#include "manifest/capsule/capsule_schema.h"
#include "manifest/capsule/endpoint.h"
#include "manifest/text/grammar.h"

#include <string.h>

static bool
is_variable (const char *name)
{
    return name && *name && strspn (name, "0123456789") == 0 &&
           name[strspn (name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")] ==
               '\0';
}

static bool
looks_like_a_key (const char *name, const char *value)
{
    static const char *const beginnings[] = { "sk-",   "ghp_", "github_pat_",
                                              "xoxb-", "AKIA", "glpat-" };
    for (size_t i = 0; i < ARRAY_LEN (beginnings); i++)
        if (str_starts (value, beginnings[i]))
            return true;
    return env_name_is_credential_shaped (name) && strlen (value) > 8;
}

static bool
judge_env (struct reading *rd, struct mcp_block *m, const char *path, struct mur_error **err)
{
    const char *below = path_of (rd, "%s.env", path);
    if (! read_text_pairs (rd, m->written_env, below, &m->env.items, &m->env.len, err))
        return false;
    for (size_t i = 0; i < m->env.len; i++) {
        const struct name_value *v = &m->env.items[i];
        const char *at = path_of (rd, "%s.%s", below, v->name);
        if (! is_variable (v->name))
            return refuse_value (rd, err, at, "that is no name of a variable");
        if (env_name_is_runtime_owned (v->name) || str_eq (v->name, "HOME") ||
            str_eq (v->name, "PATH"))
            return refuse_value (rd, err, at, "the runtime sets this one");
        if (! looks_like_a_key (v->name, v->value))
            continue;
        refuse_value (rd, err, at, "it looks like a key, and a manifest is no place for keys");
        return mur_hint (err, "use gateway with mcp.gateway_env, or name the variable in "
                              "mcp.secret_env");
    }
    return true;
}

static bool
judge_variables (struct reading *rd, const struct mcp_block *m, const char *path,
                 struct mur_error **err)
{
    const char *const given[][2] = { { "gateway_env", m->gateway_env },
                                     { "placeholder_env", m->placeholder_env } };
    for (size_t i = 0; i < ARRAY_LEN (given); i++)
        if (given[i][1] && ! is_variable (given[i][1]))
            return refuse_value (rd, err, path_of (rd, "%s.%s", path, given[i][0]),
                                 "that is no name of a variable");
    for (size_t i = 0; i < m->secret_env.len; i++)
        if (! is_variable (m->secret_env.items[i]))
            return refuse_value (rd, err, path_of (rd, "%s.secret_env[%zu]", path, i),
                                 "that is no name of a variable");
    return true;
}

static bool
judge_gateway_use (struct reading *rd, const struct artifact_entry *e, const char *path,
                   struct mur_error **err)
{
    const struct mcp_block *m = e->mcp;
    if (m->url)
        return true;
    if (m->gateway_env && ! e->gateway)
        return refuse_value (rd, err, path_of (rd, "%s.gateway_env", path),
                             "it needs a gateway beside mcp, with the provider's endpoint");
    if (e->gateway && ! m->gateway_env) {
        refuse_value (rd, err, path_of (rd, "%s.gateway_env", path),
                      "with a gateway, name the variable the server reads its provider's address "
                      "from");
        return mur_hint (err, "such as gateway_env: FIRECRAWL_API_URL; of a server far away set "
                              "mcp.url and no endpoint");
    }
    if (m->gateway_env && ! m->placeholder_env && ! e->gateway->is_keyless) {
        refuse_value (rd, err, path_of (rd, "%s.placeholder_env", path),
                      "the gateway serves only who shows its token: name the variable the server "
                      "reads its key from");
        return mur_hint (err, "such as placeholder_env: FIRECRAWL_API_KEY");
    }
    return true;
}

static bool
judge_names (struct reading *rd, struct mcp_block *m, const char *path, struct mur_error **err)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    const char *below = path_of (rd, "%s.rename", path);
    if (m->prefix && m->prefix[strspn (m->prefix, letters)])
        return refuse_value (rd, err, path_of (rd, "%s.prefix", path),
                             "a prefix is letters, digits, _ and -");
    if (! read_text_pairs (rd, m->written_rename, below, &m->rename.items, &m->rename.len, err))
        return false;
    for (size_t i = 0; i < m->rename.len; i++)
        if (m->rename.items[i].value[strspn (m->rename.items[i].value, letters)])
            return refuse_value (rd, err, path_of (rd, "%s.%s", below, m->rename.items[i].name),
                                 "a tool's name is letters, digits, _ and -");
    return true;
}

const char *
judge_mcp_endpoint (struct reading *rd, const struct mcp_block *m)
{
    return arena_strndup (rd->r.arena, m->url, strcspn (m->url, "?"));
}

/* Far away nothing is started, walled in or handed variables. */
static bool
judge_far_away (struct reading *rd, const struct artifact_entry *e, const char *path,
                struct mur_error **err)
{
    const struct mcp_block *m = e->mcp;
    const struct capabilities *c = e->capabilities;
    struct endpoint endpoint;
    const char *why;
    const struct {
        const char *key;
        bool is_there;
    } others[] = {
        { "args", m->args.is_set },
        { "env", m->env.len > 0 },
        { "gateway_env", m->gateway_env != NULL },
        { "placeholder_env", m->placeholder_env != NULL },
        { "secret_env", m->secret_env.len > 0 },
    };
    if (! m->url)
        return true;
    if (! endpoint_parse (rd->r.arena, judge_mcp_endpoint (rd, m), &endpoint, &why))
        return refuse_value (rd, err, path_of (rd, "%s.url", path), "'%s' is refused: %s",
                             endpoint_masked (rd->r.arena, m->url), why);
    for (size_t i = 0; i < ARRAY_LEN (others); i++)
        if (others[i].is_there)
            return refuse_value (rd, err, path_of (rd, "%s.%s", path, others[i].key),
                                 "a server far away (mcp.url) is not started here");
    if (c && (c->filesystem || c->network || c->resources || c->shell))
        return refuse_value (rd, err, path_of (rd, "%s.url", path),
                             "a server far away has no folder, network, memory or program of ours: "
                             "take filesystem, network, resources and shell out of its "
                             "capabilities");
    if (e->gateway && strcmp (e->gateway->written_endpoint, judge_mcp_endpoint (rd, m)) != 0)
        return refuse_value (rd, err, path_of (rd, "%s.url", path),
                             "its key goes to mcp.url: take the gateway's endpoint out");
    return true;
}

bool
judge_mcp (struct reading *rd, struct artifact_entry *e, const char *path, struct mur_error **err)
{
    if (e->role != ROLE_MCP)
        return ! e->mcp || refuse_value (rd, err, path, "only runtime: mcp has one");
    if (e->config)
        return refuse_value (rd, err, path,
                             "a server has no config: what it takes is mcp.args and mcp.env");
    if (! e->mcp) {
        e->mcp = arena_new0 (rd->r.arena, struct mcp_block);
        schema_read (&rd->r, &mcp_schema, NULL, path, e->mcp);
    }
    return schema_check (&rd->r, &mcp_schema, e->mcp, path, err) &&
           judge_env (rd, e->mcp, path, err) && judge_variables (rd, e->mcp, path, err) &&
           judge_names (rd, e->mcp, path, err) && judge_far_away (rd, e, path, err) &&
           judge_gateway_use (rd, e, path, err);
}
