/* SPDX-License-Identifier: Apache-2.0 */
#include "session/servers/stage_server.h"

#include "artifact/package/package.h"
#include "artifact/store/resolve.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "manifest/capsule/capsule_entry.h"
#include "mcp/definitions.h"
#include "net/server/gateway_door.h"
#include "session/servers/staged_server.h"

#include <string.h>

#define OFFERED_NAME_MAX 64 /* what every provider takes */

/* "filesystem" of "local/mcp-filesystem". Borrowed. */
static const char *
short_name (const char *artifact_name)
{
    const char *slash = strrchr (artifact_name, '/');
    const char *bare = slash ? slash + 1 : artifact_name;
    return str_starts (bare, "mcp-") && bare[4] ? bare + 4 : bare;
}

/* --- names --- */

static bool
check_name (const struct staged_server *v, const char *name, const char *tool,
            struct mur_error **err)
{
    for (size_t i = 0; i < v->offer_count; i++)
        if (strcmp (v->offers[i].name, name) == 0) {
            mur_fail (err, E_MCP_007, "server %s: its tools %s and %s would both be called %s",
                      v->name, v->offers[i].tool, tool, name);
            return mur_hint (err, "give one another name under mcp.rename");
        }
    if (strlen (name) <= OFFERED_NAME_MAX)
        return true;
    mur_fail (err, E_MCP_007, "server %s: the name %s has %zu characters, the most is %d", v->name,
              name, strlen (name), OFFERED_NAME_MAX);
    return mur_hint (err, "set a shorter mcp.prefix, or another name under mcp.rename");
}

/* --- offers --- */

static char *
schema_text (const json_t *schema)
{
    return json_is_object (schema) ? json_text (schema, JSON_TEXT_SORTED) : NULL;
}

static bool
add_offer (struct staged_server *v, const struct mcp_block *m, const json_t *tool,
           struct mur_error **err)
{
    const char *own = json_get_string (tool, "name");
    const char *words = json_get_string (tool, "description");
    const json_t *output = json_object_get (tool, "outputSchema");
    struct server_offer *o = &v->offers[v->offer_count];
    _cleanup_free_ char *name = mcp_offered_name (m, v->name, own);
    size_t i;
    json_t *required;
    if (! check_name (v, name, own, err))
        return false;
    *o = (struct server_offer){ .name = steal_ptr (&name),
                                .tool = own,
                                .description = words ? mcp_text_shown (words) : NULL,
                                .schema = json_object_get (tool, "inputSchema") };
    o->parameters = schema_text (o->schema);
    if (str_eq (json_get_string (output, "type"), "object"))
        o->output_schema = schema_text (output);
    json_array_foreach (json_object_get (o->schema, "required"), i,
                        required) if (json_is_string (required))
        strv_push (&o->required, json_string_value (required));
    o->is_read_only =
        json_is_true (json_object_get (json_object_get (tool, "annotations"), "readOnlyHint"));
    strv_push (&v->offered, own);
    v->offer_count++;
    return true;
}

static bool
is_wanted (const struct mcp_block *m, const char *tool)
{
    for (size_t i = 0; i < m->tools.len; i++)
        if (strcmp (m->tools.items[i], tool) == 0)
            return true;
    return ! m->tools.is_set;
}

/* A name of the manifest that is none of its tools is a slip. */
static bool
check_wanted (const struct staged_server *v, const struct mcp_block *m, struct mur_error **err)
{
    for (size_t i = 0; i < m->tools.len + m->rename.len; i++) {
        const char *name =
            i < m->tools.len ? m->tools.items[i] : m->rename.items[i - m->tools.len].name;
        if (mcp_definition_find (v->pinned.tools, name))
            continue;
        mur_fail (err, E_MCP_004, "server %s has no tool %s: mcp.%s names it", v->name, name,
                  i < m->tools.len ? "tools" : "rename");
        return mur_hint (err, "mur mcp show %s lists its tools", v->artifact->full_name);
    }
    return true;
}

