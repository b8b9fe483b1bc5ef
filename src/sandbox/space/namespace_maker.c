/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/space/namespace_maker.h"

#include "base/alloc.h"
#include "sandbox/kernel/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* --- telling --- */

static void
add_fd (struct maker_report *r, int fds[MAKER_MAX_FDS], enum namespace_fd slot, int fd)
{
    if (fd < 0)
        return;
    r->slots[r->slot_count] = (uint8_t)slot;
    fds[r->slot_count++] = fd;
}

static bool
tell (const struct maker *m, struct maker_report *report, const int *fds, size_t count)
{
    struct iovec data = { report, sizeof *report };
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE (sizeof (int) * MAKER_MAX_FDS)];
    } control = { 0 };
    struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1 };
    if (count) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE (sizeof (int) * count);
        struct cmsghdr *c = CMSG_FIRSTHDR (&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN (sizeof (int) * count);
        memcpy (CMSG_DATA (c), fds, sizeof (int) * count);
    }
    return sendmsg (m->socket_fd, &message, MSG_NOSIGNAL) >= 0;
}

static _noreturn_ void
give_up (const struct maker *m, const char *step, bool is_composed_root, const char *detail)
{
    struct maker_report report = { .failure = { { step, errno }, is_composed_root, "" } };
    if (detail)
        strncat (report.failure.detail, detail, sizeof report.failure.detail - 1);
    (void)tell (m, &report, NULL, 0);
    _exit (1);
}

static void
miss (struct attempt_failure missing[WALL_COUNT], enum session_wall wall, const char *step)
{
    missing[wall] = (struct attempt_failure){ step, errno };
}

static int
open_ns (const char *name)
{
    char path[64] = "/proc/self/ns/";
    return open (strcat (path, name), O_RDONLY | O_CLOEXEC);
}

/* --- /proc --- */

/* Nothing a command needs, and more about the machine than it should be told. */
static const char *const masked[] = {
    "/proc/acpi",         "/proc/asound",       "/proc/kcore",      "/proc/keys",
    "/proc/kpagecgroup",  "/proc/kpagecount",   "/proc/kpageflags", "/proc/latency_stats",
    "/proc/sched_debug",  "/proc/scsi",         "/proc/slabinfo",   "/proc/sysrq-trigger",
    "/proc/timer_list",   "/proc/timer_stats",  "/proc/kmsg",       "/proc/vmallocinfo",
    "/proc/pressure/cpu", "/proc/pagetypeinfo",
};
static const char *const kept_as_it_is[] = { "/proc/sys", "/proc/irq", "/proc/bus", "/proc/fs" };

