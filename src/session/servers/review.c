/* SPDX-License-Identifier: Apache-2.0
 *
 * A server outside of any session, for the commands that add and show one. See mcp_review.h.
 */
#include "base/alloc.h"
#include "base/ids.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "home/paths.h"
#include "sandbox/host/host.h"
#include "session/mcp_review.h"
#include "session/servers/server_request.h"

#include <string.h>

#define TREES "mcp"

struct review {
    struct mcp_server *server;
    char *dir, *name; /* its private folder; the folder's own name */
    struct id id;
};

/* The strongest below a composed root, so that what is found out holds for every class. */
static enum confinement_tier
review_tier (void)
{
    return host_probe_once ()->landlock_abi > 0 ? CONFINEMENT_LANDLOCK : CONFINEMENT_SECCOMP;
}

static bool
make_dir (struct review *r, struct mur_error **err)
{
    char id[37];
    uuid_text (id);
    _cleanup_close_ int trees = home_open_dir (TREES, err);
    r->name = x_asprintf (".review-%s", id);
    _cleanup_free_ char *below = x_asprintf (TREES "/%s", r->name);
    _cleanup_free_ char *path = trees < 0 ? NULL : home_path_below (below, err);
    r->dir = path ? fs_canonical_path (path, err) : NULL;
    return r->dir != NULL;
}

struct review *
review_open (const struct review_request *q, struct mur_error **err)
{
    _cleanup_ (review_closep) struct review *r = x_new0 (struct review);
    r->id = id_new ("ses_");
    if (! make_dir (r, err))
        return NULL;
    const struct server_setup setup = { .name = q->name,
                                        .artifact = q->name,
                                        .pinned = q->pinned,
                                        .is_unknown = q->is_unknown,
                                        .tree = q->tree,
                                        .args = q->args,
                                        .env = q->env,
                                        .dir = r->dir,
                                        .work = q->work,
                                        .session_id = r->id.text,
                                        .tier = review_tier (),
                                        .is_unconfined = q->is_unconfined,
                                        .cgroup_is_optional = q->cgroup_is_optional,
                                        .resources = resources_default (),
                                        .network = q->network,
                                        .startup_ms = q->startup_ms };
    r->server = server_new (&setup);
    return server_open (r->server, NULL, err) ? steal_ptr (&r) : NULL;
}

json_t *
review_tools (struct review *r, struct mur_error **err)
{
    return server_list_tools (r->server, NULL, err);
}

json_t *
review_said (const struct review *r)
{
    const struct mcp_client *c = server_client (r->server);
    json_t *said = json_object ();
    json_set_string (said, "revision", c->revision->name);
    if (c->info)
        json_object_set (said, "server", c->info);
    if (c->instructions)
        json_set_string (said, "instructions", c->instructions);
    return said;
}

json_t *
review_call (struct review *r, const char *tool, const json_t *arguments, uint64_t deadline_ms,
             struct mur_error **err)
{
    json_t *params = json_pack ("{s:s, s:O}", "name", tool, "arguments", arguments);
    struct server_ask ask = { .method = "tools/call",
                              .params = mcp_client_params (server_client (r->server), params, 0),
                              .idle_ms = deadline_ms,
                              .cap_ms = deadline_ms };
    return server_may_call (r->server, tool, err) ? server_request (r->server, &ask, err)
                                                  : (json_decref (ask.params), NULL);
}

void
review_close (struct review *r)
{
    if (! r)
        return;
    server_free (r->server);
    int trees = home_find_dir (TREES, NULL);
    if (trees >= 0) {
        (void)fs_remove_tree_at (trees, r->name, NULL);
        close (trees);
    }
    free (r->dir);
    free (r->name);
    free (r);
}
