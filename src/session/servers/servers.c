/* SPDX-License-Identifier: Apache-2.0
 *
 * The servers of a session as a whole: what each may have, started and ended with it.
 */
#include "session/servers/servers.h"

#include "artifact/package/tree.h"
#include "base/alloc.h"
#include "base/diag.h"
#include "base/secret.h"
#include "fs/paths.h"
#include "manifest/settings/secrets_dir.h"
#include "net/server/gateway_door.h"
#include "sandbox/host/host.h"
#include "session/commands/confine.h"
#include "session/servers/staged_server.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* --- what it is given --- */

/* Which of two equal names a program takes is its own affair: there is one. */
static bool
is_set_by_entry (const struct mcp_block *m, const char *name)
{
    return str_list_has (&m->secret_env, name) || str_eq (m->gateway_env, name) ||
           str_eq (m->placeholder_env, name);
}

static bool
fill_env (struct session *s, struct staged_server *v, struct mur_error **err)
{
    const struct mcp_block *m = v->artifact->entry->mcp;
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)v->pinned.env, key,
                         value) if (! m->written_env && ! is_set_by_entry (m, key))
        strv_printf (&v->env, "%s=%s", key, json_string_value (value));
    for (size_t i = 0; i < m->env.len; i++)
        strv_printf (&v->env, "%s=%s", m->env.items[i].name, m->env.items[i].value);
    for (size_t i = 0; i < m->secret_env.len; i++) {
        const char *name = m->secret_env.items[i], *text = getenv (name);
        _cleanup_secret_ struct secret *of_file = secrets_dir_ask (name);
        if (of_file)
            text = secret_reveal (of_file);
        if (! text || ! *text) {
            mur_fail (err, E_MCP_008, "server %s needs the variable %s, which is not set", v->name,
                      name);
            return mur_hint (err, "set it, or take it out of mcp.secret_env");
        }
        struct secret *secret = secret_new (text, strlen (text));
        redactor_add (s->redactor, secret);
        secret_free (secret);
        strv_printf (&v->env, "%s=%s", name, text);
        diag_warn (DIAG_RUNTIME, W_SEC_024, "server %s is given %s plainly: it can read the key",
                   v->name, name);
    }
    return true;
}

/* The part of the work folder it is granted; nothing of it without a scope. */
static bool
fill_work (struct session *s, struct staged_server *v, struct mur_error **err)
{
    const struct artifact_grant *g = v->artifact->grant;
    if (! g->opens_work_dir || ! g->scope_dir)
        return true;
    _cleanup_free_ char *path = *g->scope_dir
                                    ? x_asprintf ("%s/%s", s->places.work_path, g->scope_dir)
                                    : x_strdup (s->places.work_path);
    v->work = realpath (path, NULL);
    if (! v->work) {
        mur_fail_errno (err, E_MCP_008, "server %s: its scope %s", v->name, path);
        return mur_hint (err, "make the folder, or change filesystem.scope of %s",
                         v->artifact->full_name);
    }
    const struct str_list *paths = &s->policy->files.read_only_paths;
    for (size_t i = 0; i < paths->len; i++) {
        _cleanup_free_ char *one = x_asprintf ("%s/%s", s->places.work_path, paths->items[i]);
        if (fs_path_is_within (one, v->work))
            strv_push (&v->protected, one);
    }
    return true;
}

/* The first time it is started: its files, and the address its provider is reached at. */
static bool
prepare (void *ctx, struct server_setup *setup, struct mur_error **err)
{
    struct staged_server *v = ctx;
    const struct staged_artifact *a = v->artifact;
    const struct mcp_block *m = a->entry->mcp;
    if (! v->tree && ! (v->tree = package_tree (v->archive, v->sha256, MCP_TREE_PREFIX, err)))
        return false;
    setup->tree = v->tree;
    if (a->guest.gateway && ! v->door) {
        const struct gateway_door_spec spec = { .gateway = a->guest.gateway,
                                                .http = v->session->http };
        if (! (v->door = gateway_door_new (&spec, err)))
            return mur_context (err, "the gateway of server %s", v->name);
        strv_printf (&v->env, "%s=%s", m->gateway_env, gateway_door_url (v->door));
        if (m->placeholder_env)
            strv_printf (&v->env, "%s=%s", m->placeholder_env, gateway_door_placeholder (v->door));
    }
    setup->env = (const char *const *)v->env.items;
    setup->gateway_port = v->door ? gateway_door_port (v->door) : 0;
    return true;
}

