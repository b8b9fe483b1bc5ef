/* SPDX-License-Identifier: Apache-2.0 */
#include "roost/fleet_team.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/digest.h"
#include "base/keys/formation_token.h"
#include "base/secret.h"
#include "deploy/fleet_job.h"
#include "manifest/settings/roster.h"
#include "net/kube/kube_object.h"
#include "roost/fleet_internal.h"
#include "roost/fleet_spawn.h"
#include "roost/fleet_times.h"
#include "roost/referee_register_internal.h"

#include <errno.h>
#include <string.h>

#define WAIT_S_MOST  30
#define WAITING_MOST 64    /* requests that may wait at once; beyond, each is answered at once */
#define RUN_S_USUAL  86400 /* of a member without a deadline, as of a root */

/* --- the roster of a Job --- */

static void
fail (struct fleet_team *t, const char *code, const char *text)
{
    if (t->fault)
        return;
    t->code = x_strdup (code);
    t->fault = x_strdup (text);
}

/* When the Job was made, and which it is: others of that name get other ids. */
static void
make_id (struct fleet_team *t, const json_t *job)
{
    char hex[SHA256_HEX_LEN + 1];
    const json_t *meta = json_object_get (job, "metadata");
    const char *uid = json_get_string (meta, "uid");
    uint64_t made = fleet_time_ms (json_get_string (meta, "creationTimestamp"));
    sha256_hex (uid ? uid : "", uid ? strlen (uid) : 0, hex);
    snprintf (t->id, sizeof t->id, "frm_%012llx%.20s", (unsigned long long)(made & 0xffffffffffff),
              hex);
}

/* The digest a member was deployed with: "<name>@<version> sha256:<hex>". */
static void
take_digests (struct fleet_team *t, const json_t *job)
{
    const json_t *notes = json_object_get (json_object_get (job, "metadata"), "annotations");
    t->sha256 = x_new_array (char *, t->roster->len);
    for (size_t i = 0; i < t->roster->len; i++) {
        _cleanup_free_ char *key = x_asprintf ("member.murmur.dev/%s", t->roster->members[i].name);
        const char *value = json_get_string (notes, key);
        const char *digest = value ? strstr (value, " sha256:") : NULL;
        t->sha256[i] = x_strdup (digest ? digest + strlen (" sha256:") : "");
    }
}

struct fleet_team *
fleet_team_new (const json_t *job)
{
    const char *text = kube_own_annotation (job, "roster");
    const char *deadline = kube_own_annotation (job, "deadline");
    if (! text || kube_own_annotation (job, "grant"))
        return NULL;
    _cleanup_error_ struct mur_error *err = NULL;
    struct fleet_team *t = x_new0 (struct fleet_team);
    make_id (t, job);
    t->deadline_s = deadline ? strtoull (deadline, NULL, 10) : 0;
    t->is_launched = kube_own_annotation (job, "formation") != NULL;
    t->roster = roster_parse (text, strlen (text), "roster.yaml", &err);
    if (t->roster)
        take_digests (t, job);
    else
        fail (t, "E-RUN-045", err->message);
    return t;
}

char *
fleet_team_place (const json_t *job)
{
    const char *formation = kube_own_annotation (job, "formation");
    const char *member = kube_own_annotation (job, "member");
    return formation && member ? x_asprintf ("%s/%s", formation, member) : NULL;
}

/* --- launching --- */

/* A formation on its way up; what it has of the entry's Job is its own. */
struct launching {
    struct fleet *fleet;
    struct fleet_team *team; /* borrowed: only this thread forgets a Job */
    char *job, *pod, *pod_uid, *root;
    bool has_v6;
    uint64_t deadline_ms; /* Unix; 0: none */
    struct resolved_capsule *capsules;
};

static bool
refuse (struct fleet_team *t, size_t i, const char *code, const char *why)
{
    const struct roster_member *m = &t->roster->members[i];
    _cleanup_free_ char *text =
        x_asprintf ("member '%s' (%s@%s): %s", m->name, m->capsule, m->version, why);
    fail (t, code, text);
    return false;
}

