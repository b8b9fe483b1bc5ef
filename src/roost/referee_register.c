/* SPDX-License-Identifier: Apache-2.0 */
#include "roost/referee_register.h"

#include "artifact/names/name.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/secret.h"
#include "roost/referee_internal.h"
#include "roost/referee_register_internal.h"

#include <string.h>

/* What a genuine approval says; strings borrowed from the payload. */
struct approval {
    const char *session_id, *name, *version, *digest, *jti;
    uint64_t depth, expires_ms;
};

static bool
read_approval (const json_t *payload, struct approval *a)
{
    uint64_t v;
    *a = (struct approval){ .session_id = json_get_string (payload, "sid"),
                            .name = json_get_string (payload, "name"),
                            .version = json_get_string (payload, "version"),
                            .digest = json_get_string (payload, "digest"),
                            .jti = json_get_string (payload, "jti") };
    return a->session_id && a->name && a->version && a->digest && a->jti && strlen (a->jti) == 32 &&
           json_get_u64 (payload, "depth", &a->depth) &&
           json_get_u64 (payload, "exp", &a->expires_ms) && json_get_u64 (payload, "v", &v) &&
           v == 1;
}

/* Spends the token: from here a wrong presentation cannot be retried. Under the lock. */
static bool
spend (struct referee *r, const struct approval *a, struct verdict *refusal)
{
    uint64_t now = clock_unix_ms ();
    if (a->expires_ms <= now) {
        *refusal = verdict_error (403, "the approval has expired: it is good for 60 s");
        return false;
    }
    referee_forget_expired (r, now);
    for (size_t i = 0; i < r->spent_len; i++)
        if (str_eq (r->spent[i].jti, a->jti)) {
            *refusal = verdict_error (403, "the approval was already spent");
            return false;
        }
    x_grow (r->spent, r->spent_len, r->spent_cap);
    r->spent[r->spent_len] = (struct spent){ .expires_ms = a->expires_ms };
    memcpy (r->spent[r->spent_len++].jti, a->jti, 33);
    return true;
}

struct verdict
referee_credential_of (struct referee *r, const char *session_id)
{
    unsigned char raw[16];
    char nonce[33];
    random_bytes (raw, sizeof raw);
    hex_encode (raw, sizeof raw, nonce);
    _cleanup_json_ json_t *payload =
        json_pack ("{s:i,s:s,s:s}", "v", 1, "sid", session_id, "n", nonce);
    char *credential = token_mint (&token_spawn_credential, r->key, payload, NULL);
    json_t *body = json_object ();
    json_set_string (body, "credential", credential);
    secret_wipe (credential, strlen (credential));
    free (credential);
    return (struct verdict){ 200, body };
}

struct verdict
referee_admit (struct referee *r, const char *session_id, const char *parent, const char *name,
               uint32_t depth, struct resolved_capsule *capsule, const struct caller *caller)
{
    struct job *j = x_new0 (struct job);
    *j = (struct job){ .session_id = x_strdup (session_id),
                       .parent = parent ? x_strdup (parent) : NULL,
                       .name = x_strdup (name),
                       .state = JOB_RUNNING,
                       .depth = depth,
                       .pid = caller->pid,
                       .registered_ms = clock_monotonic_ms (),
                       .manifest = steal_ptr (&capsule->manifest) };
    memcpy (j->start, caller->start, sizeof j->start);
    job_table_add (&r->jobs, j);
    return referee_credential_of (r, session_id);
}

static struct verdict
register_approved (struct referee *r, const char *token, const char *session_id, const char *name,
                   const char *version, struct resolved_capsule *capsule,
                   const struct caller *caller)
{
    struct approval a;
    struct verdict v;
    _cleanup_json_ json_t *payload = token_verify (&token_spawn_approval, r->key, token, NULL);
    if (! payload || ! read_approval (payload, &a))
        return verdict_not_you ();
    if (! spend (r, &a, &v))
        return v;
    const struct job *parent = job_table_find (&r->jobs, a.session_id);
    if (! parent || parent->state != JOB_RUNNING || job_table_find (&r->jobs, session_id))
        return verdict_not_you ();
    if (! str_eq (a.name, name) || ! str_eq (a.version, version))
        return verdict_error (403, "the approval is for %s@%s, not for %s@%s", a.name, a.version,
                              name, version);
    if (! str_eq (a.digest, capsule->sha256))
        return verdict_error (403,
                              "%s@%s is not the artifact that was approved: approved %s, now %s",
                              name, version, a.digest, capsule->sha256);
    for (size_t i = 0; i < r->reservation_len; i++)
        if (str_eq (r->reservations[i].jti, a.jti)) {
            referee_drop_reservation (r, i);
            break;
        }
    return referee_admit (r, session_id, a.session_id, name, (uint32_t)a.depth, capsule, caller);
}

bool
referee_is_root_allowed (const struct referee *r, const char *name, struct verdict *refusal)
{
    for (size_t i = 0; r->options.spawn_allow && r->options.spawn_allow[i]; i++)
        if (str_eq (r->options.spawn_allow[i], name))
            return true;
    *refusal = verdict_error (403,
                              "%s may not register without an approval: start mur-roost with "
                              "--spawn-allow %s",
                              name, name);
    return false;
}

static struct verdict
judge_registration (struct referee *r, const char *approval, const char *session_id,
                    const char *name, const char *version, const struct caller *caller)
{
    /* Gated before the registry is read. */
    struct verdict v;
    if (! approval && ! referee_is_root_allowed (r, name, &v))
        return v;
    if (! name_is_full (name))
        return verdict_error (400, "\"%s\" is not a full name: write <scope>/<name>", name);
    struct mur_error *err = NULL;
    struct resolved_capsule capsule = { 0 };
    if (! referee_resolve (r, name, version, &capsule, &err))
        return verdict_from_error (500, err);
    pthread_mutex_lock (&r->lock);
    if (approval)
        v = register_approved (r, approval, session_id, name, version, &capsule, caller);
    else if (job_table_find (&r->jobs, session_id))
        v = verdict_not_you ();
    else if (referee_has_room_for_root (r, &v))
        v = referee_admit (r, session_id, NULL, name, r->options.max_depth, &capsule, caller);
    pthread_mutex_unlock (&r->lock);
    capsule_manifest_free (capsule.manifest);
    return v;
}

struct verdict
referee_register (struct referee *r, const char *approval, const char *body, size_t body_len,
                  const struct caller *caller)
{
    struct verdict refusal;
    _cleanup_json_ json_t *o = request_body (body, body_len, &refusal);
    const char *session_id = o ? request_text (o, "session_id", &refusal) : NULL;
    const char *name = session_id ? request_text (o, "name", &refusal) : NULL;
    const char *version = name ? request_text (o, "version", &refusal) : NULL;
    if (! version)
        return refusal;
    if (! *session_id)
        return verdict_error (400, "session_id is empty");
    return judge_registration (r, approval, session_id, name, version, caller);
}