/* A user id that is the host's root may write there without any capability. */
static void
cover_machine (void)
{
    struct stat st;
    for (size_t i = 0; i < ARRAY_LEN (masked); i++)
        if (stat (masked[i], &st) == 0) {
            if (S_ISDIR (st.st_mode))
                (void)mount ("tmpfs", masked[i], "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV,
                             "size=4k,mode=0555");
            else
                (void)mount ("/dev/null", masked[i], NULL, MS_BIND, NULL);
        }
    for (size_t i = 0; i < ARRAY_LEN (kept_as_it_is); i++)
        if (mount (kept_as_it_is[i], kept_as_it_is[i], NULL, MS_BIND | MS_REC, NULL) == 0)
            (void)mount (NULL, kept_as_it_is[i], NULL,
                         MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
}

/* In the process namespace. The descriptor of the new /proc, or -1 with what is missing noted. */
static int
mount_proc (struct attempt_failure missing[WALL_COUNT])
{
    if (missing[WALL_PROCESSES].step) {
        missing[WALL_PROC] = missing[WALL_PROCESSES];
        return -1;
    }
    if (unshare (CLONE_NEWNS) < 0 || mount (NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        miss (missing, WALL_PROC, "unshare(CLONE_NEWNS)");
    else if (mount ("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        miss (missing, WALL_PROC, "mount(proc)");
    else {
        cover_machine ();
        return open ("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    return -1;
}

/* --- the init --- */

/* Its arguments are the runtime's, and every command may read them. */
static void
forget_arguments (void)
{
    char text[4096];
    int fd = open ("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    for (ssize_t n; fd >= 0 && (n = read (fd, text, sizeof text)) > 0;)
        len += (size_t)n;
    if (fd >= 0)
        close (fd);
    if (len)
        memset (program_invocation_name, 0, len);
    prctl (PR_SET_NAME, "mur-init", 0, 0, 0);
}

static void
keep_only (int *control_fd, int *runtime_fd)
{
    int low = dup2 (*control_fd, 3) == 3 ? 3 : -1;
    int high = *runtime_fd >= 0 && dup2 (*runtime_fd, 4) == 4 ? 4 : -1;
    *control_fd = low;
    *runtime_fd = high;
    syscall (SYS_close_range, 0, 2, 0);
    syscall (SYS_close_range, high < 0 ? 4 : 5, ~0U, 0);
}

/* Reaps, kills when told to, and ends with the runtime: the kernel then ends every process of the
 * namespace, whatever it did to get away. */
static _noreturn_ void
be_init (int control_fd, int runtime_fd)
{
    sigset_t children;
    sigemptyset (&children);
    sigaddset (&children, SIGCHLD);
    sigprocmask (SIG_BLOCK, &children, NULL);
    keep_only (&control_fd, &runtime_fd);
    int signal_fd = signalfd (-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    struct pollfd polled[] = { { control_fd, POLLIN, 0 },
                               { runtime_fd, POLLIN, 0 },
                               { signal_fd, POLLIN, 0 } };
    for (;;) {
        struct signalfd_siginfo info;
        char order;
        if (poll (polled, ARRAY_LEN (polled), -1) < 0 && errno != EINTR)
            _exit (1);
        if (polled[1].revents)
            _exit (0);
        if (polled[0].revents) {
            ssize_t n = read (control_fd, &order, 1);
            if (n == 0)
                _exit (0);
            if (n == 1)
                kill (-1, SIGKILL);
        }
        while (signal_fd >= 0 && read (signal_fd, &info, sizeof info) > 0)
            ;
        while (waitpid (-1, NULL, WNOHANG) > 0)
            ;
    }
}

static _noreturn_ void
init_run (const struct maker *m, const struct network_listeners *listeners,
          const struct attempt_failure missing[WALL_COUNT])
{
    struct maker_report report = { .is_init = true };
    int fds[MAKER_MAX_FDS];
    const struct mount_plan *plan = m->request->mounts;
    child_reset_signals ();
    setsid ();
    memcpy (report.missing, missing, sizeof report.missing);
    const struct {
        enum namespace_fd slot;
        const char *name;
    } joined[] = { { NS_USER, "user" }, { NS_NET, "net" } };
    for (size_t i = 0; i < ARRAY_LEN (joined); i++) {
        int fd = open_ns (joined[i].name);
        if (fd < 0)
            give_up (m, "open /proc/self/ns", false, NULL);
        add_fd (&report, fds, joined[i].slot, fd);
    }
    if (! missing[WALL_PROCESSES].step)
        add_fd (&report, fds, NS_PROCESSES, open_ns ("pid"));
    if (! missing[WALL_IPC].step)
        add_fd (&report, fds, NS_IPC, open_ns ("ipc"));
    if (! missing[WALL_HOST_NAME].step)
        add_fd (&report, fds, NS_HOST_NAME, open_ns ("uts"));
    forget_arguments ();
    if (! plan || plan->kind != MOUNT_NOTHING)
        add_fd (&report, fds, NS_PROC, mount_proc (report.missing));
    else if (! missing[WALL_PROC].step)
        report.missing[WALL_PROC] = (struct attempt_failure){ "unshare(CLONE_NEWNS)", EPERM };
    if (plan) {
        const char *detail = NULL, *failed = mount_plan_apply (plan, &detail);
        if (failed)
            give_up (m, failed, plan->kind == MOUNT_SEALED, detail);
        if (plan->kind == MOUNT_SEALED)
            add_fd (&report, fds, NS_ROOT_USER, open_ns ("user"));
        if (plan->kind != MOUNT_NOTHING)
            add_fd (&report, fds, NS_MOUNTS, open_ns ("mnt"));
        add_fd (&report, fds, NS_WORK, open (".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    }
    size_t count = report.slot_count;
    report.listener_count = (uint32_t)listeners->count;
    for (size_t i = 0; i < listeners->count; i++)
        fds[count++] = listeners->tcp_fds[i];
    const struct {
        int fd;
        bool *has;
    } others[] = { { listeners->dns_fd, &report.has_dns },
                   { listeners->refused_tcp_fd, &report.has_refused_tcp },
                   { listeners->refused_udp_fd, &report.has_refused_udp } };
    for (size_t i = 0; i < ARRAY_LEN (others); i++)
        if ((*others[i].has = others[i].fd >= 0))
            fds[count++] = others[i].fd;
    if (! tell (m, &report, fds, count))
        _exit (1);
    if (missing[WALL_PROCESSES].step) /* nothing hangs on it */
        _exit (0);
    be_init (m->control_fd, m->runtime_fd);
}

/* --- the maker --- */

/* A child of the runtime, first of a process namespace where there is one. */
static pid_t
start_init (struct attempt_failure missing[WALL_COUNT], int *pidfd)
{
    struct clone_args args = { .flags = CLONE_PARENT | CLONE_PIDFD | CLONE_NEWPID,
                               .pidfd = (uint64_t)(uintptr_t)pidfd };
    bool is_outside;
    pid_t pid = child_clone (&args, &is_outside);
    if (pid >= 0)
        return pid;
    miss (missing, WALL_PROCESSES, "clone(CLONE_NEWPID)");
    args.flags &= ~(uint64_t)CLONE_NEWPID;
    return child_clone (&args, &is_outside);
}

/* Begins the view of control groups where this process is, and ends it. */
static _noreturn_ void
tell_group (const struct maker *m, int init_fd, bool is_inside)
{
    struct maker_report report = { 0 };
    int fds[MAKER_MAX_FDS];
    add_fd (&report, fds, NS_INIT, init_fd);
    if (! is_inside)
        miss (report.missing, WALL_CONTROL_GROUP, "join the control group");
    else if (unshare (CLONE_NEWCGROUP) < 0)
        miss (report.missing, WALL_CONTROL_GROUP, "unshare(CLONE_NEWCGROUP)");
    else
        add_fd (&report, fds, NS_CONTROL_GROUP, open_ns ("cgroup"));
    (void)tell (m, &report, fds, report.slot_count);
    _exit (0);
}

/* The last of them begins at the session's own group. A process is born there for the purpose:
 * moving one waits until no process of the host is forking. */
static _noreturn_ void
finish (const struct maker *m, int init_fd)
{
    const struct cgroup_scope *scope = m->request->scope;
    int group_fd = scope ? cgroup_scope_clone_fd (scope) : -1;
    if (group_fd < 0)
        tell_group (m, init_fd, ! scope || cgroup_scope_join (scope) == 0);
    struct clone_args args = { .flags = CLONE_INTO_CGROUP,
                               .cgroup = (__u64)group_fd,
                               .exit_signal = SIGCHLD };
    bool is_outside;
    pid_t pid = child_clone (&args, &is_outside);
    if (pid <= 0)
        tell_group (m, init_fd,
                    pid == 0 && cgroup_scope_join (scope) == 0 &&
                        (! is_outside || child_enter_group (group_fd) == 0));
    while (waitpid (pid, NULL, 0) < 0 && errno == EINTR)
        ;
    _exit (0);
}

void
namespace_maker_run (const struct maker *m)
{
    struct attempt_failure missing[WALL_COUNT] = { 0 };
    struct network_listeners listeners;
    if (unshare (CLONE_NEWUSER | CLONE_NEWNET) < 0)
        give_up (m, "unshare(CLONE_NEWUSER|CLONE_NEWNET)", false, NULL);
    const char *failed = child_write_id_maps (m->uid, m->gid);
    if (failed)
        give_up (m,
                 failed[0] == 's'   ? "write /proc/self/setgroups"
                 : failed[0] == 'u' ? "write /proc/self/uid_map"
                                    : "write /proc/self/gid_map",
                 false, NULL);
    failed = network_listeners_bind (m->request->ports, m->request->port_count, &listeners);
    if (failed)
        give_up (m, failed, false, NULL);
    if (unshare (CLONE_NEWIPC) < 0)
        miss (missing, WALL_IPC, "unshare(CLONE_NEWIPC)");
    if (unshare (CLONE_NEWUTS) < 0)
        miss (missing, WALL_HOST_NAME, "unshare(CLONE_NEWUTS)");
    int init_fd = -1;
    pid_t pid = start_init (missing, &init_fd);
    if (pid == 0)
        init_run (m, &listeners, missing);
    if (pid < 0)
        give_up (m, "fork", false, NULL);
    finish (m, init_fd);
}