/* It may be run here, and is what was deployed. */
static bool
admit_member (struct launching *l, size_t i)
{
    const struct referee *r = l->fleet->referee;
    const struct roster_member *m = &l->team->roster->members[i];
    _cleanup_error_ struct mur_error *err = NULL;
    struct verdict refusal;
    if (! referee_is_root_allowed (r, m->capsule, &refusal)) {
        bool is_ok = refuse (l->team, i, "E-RUN-045", json_get_string (refusal.body, "error"));
        json_decref (refusal.body);
        return is_ok;
    }
    if (! referee_resolve (r, m->capsule, m->version, &l->capsules[i], &err))
        return refuse (l->team, i, "E-RUN-045", err->message);
    if (str_eq (l->capsules[i].sha256, l->team->sha256[i]))
        return true;
    _cleanup_free_ char *why = x_asprintf ("it was deployed as %s, and is %s where mur-roost runs",
                                           l->team->sha256[i], l->capsules[i].sha256);
    return refuse (l->team, i, "E-RUN-047", why);
}

static bool
admit (struct launching *l)
{
    struct roster *roster = l->team->roster;
    if (! roster)
        return false;
    _cleanup_free_ const struct capsule_manifest **manifests =
        x_new_array (const struct capsule_manifest *, roster->len);
    for (size_t i = 0; i < roster->len; i++) {
        if (! admit_member (l, i))
            return false;
        manifests[i] = l->capsules[i].manifest;
    }
    _cleanup_error_ struct mur_error *err = NULL;
    /* Others read the roster once it was looked at, not before. */
    bool is_admitted = roster_admit (roster, manifests, &err);
    if (! is_admitted)
        fail (l->team, "E-RUN-045", err->message);
    return is_admitted;
}

static char *
mint_grant (const struct launching *l, size_t i, const char *jti)
{
    const struct roster_member *m = &l->team->roster->members[i];
    const struct referee *r = l->fleet->referee;
    _cleanup_free_ char *place = x_asprintf ("%s/%s", l->team->id, m->name);
    _cleanup_json_ json_t *payload =
        json_pack ("{s:i,s:s,s:s,s:s,s:s,s:I,s:I,s:s}", "v", 1, "sid", place, "name", m->capsule,
                   "version", m->version, "digest", l->team->sha256[i], "depth",
                   (json_int_t)r->options.max_depth, "exp", (json_int_t)0, "jti", jti);
    return token_mint (&token_spawn_approval, r->key, payload, NULL);
}

/* A name that a repeat meets again. */
static void
digest_of (const struct launching *l, size_t i, char hex[SHA256_HEX_LEN + 1])
{
    _cleanup_free_ char *text = x_asprintf ("%s/%s", l->team->id, l->team->roster->members[i].name);
    sha256_hex (text, strlen (text), hex);
}

static bool
start_peer (struct launching *l, size_t i)
{
    char hex[SHA256_HEX_LEN + 1], jti[33];
    const struct fleet_options *o = &l->fleet->options;
    const struct roster_member *m = &l->team->roster->members[i];
    const struct cap_allow *env = l->capsules[i].manifest->capabilities->env;
    _cleanup_strv_ struct strv names = { 0 };
    for (size_t n = 0; env && n < env->allow.len; n++)
        strv_push (&names, env->allow.items[n]);
    digest_of (l, i, hex);
    snprintf (jti, sizeof jti, "%.32s", hex);
    _cleanup_free_ char *name = x_asprintf ("mur-%.16s", hex);
    char *grant = mint_grant (l, i, jti);
    const struct job_facts facts = {
        .namespace = l->fleet->namespace,
        .image = o->image,
        .queue = o->queue,
        .ca = o->ca,
        .seccomp = o->seccomp,
        .records_store = o->records_store,
        .roost_url = o->roost_url,
        .seat = { l->team->id, m->name, name },
        .name = m->capsule,
        .version = m->version,
        .sha256 = l->team->sha256[i],
        .grant = grant,
        .root = l->root,
        .parent_job = l->job,
        .parent_pod = l->pod,
        .parent_pod_uid = l->pod_uid,
        .has_v6 = l->has_v6,
        .depth = l->fleet->referee->options.max_depth,
        .env = &names,
        .run_s = RUN_S_USUAL,
        .inherited_deadline_ms = l->deadline_ms,
        .start_s = o->queue_timeout_s,
    };
    _cleanup_json_ json_t *object = fleet_job_object (&facts);
    free (grant);
    struct verdict v = fleet_create (l->fleet, object);
    bool is_started = ! v.status;
    if (! is_started)
        refuse (l->team, i, "E-RUN-045", json_get_string (v.body, "error"));
    json_decref (v.body);
    return is_started;
}

