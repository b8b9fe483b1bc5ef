/* SPDX-License-Identifier: Apache-2.0 */
#include "session/served/served.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/version.h"
#include "door/door.h"
#include "door/tasks/intake.h"
#include "mcp/input.h"
#include "session/serve.h"
#include "session/served/held_tasks.h"
#include "session/served/served_internal.h"

#include <unistd.h>

static bool
check_tools (const struct session *s, const struct exported_mcp *m, struct mur_error **err)
{
    for (size_t i = 0; i < m->tools.len; i++) {
        if (session_tool (s, m->tools.items[i]))
            continue;
        _cleanup_strv_ struct strv names = { 0 };
        for (size_t k = 0; k < s->kit.tool_count; k++)
            strv_push (&names, s->kit.tools[k].name);
        _cleanup_free_ char *all = strv_join (&names, ", ");
        mur_fail (err, E_MCP_010, "exports.mcp.tools: this capsule has no tool named %s",
                  m->tools.items[i]);
        return mur_hint (err, "its tools are: %s", all);
    }
    return true;
}

static bool
check_exported (const struct session *s, struct mur_error **err)
{
    const struct exports *e = s->manifest->exports;
    const struct exported_mcp *m = e ? e->mcp : NULL;
    if (! m || (! m->tools.len && ! m->agent && ! m->skills.value && ! m->files.value &&
                ! m->prompts.len)) {
        mur_fail (err, E_MCP_010, "%s serves nothing to MCP clients", s->manifest->name);
        return mur_hint (err, "name what it serves in its murmur.yaml: exports: {mcp: {tools: "
                              "[...]}}");
    }
    if (m->agent && session_tool (s, m->agent->name))
        return mur_fail (err, E_MCP_010, "exports.mcp.agent.name: %s is the name of a tool",
                         m->agent->name);
    return check_tools (s, m, err) && served_check_prompts (s, m, err);
}

static unsigned
offers_of (const struct exported_mcp *m)
{
    unsigned offers = MCP_OFFERS_TOOLS;
    if (m->agent || m->tasks.len)
        offers |= MCP_OFFERS_TASKS;
    if (m->skills.value)
        offers |= MCP_OFFERS_SKILLS | MCP_OFFERS_PROMPTS | MCP_OFFERS_RESOURCES;
    if (m->files.value)
        offers |= MCP_OFFERS_RESOURCES | MCP_OFFERS_COMPLETIONS;
    if (m->prompts.len)
        offers |= MCP_OFFERS_PROMPTS | MCP_OFFERS_COMPLETIONS;
    return offers;
}

static struct served *
served_new (struct session *s, struct mur_error **err)
{
    if (! check_exported (s, err))
        return NULL;
    struct served *v = x_new0 (struct served);
    *v =
        (struct served){ .s = s, .exported = s->manifest->exports->mcp, .in_fd = -1, .out_fd = -1 };
    v->service = (struct mcp_service){
        .ctx = v,
        .name = s->manifest->name,
        .version = s->manifest->version ? s->manifest->version : MUR_VERSION,
        .offers = offers_of (s->manifest->exports->mcp),
        .asks = (s->manifest->exports->mcp->sampling.value ? MCP_INPUT_SAMPLING : 0U) |
                (s->manifest->exports->mcp->roots.value ? MCP_INPUT_ROOTS : 0U),
        .needs_tasks = held_needs_tasks (s->manifest->exports->mcp),
        .tells_changes = true,
        .tools_list = served_tools_list,
        .tools_call = served_tools_call,
        .resources_list = served_resources_list,
        .resources_read = served_resources_read,
        .resource_templates = served_resource_templates,
        .complete = served_complete,
        .prompts_list = served_prompts_list,
        .prompts_get = served_prompts_get,
        .skills_list = served_skills_list,
        .skills_get = served_skills_get,
        .tasks_get = served_tasks_get,
        .tasks_update = served_tasks_update,
        .tasks_cancel = served_tasks_cancel,
        .watch = served_resource_watch,
        .unwatch = served_resource_unwatch,
        .watch_list = s->manifest->exports->mcp->files.value ? served_list_watch : NULL,
    };
    held_init (&v->held);
    served_watch_init (&v->watch);
    random_bytes (v->state_key, sizeof v->state_key);
    v->task.id = x_strdup (id_new ("tsk").text);
    v->task.context_id = x_strdup (id_new ("ctx").text);
    v->task.source = x_strdup ("mcp");
    v->task.origin = ORIGIN_PEER;
    v->task.cancel = cancel_new ();
    s->loop_lock.is_shared = true;
    s->kit.tools_changed = served_watch_tools;
    return v;
}

