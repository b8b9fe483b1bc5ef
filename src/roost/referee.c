/* SPDX-License-Identifier: Apache-2.0 */
#include "roost/referee.h"

#include "artifact/names/name.h"
#include "artifact/package/package.h"
#include "artifact/store/store.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/keys/token.h"
#include "base/secret.h"
#include "home/running.h"
#include "roost/census.h"
#include "roost/envelope.h"
#include "roost/jobs.h"

#include <pthread.h>
#include <string.h>

#define APPROVAL_MS   60000
#define OFTEN_UP_TO   64 /* running sessions that are looked for at every refusal */
#define LOOK_AGAIN_MS 1000
#define RECORD_MS     15000 /* by then a session whose process nobody names has a running record */
#define SESSIONS_MAX  4096u

static const char *const job_state_names[] = {
    [JOB_RUNNING] = "running",
    [JOB_COMPLETE] = "complete",
    [JOB_FAILED] = "failed",
};

/* An approval not yet redeemed. */
struct reservation {
    char jti[33];
    char *parent;
    uint64_t expires_ms; /* Unix */
};

struct spent {
    char jti[33];
    uint64_t expires_ms;
};

struct referee {
    struct referee_options options;
    unsigned char key[TOKEN_KEY_LEN];
    pthread_mutex_t lock; /* guards everything below */
    struct census *census;
    struct job_table jobs;
    struct reservation *reservations;
    size_t reservation_len, reservation_cap;
    struct spent *spent;
    size_t spent_len, spent_cap;
    uint64_t looked_ms; /* monotonic: when killed sessions were last looked for */
};

/* --- verdicts --- */

struct verdict
verdict_error (int status, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    _cleanup_free_ char *text = x_vasprintf (fmt, ap);
    va_end (ap);
    json_t *body = json_object ();
    json_set_string (body, "error", text);
    return (struct verdict){ status, body };
}

/* One text for every fault of identity: anything more precise would be an oracle. */
static struct verdict
not_you (void)
{
    return verdict_error (403, "the credential presented is not valid for this request");
}

static struct verdict
from_error (int status, struct mur_error *e)
{
    struct verdict v = verdict_error (status, "%s", e->message);
    mur_error_free (e);
    return v;
}

struct referee *
referee_new (const struct referee_options *options, struct census *census)
{
    struct referee *r = x_new0 (struct referee);
    r->options = *options;
    r->census = census;
    random_bytes (r->key, sizeof r->key);
    pthread_mutex_init (&r->lock, NULL);
    return r;
}

void
referee_free (struct referee *r)
{
    if (! r)
        return;
    secret_wipe (r->key, sizeof r->key);
    job_table_clear (&r->jobs);
    for (size_t i = 0; i < r->reservation_len; i++)
        free (r->reservations[i].parent);
    free (r->reservations);
    free (r->spent);
    census_free (r->census);
    pthread_mutex_destroy (&r->lock);
    free (r);
}

/* --- counting, under the lock --- */

static void
drop_reservation (struct referee *r, size_t i)
{
    free (r->reservations[i].parent);
    r->reservations[i] = r->reservations[--r->reservation_len];
}

static void
forget_expired (struct referee *r, uint64_t now)
{
    for (size_t i = 0; i < r->reservation_len;)
        if (r->reservations[i].expires_ms <= now)
            drop_reservation (r, i);
        else
            i++;
    for (size_t i = 0; i < r->spent_len;)
        if (r->spent[i].expires_ms <= now)
            r->spent[i] = r->spent[--r->spent_len];
        else
            i++;
}

static bool
is_known (void *ctx, const char *session_id)
{
    return job_table_find (&((struct referee *)ctx)->jobs, session_id) != NULL;
}

static uint64_t
machine_live (struct referee *r)
{
    return r->jobs.running + r->reservation_len + census_count (r->census, is_known, r);
}

static uint64_t
live_children (const struct referee *r, const char *session_id)
{
    uint64_t count = 0;
    for (size_t i = 0; i < r->jobs.size; i++)
        count += r->jobs.slots[i] && r->jobs.slots[i]->state == JOB_RUNNING &&
                 str_eq (r->jobs.slots[i]->parent, session_id);
    for (size_t i = 0; i < r->reservation_len; i++)
        count += str_eq (r->reservations[i].parent, session_id);
    return count;
}

