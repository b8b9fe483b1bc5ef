/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/deploy.h"

#include "base/alloc.h"
#include "deploy/deploy_internal.h"
#include "deploy/store.h"

#include <string.h>

/* What a records store wants to be shown, by the scheme of its address. */
static const struct {
    const char *scheme, *key;
} store_keys[] = {
    { "https:", "MUR_RECORDS_TOKEN" },
    { "s3:", "AWS_ACCESS_KEY_ID" },
    { "s3:", "AWS_SECRET_ACCESS_KEY" },
};

typedef void render_fn (const struct deploy_facts *f, struct deploy_files *out);

/* What a target can keep, one row each. */
static const struct {
    const char *name;
    render_fn *render;
    enum containment_class most; /* with what its walls leave to a session */
    const char *why;             /* not more */
    bool needs_image;
    bool has_routes; /* a door can have a name of its own outside */
    bool has_image_volumes;
    bool has_profiles; /* of system calls, by a name on its nodes: then it keeps sealed */
    bool has_sessions; /* a referee of a fleet knows what it makes */
    bool has_accounts; /* whose role its pods may take, and ConfigMaps to mount */
    bool fills_in;     /* puts values for $(NAME) in arguments */
} targets[DEPLOY_TARGET_COUNT] = {
    [DEPLOY_KUBERNETES] = { "kubernetes", deploy_kubernetes, CONTAINMENT_SCOPED,
                            "a pod makes no namespaces but under --seccomp-profile", true, true,
                            true, true, true, true, true },
    [DEPLOY_KUEUE] = { "kueue", deploy_kubernetes, CONTAINMENT_SCOPED,
                       "a pod makes no namespaces but under --seccomp-profile", true, true, true,
                       true, true, true, true },
    [DEPLOY_SYSTEMD] = { "systemd", deploy_systemd, CONTAINMENT_SEALED, "", false, false, false },
    [DEPLOY_QUADLET] = { "quadlet", deploy_quadlet, CONTAINMENT_SCOPED,
                         "a container without capabilities makes no mounts", true, false, false },
    [DEPLOY_SANDBOX] = { "sandbox", deploy_sandbox, CONTAINMENT_SCOPED,
                         "a pod makes no namespaces but under --seccomp-profile", true, false, true,
                         true, false, true, true },
    [DEPLOY_KAGENT] = { "kagent", deploy_kagent, CONTAINMENT_SCOPED,
                        "a pod of profile restricted makes no namespaces", true, false, false,
                        false, false, false, true },
    [DEPLOY_NOMAD] = { "nomad", deploy_nomad, CONTAINMENT_SCOPED,
                       "no mount can be made behind its own Landlock", true, false, false },
};

bool
deploy_target_parse (const char *text, enum deploy_target *out)
{
    for (size_t i = 0; i < DEPLOY_TARGET_COUNT; i++)
        if (str_eq (targets[i].name, text)) {
            *out = (enum deploy_target)i;
            return true;
        }
    return false;
}

const char *
deploy_target_name (size_t i)
{
    return i < DEPLOY_TARGET_COUNT ? targets[i].name : NULL;
}

/* --- refusals --- */

bool
deploy_check_keys (const struct capsule_manifest *m, struct mur_error **err)
{
    for (size_t i = 0; i < m->artifacts.len; i++) {
        const struct gateway_block *g = m->artifacts.items[i].gateway;
        if (! g || ! g->has_literal)
            continue;
        capsule_manifest_fail (m, err, E_DEP_004,
                               arena_printf (m->arena, "artifacts[%zu].gateway.api_key", i),
                               "the key of %s is written in the manifest, which would go to every "
                               "machine with it",
                               m->artifacts.items[i].name);
        return mur_hint (err, "write ${NAME}, and give the key as a file named NAME");
    }
    return true;
}

/* What is there beside the capsule. */
static bool
check_around (const struct deploy_request *r, struct mur_error **err)
{
    const char *given = r->ca ? "--ca" : r->records_role ? "--records-role" : NULL;
    if (r->records_store && ! deploy_store_check (r->records_store, err))
        return false;
    if (given && ! targets[r->target].has_accounts)
        return mur_fail (err, E_DEP_005, "%s: take --to kubernetes, kueue or sandbox", given);
    return ! r->records_role || (r->records_store && str_starts (r->records_store, "s3:")) ||
           mur_fail (err, E_DEP_005, "--records-role is of a --records-store at s3://");
}

typedef bool
check_fn (const struct deploy_request *r, const struct capsule_manifest *m, struct mur_error **err);

