/* SPDX-License-Identifier: Apache-2.0
 *
 * A server outside of any session, for the commands that add and show one. See mcp_review.h.
 */
#include "base/alloc.h"
#include "base/ids.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "home/paths.h"
#include "net/gateway.h"
#include "sandbox/host/host.h"
#include "session/mcp_review.h"
#include "session/servers/follow.h"
#include "session/servers/server_request.h"

#include <string.h>

#define TREES "mcp"

struct review {
    struct mcp_server *server;
    struct http_client *http; /* of one far away */
    struct gateway *gateway;  /* its key; NULL: none */
    struct secret *key;
    char *dir, *name; /* its private folder; the folder's own name */
    struct id id;
};

/* The strongest below a composed root, so that what is found out holds for every class. */
static enum confinement_tier
review_tier (void)
{
    return host_probe_once ()->landlock_abi > 0 ? CONFINEMENT_LANDLOCK : CONFINEMENT_SECCOMP;
}

static enum session_space
review_space (const struct review_request *q)
{
    const struct host_containment host = host_containment_facts ();
    return containment_space (&host, q->may_be_unconfined);
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

static void
read_key (void *ctx, struct gateway_key *out)
{
    const struct review *r = ctx;
    out->value = secret_copy (r->key);
    out->source = GATEWAY_SOURCE_ENVIRONMENT;
}

/* One far away needs no folder: an address and what is shown there. */
static bool
reach (struct review *r, const struct review_request *q, struct mur_error **err)
{
    r->http = http_client_new ();
    if (! q->key)
        return true;
    r->key = secret_copy (q->key);
    const char *query = strchr (q->pinned->url, '?'), *own = q->pinned->key_header;
    _cleanup_free_ char *endpoint =
        query ? x_strndup (q->pinned->url, (size_t)(query - q->pinned->url))
              : x_strdup (q->pinned->url);
    const struct gateway_spec spec = { .artifact = q->name,
                                       .endpoint = endpoint,
                                       .auth_header = own ? own : "Authorization",
                                       .auth_value = own ? "{key}" : "Bearer {key}",
                                       .read_key = read_key,
                                       .ctx = r };
    r->gateway = gateway_new (&spec, err);
    return r->gateway != NULL;
}

struct review *
review_open (const struct review_request *q, struct mur_error **err)
{
    _cleanup_ (review_closep) struct review *r = x_new0 (struct review);
    r->id = id_new ("ses_");
    const char *url = q->pinned->url;
    if (url ? ! reach (r, q, err) : ! make_dir (r, err))
        return NULL;
    const struct server_setup setup = {
        .name = q->name,
        .artifact = q->name,
        .pinned = q->pinned,
        .is_unknown = q->is_unknown,
        .tree = q->tree,
        .args = q->args,
        .env = q->env,
        .dir = r->dir,
        .work = q->work,
        .session_id = r->id.text,
        .tier = url ? CONFINEMENT_SECCOMP : review_tier (),
        .space = url ? SPACE_OWN : review_space (q),
        .cgroup_is_optional = q->cgroup_is_optional,
        .resources = resources_default (),
        .reach = { q->network, q->programs },
        .remote = { .url = url, .http = r->http, .gateway = r->gateway },
        .startup_ms = q->startup_ms
    };
    r->server = server_new (&setup);
    return server_open (r->server, NULL, err) ? steal_ptr (&r) : NULL;
}

json_t *
review_tools (struct review *r, struct mur_error **err)
{
    return server_list_tools (r->server, NULL, err);
}

const struct strv *
review_unsendable (const struct review *r)
{
    return server_unsendable (r->server);
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

/* Nobody is there to answer what it may ask. */
static json_t *
follow (struct review *r, json_t *created, uint64_t deadline_ms, struct mur_error **err)
{
    _cleanup_json_ json_t *taken = created;
    struct server_follow f = { .idle_ms = deadline_ms,
                               .cap_ms = deadline_ms * 10,
                               .cancel = cancel_new () };
    json_t *result = server_follow (r->server, taken, &f, err);
    cancel_unref (f.cancel);
    return result;
}

json_t *
review_call (struct review *r, const char *tool, const json_t *arguments, uint64_t deadline_ms,
             struct mur_error **err)
{
    _cleanup_json_ json_t *members = json_pack ("{s:s, s:O}", "name", tool, "arguments", arguments);
    struct server_ask ask = { .idle_ms = deadline_ms, .cap_ms = deadline_ms };
    if (! server_may_call (r->server, tool, err))
        return NULL;
    json_t *result = server_call (r->server, &ask, members, err);
    return server_is_task (result) ? follow (r, result, deadline_ms, err) : result;
}

void
review_close (struct review *r)
{
    if (! r)
        return;
    server_free (r->server);
    http_client_free (r->http);
    gateway_free (r->gateway);
    secret_free (r->key);
    int trees = r->name ? home_find_dir (TREES, NULL) : -1;
    if (trees >= 0) {
        (void)fs_remove_tree_at (trees, r->name, NULL);
        close (trees);
    }
    free (r->dir);
    free (r->name);
    free (r);
}