/* On the entry's Job, so that a later referee starts none of them again. */
static bool
note_launched (const struct launching *l)
{
    _cleanup_error_ struct mur_error *err = NULL;
    _cleanup_json_ json_t *patch = json_pack ("{s:{s:{s:s}}}", "metadata", "annotations",
                                              KUBE_OWN_PREFIX "formation", l->team->id);
    _cleanup_free_ char *path = fleet_path (l->fleet, "jobs", l->job);
    const struct kube_call call = {
        .method = "PATCH", .path = path, .body = patch, .content_type = KUBE_MERGE_PATCH
    };
    _cleanup_kube_answer_ struct kube_answer a = { 0 };
    if (kube_call (l->fleet->kube, &call, &a, &err) && kube_answer_is_ok (&a))
        return true;
    fail (l->team, "E-RUN-045", err ? err->message : a.message);
    return false;
}

static bool
start_peers (struct launching *l)
{
    for (size_t i = 0; i < l->team->roster->len; i++)
        if (! l->team->roster->members[i].is_entry && ! start_peer (l, i))
            return false;
    return note_launched (l);
}

/* An entry whose pod has come and has an address, which tells of which family others are; and whose
 * formation nobody looked at. */
static struct placed *
next_waiting (const struct fleet *f)
{
    for (size_t i = 0; i < f->len; i++) {
        struct placed *p = f->items[i];
        if (p->seat.team && ! p->seat.team->is_looked_at && p->seat.is_claimed && p->pod.ip &&
            p->root && p->state != PLACED_ENDED && ! p->doom)
            return p;
    }
    return NULL;
}

static uint64_t
deadline_of (const struct placed *entry)
{
    uint64_t from = entry->pod.started_ms ? entry->pod.started_ms : entry->created_ms;
    return entry->seat.team->deadline_s ? from + entry->seat.team->deadline_s * 1000 : 0;
}

bool
fleet_team_launch (struct fleet *f)
{
    struct referee *r = f->referee;
    pthread_mutex_lock (&r->lock);
    struct placed *p = next_waiting (f);
    struct launching l = { .fleet = f };
    bool is_launched = p && p->seat.team->is_launched;
    if (p) {
        l.team = p->seat.team;
        l.job = x_strdup (p->job);
        l.pod = x_strdup (p->pod.name);
        l.pod_uid = x_strdup (p->pod.uid);
        l.root = x_strdup (p->root);
        l.has_v6 = p->pod.ip && strchr (p->pod.ip, ':');
        l.deadline_ms = deadline_of (p);
    }
    pthread_mutex_unlock (&r->lock);
    if (! p)
        return false;
    size_t len = l.team->roster ? l.team->roster->len : 0;
    l.capsules = x_new_array (struct resolved_capsule, len + 1);
    memset (l.capsules, 0, (len + 1) * sizeof *l.capsules);
    if (! admit (&l) || (! is_launched && ! start_peers (&l)))
        diag_stderr_line ("mur-roost: the formation of Job %s does not come up: %s", l.job,
                          l.team->fault);
    for (size_t i = 0; i < len; i++)
        capsule_manifest_free (l.capsules[i].manifest);
    pthread_mutex_lock (&r->lock);
    l.team->is_looked_at = true;
    fleet_tell (f, fleet_find_job (f, l.job));
    pthread_mutex_unlock (&r->lock);
    free (l.capsules);
    free (l.job);
    free (l.pod);
    free (l.pod_uid);
    free (l.root);
    return true;
}

