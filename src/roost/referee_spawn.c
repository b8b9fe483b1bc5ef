/* SPDX-License-Identifier: Apache-2.0 */
#include "roost/referee_spawn.h"

#include "artifact/names/name.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/secret.h"
#include "roost/envelope.h"
#include "roost/fleet_spawn.h"
#include "roost/referee_internal.h"

#include <string.h>

#define APPROVAL_MS 60000

/* Who asks, and where the child is to be. */
struct placing {
    char *session_id; /* owned */
    bool is_elsewhere;
    struct fleet_ask ask;
};

static char *
join_list (const struct str_list *list)
{
    struct buf b = { 0 };
    for (size_t i = 0; i < list->len; i++)
        buf_printf (&b, "%s%s", i ? ", " : "", list->items[i]);
    return buf_steal (&b);
}

static const struct str_list *
spawn_list (const struct capsule_manifest *m)
{
    static const struct str_list nothing;
    return m->capabilities->spawn ? &m->capabilities->spawn->allow : &nothing;
}

/* Steps 3 to 6, under the lock: everything that needs no registry. */
static bool
may_ask (struct referee *r, const struct job *parent, const char *name, struct verdict *refusal)
{
    const struct str_list *allowed = spawn_list (parent->manifest);
    if (! str_list_has (allowed, name)) {
        _cleanup_free_ char *list = join_list (allowed);
        *refusal =
            verdict_error (403, "%s is not in capabilities.spawn.allow of %s, which lists: %s",
                           name, parent->name, *list ? list : "(nothing)");
        return false;
    }
    if (parent->depth == 0) {
        *refusal =
            verdict_error (403, "no delegation level is left below this session (--max-depth %u)",
                           r->options.max_depth);
        return false;
    }
    return referee_has_room (r, parent, refusal);
}

static struct verdict
approve (struct referee *r, const struct job *parent, const char *name, const char *version,
         const char *sha256)
{
    unsigned char raw[16];
    struct reservation reserved = { .parent = x_strdup (parent->session_id),
                                    .expires_ms = clock_unix_ms () + APPROVAL_MS };
    random_bytes (raw, sizeof raw);
    hex_encode (raw, sizeof raw, reserved.jti);
    _cleanup_json_ json_t *payload = json_pack (
        "{s:i,s:s,s:s,s:s,s:s,s:I,s:I,s:s}", "v", 1, "sid", parent->session_id, "name", name,
        "version", version, "digest", sha256, "depth", (json_int_t)(parent->depth - 1), "exp",
        (json_int_t)reserved.expires_ms, "jti", reserved.jti);
    char *approval = token_mint (&token_spawn_approval, r->key, payload, NULL);
    x_grow (r->reservations, r->reservation_len, r->reservation_cap);
    r->reservations[r->reservation_len++] = reserved;
    json_t *body = json_object ();
    json_set_string (body, "approval", approval);
    json_set_string (body, "name", name);
    json_set_string (body, "version", version);
    json_set_string (body, "sha256", sha256);
    json_set_u64 (body, "expires_at_ms", reserved.expires_ms);
    secret_wipe (approval, strlen (approval));
    free (approval);
    return (struct verdict){ 200, body };
}

/* Steps 2 to 6, and what a repeat of an ask for another machine is answered (status 200). Status 0:
 * it goes on, for *session_id (owned). */
static struct verdict
judge_asking (struct referee *r, const char *credential, const char *name, const json_t *body,
              struct placing *placing)
{
    struct verdict v = { 0, NULL };
    pthread_mutex_lock (&r->lock);
    const struct job *parent = referee_holder (r, credential);
    placing->session_id = parent ? x_strdup (parent->session_id) : NULL;
    placing->is_elsewhere = parent && fleet_places (r, parent);
    if (! parent)
        v = verdict_not_you ();
    else if (placing->is_elsewhere && ! fleet_read_ask (body, &placing->ask, &v))
        ;
    else if (placing->is_elsewhere)
        v = fleet_repeat (r, parent, &placing->ask);
    if (! v.status)
        may_ask (r, parent, name, &v);
    pthread_mutex_unlock (&r->lock);
    return v;
}

static struct verdict
judge_spawn (struct referee *r, const char *credential, const char *name, const char *version,
             const json_t *body)
{
    struct placing placing = { 0 };
    struct verdict refusal = judge_asking (r, credential, name, body, &placing);
    _cleanup_free_ char *session_id = placing.session_id;
    if (refusal.status)
        return refusal;
    if (! name_is_full (name))
        return verdict_error (400, "\"%s\" is not a full name: write <scope>/<name>", name);

    struct mur_error *err = NULL;
    struct resolved_capsule child = { 0 };
    if (! referee_resolve (r, name, version, &child, &err))
        return verdict_from_error (500, err);

    /* Again, under the lock that records the reservation: the first look alone would race. */
    struct verdict v;
    pthread_mutex_lock (&r->lock);
    const struct job *parent = job_table_find (&r->jobs, session_id);
    if (parent->state != JOB_RUNNING)
        v = verdict_not_you ();
    else if (! envelope_check (parent->manifest, child.manifest, &err))
        v = verdict_from_error (403, err);
    else if (! referee_has_room (r, parent, &v))
        ;
    else if (placing.is_elsewhere)
        v = fleet_place (r, parent, &child, name, version, &placing.ask);
    else
        v = approve (r, parent, name, version, child.sha256);
    pthread_mutex_unlock (&r->lock);
    capsule_manifest_free (child.manifest);
    return v;
}

struct verdict
referee_spawn (struct referee *r, const char *credential, const char *body, size_t body_len)
{
    struct verdict refusal;
    _cleanup_json_ json_t *o = request_body (body, body_len, &refusal);
    const char *name = o ? request_text (o, "name", &refusal) : NULL;
    const char *version = name ? request_text (o, "version", &refusal) : NULL;
    return version ? judge_spawn (r, credential, name, version, o) : refusal;
}