static bool
check_floor (const struct deploy_request *r, const struct capsule_manifest *m,
             struct mur_error **err)
{
    enum containment_class floor = m->capabilities->containment;
    enum containment_class most = r->seccomp && targets[r->target].has_profiles
                                      ? CONTAINMENT_SEALED
                                      : targets[r->target].most;
    if (floor <= most)
        return true;
    capsule_manifest_fail (m, err, E_DEP_001, "capabilities.containment",
                           "%s keeps '%s' at most, the floor is '%s': %s", targets[r->target].name,
                           containment_name (most), containment_name (floor),
                           targets[r->target].why);
    return mur_hint (err, "lower the floor, or take systemd on a server of its own");
}

/* What a formation in one pod cannot be. */
static bool
check_formation (const struct deploy_request *r, struct mur_error **err)
{
    if (r->target != DEPLOY_KUBERNETES && r->target != DEPLOY_KUEUE) {
        mur_fail (err, E_DEP_005, "--roster: a formation becomes a pod, and %s is given none",
                  targets[r->target].name);
        return mur_hint (err, "take --to kubernetes or --to kueue");
    }
    if (r->door != DEPLOY_DOOR_NONE || r->public_url)
        return mur_fail (err, E_DEP_003, "--roster: the doors of a formation are for its members");
    if (r->formation->is_spread != (r->roost_url != NULL))
        return mur_fail (err, E_DEP_005,
                         r->roost_url ? "--roost-url: a formation is of a fleet with "
                                        "--placement fleet, a pod for each member"
                                      : "--placement fleet needs --roost-url: mur-roost starts "
                                        "the members");
    if (! r->task && ! r->formation->is_spread) {
        mur_fail (err, E_DEP_003,
                  "--roster needs --task: nobody outside the pod reaches the entry's door");
        return mur_hint (err, "the formation ends once its entry has answered");
    }
    return true;
}

static bool
check_keys (const struct deploy_request *r _unused_, const struct capsule_manifest *m,
            struct mur_error **err)
{
    return deploy_check_keys (m, err);
}

/* Of each member of a formation, or of the capsule alone. */
static bool
check_each (const struct deploy_request *r, check_fn *judge, struct mur_error **err)
{
    const struct deploy_formation *g = r->formation;
    if (! g)
        return judge (r, r->manifest, err);
    for (size_t i = 0; i < g->roster->len; i++)
        if (! judge (r, g->manifests[i], err))
            return mur_context (err, "--roster: member '%s'", g->roster->members[i].name);
    return true;
}

static bool
check (const struct deploy_facts *f, struct mur_error **err)
{
    const struct deploy_request *r = f->request;
    const char *name = targets[r->target].name;
    if (r->formation && ! check_formation (r, err))
        return false;
    if (! check_each (r, check_floor, err))
        return false;
    if (r->seccomp && ! targets[r->target].has_profiles)
        return mur_fail (err, E_DEP_005, "--seccomp-profile: %s takes no profile of its nodes",
                         name);
    if (r->seccomp && (*r->seccomp == '/' || strstr (r->seccomp, "..")))
        return mur_fail (
            err, E_DEP_005,
            "--seccomp-profile %s: it is named below the nodes' folder of profiles, as "
            "murmur.json",
            r->seccomp);
    if (targets[r->target].needs_image && ! r->image) {
        mur_fail (err, E_DEP_002, "--to %s needs --image: what holds mur and the capsule", name);
        return mur_hint (err, "name it by digest: registry.example.com/agents/x@sha256:...");
    }
    if (r->capsule_image && ! targets[r->target].has_image_volumes) {
        mur_fail (err, E_DEP_005, "--capsule-image: %s has no volumes that are images", name);
        return mur_hint (err, "put the capsule on its base: mur image build --base DIR");
    }
    if (r->roost_url && ! targets[r->target].has_sessions) {
        mur_fail (err, E_DEP_005, "--roost-url: a referee of a fleet knows Jobs, and %s makes none",
                  name);
        return mur_hint (err, "take --to kubernetes or --to kueue");
    }
    if (r->door == DEPLOY_DOOR_ROUTE && ! targets[r->target].has_routes)
        return mur_fail (err, E_DEP_003,
                         "--door route: %s has no routes; put a proxy of yours in "
                         "front and name it by --public-url",
                         name);
    if (r->door == DEPLOY_DOOR_ROUTE && ! r->public_url)
        return mur_fail (err, E_DEP_003,
                         "--door route needs --public-url: its host is the route's");
    if (r->door != DEPLOY_DOOR_NONE && ! f->port) {
        mur_fail (err, E_DEP_003,
                  "--door needs a port that stays: network.internal_port is not declared");
        return mur_hint (err, "declare network.internal_port: 8080 in the manifest");
    }
    if (r->door != DEPLOY_DOOR_NONE && ! f->stays)
        return mur_fail (err, E_DEP_005,
                         "--door %s: a capsule that ends after its task is a job, and has no door "
                         "others could know; lifecycle.after_task: sleep",
                         r->door == DEPLOY_DOOR_ROUTE ? "route" : "service");
    return check_around (r, err) && check_each (r, check_keys, err);
}