/* --- what a member is told; under the lock --- */

static size_t
index_of (const struct roster *roster, const char *member)
{
    size_t i = 0;
    while (i < roster->len && ! str_eq (roster->members[i].name, member))
        i++;
    return i;
}

/* One of the formation: its entry or a peer. */
static const struct placed *
member_at (const struct fleet *f, const struct placed *entry, size_t i)
{
    const struct roster_member *m = &entry->seat.team->roster->members[i];
    return m->is_entry ? entry : fleet_find_member (f, entry->job, m->name);
}

static json_t *
channel_of (const struct fleet *f, const struct fleet_team *t, size_t from)
{
    const struct roster *roster = t->roster;
    _cleanup_free_ char *key = base64url_encode (f->verify_key, sizeof f->verify_key);
    json_t *calls = json_array ();
    for (size_t i = 0; i < roster->edges_len; i++) {
        if (roster->edges[i].from != from)
            continue;
        const char *to = roster->members[roster->edges[i].to].name;
        char *token = formation_token_mint (f->sign_key, t->id, roster->members[from].name, to);
        json_array_append_new (calls,
                               json_pack ("{s:s,s:s}", "name", to, "token", token ? token : ""));
        if (token)
            secret_wipe (token, strlen (token));
        free (token);
    }
    json_t *o =
        json_pack ("{s:s,s:s}", "formation_id", t->id, "member", roster->members[from].name);
    if (roster->members[from].is_entry)
        json_set_bool (o, "entry", true);
    json_set_string (o, "verify_key", key);
    json_object_set_new (o, "calls", calls);
    return o;
}

/* Where those are that <from> may call; with <all>, every peer. */
static json_t *
addresses_of (const struct fleet *f, const struct placed *entry, size_t from, bool all)
{
    const struct roster *roster = entry->seat.team->roster;
    json_t *list = json_array ();
    for (size_t i = 0; i < (all ? roster->len : roster->edges_len); i++) {
        size_t to = all ? i : roster->edges[i].to;
        if ((! all && roster->edges[i].from != from) || roster->members[to].is_entry)
            continue;
        const struct placed *p = member_at (f, entry, to);
        _cleanup_free_ char *at = p ? fleet_address (p) : NULL;
        _cleanup_free_ char *url = at ? x_asprintf ("http://%s", at) : NULL;
        if (url)
            json_array_append_new (
                list, json_pack ("{s:s,s:s}", "name", roster->members[to].name, "url", url));
    }
    return list;
}

static json_t *
failed (const char *code, const char *reason)
{
    return json_pack ("{s:s,s:s,s:s}", "state", "failed", "code", code, "reason", reason);
}

/* A peer that ended before the entry began. */
static json_t *
peer_fault (const struct fleet *f, const struct placed *entry)
{
    const struct roster *roster = entry->seat.team->roster;
    for (size_t i = 0; i < roster->len; i++) {
        const struct placed *p = member_at (f, entry, i);
        if (! p || p == entry || p->state != PLACED_ENDED)
            continue;
        const struct roster_member *m = &roster->members[i];
        _cleanup_free_ char *why =
            x_asprintf ("member '%s' (%s@%s) did not come up: %s", m->name, m->capsule, m->version,
                        p->end.detail ? p->end.detail : "it ended");
        return failed ("E-RUN-045", why);
    }
    return NULL;
}

