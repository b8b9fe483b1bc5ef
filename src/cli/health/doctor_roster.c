/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur doctor` in a formation's folder: the roster is admitted as a launch would, and shown
 * (spec/manifest.md 16, spec/cli.md 5). Nothing is started.
 */
#include "artifact/names/name.h"
#include "artifact/store/admission.h"
#include "artifact/store/lock_file.h"
#include "base/alloc.h"
#include "base/diag.h"
#include "cli/health/doctor_internal.h"

#include <string.h>

/* --- the table --- */

struct widths {
    size_t name, capsule;
};

static size_t
wider (size_t a, size_t b)
{
    return a > b ? a : b;
}

static struct widths
measure (const struct roster *r)
{
    struct widths w = { 0 };
    for (size_t i = 0; i < r->len; i++) {
        const struct roster_member *m = &r->members[i];
        w.name = wider (w.name, strlen (m->name));
        w.capsule = wider (w.capsule, strlen (m->capsule) + 1 + strlen (m->version));
    }
    return w;
}

static void
show_member (const struct admission *a, size_t i, const struct widths *w)
{
    const struct roster_member *m = &a->roster->members[i];
    const struct capsule_manifest *manifest = a->members[i].manifest;
    _cleanup_free_ char *capsule = x_asprintf ("%s@%s", m->capsule, m->version);
    bool has_door = manifest->network && manifest->network->authentication;
    out_printf ("  %-*s  %-*s   %-5s   %-13s   %s\n", (int)w->name, m->name, (int)w->capsule,
                capsule, m->is_entry ? "entry" : "",
                roster_serves_peers (manifest) ? "serves peers" : "refuses peers",
                has_door ? "authenticated door" : "public door");
}

static void
show_reachability (const struct roster *r)
{
    _cleanup_buf_ struct buf edges = { 0 };
    for (size_t i = 0; i < r->edges_len; i++)
        buf_printf (&edges, "%s%s → %s", i ? ", " : "", r->members[r->edges[i].from].name,
                    r->members[r->edges[i].to].name);
    out_printf ("  reachability%s: %s\n", r->reaches_all ? " (all)" : "",
                edges.len ? edges.data : "none");
}

static void
show_warnings (struct doctor *d, const struct admission *a)
{
    for (size_t i = 0; i < a->roster->len; i++)
        if (a->members[i].overfull) {
            out_printf ("  warning[%s]: %s (mur explain %s)\n", diag_code_name (W_ROS_001),
                        a->members[i].overfull, diag_code_name (W_ROS_001));
            d->warnings++;
        }
}

static void
show_admitted (struct doctor *d, const struct admission *a)
{
    struct widths w = measure (a->roster);
    for (size_t i = 0; i < a->roster->len; i++)
        show_member (a, i, &w);
    show_reachability (a->roster);
    show_warnings (d, a);
    out_puts ("\n");
    for (size_t i = 0; i < a->roster->len; i++) {
        const struct roster_member *m = &a->roster->members[i];
        out_printf ("  ✓  %s   %s@%s\n", m->name, m->capsule, m->version);
        d->passed++;
    }
}

/* --- a refusal --- */

/* Members before the one at fault were found sound; what is wrong stands on its line, or, when it
 * is about no single one, on a line of its own. */
static void
show_refused (struct doctor *d, const struct admission *a, const struct mur_error *why)
{
    size_t sound = a->failed_member != SIZE_MAX ? a->failed_member
                   : a->members                 ? a->roster->len
                                                : 0;
    for (size_t i = 0; i < sound; i++, d->passed++)
        out_printf ("  ✓  %s   %s@%s\n", a->roster->members[i].name, a->roster->members[i].capsule,
                    a->roster->members[i].version);
    if (a->failed_member != SIZE_MAX) {
        const struct roster_member *m = &a->roster->members[a->failed_member];
        out_printf ("  ✗  %s   %s@%s   — %s\n", m->name, m->capsule, m->version, why->message);
    } else {
        out_printf ("  ✗  %s\n", why->message);
    }
    d->errors++;
    diag_stderr_line ("[mur doctor] error[%s]: %s (mur explain %s)", diag_code_name (why->code),
                      why->message, diag_code_name (why->code));
}

static void
add_fix (struct doctor *d, const struct admission *a, const struct mur_error *why)
{
    if (a->failed_member == SIZE_MAX) {
        if (why->hint)
            strv_printf (&d->fixes, "%s", why->hint);
        return;
    }
    const struct roster_member *m = &a->roster->members[a->failed_member];
    if (name_has_scope (m->capsule, SCOPE_LOCAL))
        strv_printf (&d->fixes, "mur publish %s-%s.mur.zip", name_bare (m->capsule), m->version);
    else
        strv_printf (&d->fixes, "mur install -g %s@%s", m->capsule, m->version);
}

bool
doctor_roster (struct doctor *d, struct mur_error **err)
{
    out_printf ("This folder holds a formation: %s\n\nRoster\n  file: %s/roster.yaml\n", d->project,
                d->project);
    _cleanup_stores_ struct stores *stores = stores_new (d->project, err);
    _cleanup_lock_ struct lock *lock = stores ? lock_read (d->project, err) : NULL;
    if (! lock)
        return false;
    _cleanup_error_ struct mur_error *why = NULL;
    _cleanup_admission_ struct admission a = { 0 };
    if (roster_admission (d->project, stores, lock, &a, &why)) {
        show_admitted (d, &a);
    } else {
        show_refused (d, &a, why);
        add_fix (d, &a, why);
    }
    return true;
}
