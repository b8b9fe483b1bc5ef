/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur doctor`: installed artifacts and the ones the manifest declares.
 */
#include "artifact/package/judge.h"
#include "artifact/store/store_list.h"
#include "artifact/store/store_meta.h"
#include "cli/health/doctor_internal.h"

#include "artifact/names/platform.h"
#include "artifact/store/resolve.h"
#include "base/alloc.h"
#include "base/diag.h"
#include "cli/line/text_table.h"
#include "manifest/capsule/capsule_entry.h"
#include "manifest/settings/artifact_manifest.h"
#include "policy/input_budget.h"

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

/* "built at 1", "built at 1 (derived)" when the archive does not say, "built at none" when its
 * interfaces fit no level. Owned. */
static char *
built_at (const struct store_row *row)
{
    if (row->has_level)
        return x_asprintf ("built at %llu", (unsigned long long)row->built_at_level);
    unsigned derived = wit_newest_fit (&row->contracts);
    return derived ? x_asprintf ("built at %u (derived)", derived) : x_strdup ("built at none");
}

static void
print_installed (struct doctor *d, const struct store_row *row)
{
    _cleanup_misfits_ struct wit_misfits misfits = { 0 };
    _cleanup_free_ char *built = built_at (row);
    unsigned level = wit_served_level ();
    bool fits = wit_fits (&row->contracts, level, &misfits);
    out_printf ("    %s@%s   %s   %s   %s level %u\n", row->name, row->version,
                store_kind_name (row->kind), built, fits ? "fits" : "does not fit", level);
    if (fits)
        return;
    for (size_t i = 0; i < misfits.len; i++) {
        _cleanup_free_ char *one = wit_misfit_text (&misfits.items[i]);
        out_printf ("      ⚠ %s\n", one);
    }
    _cleanup_free_ char *why = wit_misfits_text (&misfits);
    out_printf ("      warning[%s]: %s@%s names interfaces this mur does not serve\n",
                diag_code_name (W_REG_003), row->name, row->version);
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

void
doctor_leftovers (struct doctor *d)
{
    _cleanup_strv_ struct strv paths = { 0 };
    for (size_t i = 0; i < STORE_COUNT; i++)
        if (d->stores->at[i].root)
            store_leftovers (&d->stores->at[i], &paths);
    if (! paths.len)
        return;
    out_puts ("\nArtifact stores\n  of an older layout, not read any more and safe to delete:\n");
    for (size_t i = 0; i < paths.len; i++)
        out_printf ("    %s\n", paths.items[i]);
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

/* Bytes that are not the recorded ones: both digests, each on a line. */
static void
hash_failed (struct doctor *d, const char *what, const char *platform,
             const struct store_payload *payload, const struct artifact_entry *e)
{
    _cleanup_package_ struct package *p = package_from_file (payload->path, NULL);
    const struct lock_entry *pin = lock_find (d->lock, e->name);
    const char *locked = pin ? lock_entry_hash (pin, platform_host ()) : NULL;
    bool is_locked = locked && p && strcmp (locked, p->sha256) != 0;
    bool is_anew = is_locked && payload->kind == STORE_BUNDLED; /* by another build of mur */
    failed_line (d, what, platform, "hash mismatch",
                 x_strdup (is_anew ? "mur install --update" : "mur install"));
    out_printf ("       %s %s\n       disk:  %s\n",
                is_locked ? "lock: " : "store:", is_locked ? locked : payload->sha256,
                p ? p->sha256 : "unreadable");
}

/* The tag of the payload, or that it has none. */
static const char *
shown_platform (const struct store_payload *payload)
{
    struct store_meta meta;
    bool is_native =
        store_meta_read (payload, "", "", &meta, NULL) && str_eq (meta.runtime, "native");
    store_meta_clear (&meta);
    return is_native ? platform_host () : "platform-independent";
}

/* A native program no kernel of this host runs. False after saying so. */
static bool
check_program (struct doctor *d, const char *what, const struct resolved *r)
{
    _cleanup_buf_ struct buf image = { 0 };
    _cleanup_error_ struct mur_error *err = NULL;
    if (! r->is_native || (package_read_native (r->package, &image, &err) &&
                           platform_check_binary (r->name, image.data, image.len, &err)))
        return true;
    _cleanup_free_ char *why = x_asprintf ("%s: %s", diag_code_name (err->code), err->message);
    failed_line (d, what, platform_host (), why, x_strdup ("mur install"));
    return false;
}

static struct resolve_use
use_of (const struct doctor *d, const struct artifact_entry *e)
{
    bool is_prompt = d->manifest->inference && d->manifest->inference->prompt_entry == e;
    struct resolve_use use = { .field = "artifacts" };
    use.use_name = e->role == ROLE_HOOK     ? "hook"
                   : e->role == ROLE_DRIVER ? "driver"
                   : e->gateway             ? "gateway holder"
                   : is_prompt              ? "system prompt"
                                            : NULL;
    use.is_plain = ! use.use_name;
    return use;
}

/* Everything about the payload is in order; <finding> (NULL for none) is only a warning. */
static void
sound_line (struct doctor *d, const char *what, const char *platform, const char *finding)
{
    d->passed++;
    if (! finding) {
        out_printf ("  ✓  %s   %s\n", what, platform);
        return;
    }
    d->warnings++;
    out_printf ("  ⚠  %s   %s   — %s\n", what, platform, finding);
}

static void
check_resolved (struct doctor *d, const struct artifact_entry *e, const char *what,
                const struct resolved *r)
{
    const char *platform = r->is_native ? platform_host () : "platform-independent";
    _cleanup_free_ char *misfit = misfit_of (r->package);
    if (misfit) {
        failed_line (d, what, platform, misfit, x_asprintf ("mur install %s", e->name));
        return;
    }
    if (! check_program (d, what, r))
        return;
    _cleanup_free_ char *finding =
        package_misdeclared (r->package, e->name, artifact_role_name (e->role));
    if (finding)
        diag_warn (DIAG_DOCTOR, W_REG_005, "%s", finding);
    else if (r->is_untagged_native) {
        finding = x_asprintf ("%s: the payload does not say for which platform it is",
                              diag_code_name (W_REG_001));
        diag_warn (DIAG_DOCTOR, W_REG_001, "%s is native and does not say for which platform",
                   what);
    } else if (strcmp (r->version, e->version) != 0) {
        finding = x_asprintf ("murmur.lock pins %s, and that is what runs", r->version);
        add_fix (d, x_asprintf ("mur install %s", what));
    }
    sound_line (d, what, platform, finding);
    if (e->role == ROLE_DRIVER)
        doctor_harness (d, r->package->manifest);
    if (e->role == ROLE_MCP)
        doctor_server (d, e, r->package);
    if (r->is_native)
        strv_push (&d->natives, what);
}

static void
check_stored (struct doctor *d, const struct artifact_entry *e)
{
    _cleanup_free_ char *what = x_asprintf ("%s@%s", e->name, e->version);
    const struct lock_entry *pin = lock_find (d->lock, e->name);
    const char *version = pin ? pin->version : e->version; /* what a run takes */
    struct resolve_use use = use_of (d, e);
    _cleanup_payload_ struct store_payload payload = { 0 };
    _cleanup_error_ struct mur_error *err = NULL;
    enum store_found found = stores_find (d->stores, e->name, version, NULL, &payload, &err);
    if (found == STORE_NOT_FOUND) {
        failed_line (d, what, platform_host (), "missing",
                     x_asprintf ("mur install %s@%s", e->name, version));
        return;
    }
    _cleanup_resolved_ struct resolved *r =
        found == STORE_FOUND
            ? artifact_resolve (d->stores, d->lock, e->name, e->version, &use, &err)
            : NULL;
    if (r)
        check_resolved (d, e, what, r);
    else if (err->code == E_REG_002 && found == STORE_FOUND)
        hash_failed (d, what, shown_platform (&payload), &payload, e);
    else
        failed_line (d, what, platform_host (), err->message,
                     trust_is_refusal (err->code)
                         ? x_asprintf ("mur verify %s@%s", e->name, version)
                         : x_strdup ("mur install"));
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
    for (size_t i = 0; i < d->lock->count; i++) {
        const struct lock_entry *e = &d->lock->entries[i];
        if (e->origin == LOCK_RUNTIME)
            out_printf ("  ·  %s@%s   pulled by %s; a run does not stage it\n", e->name, e->version,
                        e->session ? e->session : "a session");
    }
    if (d->natives.len)
        out_puts ("\nNative tools\n");
    for (size_t i = 0; i < d->natives.len; i++)
        out_printf ("  - %s: runs under %s, with no network but the capsule's\n",
                    d->natives.items[i], containment_tier_name (d->containment->applied));
}

/* --- model limits --- */

/* What a driver's packed manifest says of its models. NULL when it cannot be read: the checklist
 * has said why. The caller frees the package. */
static struct package *
driver_package (const struct doctor *d, const struct artifact_entry *e)
{
    _cleanup_payload_ struct store_payload payload = { 0 };
    if (e->source ||
        stores_find (d->stores, e->name, e->version, NULL, &payload, NULL) != STORE_FOUND)
        return NULL;
    struct package *package = package_from_file (payload.path, NULL);
    if (package && package_open_zip (package, NULL))
        return package;
    if (package)
        package_free (package);
    return NULL;
}

static const struct model_limits *
find_model (const struct package *p, const char *model, struct mur_error **err)
{
    const struct model_limits *models;
    size_t len;
    if (! artifact_manifest_models (p->manifest, E_RUN_052, &models, &len, err))
        return NULL;
    for (size_t i = 0; i < len; i++)
        if (strcmp (models[i].id, model) == 0)
            return &models[i];
    return NULL;
}

static void
model_failed (struct doctor *d, const char *label, const char *why, char *fix)
{
    d->errors++;
    out_printf ("  ✗  %s: %s\n", label, why);
    add_fix (d, fix);
}

/* ", input ceiling 4000 (driver)", or "none (none)" for what nobody says. */
static void
show_limit (const char *what, uint64_t tokens, const char *source)
{
    if (tokens)
        out_printf (", %s %llu (%s)", what, (unsigned long long)tokens, source);
    else
        out_printf (", %s none (none)", what);
}

/* One driver choice: its output cap, context window and input budget as a launch computes them. */
static void
check_choice (struct doctor *d, const char *choice, const char *model,
              const struct artifact_entry *e)
{
    const struct inference *inference = d->manifest->inference;
    const struct context *context = d->manifest->context;
    _cleanup_package_ struct package *package = driver_package (d, e);
    if (! package)
        return;
    _cleanup_free_ char *label =
        x_asprintf ("%s (%s@%s, model %s)", choice, e->name, e->version, model);
    _cleanup_error_ struct mur_error *err = NULL;
    const struct model_limits *row = find_model (package, model, &err);
    if (err) {
        model_failed (d, label, err->message, x_asprintf ("mur install %s", e->name));
        return;
    }
    if (! inference->max_tokens.is_set && ! row) {
        model_failed (d, label, "no output cap: the driver does not list this model (E-RUN-052)",
                      x_strdup ("set inference.max_tokens in murmur.yaml"));
        return;
    }
    bool caps_here = inference->max_tokens.is_set;
    bool window_here = context && context->max_tokens.is_set;
    uint64_t cap = caps_here ? inference->max_tokens.value : row->max_output_tokens;
    uint64_t window = window_here ? context->max_tokens.value : row ? row->context_window : 0;
    if (window && window <= cap) {
        model_failed (d, label, "the output cap fills the context window (E-RUN-055)",
                      x_strdup ("lower inference.max_tokens in murmur.yaml"));
        return;
    }
    d->passed++;
    out_printf ("  ✓  %s: output cap %llu (%s)", label, (unsigned long long)cap,
                caps_here ? "manifest" : "driver");
    uint64_t ceiling = row ? row->max_input_tokens : 0;
    show_limit ("context window", window, window_here ? "manifest" : "driver");
    show_limit ("input ceiling", ceiling, "driver");
    const char *basis;
    uint64_t budget = policy_input_budget (window, ceiling, cap, &basis);
    show_limit ("input budget", budget, basis);
    out_puts ("\n");
    if (row || (caps_here && window_here))
        return;
    d->warnings++;
    diag_warn (DIAG_DOCTOR, W_RUN_009,
               "driver %s does not list model %s and context.max_tokens is not set", e->name,
               model);
}

void
doctor_model_limits (struct doctor *d)
{
    const struct inference *inference = d->manifest->inference;
    if (! inference || inference->transport != TRANSPORT_HTTP || ! inference->driver_entry)
        return;
    const char *model = inference->model ? inference->model : "";
    out_puts ("\nModel limits:\n");
    check_choice (d, "primary", model, inference->driver_entry);
    for (size_t i = 0; i < inference->alternates.len; i++) {
        const struct alternate *a = &inference->alternates.items[i];
        if (a->entry)
            check_choice (d, a->name, a->model ? a->model : model, a->entry);
    }
}
