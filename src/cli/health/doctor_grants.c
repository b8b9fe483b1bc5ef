/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur doctor`: what the manifest grants here, and what a launch would refuse that is only warned
 * of (spec/cli.md 5, spec/containment.md 16.1).
 */
#include "base/alloc.h"
#include "base/diag.h"
#include "cli/health/doctor_internal.h"
#include "policy/check.h"
#include "policy/scope_report.h"
#include "policy/scope_text.h"
#include "policy/warn.h"
#include "sandbox/host/host.h"
#include "session/grants.h"
#include "spawn/report/registration.h"

#include <string.h>

static void
out_buf (struct buf *text)
{
    if (text->len)
        out_write (text->data, text->len);
    buf_truncate (text, 0);
}

/* What the lock says of each entry: a hash for one platform is a native payload. */
static void
fill_facts (const struct doctor *d, struct report_facts *facts, bool *is_native, bool *is_resolved)
{
    for (size_t i = 0; i < d->manifest->artifacts.len; i++) {
        const struct lock_entry *pin =
            d->lock->exists ? lock_find (d->lock, d->manifest->artifacts.items[i].name) : NULL;
        is_resolved[i] = pin != NULL;
        is_native[i] = pin && ! pin->any;
    }
    facts->artifact_is_native = is_native;
    facts->artifact_is_resolved = is_resolved;
}

void
doctor_grants (struct doctor *d)
{
    size_t count = d->manifest->artifacts.len + 1;
    _cleanup_free_ bool *is_native = x_calloc (count, sizeof (bool));
    _cleanup_free_ bool *is_resolved = x_calloc (count, sizeof (bool));
    struct report_facts facts = { 0 };
    report_facts_fill (d->policy, d->containment, &facts);
    fill_facts (d, &facts, is_native, is_resolved);
    _cleanup_buf_ struct buf text = { 0 };
    buf_puts (&text, "\nFilesystem preopens\n");
    scope_text_preopens (d->policy, &facts, &text);
    buf_puts (&text, "\nRead-only paths\n");
    scope_text_read_only (d->policy, &text);
    buf_puts (&text, "\nInstall grant\n");
    scope_text_install (d->policy, &text);
    out_buf (&text);
}

void
doctor_directories (struct doctor *d)
{
    struct report_facts facts = { 0 };
    report_facts_fill (d->policy, d->containment, &facts);
    _cleanup_buf_ struct buf text = { 0 };
    buf_putc (&text, '\n');
    scope_text_directories (&facts, &text);
    buf_truncate (&text, text.len - 1); /* the summary brings its own blank line */
    out_buf (&text);
}

/* --- what a launch would refuse --- */

static void
warn_of (struct doctor *d, const struct mur_error *e)
{
    d->warnings++;
    diag_warn (DIAG_DOCTOR, e->code, "%s", e->message);
    if (e->hint)
        diag_stderr_line ("  hint: %s", e->hint);
}

/* E-CAP-003, E-CAP-005 and E-CAP-006 are facts of this host; they fail no check. */
static void
host_concerns (struct doctor *d)
{
    _cleanup_error_ struct mur_error *err = NULL;
    if (! containment_check (d->containment, &err))
        warn_of (d, err);
    _cleanup_error_ struct mur_error *lost = NULL;
    if (! confine_check_entries (d->policy, &lost))
        warn_of (d, lost);
    if (! policy_may_run_native (d->policy, false))
        return;
    _cleanup_free_ char *blocker = host_probe_network_blocker (host_probe_once ());
    if (! blocker || d->containment->space == SPACE_WALLED)
        return;
    d->warnings++;
    diag_warn (DIAG_DOCTOR, E_CAP_005, "no network namespace can be made here: %s", blocker);
}

/* A capsule that starts others runs only when the referee knows it. */
static void
referee_concern (struct doctor *d)
{
    if (! d->policy->spawn_allow.len)
        return;
    struct http_client *http = http_client_new ();
    _cleanup_error_ struct mur_error *err = NULL;
    if (! registration_probe (http, getenv ("MURMUR_ROOST_URL"), &err))
        warn_of (d, err);
    http_client_free (http);
}

void
doctor_concerns (struct doctor *d)
{
    bool is_last = false;
    for (size_t i = 0; ! is_last; i++) {
        _cleanup_error_ struct mur_error *err = NULL;
        if (! policy_check_concern (d->policy, i, &is_last, &err))
            warn_of (d, err);
    }
    d->warnings += policy_warn_programs (d->policy, DIAG_DOCTOR);
    host_concerns (d);
    referee_concern (d);
}
