/* SPDX-License-Identifier: Apache-2.0 */
#include "session/guests/guest_store.h"
#include "engine/guest.h"

#include "door/tasks/tasks.h"
#include "net/guest_http.h"
#include "session/guests/guests.h"
#include "session/guests/senses.h"
#include "session/state/running_task.h"
#include "session/state/session.h"
#include "spawn/formation/membership.h"

#define PREOPENS_MAX 3

static size_t
fill_preopens (const struct session *s, const struct guest_setup *setup,
               struct guest_preopen preopens[PREOPENS_MAX])
{
    const struct staged_artifact *a = setup->artifact;
    size_t n = 0;
    bool is_scoped = a && a->grant->scope;
    if (a && a->guest.scope_fd >= 0)
        preopens[n++] = (struct guest_preopen){ a->guest.scope_fd, ".", false };
    else if (! a || a->role != ROLE_HOOK || a->grant->opens_work_dir)
        preopens[n++] = (struct guest_preopen){ fs_root_fd (s->places.work), ".", false };
    if (! a || (a->role == ROLE_TOOL && ! is_scoped))
        preopens[n++] =
            (struct guest_preopen){ fs_root_fd (s->places.runtime), "murmur-runtime", true };
    if (a && a->guest.state_fd >= 0)
        preopens[n++] = (struct guest_preopen){ a->guest.state_fd, "state", false };
    return n;
}

static bool
is_admitted (void *ctx)
{
    return spend_is_open (ctx);
}

/* Another member, with the trust of the task that runs now. */
static bool
find_peer (void *ctx, const char *name, struct guest_peer *out)
{
    struct session *s = ctx;
    struct membership *m = s->asked->launcher.membership;
    const struct secret *token = membership_token (m, name);
    if (! token)
        return false;
    pthread_mutex_lock (&s->now.lock);
    bool is_trusted = s->now.task && s->now.task->task->is_trusted;
    pthread_mutex_unlock (&s->now.lock);
    char *base = membership_address (m, name, NULL);
    *out = (struct guest_peer){ .base = base,
                                .asked_for = base ? membership_asked_for (m, base) : NULL,
                                .token = secret_copy (token),
                                .trust = is_trusted ? "trusted" : "untrusted" };
    return out->base != NULL;
}

bool
guest_store_open (struct session *s, const struct guest_setup *setup, struct guest_store *store,
                  enum guest_ending *ending, struct mur_error **err)
{
    struct guest_http_spec http = {
        .client = s->http,
        .allow = setup->artifact ? &setup->artifact->guest.allow : guests_script_allow (s),
        .gateway = setup->gateway,
        .is_admitted = is_admitted,
        .ctx = s->spend,
        .find_peer = s->asked->launcher.membership ? find_peer : NULL,
        .peer_ctx = s,
    };
    struct guest_preopen preopens[PREOPENS_MAX];
    struct host_binding bindings[LINKAGE_MAX];
    const struct cap_limits *limits = &s->policy->limits;
    struct guest_spec spec = {
        .engine = guests_engine (s),
        .component = setup->component,
        .limits = { limits->memory_bytes.value, limits->table_elements.value,
                    limits->instances.value,
                    setup->artifact ? setup->artifact->grant->deadline_seconds
                                    : limits->deadline_seconds.value },
        .preopens = preopens,
        .preopen_count = fill_preopens (s, setup, preopens),
        .env = setup->env,
        .bindings = bindings,
        .binding_count =
            linkage_bind (setup->kind, setup->contexts, setup->context_count, bindings),
        .http = &guest_http_handler,
    };
    store->senses = senses_new (s, setup);
    if (store->senses) {
        http.watch = senses_watch (store->senses);
        http.watch_ctx = senses_http (store->senses);
    }
    store->http = guest_http_new (&http);
    spec.http_ctx = store->http;
    if (store->senses)
        senses_fill (store->senses, &spec);
    store->guest = guest_new (&spec, setup->cancel, ending, err);
    return store->guest != NULL;
}

void
guest_store_close (struct guest_store *store)
{
    if (store->guest)
        guest_free (store->guest);
    if (store->http)
        guest_http_free (store->http);
    senses_free (store->senses);
    *store = (struct guest_store){ 0 };
}