/* The session's manifest lets it, whoever calls. */
static unsigned
may_ask (const struct staged_server *v)
{
    const struct exports *e = v->session->manifest->exports;
    const struct exported_mcp *m = e ? e->mcp : NULL;
    unsigned kinds = 0;
    if (v->artifact->entry->mcp->ask.value == MCP_ASK_OPERATOR)
        kinds |= MCP_INPUT_ELICITATION;
    if (m && m->sampling.value)
        kinds |= MCP_INPUT_SAMPLING;
    if (m && m->roots.value)
        kinds |= MCP_INPUT_ROOTS;
    return kinds;
}

static void
make_process (struct session *s, struct staged_server *v)
{
    const struct staged_artifact *a = v->artifact;
    const struct mcp_block *m = a->entry->mcp;
    const struct capabilities *c = a->entry->capabilities;
    const char *url = v->pinned.url;
    v->asks = may_ask (v);
    const struct server_setup setup = {
        .name = v->name,
        .artifact = a->full_name,
        .pinned = &v->pinned,
        .args = (const char *const *)v->args.items,
        .log_path = v->log_path,
        .dir = v->dir,
        .work = v->work,
        .protected = (const char *const *)v->protected.items,
        .session_id = s->id.text,
        .tier = confine_tier (s),
        .space = host_decide (s->asked->decision)->space,
        .cgroup_is_optional = s->asked->config->cgroup_is_optional,
        .resources = c && c->resources ? *c->resources : resources_default (),
        .reach = { a->grant->network, c && c->shell ? c->shell->allow : (struct str_list){ 0 } },
        .startup_ms = m->startup_secs.value * 1000,
        .drops_drift = m->on_drift.value == MCP_DRIFT_DROP,
        .offered = (const char *const *)v->offered.items,
        .asks = v->asks,
        .trace = &s->trace,
        .remote = { .url = url,
                    .http = s->http,
                    .gateway = url ? a->guest.gateway : NULL,
                    .redactor = s->redactor },
        .maker = { url ? NULL : prepare, v },
    };
    v->process = server_new (&setup);
}

static bool
stage_one (struct session *s, struct staged_server *v, struct mur_error **err)
{
    v->session = s;
    v->dir = x_asprintf ("%s/mcp/%s", s->places.dirs.records_path, v->name);
    v->log_path = x_asprintf ("%s/logs/mcp-%s.log", s->places.dirs.records_path, v->name);
    _cleanup_free_ char *parent = x_asprintf ("%s/mcp", s->places.dirs.records_path);
    if (mkdir (parent, 0700) < 0 && errno != EEXIST)
        return mur_fail_errno (err, E_IO_003, "cannot create %s", parent);
    if (! fill_env (s, v, err) || ! fill_work (s, v, err))
        return false;
    make_process (s, v);
    return true;
}

/* --- all of them --- */

#define EACH_SERVER(s, v)                                                                          \
    for (size_t i_ = 0; i_ < (s)->kit.artifact_count; i_++)                                        \
        if (((v) = (s)->kit.artifacts[i_].server))

/* Nothing of them is started any more. Any thread. */
static void
kill_all (struct session *s)
{
    struct staged_server *v;
    EACH_SERVER (s, v) if (v->process) server_kill (v->process);
}

bool
servers_stage (struct session *s, struct mur_error **err)
{
    struct staged_server *v;
    EACH_SERVER (s, v)
    {
        if (! stage_one (s, v, err))
            return false;
        last_acts_add (s, kill_all);
    }
    return true;
}

bool
servers_start (struct session *s, struct mur_error **err)
{
    struct staged_server *v;
    EACH_SERVER (s, v)
    if (v->artifact->entry->mcp->start.value == MCP_START_LAUNCH &&
        ! server_open (v->process, NULL, err))
        return false;
    return true;
}

void
servers_end (struct session *s)
{
    struct staged_server *v;
    EACH_SERVER (s, v) if (v->process) server_end_begin (v->process);
    EACH_SERVER (s, v)
    {
        server_free (steal_ptr (&v->process));
        gateway_door_free (steal_ptr (&v->door));
    }
}
