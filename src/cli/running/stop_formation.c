/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/running/stop_formation.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/ids.h"
#include "cli/running/stop_session.h"
#include "trace/read/formation.h"

#include <poll.h>
#include <signal.h>
#include <string.h>

#define WIND_DOWN_MS 30000 /* a launcher's patience with its members, and a little more */

struct formation_stop {
    const char *id;
    struct running_scan scan;
    const struct running_record *launched; /* one that names the launcher; NULL: none */
    size_t members;
};

static bool
is_member (const struct formation_stop *f, const struct running_entry *e)
{
    return e->liveness != RUNNING_GONE && str_eq (e->record.formation_id, f->id);
}

/* Exactly one launcher, or none at all. */
static bool
find_launcher (struct formation_stop *f, struct mur_error **err)
{
    for (size_t i = 0; i < f->scan.len; i++) {
        const struct running_record *r = &f->scan.entries[i].record;
        if (! is_member (f, &f->scan.entries[i]))
            continue;
        f->members++;
        if (! r->launcher_pid)
            continue;
        if (f->launched && (f->launched->launcher_pid != r->launcher_pid ||
                            ! str_eq (f->launched->launcher_start, r->launcher_start)))
            return mur_fail (err, E_RUN_024,
                             "the members of %s name different launchers (processes %ld and %ld): "
                             "nothing was signalled",
                             f->id, (long)f->launched->launcher_pid, (long)r->launcher_pid);
        f->launched = r;
    }
    return f->members || mur_fail (err, E_RUN_022, "formation %s is not running", f->id);
}

/* How the launcher was signalled; NULL: it was gone already. False: it could not be. */
static bool
signal_launcher (const struct formation_stop *f, const char **how, struct mur_error **err)
{
    const struct running_record *r = f->launched;
    enum running_liveness liveness = RUNNING_HELD;
    *how = NULL;
    if (running_signal (r->launcher_pid, r->launcher_start, SIGTERM, &liveness)) {
        *how = "SIGTERM";
        return true;
    }
    return liveness == RUNNING_GONE ||
           mur_fail_errno (err, E_RUN_024, "the launcher of %s (process %ld) cannot be signalled",
                           f->id, (long)r->launcher_pid);
}

static bool
are_gone (const struct formation_stop *f)
{
    const char *reason;
    const struct running_record *l = f->launched;
    if (running_check (l->launcher_pid, l->launcher_start, &reason) != RUNNING_GONE)
        return false;
    for (size_t i = 0; i < f->scan.len; i++) {
        const struct running_record *r = &f->scan.entries[i].record;
        if (is_member (f, &f->scan.entries[i]) && r->launcher_pid &&
            running_check (r->pid, r->process_start, &reason) != RUNNING_GONE)
            return false;
    }
    return true;
}

static bool
wait_for_all (const struct formation_stop *f, uint64_t timeout_s, struct mur_error **err)
{
    uint64_t patience_ms = timeout_s < 100000 ? timeout_s * 1000 : 100000000;
    uint64_t deadline_ms = clock_monotonic_ms () + patience_ms + WIND_DOWN_MS;
    while (! are_gone (f)) {
        if (clock_monotonic_ms () >= deadline_ms)
            return mur_fail (err, E_RUN_024, "formation %s (launcher %ld) still runs", f->id,
                             (long)f->launched->launcher_pid);
        poll (NULL, 0, 50);
    }
    return true;
}

/* --- the answer --- */

/* How the trace of a session ends. */
static const char *
ending_of (const struct formation_traces *traces, const char *session_id)
{
    for (size_t i = 0; traces && i < formation_member_count (traces); i++) {
        struct formation_member_view m = formation_member_at (traces, i);
        if (str_eq (m.session_id, session_id))
            return m.exit_status ? m.exit_status : "no session_end";
    }
    return "its trace was not found";
}

/* The entry's work folder is where the formation was launched. */
static const char *
work_root_of (const struct formation_stop *f)
{
    const char *root = NULL;
    for (size_t i = 0; i < f->scan.len; i++)
        if (is_member (f, &f->scan.entries[i]) &&
            (! root || f->scan.entries[i].record.formation_entry))
            root = f->scan.entries[i].record.workdir;
    return root;
}

static void
print_answer (const struct formation_stop *f, const char *how)
{
    _cleanup_formation_ struct formation_traces *traces =
        formation_traces_read (f->id, work_root_of (f), NULL);
    out_printf ("stopped: %s\n", f->id);
    if (f->launched)
        out_printf ("launcher: pid %ld  %s\n", (long)f->launched->launcher_pid,
                    how ? how : "none — it had already exited");
    for (size_t i = 0; i < f->scan.len; i++) {
        const struct running_record *r = &f->scan.entries[i].record;
        if (! is_member (f, &f->scan.entries[i]))
            continue;
        out_printf ("member: %s  %s  %s\n", r->formation_member ? r->formation_member : "-",
                    r->session_id, ending_of (traces, r->session_id));
        if (r->launcher_pid)
            running_remove (r->session_id);
    }
}

static bool
stop_by_hand (const struct formation_stop *f, uint64_t timeout_s, struct mur_error **err)
{
    for (size_t i = 0; i < f->scan.len; i++)
        if (is_member (f, &f->scan.entries[i]) && ! f->scan.entries[i].record.launcher_pid &&
            ! stop_session (&f->scan.entries[i].record, timeout_s, err))
            return false;
    return true;
}

static bool
stop (struct formation_stop *f, uint64_t timeout_s, struct mur_error **err)
{
    const char *how = NULL;
    if (! running_scan (true, &f->scan, err))
        return false;
    running_prune (&f->scan);
    if (! find_launcher (f, err))
        return false;
    if (f->launched && (! signal_launcher (f, &how, err) || ! wait_for_all (f, timeout_s, err)))
        return false;
    if (! stop_by_hand (f, timeout_s, err))
        return false;
    print_answer (f, how);
    return true;
}

bool
stop_formation (const char *formation_id, uint64_t timeout_s, struct mur_error **err)
{
    if (! id_is_valid (formation_id, "frm_")) {
        mur_fail (err, E_RUN_022, "%s is not the id of a formation", formation_id);
        return mur_hint (err, "\"frm_\" and 32 hex digits, as `mur ps` shows it");
    }
    struct formation_stop f = { .id = formation_id };
    bool is_ok = stop (&f, timeout_s, err);
    running_scan_free (&f.scan);
    return is_ok;
}
