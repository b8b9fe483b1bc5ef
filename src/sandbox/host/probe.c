/* SPDX-License-Identifier: Apache-2.0
 *
 * The host probe. Each attempt runs in its own forked child and reports the step it failed at.
 */
#include "sandbox/host/probe.h"

#include "base/alloc.h"
#include "base/fdio.h"
#include "sandbox/kernel/child.h"
#include "sandbox/kernel/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* What an attempt does in its child: NULL, or the step that failed (static storage, errno set). */
typedef const char *attempt_fn (const void *arg);

/* The step names a child may report; the parent matches them so that a failure's text has static
 * storage. */
static const char *const steps[] = {
    "prctl(PR_SET_NO_NEW_PRIVS)",
    "landlock_restrict_self",
    "setns(user)",
    "setns(pid)",
    "unshare(CLONE_NEWNS)",
    "mount(MS_REC|MS_PRIVATE, \"/\")",
    "mount(MS_BIND, \"/tmp\")",
    "unshare(CLONE_NEWUSER|CLONE_NEWNS)",
    "write id maps",
    "mount(tmpfs)",
    "make the parking directory",
    "pivot_root",
    "detach the old root",
    "fork",
    "wait for the child",
};

static const char *
step_named (const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN (steps); i++)
        if (strcmp (steps[i], name) == 0)
            return steps[i];
    return "an unnamed step";
}

/* One byte that no step's name begins with: the attempt came through. */
#define CAME_THROUGH "."

/* Forks the attempt. What it came to is told before it ends: leaving its namespaces takes the
 * kernel longer than making them. */
static struct attempt_child
start_attempt (attempt_fn *fn, const void *arg)
{
    struct attempt_child c = { .pid = -1, .report_fd = -1 };
    int report[2];
    if (pipe2 (report, O_CLOEXEC) < 0) {
        c.errno_value = errno;
        return c;
    }
    c.pid = fork ();
    if (c.pid == 0) {
        const char *failed = fn (arg);
        if (failed)
            child_fail (report[1], failed, NULL);
        ssize_t told _unused_ = write (report[1], CAME_THROUGH, 1);
        close (report[1]);
        _exit (0);
    }
    c.errno_value = errno;
    c.report_fd = report[0];
    close (report[1]);
    return c;
}

static struct attempt
read_attempt (struct attempt_child *c)
{
    struct attempt a = { PROBE_FAILED, { "fork", c->errno_value } };
    if (c->pid < 0)
        return a;
    char text[CHILD_REPORT_MAX + 1];
    if (! child_report_read (c->report_fd, text)) {
        a.failure = (struct attempt_failure){ "wait for the child", ECHILD };
    } else if (str_eq (text, CAME_THROUGH)) {
        a.state = PROBE_SUCCEEDED;
    } else {
        const char *step, *detail;
        child_report_parse (text, &step, &a.failure.errno_value, &detail);
        a.failure.step = step_named (step);
    }
    return a;
}