void
served_free (struct session *s)
{
    struct served *v = s->rooms.served;
    if (! v)
        return;
    s->kit.tools_changed = NULL;
    free (v->task.id);
    free (v->task.context_id);
    free (v->task.source);
    cancel_unref (v->task.cancel);
    held_destroy (&v->held);
    served_watch_destroy (&v->watch);
    if (v->in_fd >= 0)
        close (v->in_fd);
    if (v->out_fd >= 0)
        close (v->out_fd);
    free (v);
}

bool
served_begin (struct session *s, struct mur_error **err)
{
    const struct exports *e = s->manifest->exports;
    if (! s->rooms.served && e && e->mcp)
        s->rooms.served = served_new (s, err);
    return s->rooms.served || ! e || ! e->mcp;
}

static bool
is_loopback (const char *address)
{
    return ! address || str_starts (address, "127.") || str_eq (address, "localhost") ||
           str_eq (address, "::1");
}

void
served_at_door (struct session *s, bool is_authenticated)
{
    struct served *v = s->rooms.served;
    if (! v)
        return;
    v->is_authenticated = is_authenticated;
    v->told = served_generation (v);
    const struct mcp_plane_spec spec = {
        .service = &v->service,
        .ask_tool = v->exported->agent ? v->exported->agent->name : NULL,
        .is_loopback = is_loopback (s->asked->bind_addr),
    };
    door_set_mcp (s->door, &spec);
}

bool
session_serve_stdio (struct session *s, int in_fd, int out_fd, struct mur_error **err)
{
    s->rooms.served = served_new (s, err);
    if (! s->rooms.served) {
        close (in_fd);
        close (out_fd);
        return false;
    }
    s->rooms.served->is_stdio = true;
    s->rooms.served->in_fd = in_fd;
    s->rooms.served->out_fd = out_fd;
    return true;
}

/* The client is gone: nothing is waited for any more. */
static void
on_client_gone (void *ctx)
{
    struct session *s = ctx;
    _cleanup_strv_ struct strv ids = { 0 };
    registry_cancel_all (s->registry, &ids);
    registry_interrupt (s->registry);
}

bool
served_start (struct session *s, struct mur_error **err)
{
    struct served *v = s->rooms.served;
    if (! v || v->in_fd < 0)
        return true;
    int in_fd = v->in_fd, out_fd = v->out_fd;
    v->in_fd = v->out_fd = -1;
    v->stdio = stdio_server_start (v, in_fd, out_fd, on_client_gone, s, err);
    return v->stdio != NULL;
}

void
served_end (struct session *s)
{
    struct served *v = s->rooms.served;
    if (! v)
        return;
    held_close (v);
    served_watch_end (v);
    stdio_server_stop (v->stdio);
    door_stop_mcp (s->door);
    held_drain (v);
    v->stdio = NULL;
    if (v->has_begun)
        TRACE (s->trace, NULL, task_end, .task_id = v->task.id, .exit_status = "ok",
               .duration_ms = clock_monotonic_ms () - v->started_ms, .turns = v->calls,
               .tool_calls = v->calls);
}
