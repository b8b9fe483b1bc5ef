/* SPDX-License-Identifier: Apache-2.0 */
#include "session/harness/harness_gateway.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/json.h"
#include "net/server/gateway_door.h"
#include "session/harness/harness.h"
#include "session/harness/harness_tape.h"
#include "session/state/spend.h"

#include <sys/eventfd.h>

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

/* A program may ask for ever with a key that is refused. Any thread. */
static void
end_refused (void *ctx)
{
    struct session *s = ctx;
    struct harness *h = s->rooms.harness;
    pthread_mutex_lock (&h->lock);
    if (h->wake_fd >= 0) {
        h->is_key_refused = true;
        eventfd_write (h->wake_fd, 1);
    }
    pthread_mutex_unlock (&h->lock);
}

bool
harness_gateway_open (struct session *s, struct mur_error **err)
{
    struct harness *h = s->rooms.harness;
    if (h->door || ! h->driver->guest.gateway)
        return true;
    const struct gateway_door_spec spec = { .gateway = h->driver->guest.gateway,
                                            .http = s->http,
                                            .refuse = refuse_request,
                                            .key_refused = end_refused,
                                            .ctx = s };
    h->door = gateway_door_new (&spec, err);
    return h->door || mur_context (err, "the gateway of harness %s", h->is.harness);
}

static uint64_t
told_input (const struct process_usage *u)
{
    return u->value[USAGE_INPUT] + u->value[USAGE_CACHE_READ] + u->value[USAGE_CACHE_CREATION];
}

void
harness_gateway_compare (struct session *s, const char *task_id, const struct gateway_usage *from,
                         const struct process_usage *told)
{
    struct harness *h = s->rooms.harness;
    if (! h->door || ! told->is_set[USAGE_INPUT] || ! told->is_set[USAGE_OUTPUT])
        return;
    const struct gateway_usage now = gateway_door_usage (h->door);
    if (now.estimates > from->estimates)
        return;
    uint64_t input = now.input + now.cache_read + now.cache_creation - from->input -
                     from->cache_read - from->cache_creation,
             output = now.output - from->output;
    if (input == told_input (told) && output == told->value[USAGE_OUTPUT])
        return;
    _cleanup_free_ char *text = x_asprintf (
        "%s reported %llu input and %llu output tokens, its provider %llu and %llu", h->is.harness,
        (unsigned long long)told_input (told), (unsigned long long)told->value[USAGE_OUTPUT],
        (unsigned long long)input, (unsigned long long)output);
    TRACE (s->trace, NULL, harness_warning, .task_id = task_id, .code = diag_code_name (W_RUN_010),
           .message = text);
    if (! h->warned.usage)
        diag_warn (DIAG_RUNTIME, W_RUN_010, "%s", text);
    h->warned.usage = true;
}

static json_t *
words (const struct str_list *list)
{
    json_t *a = json_array ();
    for (size_t i = 0; i < list->len; i++)
        json_array_append_new (a, json_string (list->items[i]));
    return a;
}

/* There is somebody who wants to be asked. */
static bool
asks_first (const struct session *s)
{
    return s->manifest->approvals != NULL || s->policy->approvals.len > 0;
}

/* What the manifest says, for a driver that is asked whether something may be done. The walls hold
 * whatever it answers. */
static json_t *
rules (const struct session *s)
{
    const struct policy *p = s->policy;
    json_t *o = json_object ();
    json_set_string (o, "folder", s->places.work_path);
    json_object_set_new (o, "shell", words (&p->commands.allow));
    json_object_set_new (o, "read_only", words (&p->files.read_only_paths));
    json_object_set_new (o, "walls", json_boolean (policy_confines_harness (p)));
    json_object_set_new (o, "network", json_boolean (p->network.allow.len > 0));
    json_object_set_new (o, "approvals", json_boolean (asks_first (s)));
    return o;
}

char *
harness_driver_config (const struct session *s)
{
    const char *written = s->choices.primary.config;
    const struct gateway_door *door = s->rooms.harness->door;
    bool has_gateway = door || (s->asked->player && s->rooms.harness->driver->entry->gateway);
    if (! has_gateway && ! policy_confines_harness (s->policy) && ! asks_first (s))
        return written ? x_strdup (written) : NULL;
    _cleanup_json_ json_t *config = written ? json_loads (written, 0, NULL) : json_object ();
    if (! json_is_object (config))
        return x_strdup (written);
    if (has_gateway)
        json_object_set_new (config, "$gateway",
                             json_pack ("{s:s, s:s}", "base_url",
                                        door ? gateway_door_url (door) : PLAYED_GATEWAY_URL,
                                        "placeholder",
                                        door ? gateway_door_placeholder (door) : PLAYED_KEY));
    json_object_set_new (config, "$rules", rules (s));
    return json_text (config, JSON_TEXT_SORTED);
}
