/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur doctor`: installed artifacts and the ones the manifest declares. See doctor.h.
 */
#include "cli/doctor.h"

#include "artifact/platform.h"
#include "artifact/resolve.h"
#include "base/alloc.h"
#include "base/diag.h"
#include "cli/text_table.h"

#include <string.h>
#include <sys/stat.h>

/* --- the served level and what is installed --- */

static void
print_packages (void)
{
    size_t count;
    const struct wit_level_row *rows = wit_level_rows (&count);
    out_printf ("\nWIT level\n  this mur serves WIT level %u:\n    %-24s VERSION\n",
                wit_served_level (), "PACKAGE");
    for (size_t i = 0; i < count; i++)
        if (rows[i].level == wit_served_level ())
            out_printf ("    %-24s %s\n", rows[i].package, rows[i].version);
}

static void
print_installed (struct doctor *d, const struct store_row *row)
{
    _cleanup_misfits_ struct wit_misfits misfits = { 0 };
    unsigned level = wit_served_level ();
    bool fits = wit_fits (&row->contracts, level, &misfits);
    out_printf ("    %s@%s   %s   %s level %u\n", row->name, row->version,
                store_kind_name (row->kind), fits ? "fits" : "does not fit", level);
    if (fits)
        return;
    _cleanup_free_ char *why = wit_misfits_text (&misfits);
    out_printf ("      ⚠ %s\n", why);
    d->warnings++;
    diag_warn (DIAG_DOCTOR, W_REG_003, "%s@%s: %s", row->name, row->version, why);
}

void
doctor_wit_level (struct doctor *d)
{
    print_packages ();
    _cleanup_rows_ struct store_rows rows = { 0 };
    for (size_t i = 0; i < STORE_COUNT; i++) {
        _cleanup_error_ struct mur_error *err = NULL;
        if (d->stores->at[i].root && ! store_list (&d->stores->at[i], &rows, &err))
            diag_stderr_line ("[mur doctor] warning: %s", err->message);
    }
    out_puts ("\n  installed:\n");
    for (size_t i = 0; i < rows.len; i++)
        print_installed (d, &rows.items[i]);
    if (rows.len == 0)
        out_puts ("    none installed\n");
}

/* --- the checklist --- */

/* Takes <fix> over. */
static void
add_fix (struct doctor *d, char *fix)
{
    if (fix && ! strv_contains (&d->fixes, fix))
        strv_take (&d->fixes, fix);
    else
        free (fix);
}

static void
failed_line (struct doctor *d, const char *what, const char *platform, const char *why, char *fix)
{
    d->errors++;
    out_printf ("  ✗  %s   %s   — %s\n", what, platform, why);
    add_fix (d, fix);
}

/* A wasm payload's interfaces against the served level. NULL when they fit, else the words. Owned.
 */
static char *
misfit_of (struct package *p)
{
    _cleanup_contracts_ struct wit_contracts contracts = { 0 };
    _cleanup_misfits_ struct wit_misfits misfits = { 0 };
    if (package_contracts (p, &contracts, NULL) != PACKAGE_CONTRACTS ||
        wit_fits (&contracts, wit_served_level (), &misfits))
        return NULL;
    return wit_misfits_text (&misfits);
}

static void
check_source (struct doctor *d, const struct artifact_entry *e)
{
    _cleanup_free_ char *path =
        e->source[0] == '/' ? x_strdup (e->source) : x_asprintf ("%s/%s", d->project, e->source);
    _cleanup_free_ char *what = x_asprintf ("%s@local", e->name);
    struct stat st;
    if (stat (path, &st) < 0) {
        _cleanup_free_ char *why = x_asprintf ("%s does not exist", path);
        failed_line (d, what, "local source", why, NULL);
        return;
    }
    d->passed++;
    out_printf ("  ✓  %s   local source\n", what);
}

static void
check_stored (struct doctor *d, const struct artifact_entry *e)
{
    _cleanup_free_ char *what = x_asprintf ("%s@%s", e->name, e->version);
    struct resolve_use use = { .field = "artifacts",
                               .is_plain = ! e->gateway,
                               .use_name = "gateway holder" };
    struct store_payload payload = { 0 };
    _cleanup_error_ struct mur_error *err = NULL;
    enum store_found found = stores_find (d->stores, e->name, e->version, NULL, &payload, &err);
    store_payload_clear (&payload);
    if (found == STORE_NOT_FOUND) {
        failed_line (d, what, platform_host (), "missing", x_asprintf ("mur install %s", what));
        return;
    }
    _cleanup_resolved_ struct resolved *r =
        found == STORE_FOUND
            ? artifact_resolve (d->stores, d->lock, e->name, e->version, &use, &err)
            : NULL;
    if (! r) {
        failed_line (d, what, platform_host (), err->message, x_strdup ("mur install"));
        return;
    }
    const char *platform = r->is_native ? platform_host () : "platform-independent";
    _cleanup_free_ char *misfit = misfit_of (r->package);
    if (misfit) {
        failed_line (d, what, platform, misfit, x_asprintf ("mur install %s", e->name));
        return;
    }
    d->passed++;
    out_printf ("  ✓  %s   %s\n", what, platform);
    if (r->is_untagged_native) {
        d->warnings++;
        diag_warn (DIAG_DOCTOR, W_REG_001, "%s is native and does not say for which platform",
                   what);
    }
}

void
doctor_checklist (struct doctor *d)
{
    out_printf ("\nChecking %s for %s...\n", d->manifest_path, platform_host ());
    for (size_t i = 0; i < d->manifest->artifacts.len; i++) {
        const struct artifact_entry *e = &d->manifest->artifacts.items[i];
        if (e->source)
            check_source (d, e);
        else
            check_stored (d, e);
    }
}