static void
end_attempt (struct attempt_child *c)
{
    if (c->report_fd >= 0)
        close (c->report_fd);
    while (c->pid > 0 && waitpid (c->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    *c = (struct attempt_child){ .pid = -1, .report_fd = -1 };
}

static const char *
try_landlock (const void *plan)
{
    if (prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return "prctl(PR_SET_NO_NEW_PRIVS)";
    return landlock_restrict (plan) < 0 ? "landlock_restrict_self" : NULL;
}

static const char *
make_mounts_private (void)
{
    return mount (NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0
               ? "mount(MS_REC|MS_PRIVATE, \"/\")"
               : NULL;
}

static const char *
try_mounts (const void *ns)
{
    const char *failed = session_namespaces_join_outer (ns);
    if (failed)
        return failed;
    if (unshare (CLONE_NEWNS) < 0)
        return "unshare(CLONE_NEWNS)";
    if ((failed = make_mounts_private ()))
        return failed;
    return mount ("/tmp", "/tmp", NULL, MS_BIND | MS_REC, NULL) < 0 ? "mount(MS_BIND, \"/tmp\")"
                                                                    : NULL;
}

struct sealed_arg {
    const struct session_namespaces *ns;
    unsigned uid, gid;
};

static const char *
try_sealed (const void *arg)
{
    const struct sealed_arg *a = arg;
    const char *failed = session_namespaces_join_outer (a->ns);
    if (failed)
        return failed;
    if (unshare (CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return "unshare(CLONE_NEWUSER|CLONE_NEWNS)";
    if (child_write_id_maps (a->uid, a->gid))
        return "write id maps";
    if ((failed = make_mounts_private ()))
        return failed;
    if (mount ("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") < 0)
        return "mount(tmpfs)";
    if (chdir ("/tmp") < 0 || mkdir (".mur-oldroot", 0700) < 0)
        return "make the parking directory";
    if (syscall (SYS_pivot_root, ".", ".mur-oldroot") < 0)
        return "pivot_root";
    if (chdir ("/") < 0 || umount2 (".mur-oldroot", MNT_DETACH) < 0)
        return "detach the old root";
    return NULL;
}

static bool
read_word (const char *path, char *out, size_t size)
{
    _cleanup_close_ int fd = open (path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read (fd, out, size - 1);
    out[n > 0 ? n : 0] = '\0';
    out[strcspn (out, "\n")] = '\0';
    return n > 0;
}

static enum userns_grant
read_userns_grant (char *profile, size_t size)
{
    char word[64];
    if (! read_word ("/sys/module/apparmor/parameters/enabled", word, sizeof word) ||
        (word[0] != 'Y' && word[0] != '1'))
        return USERNS_APPARMOR_ABSENT;
    if (! read_word ("/sys/module/apparmor/parameters/restrict_unprivileged_userns", word,
                     sizeof word) &&
        ! read_word ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", word, sizeof word))
        return USERNS_RESTRICTION_DISABLED;
    if (word[0] != 'Y' && word[0] != '1')
        return USERNS_RESTRICTION_DISABLED;
    if (read_word ("/proc/self/attr/current", profile, size) && str_starts (profile, "mur-sealed"))
        return USERNS_PROFILE_CONFINING;
    if (str_eq (profile, "unconfined"))
        profile[0] = '\0';
    return USERNS_WITHHELD;
}

void
host_probe_make (struct host_probe *probe, struct probe_children *children)
{
    *probe = (struct host_probe){ 0 };
    for (size_t i = 0; i < ARRAY_LEN (children->all); i++)
        children->all[i] = (struct attempt_child){ .pid = -1, .report_fd = -1 };
    struct attempt_child *landlock = &children->all[0], *mounts = &children->all[1],
                         *sealed = &children->all[2];
    probe->landlock_abi = landlock_kernel_abi ();
    probe->landlock = (struct attempt){ PROBE_FAILED, { "landlock_restrict_self", ENOSYS } };
    struct landlock_plan everything;
    landlock_plan_init (&everything, 1);
    if (probe->landlock_abi) {
        landlock_plan_add (&everything, "/", LANDLOCK_WRITABLE_TREE, true, false, NULL);
        *landlock = start_attempt (try_landlock, &everything);
    }
    probe->userns = read_userns_grant (probe->profile, sizeof probe->profile);
    struct session_namespaces ns;
    struct namespace_failure failure;
    const struct namespace_request bare = { 0 };
    probe->network.state =
        session_namespaces_make (&bare, &ns, &failure) ? PROBE_SUCCEEDED : PROBE_FAILED;
    probe->network.failure = failure.attempt;
    if (probe->network.state == PROBE_SUCCEEDED) {
        memcpy (probe->missing, ns.missing, sizeof probe->missing);
        struct sealed_arg arg = { &ns, geteuid (), getegid () };
        *sealed = start_attempt (try_sealed, &arg);
        *mounts = start_attempt (try_mounts, &ns);
        probe->sealed = read_attempt (sealed);
        probe->mounts = read_attempt (mounts);
        session_namespaces_close (&ns);
    }
    if (probe->landlock_abi)
        probe->landlock = read_attempt (landlock);
    probe->walls_network =
        probe->network.state == PROBE_FAILED && probe->landlock.state == PROBE_SUCCEEDED &&
        probe->landlock_abi >= LANDLOCK_NETWORK_ABI && network_loopback_is_had ();
    landlock_plan_free (&everything);
}

void
probe_children_reap (struct probe_children *children)
{
    for (size_t i = 0; i < ARRAY_LEN (children->all); i++)
        end_attempt (&children->all[i]);
}

void
host_probe_run (struct host_probe *probe)
{
    struct probe_children children;
    host_probe_make (probe, &children);
    probe_children_reap (&children);
}

/* --- words --- */

static const char *const grant_names[] = {
    [USERNS_APPARMOR_ABSENT] = "apparmor_absent",
    [USERNS_RESTRICTION_DISABLED] = "restriction_disabled_host_wide",
    [USERNS_PROFILE_CONFINING] = "profile_confining",
    [USERNS_WITHHELD] = "withheld",
};

const char *
userns_grant_name (enum userns_grant grant)
{
    return grant_names[grant];
}

char *
attempt_failure_text (const struct attempt_failure *failure)
{
    const char *symbol = strerrorname_np (failure->errno_value);
    return x_asprintf ("%s failed: %s (%s)", failure->step, symbol ? symbol : "unknown error",
                       strerror (failure->errno_value));
}

char *
host_probe_missing_wall (const struct host_probe *p, enum session_wall wall)
{
    if (p->network.state != PROBE_SUCCEEDED || ! p->missing[wall].step)
        return NULL;
    _cleanup_free_ char *failed = attempt_failure_text (&p->missing[wall]);
    return x_asprintf ("no %s (%s): %s", session_wall_name (wall), failed,
                       session_wall_meaning (wall));
}

static char *
host_readings (const struct host_probe *p)
{
    return x_asprintf ("host: user namespaces %s, AppArmor profile %s, Landlock ABI %d",
                       userns_grant_name (p->userns), p->profile[0] ? p->profile : "unconfined",
                       p->landlock_abi);
}

#define PROFILE_REMEDY                                                                             \
    "the AppArmor profile mur-sealed (/etc/apparmor.d/mur-sealed) is missing: run "                \
    "`sudo install -m 0644 <prefix>/share/murmur/apparmor/mur-sealed /etc/apparmor.d/mur-sealed` " \
    "and `sudo apparmor_parser -r /etc/apparmor.d/mur-sealed`; for a development build, name its " \
    "path in the profile; as a last resort, sysctl "                                               \
    "kernel.apparmor_restrict_unprivileged_userns=0"
#define CREATION_REMEDY                                                                            \
    "this process may not create namespaces, as in most containers: run the container with "       \
    "`--cap-add SYS_ADMIN` or a seccomp profile that allows unshare"
#define MAP_REMEDY                                                                                 \
    "the id mapping was refused: map the ids of this user (newuidmap, /etc/subuid) or run "        \
    "outside a nested namespace; a capability does not help"
#define MOUNT_REMEDY                                                                               \
    "mounting was refused: reload the AppArmor profile, or run the container with "                \
    "`--cap-add SYS_ADMIN`"
#define PIVOT_REMEDY                                                                               \
    "changing the root was refused: the AppArmor profile lacks a pivot_root rule, or the "         \
    "container's seccomp list lacks pivot_root"
#define KERNEL_REMEDY                                                                              \
    "the kernel gives no user namespace: raise user.max_user_namespaces, or use a kernel with "    \
    "CONFIG_USER_NS"

static bool
is_denied (int errno_value)
{
    return errno_value == EPERM || errno_value == EACCES;
}

static const char *
remedy_for (const struct host_probe *p, const struct attempt_failure *f)
{
    bool is_unshare = str_starts (f->step, "unshare");
    bool is_map = strstr (f->step, "map") || strstr (f->step, "setgroups");
    if (is_denied (f->errno_value) && (is_unshare || is_map) && p->userns == USERNS_WITHHELD &&
        ! p->profile[0])
        return PROFILE_REMEDY;
    if (is_unshare && ! is_denied (f->errno_value))
        return KERNEL_REMEDY;
    if (is_unshare)
        return CREATION_REMEDY;
    if (is_map)
        return MAP_REMEDY;
    if (str_starts (f->step, "mount"))
        return MOUNT_REMEDY;
    if (strstr (f->step, "pivot") || strstr (f->step, "parking") || strstr (f->step, "old root"))
        return PIVOT_REMEDY;
    if (str_starts (f->step, "fork") || str_starts (f->step, "wait"))
        return "the probe could not be run, and what is unknown is refused";
    return "the network namespace could not be set up";
}

static char *
blocker (const struct host_probe *p, const struct attempt_failure *f, const char *remedy)
{
    _cleanup_free_ char *failed = attempt_failure_text (f);
    _cleanup_free_ char *readings = host_readings (p);
    return x_asprintf ("%s\n%s\n%s", failed, remedy, readings);
}

char *
host_probe_scoped_blocker (const struct host_probe *p)
{
    if (p->landlock.state == PROBE_SUCCEEDED)
        return NULL;
    return blocker (p, &p->landlock.failure,
                    "Landlock is missing: it needs Linux 5.13 or newer with landlock among the "
                    "enabled security modules (lsm=)");
}

char *
host_probe_sealed_blocker (const struct host_probe *p)
{
    if (p->network.state == PROBE_FAILED) {
        bool is_namespace = str_starts (p->network.failure.step, "unshare") ||
                            str_starts (p->network.failure.step, "write ");
        return blocker (p, &p->network.failure,
                        is_namespace ? remedy_for (p, &p->network.failure)
                                     : "no network namespace can be set up here (E-CAP-005)");
    }
    if (p->sealed.state == PROBE_FAILED)
        return blocker (p, &p->sealed.failure, remedy_for (p, &p->sealed.failure));
    return host_probe_scoped_blocker (p);
}

char *
host_probe_network_blocker (const struct host_probe *p)
{
    if (p->network.state != PROBE_FAILED)
        return NULL;
    return blocker (p, &p->network.failure, remedy_for (p, &p->network.failure));
}