/* --- facts --- */

static void
collect_keys (const struct capsule_manifest *m, struct strv *out)
{
    for (size_t i = 0; i < m->artifacts.len; i++) {
        const struct gateway_block *g = m->artifacts.items[i].gateway;
        if (g && g->key_reference && ! strv_contains (out, g->key_reference))
            strv_push (out, g->key_reference);
    }
}

static void
collect_store_keys (const struct deploy_request *r, struct strv *out)
{
    bool has_keys = r->records_store && ! r->records_role;
    for (size_t i = 0; has_keys && i < ARRAY_LEN (store_keys); i++)
        if (str_starts (r->records_store, store_keys[i].scheme) &&
            ! strv_contains (out, store_keys[i].key))
            strv_push (out, store_keys[i].key);
}

/* Adds what one capsule takes of its pod. */
static void
add_needs (struct deploy_facts *f, const struct capsule_manifest *m)
{
    const struct cap_resources usual = resources_default ();
    const struct cap_resources *limits =
        m->capabilities->resources ? m->capabilities->resources : &usual;
    unsigned percent = (unsigned)limits->cgroup_cpu_percent.value;
    bool is_bounded = percent && (! f->memory_bytes || f->cpu_percent);
    f->memory_bytes += limits->cgroup_memory_bytes.value + (256ULL << 20);
    f->cpu_percent = is_bounded ? f->cpu_percent + percent : 0;
    collect_keys (m, &f->keys);
}

static void
collect_needs (struct deploy_facts *f)
{
    const struct deploy_formation *g = f->request->formation;
    bool has_all = deploy_is_in_one_pod (f->request);
    for (size_t i = 0; i < (has_all ? g->roster->len : 1); i++)
        add_needs (f, has_all ? g->manifests[i] : f->request->manifest);
    collect_store_keys (f->request, &f->keys);
    strv_sort (&f->keys);
}

/* --- the whole --- */

/* Whoever takes them one after another has what a pod needs before the pod. */
static bool
is_workload (const struct deploy_file *file)
{
    static const char *const names[] = { "agent.yaml", "deployment.yaml", "job.yaml",
                                         "sandbox.yaml" };
    for (size_t i = 0; i < ARRAY_LEN (names); i++)
        if (str_eq (names[i], file->name))
            return true;
    return false;
}

static int
compare_files (const void *a, const void *b)
{
    int order = is_workload (a) - is_workload (b);
    return order ? order
                 : strcmp (((const struct deploy_file *)a)->name,
                           ((const struct deploy_file *)b)->name);
}

bool
deploy_render (const struct deploy_request *request, struct deploy_files *out,
               struct mur_error **err)
{
    const struct capsule_manifest *m = request->manifest;
    bool is_alone = ! request->formation;
    struct deploy_facts f = {
        .request = request,
        .stays = is_alone ? m->lifecycle->after_task.value == AFTER_SLEEP : ! request->task,
        .fills_in = targets[request->target].fills_in,
        .port = is_alone && m->network && m->network->internal_port.is_set
                    ? (unsigned)m->network->internal_port.value
                    : 0,
    };
    f.is_port_ours = request->roost_url && f.port != DEPLOY_PORT;
    if (f.is_port_ours)
        f.port = DEPLOY_PORT;
    *out = (struct deploy_files){ 0 };
    bool is_kept = check (&f, err);
    if (is_kept) {
        f.name = deploy_object_name (m->name);
        collect_needs (&f);
        f.has_login = strv_contains (&f.keys, "AWS_ACCESS_KEY_ID");
        targets[request->target].render (&f, out);
        qsort (out->items, out->len, sizeof *out->items, compare_files);
        out->name = steal_ptr (&f.name);
        out->keys = f.keys;
    }
    return is_kept;
}

void
deploy_files_free (struct deploy_files *files)
{
    for (size_t i = 0; i < files->len; i++) {
        free (files->items[i].name);
        buf_free (&files->items[i].text);
    }
    free (files->items);
    free (files->name);
    strv_free (&files->keys);
    *files = (struct deploy_files){ 0 };
}