static void finish (struct referee *r, struct job *j, enum job_state state);

static bool
is_gone (const struct referee *r, const struct job *j, uint64_t now_ms)
{
    const char *reason;
    if (j->pid)
        return running_check (j->pid, j->start, &reason) == RUNNING_GONE;
    enum census_record record = census_look (r->census, j->session_id);
    return record == RECORD_GONE ||
           (record == RECORD_NONE && now_ms - j->registered_ms > RECORD_MS);
}

/* Sessions that were killed never say so: before somebody is refused for them their processes are
 * looked for. Not often, since each costs a file. True when some were gone. */
static bool
bury_the_killed (struct referee *r, const struct job *asking)
{
    uint64_t now_ms = clock_monotonic_ms (), before = r->jobs.running;
    if (r->jobs.running > OFTEN_UP_TO && now_ms - r->looked_ms < LOOK_AGAIN_MS)
        return false;
    r->looked_ms = now_ms;
    for (size_t i = 0; i < r->jobs.size; i++) {
        struct job *j = r->jobs.slots[i];
        if (j && j != asking && j->state == JOB_RUNNING && is_gone (r, j, now_ms))
            finish (r, j, JOB_FAILED);
    }
    return r->jobs.running < before;
}

static struct verdict
machine_is_full (const struct referee *r, uint64_t live)
{
    return verdict_error (403,
                          "this machine runs %llu live capsules and --max-live-capsules %u "
                          "allows no more: waiting helps, asking for less does not",
                          (unsigned long long)live, r->options.max_live);
}

/* Sessions that nobody approved are no delegations, which the ceiling is for; what one daemon
 * remembers is bounded all the same. */
static bool
has_room_for_root (struct referee *r, struct verdict *refusal)
{
    if (r->jobs.running < SESSIONS_MAX ||
        (bury_the_killed (r, NULL) && r->jobs.running < SESSIONS_MAX))
        return true;
    *refusal = verdict_error (
        403, "this daemon knows %u running sessions and takes no more until one ends",
        SESSIONS_MAX);
    return false;
}

/* Machine ceiling, then the parent's own. True when both leave room. */
static bool
has_room (struct referee *r, const struct job *parent, struct verdict *refusal)
{
    forget_expired (r, clock_unix_ms ());
    uint64_t live = machine_live (r), children = live_children (r, parent->session_id);
    bool is_full = live >= r->options.max_live || children >= r->options.max_concurrent;
    if (is_full && bury_the_killed (r, parent)) {
        live = machine_live (r);
        children = live_children (r, parent->session_id);
    }
    if (live >= r->options.max_live)
        *refusal = machine_is_full (r, live);
    else if (children >= r->options.max_concurrent)
        *refusal = verdict_error (403,
                                  "this session has %llu live children and --max-concurrent %u "
                                  "allows no more until one ends",
                                  (unsigned long long)children, r->options.max_concurrent);
    else
        return true;
    return false;
}

/* --- requests --- */

/* A JSON object body, or a 400. */
static json_t *
read_body (const char *body, size_t len, struct verdict *refusal)
{
    json_t *o = json_loadb (body, len, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object (o))
        return o;
    json_decref (o);
    *refusal = verdict_error (400, "the body is not a JSON object, or names a key twice");
    return NULL;
}

static const char *
read_text (const json_t *o, const char *key, struct verdict *refusal)
{
    const char *value = json_get_string (o, key);
    if (! value)
        *refusal = verdict_error (400, "the body has no string \"%s\"", key);
    return value;
}

/* The running session a credential names; under the lock. NULL: the identity refusal. */
static struct job *
holder (struct referee *r, const char *credential)
{
    _cleanup_json_ json_t *payload =
        credential ? token_verify (&token_spawn_credential, r->key, credential, NULL) : NULL;
    const char *session_id = json_get_string (payload, "sid");
    struct job *j = session_id ? job_table_find (&r->jobs, session_id) : NULL;
    return j && j->state == JOB_RUNNING ? j : NULL;
}

/* The capsule as the registry resolves it now. */
struct resolved_capsule {
    struct capsule_manifest *manifest;
    char sha256[SHA256_HEX_LEN + 1];
};

