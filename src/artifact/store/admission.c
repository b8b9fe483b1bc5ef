/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/store/admission.h"

#include "base/alloc.h"

#include <string.h>

void
admission_clear (struct admission *a)
{
    for (size_t i = 0; a->members && i < a->roster->len; i++) {
        resolved_freep (&a->members[i].capsule);
        capsule_manifest_free (a->members[i].manifest);
        free (a->members[i].overfull);
    }
    free (a->members);
    roster_free (a->roster);
    *a = (struct admission){ 0 };
}

/* E-ROS-007 around whatever is wrong with one member, its remedy kept; a refusal of the signature
 * policy keeps its code. */
static bool
refuse_member (const struct roster *r, size_t i, struct mur_error *why, struct mur_error **err)
{
    const struct roster_member *m = &r->members[i];
    enum diag_code code = trust_is_refusal (why->code) ? why->code : E_ROS_007;
    mur_fail (err, code, "%s: member '%s' (%s@%s): %s", r->file, m->name, m->capsule, m->version,
              why->message);
    if (why->hint)
        mur_hint (err, "%s", why->hint);
    mur_error_free (why);
    return false;
}

static bool
read_member (const struct roster *r, size_t i, const struct stores *stores,
             struct admitted_member *out, struct mur_error **err)
{
    const struct roster_member *m = &r->members[i];
    struct mur_error *why = NULL;
    out->capsule = capsule_resolve (stores, m->capsule, m->version, NULL, &why);
    if (! out->capsule)
        return refuse_member (r, i, why, err);
    const struct package *p = out->capsule->package;
    _cleanup_free_ char *label = x_asprintf ("%s@%s:murmur.yaml", m->capsule, m->version);
    out->manifest = capsule_manifest_parse (p->manifest_text, p->manifest_len, label,
                                            MANIFEST_SECRETLESS, &why);
    return out->manifest || refuse_member (r, i, why, err);
}

/* What the folder's lock says of the capsule, when it says anything. */
static bool
check_pin (const struct roster *r, size_t i, const struct lock *lock,
           const struct admitted_member *member, struct mur_error **err)
{
    const struct roster_member *m = &r->members[i];
    struct lock_pin pin = { .name = m->capsule,
                            .version = m->version,
                            .sha256 = member->capsule->package->sha256 };
    return ! lock || lock_check_conflict (lock, &pin, err) ||
           mur_context (err, "%s: member '%s'", r->file, m->name);
}

static bool
admit_members (struct admission *a, const struct stores *stores, const struct lock *lock,
               struct mur_error **err)
{
    struct roster *r = a->roster;
    a->members = x_new_array (struct admitted_member, r->len);
    memset (a->members, 0, r->len * sizeof (*a->members));
    for (size_t i = 0; i < r->len; i++)
        if (! read_member (r, i, stores, &a->members[i], err) ||
            ! check_pin (r, i, lock, &a->members[i], err)) {
            a->failed_member = i;
            return false;
        }
    return true;
}

bool
roster_admission (const char *path, const struct stores *stores, const struct lock *lock,
                  struct admission *out, struct mur_error **err)
{
    *out = (struct admission){ .failed_member = SIZE_MAX };
    out->roster = roster_read (path, err);
    if (! out->roster || ! admit_members (out, stores, lock, err))
        return false;
    size_t len = out->roster->len;
    _cleanup_free_ const struct capsule_manifest **manifests =
        x_new_array (const struct capsule_manifest *, len);
    for (size_t i = 0; i < len; i++)
        manifests[i] = out->members[i].manifest;
    if (! roster_admit (out->roster, manifests, err))
        return false;
    for (size_t i = 0; i < len; i++)
        out->members[i].overfull = roster_overfull (out->roster, i, manifests[i]);
    return true;
}