static json_t *
tell_entry (const struct fleet *f, const struct placed *entry)
{
    const struct fleet_team *t = entry->seat.team;
    uint64_t deadline_ms = deadline_of (entry);
    if (! t->is_looked_at)
        return json_pack ("{s:s}", "state", "starting");
    if (t->fault)
        return failed (t->code, t->fault);
    json_t *fault = entry->session ? NULL : peer_fault (f, entry);
    if (fault)
        return fault;
    if (! entry->session && deadline_ms && clock_unix_ms () >= deadline_ms)
        return failed ("E-RUN-053", "the formation's deadline passed before its entry started");
    json_t *peers = addresses_of (f, entry, t->roster->entry, true);
    bool is_ready = entry->session || json_array_size (peers) == t->roster->len - 1;
    json_t *o = json_pack ("{s:s,s:o}", "state", is_ready ? "ready" : "starting", "peers", peers);
    return o;
}

/* <entry> of the formation that <p> is of. */
static json_t *
tell (const struct fleet *f, const struct placed *p, const struct placed *entry)
{
    if (entry->state == PLACED_ENDED || entry->doom || p->doom)
        return json_pack ("{s:s}", "state", "over");
    json_t *o = p == entry ? tell_entry (f, entry) : json_pack ("{s:s}", "state", "member");
    size_t from = entry->seat.team->is_looked_at && ! entry->seat.team->fault
                      ? index_of (entry->seat.team->roster, p->seat.member)
                      : SIZE_MAX;
    if (from >= (entry->seat.team->roster ? entry->seat.team->roster->len : 0))
        return o;
    json_object_set_new (o, "channel", channel_of (f, entry->seat.team, from));
    json_object_set_new (o, "addresses", addresses_of (f, entry, from, false));
    if (entry->seat.team->deadline_s)
        json_set_u64 (o, "deadline_ms", deadline_of (entry));
    return o;
}

static const struct placed *
entry_of (const struct fleet *f, const struct placed *p)
{
    const struct placed *entry = p && p->seat.entry ? fleet_find_job (f, p->seat.entry) : p;
    return entry && entry->seat.team ? entry : NULL;
}

/* The pod's Job is known by the pod from here on, though the watch may not have told yet. */
static void
keep_claim (struct placed *p, const char *pod_uid, const char *pod)
{
    if (p->seat.is_claimed)
        return;
    free (p->pod.uid);
    free (p->pod.name);
    p->pod.uid = x_strdup (pod_uid);
    p->pod.name = x_strdup (pod);
    p->seat.is_claimed = true;
}

struct verdict
fleet_team_answer (struct referee *r, const char *job, const char *pod_uid, const char *pod,
                   uint64_t wait_s, uint64_t seen)
{
    struct fleet *f = r->fleet;
    uint64_t at_ms = clock_monotonic_ms () + (wait_s < WAIT_S_MOST ? wait_s : WAIT_S_MOST) * 1000;
    const struct timespec at = { (time_t)(at_ms / 1000), (long)(at_ms % 1000) * 1000000 };
    pthread_mutex_lock (&r->lock);
    struct placed *p = fleet_find_job (f, job);
    const struct placed *entry = entry_of (f, p);
    if (p && entry)
        keep_claim (p, pod_uid, pod);
    int status = f->waiting < WAITING_MOST ? 0 : ETIMEDOUT;
    /* Looked up anew each time: it may be forgotten meanwhile. */
    while (p && entry && entry->news < seen && entry->state != PLACED_ENDED &&
           status != ETIMEDOUT && ! cancel_is_raised (f->cancel)) {
        f->waiting++;
        status = pthread_cond_timedwait (&f->changed, &r->lock, &at);
        f->waiting--;
        p = fleet_find_job (f, job);
        entry = entry_of (f, p);
    }
    struct verdict v = { 200, p && entry ? tell (f, p, entry) : NULL };
    if (v.body)
        json_set_u64 (v.body, "news", entry->news + 1);
    else
        v = verdict_not_you ();
    pthread_mutex_unlock (&r->lock);
    return v;
}