static bool
read_offers (struct staged_server *v, const struct mcp_block *m, struct mur_error **err)
{
    size_t i;
    json_t *tool;
    v->offers = x_new_array (struct server_offer, json_array_size (v->pinned.tools) + 1);
    json_array_foreach (v->pinned.tools, i,
                        tool) if (is_wanted (m, json_get_string (tool, "name")) &&
                                  ! add_offer (v, m, tool, err)) return false;
    return check_wanted (v, m, err);
}

/* --- what it is started with --- */

static void
read_args (struct staged_server *v, const struct mcp_block *m)
{
    size_t i;
    json_t *arg;
    for (i = 0; i < m->args.len; i++)
        strv_push (&v->args, m->args.items[i]);
    if (! m->args.is_set)
        json_array_foreach (v->pinned.args, i, arg) strv_push (&v->args, json_string_value (arg));
}

/* What was reviewed is what is used: there, or here. */
static bool
check_place (const struct staged_server *v, const struct mcp_block *m, struct mur_error **err)
{
    const char *url = v->pinned.url;
    if (m->url && ! str_eq (m->url, url)) {
        mur_fail (err, E_MCP_003, "server %s: mcp.url is %s, and %s was reviewed", v->name, m->url,
                  url ? url : "a program that is started here");
        return mur_hint (err, "mur mcp add %s reviews that one", m->url);
    }
    if (! url || (! m->args.is_set && ! m->env.len && ! m->secret_env.len && ! m->gateway_env))
        return true;
    mur_fail (err, E_MAN_003,
              "server %s is far away, at %s: nothing is started here that args, "
              "env, secret_env or gateway_env could reach",
              v->name, url);
    return mur_hint (err, "set mcp.url, and its key as gateway.api_key without an endpoint");
}

bool
staged_server_read (struct staged_artifact *a, struct mur_error **err)
{
    struct staged_server *v = a->server = x_new0 (struct staged_server);
    struct package *p = a->resolved->package;
    _cleanup_buf_ struct buf text = { 0 };
    v->artifact = a;
    v->name = short_name (a->full_name);
    v->archive = x_strdup (a->resolved->payload.path);
    v->sha256 = x_strdup (p->sha256);
    if (! package_read_entry (p, MCP_PINNED_FILE, &text, err) ||
        ! mcp_pinned_read (&v->pinned, text.data ? text.data : "", text.len, MCP_PINNED_FILE,
                           err)) {
        mur_context (err, "%s is no server of tools", a->full_name);
        return mur_hint (err, "mur mcp add makes one");
    }
    if (! check_place (v, a->entry->mcp, err))
        return false;
    read_args (v, a->entry->mcp);
    return read_offers (v, a->entry->mcp, err);
}

const struct server_offer *
staged_server_offers (const struct staged_server *v, size_t *count)
{
    *count = v ? v->offer_count : 0;
    return v ? v->offers : NULL;
}

const char *
staged_server_instructions (const struct staged_artifact *a)
{
    return a->server && a->entry->mcp->instructions.value ? a->server->pinned.instructions : NULL;
}

void
staged_server_free (struct staged_server *v)
{
    if (! v)
        return;
    server_free (v->process);
    gateway_door_free (v->door);
    for (size_t i = 0; i < v->offer_count; i++) {
        free (v->offers[i].name);
        free (v->offers[i].description);
        free (v->offers[i].parameters);
        free (v->offers[i].output_schema);
        strv_free (&v->offers[i].required);
    }
    free (v->offers);
    strv_free (&v->args);
    strv_free (&v->offered);
    strv_free (&v->env);
    strv_free (&v->protected);
    free (v->archive);
    free (v->sha256);
    free (v->dir);
    free (v->work);
    free (v->log_path);
    free (v->tree);
    mcp_pinned_clear (&v->pinned);
    free (v);
}
