/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/containment.h"

#include "base/alloc.h"

static const struct {
    const char *name;
    enum containment_class class;
} tiers[] = {
    [TIER_NONE] = { "none", CONTAINMENT_ADVISORY },
    [TIER_SECCOMP] = { "seccomp-only", CONTAINMENT_ADVISORY },
    [TIER_LANDLOCK] = { "landlock+seccomp", CONTAINMENT_SCOPED },
    [TIER_SEALED] = { "mountns+pivot_root+landlock+seccomp", CONTAINMENT_SEALED },
};

const char *
containment_tier_name (enum containment_tier t)
{
    return tiers[t].name;
}

static enum containment_class
containment_tier_class (enum containment_tier t)
{
    return tiers[t].class;
}

enum containment_class
containment_floor (enum containment_class config, enum containment_class manifest,
                   enum containment_class flag)
{
    enum containment_class floor = config > manifest ? config : manifest;
    return floor > flag ? floor : flag;
}

/* The first cause that keeps the floor from being met. */
static char *
shortfall (const struct containment *c, const struct capsule_containment *capsule)
{
    if (capsule->workdir_exec)
        return x_strdup (
            "capabilities.filesystem.workdir_exec is true, and no host can back more than "
            "'advisory' for a work folder whose files may be executed");
    if (c->space == SPACE_OPEN)
        return x_strdup ("this host makes no namespaces, and commands that run without them "
                         "(--unconfined) are 'advisory' at most");
    if (capsule->dir_inside_workdir)
        return x_asprintf ("%s lies inside the work folder %s, where the capsule could change it; "
                           "use another --workdir",
                           capsule->dir_inside_workdir, capsule->work_dir ? capsule->work_dir : "");
    const char *blocker =
        c->declared == CONTAINMENT_SCOPED ? c->facts.scoped_blocker : c->facts.sealed_blocker;
    return x_strdup (blocker ? blocker : "the host does not offer what it needs");
}

enum session_space
containment_space (const struct host_containment *host, bool may_be_open)
{
    if (host->has_namespaces)
        return SPACE_OWN;
    if (may_be_open)
        return SPACE_OPEN;
    return host->walls_network ? SPACE_WALLED : SPACE_OWN;
}

void
containment_decide (const struct host_containment *host, enum containment_class floor,
                    const struct capsule_containment *capsule, struct containment *out)
{
    *out = (struct containment){ .declared = floor, .facts = *host };
    out->host = containment_tier_class (host->tier);
    out->applied =
        host->tier == TIER_SEALED && floor < CONTAINMENT_SEALED ? TIER_LANDLOCK : host->tier;
    out->achieved = containment_tier_class (out->applied);
    out->space = containment_space (host, capsule->may_be_unconfined);
    out->is_capped =
        capsule->workdir_exec || capsule->dir_inside_workdir || out->space == SPACE_OPEN;
    if (out->is_capped)
        out->achieved = CONTAINMENT_ADVISORY;
    out->floor_met = out->achieved >= floor;
    if (! out->floor_met) {
        out->shortfall_reason = shortfall (out, capsule);
        out->shortfall_is_host = ! out->is_capped;
    }
}

void
containment_clear (struct containment *c)
{
    free (c->shortfall_reason);
    *c = (struct containment){ 0 };
}

bool
containment_check (const struct containment *c, struct mur_error **err)
{
    if (c->floor_met)
        return true;
    mur_fail (err, E_CAP_003,
              "declared containment class '%s' is not achievable on this host (achieved: '%s'): %s",
              containment_name (c->declared), containment_name (c->achieved), c->shortfall_reason);
    static const char places[] = "the floor is the strongest of containment in the configuration, "
                                 "capabilities.containment and --containment";
    if (c->shortfall_is_host)
        return mur_hint (err, "%s; this host gives '%s'", places, containment_name (c->achieved));
    return mur_hint (err, "%s", places);
}

bool
containment_flag (const char *text, enum containment_class *out, struct mur_error **err)
{
    return containment_parse (text, out) ||
           mur_fail (err, E_IO_003,
                     "--containment must be one of: advisory, scoped, sealed; got '%s'", text);
}
