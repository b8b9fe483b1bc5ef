/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur doctor`: what this host offers, and ~/.murmur. Host facts never count as
 * errors.
 */
#include "cli/health/doctor_internal.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/digest.h"
#include "base/share.h"
#include "sandbox/host/host.h"
#include "sandbox/host/probe.h"
#include "sandbox/kernel/cgroup.h"
#include "sandbox/kernel/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* --- namespaces and Landlock --- */

static void
attempt_line (const char *label, const struct attempt *a, const char *meaning)
{
    if (a->state == PROBE_SUCCEEDED) {
        out_printf ("  %s: created (%s)\n", label, meaning);
    } else if (a->state == PROBE_FAILED) {
        const char *symbol = strerrorname_np (a->failure.errno_value);
        out_printf ("  %s: refused — %s failed with %s\n", label, a->failure.step,
                    symbol ? symbol : "an unknown error");
    } else {
        out_printf ("  %s: not attempted (what it stands on failed)\n", label);
    }
}

#define PROFILE_PATH "/etc/apparmor.d/mur-sealed"
#define PROFILE_MAX  (1u << 20)

/* Whether the profile installed here is the one that came with this program. */
static void
profile_line (void)
{
    _cleanup_free_ char *shipped_path = share_path ("apparmor/mur-sealed");
    _cleanup_close_ int installed = open (PROFILE_PATH, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    int why = errno;
    _cleanup_close_ int shipped = shipped_path ? open (shipped_path, O_RDONLY | O_CLOEXEC) : -1;
    char here[SHA256_HEX_LEN + 1], ours[SHA256_HEX_LEN + 1];
    if (installed < 0 && why == ENOENT)
        out_puts ("  " PROFILE_PATH ": not installed\n");
    else if (installed < 0 || ! sha256_hex_fd_upto (installed, PROFILE_MAX, here))
        out_puts ("  " PROFILE_PATH ": unreadable\n");
    else if (shipped < 0 || ! sha256_hex_fd_upto (shipped, PROFILE_MAX, ours))
        out_printf ("  " PROFILE_PATH ": installed, sha256 %s; this program came without one to "
                    "compare it with\n",
                    here);
    else if (str_eq (here, ours))
        out_puts ("  " PROFILE_PATH ": matches the one of this program\n");
    else
        out_printf ("  " PROFILE_PATH ": does NOT match: installed sha256 %s, this program's %s\n",
                    here, ours);
}

static const char *
userns_words (enum userns_grant grant)
{
    switch (grant) {
    case USERNS_APPARMOR_ABSENT:
        return "AppArmor is not enabled here, so no profile is needed to create user namespaces";
    case USERNS_RESTRICTION_DISABLED:
        return "any program of this host may create user namespaces";
    case USERNS_PROFILE_CONFINING:
        return "a profile gives this program the right to create user namespaces";
    case USERNS_WITHHELD:
        return "this host lets only programs with a profile create user namespaces, and this one "
               "has none";
    }
    return "";
}

static void
blocker_line (char *text)
{
    if (text)
        out_printf ("    %s\n", text);
    free (text);
}

static void
warn_unrestricted (struct doctor *d, const struct host_probe *probe)
{
    if (probe->userns != USERNS_RESTRICTION_DISABLED)
        return;
    d->warnings++;
    diag_warn (DIAG_DOCTOR, W_SEC_013, "%s", HOST_UNRESTRICTED_TEXT);
}

static void
landlock_lines (const struct host_probe *probe)
{
    struct landlock_plan plan;
    landlock_plan_init (&plan, probe->landlock_abi);
    out_puts ("\nLandlock\n");
    if (! probe->landlock_abi) {
        out_puts ("  kernel ABI: none (this kernel offers no Landlock)\n  ruleset ABI: n/a (no "
                  "ruleset is made)\n");
        return;
    }
    out_printf ("  kernel ABI: %d\n  ruleset ABI: %d (%s)\n", probe->landlock_abi, plan.abi,
                plan.abi < probe->landlock_abi ? "no later right is asked for"
                                               : "all this kernel offers");
    if (plan.abi < 2)
        out_puts ("    a rename or link between two folders of the work folder fails with EXDEV\n");
    if (plan.abi < 3)
        out_puts ("    truncating a file outside the work folder is not refused\n");
    if (plan.abi < 5)
        out_puts ("    ioctl on a device that may be opened is not refused\n");
    if (plan.abi < 6)
        out_puts ("    signals are bounded by the process namespace alone\n");
}

void
doctor_namespaces (struct doctor *d)
{
    const struct host_probe *probe = host_probe_once ();
    _cleanup_free_ char *program = share_program ();
    out_puts ("AppArmor / user namespaces\n");
    out_printf ("  this binary:  %s\n", program ? program : "unknown");
    out_printf ("  profile attached: %s\n", *probe->profile ? probe->profile
                                            : probe->userns == USERNS_APPARMOR_ABSENT
                                                ? "not reported (AppArmor is not enabled)"
                                                : "none");
    out_printf ("  userns grant: %s\n    %s\n", userns_grant_name (probe->userns),
                userns_words (probe->userns));
    attempt_line ("network namespace", &probe->network, "commands can have a network of their own");
    blocker_line (host_probe_network_blocker (probe));
    if (probe->network.state == PROBE_FAILED)
        out_puts (
            probe->walls_network
                ? "  without namespaces: scoped; Landlock and the filter keep commands to the "
                  "egress relay, which they find as http_proxy\n"
                : "  without namespaces: refused; Landlock of ABI 4 (Linux 6.7) could stand for "
                  "them\n");
    for (enum session_wall w = 0; w < WALL_COUNT; w++) {
        _cleanup_free_ char *missing = host_probe_missing_wall (probe, w);
        if (missing)
            out_printf ("  %s\n", missing);
        else if (probe->network.state == PROBE_SUCCEEDED)
            out_printf ("  %s: of the session's own\n", session_wall_name (w));
    }
    attempt_line ("mount namespace", &probe->mounts, "/tmp can be the session's own");
    attempt_line ("sealed root", &probe->sealed, "commands can be given a root of their own");
    blocker_line (host_probe_sealed_blocker (probe));
    profile_line ();
    warn_unrestricted (d, probe);
    landlock_lines (probe);
}

/* --- ~/.murmur --- */

static const struct {
    const char *name;
    const char *what;
    bool is_private;
} home_entries[] = {
    { ".", "the murmur home", true },
    { "config.yaml", "configuration and credentials", true },
    { "artifacts", "installed artifacts", false },
    { "compiled", "compiled components, safe to delete", true },
    { "conversations", "conversation records", true },
    { "formations", "work folders of formation members", true },
    { "harness-versions", "what programs of harnesses said of their versions, safe to delete",
      true },
    { "host_facts", "what was found out about allowed programs, safe to delete", true },
    { "records", "traces, logs and results of every session", true },
    { "running", "records of running capsules", true },
    { "sessions", "runtime directories of running sessions", true },
    { "spend", "the machine's ledger of tokens", true },
    { "state", "state stores of artifacts", true },
};

void
doctor_home (struct doctor *d)
{
    const char *home = d->home;
    out_printf ("\nMurmur home (%s)\n", home);
    for (size_t i = 0; i < ARRAY_LEN (home_entries); i++) {
        bool is_top = str_eq (home_entries[i].name, ".");
        _cleanup_free_ char *path =
            is_top ? x_strdup (home) : x_asprintf ("%s/%s", home, home_entries[i].name);
        struct stat st;
        bool is_there = stat (path, &st) == 0;
        char mode[16] = "absent";
        if (is_there)
            snprintf (mode, sizeof (mode), "%04o", (unsigned)(st.st_mode & 07777));
        out_printf ("  %s: %s  %s%s\n", home_entries[i].name, mode, home_entries[i].what,
                    home_entries[i].is_private ? ", expected owner-only" : "");
        if (! is_there || ! home_entries[i].is_private || ! (st.st_mode & 077))
            continue;
        d->warnings++;
        diag_warn (DIAG_DOCTOR, W_SEC_028, "%s has mode %s: run chmod go-rwx %s", path, mode, path);
    }
}

/* --- the memory bound --- */

static size_t
active_swap_areas (void)
{
    _cleanup_fclose_ FILE *f = fopen ("/proc/swaps", "re");
    size_t lines = 0;
    for (int c; f && (c = fgetc (f)) != EOF;)
        lines += c == '\n';
    return lines ? lines - 1 : 0;
}

/* A control group is made as a session makes it, read, and removed. */
void
doctor_memory (struct doctor *d)
{
    const struct cap_resources *r = &d->policy->resources;
    struct cgroup_limits limits = { .memory_bytes = r->cgroup_memory_bytes.value,
                                    .pids_max = r->cgroup_pids_max.value,
                                    .cpu_percent = r->cgroup_cpu_percent.value };
    out_printf ("\nMemory bound\n  cgroup_memory_bytes: %llu\n",
                (unsigned long long)limits.memory_bytes);
    _cleanup_error_ struct mur_error *err = NULL;
    struct cgroup_scope *scope = cgroup_scope_new ("doctor", &limits, &err);
    if (! scope) {
        out_printf ("  not applied: %s\n", err->message);
        if (err->hint)
            out_printf ("    %s\n", err->hint);
        if (! policy_may_run_native (d->policy, false) || d->config->cgroup_is_optional)
            return;
        d->warnings++;
        diag_warn (DIAG_DOCTOR, E_RUN_012, "%s", err->message);
        return;
    }
    _cleanup_free_ char *limit = NULL, *swap = NULL;
    cgroup_scope_memory (scope, &limit, &swap);
    out_printf ("  memory.max %s (control groups %s)\n", *limit ? limit : "unreadable",
                cgroup_scope_version (scope));
    size_t areas = active_swap_areas ();
    if (*swap)
        out_printf ("  memory.swap.max %s (%zu active swap area%s)\n", swap, areas,
                    areas == 1 ? "" : "s");
    else if (areas)
        out_printf ("  memory.swap.max absent: swap is not bounded, and %zu swap area%s active\n",
                    areas, areas == 1 ? " is" : "s are");
    else
        out_puts ("  memory.swap.max absent: swap is not bounded, but none is active\n");
    cgroup_scope_free (scope);
}
