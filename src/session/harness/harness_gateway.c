/* SPDX-License-Identifier: Apache-2.0 */
#include "session/harness/harness_gateway.h"

#include "base/alloc.h"

#include "base/json.h"
#include "net/server/gateway_door.h"
#include "session/harness/harness.h"
#include "session/state/spend.h"

bool
harness_gateway_charge (struct session *s, struct spend_refusal *refusal)
{
    struct harness *h = s->rooms.harness;
    pthread_mutex_lock (&h->lock);
    const struct gateway_usage now = gateway_door_usage (h->door), before = h->charged;
    h->charged = now;
    pthread_mutex_unlock (&h->lock);
    return spend_charge (s->spend,
                         now.input - before.input + now.cache_read - before.cache_read +
                             now.cache_creation - before.cache_creation,
                         now.output - before.output, refusal);
}

/* A ceiling that is reached is told as the provider would tell it. Any thread. */
static char *
refuse_request (void *ctx)
{
    struct spend_refusal r;
    if (harness_gateway_charge (ctx, &r))
        return NULL;
    return x_asprintf ("%s: %llu of %llu tokens are used", spend_limit_name (r.limit),
                       (unsigned long long)r.used, (unsigned long long)r.ceiling);
}

bool
harness_gateway_open (struct session *s, struct mur_error **err)
{
    struct harness *h = s->rooms.harness;
    if (h->door || ! h->driver->guest.gateway)
        return true;
    const struct gateway_door_spec spec = {
        .gateway = h->driver->guest.gateway, .http = s->http, .refuse = refuse_request, .ctx = s
    };
    h->door = gateway_door_new (&spec, err);
    return h->door || mur_context (err, "the gateway of harness %s", h->is.harness);
}

char *
harness_driver_config (const struct session *s)
{
    const char *written = s->choices.primary.config;
    const struct gateway_door *door = s->rooms.harness->door;
    if (! door)
        return written ? x_strdup (written) : NULL;
    _cleanup_json_ json_t *config = written ? json_loads (written, 0, NULL) : json_object ();
    if (! json_is_object (config))
        return x_strdup (written);
    json_object_set_new (config, "$gateway",
                         json_pack ("{s:s, s:s}", "base_url", gateway_door_url (door),
                                    "placeholder", gateway_door_placeholder (door)));
    return json_text (config, JSON_TEXT_SORTED);
}