static bool
resolve (const struct referee *r, const char *name, const char *version,
         struct resolved_capsule *out, struct mur_error **err)
{
    const struct store store = { STORE_GLOBAL, (char *)(uintptr_t)r->options.registry_path };
    _cleanup_payload_ struct store_payload payload = { 0 };
    enum store_found found = store_find (&store, name, version, NULL, &payload, err);
    if (found == STORE_NOT_FOUND)
        return mur_fail (err, E_REG_001, "%s@%s is not in the registry %s", name, version,
                         r->options.registry_path);
    if (found != STORE_FOUND)
        return false;
    _cleanup_package_ struct package *p = store_read (&payload, name, version, err);
    if (! p || ! package_open_zip (p, err))
        return false;
    memcpy (out->sha256, p->sha256, sizeof out->sha256);
    out->manifest =
        capsule_manifest_parse (p->manifest_text, p->manifest_len, name, MANIFEST_SECRETLESS, err);
    return out->manifest != NULL;
}

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

static bool
list_has (const struct str_list *list, const char *entry)
{
    for (size_t i = 0; i < list->len; i++)
        if (str_eq (list->items[i], entry))
            return true;
    return false;
}

/* --- POST /spawn --- */

/* Steps 3 to 6, under the lock: everything that needs no registry. */
static bool
may_ask (struct referee *r, const struct job *parent, const char *name, struct verdict *refusal)
{
    const struct str_list *allowed = spawn_list (parent->manifest);
    if (! list_has (allowed, name)) {
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
    return has_room (r, parent, refusal);
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

static struct verdict
judge_spawn (struct referee *r, const char *credential, const char *name, const char *version)
{
    struct verdict refusal;
    pthread_mutex_lock (&r->lock);
    struct job *parent = holder (r, credential);
    _cleanup_free_ char *session_id = parent ? x_strdup (parent->session_id) : NULL;
    bool goes_on = parent && may_ask (r, parent, name, &refusal);
    pthread_mutex_unlock (&r->lock);
    if (! session_id)
        return not_you ();
    if (! goes_on)
        return refusal;
    if (! name_is_full (name))
        return verdict_error (400, "\"%s\" is not a full name: write <scope>/<name>", name);

    struct mur_error *err = NULL;
    struct resolved_capsule child = { 0 };
    if (! resolve (r, name, version, &child, &err))
        return from_error (500, err);

    /* Again, under the lock that records the reservation: the first look alone would race. */
    struct verdict v;
    pthread_mutex_lock (&r->lock);
    parent = job_table_find (&r->jobs, session_id);
    if (parent->state != JOB_RUNNING)
        v = not_you ();
    else if (! envelope_check (parent->manifest, child.manifest, &err))
        v = from_error (403, err);
    else if (! has_room (r, parent, &v))
        ;
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
    _cleanup_json_ json_t *o = read_body (body, body_len, &refusal);
    const char *name = o ? read_text (o, "name", &refusal) : NULL;
    const char *version = name ? read_text (o, "version", &refusal) : NULL;
    return version ? judge_spawn (r, credential, name, version) : refusal;
}

/* --- POST /register --- */

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
    forget_expired (r, now);
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

static struct verdict
admit (struct referee *r, const char *session_id, const char *parent, const char *name,
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

static struct verdict
register_approved (struct referee *r, const char *token, const char *session_id, const char *name,
                   const char *version, struct resolved_capsule *capsule,
                   const struct caller *caller)
{
    struct approval a;
    struct verdict v;
    _cleanup_json_ json_t *payload = token_verify (&token_spawn_approval, r->key, token, NULL);
    if (! payload || ! read_approval (payload, &a))
        return not_you ();
    if (! spend (r, &a, &v))
        return v;
    const struct job *parent = job_table_find (&r->jobs, a.session_id);
    if (! parent || parent->state != JOB_RUNNING || job_table_find (&r->jobs, session_id))
        return not_you ();
    if (! str_eq (a.name, name) || ! str_eq (a.version, version))
        return verdict_error (403, "the approval is for %s@%s, not for %s@%s", a.name, a.version,
                              name, version);
    if (! str_eq (a.digest, capsule->sha256))
        return verdict_error (403,
                              "%s@%s is not the artifact that was approved: approved %s, now %s",
                              name, version, a.digest, capsule->sha256);
    for (size_t i = 0; i < r->reservation_len; i++)
        if (str_eq (r->reservations[i].jti, a.jti)) {
            drop_reservation (r, i);
            break;
        }
    return admit (r, session_id, a.session_id, name, (uint32_t)a.depth, capsule, caller);
}

static bool
is_root_allowed (const struct referee *r, const char *name)
{
    for (size_t i = 0; r->options.spawn_allow && r->options.spawn_allow[i]; i++)
        if (str_eq (r->options.spawn_allow[i], name))
            return true;
    return false;
}

static struct verdict
judge_registration (struct referee *r, const char *approval, const char *session_id,
                    const char *name, const char *version, const struct caller *caller)
{
    /* Gated before the registry is read. */
    if (! approval && ! is_root_allowed (r, name))
        return verdict_error (403,
                              "%s may not register without an approval: start mur-roost with "
                              "--spawn-allow %s",
                              name, name);
    if (! name_is_full (name))
        return verdict_error (400, "\"%s\" is not a full name: write <scope>/<name>", name);
    struct mur_error *err = NULL;
    struct resolved_capsule capsule = { 0 };
    if (! resolve (r, name, version, &capsule, &err))
        return from_error (500, err);
    struct verdict v;
    pthread_mutex_lock (&r->lock);
    if (approval)
        v = register_approved (r, approval, session_id, name, version, &capsule, caller);
    else if (job_table_find (&r->jobs, session_id))
        v = not_you ();
    else if (has_room_for_root (r, &v))
        v = admit (r, session_id, NULL, name, r->options.max_depth, &capsule, caller);
    pthread_mutex_unlock (&r->lock);
    capsule_manifest_free (capsule.manifest);
    return v;
}

struct verdict
referee_register (struct referee *r, const char *approval, const char *body, size_t body_len,
                  const struct caller *caller)
{
    struct verdict refusal;
    _cleanup_json_ json_t *o = read_body (body, body_len, &refusal);
    const char *session_id = o ? read_text (o, "session_id", &refusal) : NULL;
    const char *name = session_id ? read_text (o, "name", &refusal) : NULL;
    const char *version = name ? read_text (o, "version", &refusal) : NULL;
    if (! version)
        return refusal;
    if (! *session_id)
        return verdict_error (400, "session_id is empty");
    return judge_registration (r, approval, session_id, name, version, caller);
}

/* --- POST /deregister, GET /status --- */

static bool
read_outcome (const char *text, enum job_state *state)
{
    for (int s = JOB_COMPLETE; s <= JOB_FAILED; s++)
        if (str_eq (job_state_names[s], text)) {
            *state = (enum job_state)s;
            return true;
        }
    return false;
}

static void
finish (struct referee *r, struct job *j, enum job_state state)
{
    job_table_finish (&r->jobs, j, state);
    capsule_manifest_free (steal_ptr (&j->manifest));
    for (size_t i = 0; i < r->reservation_len;)
        if (str_eq (r->reservations[i].parent, j->session_id))
            drop_reservation (r, i);
        else
            i++;
}

struct verdict
referee_deregister (struct referee *r, const char *credential, const char *body, size_t body_len)
{
    struct verdict refusal;
    enum job_state state;
    _cleanup_json_ json_t *o = read_body (body, body_len, &refusal);
    const char *outcome = o ? read_text (o, "outcome", &refusal) : NULL;
    if (! outcome)
        return refusal;
    if (! read_outcome (outcome, &state))
        return verdict_error (400, "outcome must be \"complete\" or \"failed\", not \"%s\"",
                              outcome);
    pthread_mutex_lock (&r->lock);
    struct job *j = holder (r, credential);
    if (j)
        finish (r, j, state);
    pthread_mutex_unlock (&r->lock);
    return j ? (struct verdict){ 200, json_object () } : not_you ();
}

struct verdict
referee_status (struct referee *r, const char *session_id)
{
    pthread_mutex_lock (&r->lock);
    forget_expired (r, clock_unix_ms ());
    const struct job *j = job_table_find (&r->jobs, session_id);
    struct verdict v;
    if (! j) {
        v = verdict_error (404, "session not found");
    } else {
        json_t *body = json_object ();
        json_set_string (body, "status", job_state_names[j->state]);
        json_set_u64 (body, "depth_remaining", j->depth);
        json_set_u64 (body, "live_children", live_children (r, session_id));
        json_set_u64 (body, "live_capsules", machine_live (r));
        v = (struct verdict){ 200, body };
    }
    pthread_mutex_unlock (&r->lock);
    return v;
}
