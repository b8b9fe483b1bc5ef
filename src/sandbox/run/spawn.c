/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/spawn.h"

#include "base/alloc.h"
#include "base/fdio.h"
#include "sandbox/kernel/cgroup_nest.h"
#include "sandbox/kernel/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* --- in the child: only async-signal-safe calls --- */

static const char *
set_limit (__rlimit_resource_t resource, uint64_t soft, uint64_t hard)
{
    struct rlimit old, limit;
    if (getrlimit (resource, &old) < 0)
        return "getrlimit";
    limit.rlim_max = hard < old.rlim_max ? hard : old.rlim_max;
    limit.rlim_cur = soft < limit.rlim_max ? soft : limit.rlim_max;
    return setrlimit (resource, &limit) < 0 ? "setrlimit" : NULL;
}

static const char *
set_last_limits (const struct spawn_limits *l)
{
    const char *failed = set_limit (RLIMIT_CORE, 0, 0);
    if (! failed)
        failed = set_limit (RLIMIT_FSIZE, l->max_file_size_bytes, l->max_file_size_bytes);
    if (! failed)
        failed = set_limit (RLIMIT_CPU, l->cpu_seconds, l->cpu_seconds + 1);
    if (! failed && l->memory_bytes)
        failed = set_limit (RLIMIT_AS, l->memory_bytes, l->memory_bytes);
    if (! failed)
        failed = set_limit (RLIMIT_NOFILE, l->max_open_files, l->max_open_files);
    return failed;
}

/* Bounding set first: once the capabilities are gone each drop is refused, and root would regain
 * all at exec. */
static const char *
drop_capabilities (void)
{
    for (unsigned long cap = 0; cap <= 63; cap++)
        if (prctl (PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EPERM) {
            if (errno == EINVAL) /* beyond the last one this kernel knows */
                break;
            return "prctl(PR_CAPBSET_DROP)";
        }
    struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct none[2] = { 0 };
    if (syscall (SYS_capset, &head, none) < 0)
        return "capset";
    return prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? "prctl(PR_SET_NO_NEW_PRIVS)" : NULL;
}

#define STEP(call)                                                                                 \
    do {                                                                                           \
        const char *step_failed = (call);                                                          \
        if (step_failed)                                                                           \
            child_fail (report_fd, step_failed, NULL);                                             \
    } while (0)

/* One message with the descriptor; the runtime reads it once the program runs. */
static void
send_listener (int socket_fd, int listener)
{
    char byte = 0;
    struct iovec data = { &byte, 1 };
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE (sizeof listener)];
    } control = { 0 };
    struct msghdr message = { .msg_iov = &data,
                              .msg_iovlen = 1,
                              .msg_control = control.bytes,
                              .msg_controllen = sizeof control.bytes };
    struct cmsghdr *c = CMSG_FIRSTHDR (&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN (sizeof listener);
    memcpy (CMSG_DATA (c), &listener, sizeof listener);
    (void)sendmsg (socket_fd, &message, MSG_NOSIGNAL);
}

static const char *
filter_calls (const struct spawn_request *r, int calls_fd)
{
    int listener;
    if (syscall_filter_load (r->filter, calls_fd < 0 ? NULL : &listener) < 0)
        return "load the system-call filter";
    if (calls_fd >= 0 && listener >= 0)
        send_listener (calls_fd, listener);
    return NULL;
}

static _noreturn_ void
child_before_exec (const struct spawn_request *r, int report_fd, int calls_fd)
{
    /* It may share the runtime's memory: nothing here writes to any but its own stack. */
    /* No controlling terminal from here on, in any class. */
    setsid ();
    child_reset_signals ();
    STEP (child_place_streams ((const int[3]){ r->stdin_fd, r->stdout_fd, r->stderr_fd }));
    /* Before the namespaces: /sys may be gone afterwards. */
    if (r->scope && cgroup_scope_join (r->scope) < 0)
        child_fail (report_fd, "join the control group", NULL);
    /* Before the capabilities go. */
    STEP (session_namespaces_join (r->namespaces));
    /* Marked, not closed: the steps below and the report still need some. */
    if (syscall (SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
        child_fail (report_fd, "close_range", NULL);
    STEP (drop_capabilities ());
    STEP (filter_calls (r, calls_fd));
    if (r->landlock && landlock_restrict (r->landlock) < 0)
        child_fail (report_fd, "landlock_restrict_self", NULL);
    /* Last: the limit on descriptors would starve the steps above. */
    STEP (set_last_limits (&r->limits));
    execve (r->path, r->argv, r->env);
    child_fail (report_fd, "execve", r->path);
}

/* --- in between --- */

#define STACK_BYTES 65536

/* Only a child of a process that joined a process namespace is born in it, so one more process
 * stands between: it shares the runtime's memory and descriptors, holds the runtime's thread until
 * it is gone, and leaves the command as the runtime's own child. */
struct usher {
    const struct spawn_request *request;
    int report_fd;
    int calls_fd;    /* where the command's listener is sent */
    int group_fd;    /* version 2 group to be born in, -1 */
    char *stack_top; /* of the command until it is executed */
    bool is_held;    /* until then: nothing is left to wait for */
    pid_t pid;       /* of the command; what clone said */
    int pidfd;
};

static int
command_run (void *arg)
{
    const struct usher *u = arg;
    child_before_exec (u->request, u->report_fd, u->calls_fd);
}

static int
usher_run (void *arg)
{
    struct usher *u = arg;
    const struct spawn_request *r = u->request;
    int report_fd = u->report_fd;
    /* Before any user namespace: the kernel charges the limit's owner. */
    if (r->limits.max_processes)
        STEP (set_limit (RLIMIT_NPROC, r->limits.max_processes, r->limits.max_processes));
    STEP (session_namespaces_join_outer (r->namespaces));
    struct clone_args args = { .flags = CLONE_PARENT | CLONE_PIDFD,
                               .pidfd = (uint64_t)(uintptr_t)&u->pidfd };
    if (u->group_fd >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (__u64)u->group_fd;
    }
    /* The runtime's memory is large, and a copy of it what a command would cost most. */
    pid_t pid = child_clone_shared (&args, u->stack_top, STACK_BYTES, command_run, u);
    u->is_held = pid > 0;
    if (pid < 0 && (errno == ENOSYS || errno == EPERM || errno == EINVAL)) {
        bool is_outside;
        pid = child_clone (&args, &is_outside);
        if (pid == 0 && is_outside && child_enter_group (u->group_fd) < 0)
            child_fail (report_fd, "join the control group", NULL);
        if (pid == 0)
            command_run (u);
    }
    u->pid = pid;
    if (pid < 0)
        child_fail (report_fd, "clone into the process namespace", NULL);
    _exit (0);
}

/* --- in the parent --- */

/* The usher runs with every signal held back, and so is the command born. */
static bool
usher_send (struct usher *u, struct mur_error **err)
{
    _cleanup_free_ char *stacks = aligned_alloc (16, 2 * STACK_BYTES);
    if (! stacks)
        return mur_fail_errno (err, E_IO_003, "cannot start a process");
    u->stack_top = stacks + 2 * STACK_BYTES;
    sigset_t all, old;
    sigfillset (&all);
    pthread_sigmask (SIG_SETMASK, &all, &old);
    pid_t usher =
        clone (usher_run, stacks + STACK_BYTES, CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, u);
    int saved = errno;
    pthread_sigmask (SIG_SETMASK, &old, NULL);
    while (usher > 0 && waitpid (usher, NULL, 0) < 0 && errno == EINTR)
        ;
    errno = saved;
    return usher > 0 || mur_fail_errno (err, E_IO_003, "cannot start a process");
}

static bool
fail_from_report (char *text, struct mur_error **err)
{
    const char *step, *detail;
    int errno_value;
    child_report_parse (text, &step, &errno_value, &detail);
    errno = errno_value;
    return mur_fail_errno (err, E_IO_003, "%s%s%s", step, *detail ? " " : "", detail);
}

/* What send_listener sent, or -1. */
static int
take_listener (int socket_fd)
{
    char byte;
    int listener = -1;
    struct iovec data = { &byte, 1 };
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE (sizeof listener)];
    } control;
    struct msghdr message = { .msg_iov = &data,
                              .msg_iovlen = 1,
                              .msg_control = control.bytes,
                              .msg_controllen = sizeof control.bytes };
    ssize_t n = recvmsg (socket_fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct cmsghdr *c = n == 1 ? CMSG_FIRSTHDR (&message) : NULL;
    if (c && c->cmsg_type == SCM_RIGHTS)
        memcpy (&listener, CMSG_DATA (c), sizeof listener);
    return listener;
}

/* Runs the usher and waits for what it leaves. */
static bool
start (struct usher *usher, int report[2], struct mur_error **err)
{
    if (! usher_send (usher, err)) {
        close (report[0]);
        close (report[1]);
        return false;
    }
    char text[CHILD_REPORT_MAX + 1];
    if (usher->pid < 0) {
        close (report[1]);
        (void)child_report_read (report[0], text);
        close (report[0]);
        return fail_from_report (text, err);
    }
    /* A program may be running while descriptors of ours are still being closed for it. */
    if (usher->is_held)
        fcntl (report[0], F_SETFL, O_NONBLOCK);
    return child_await_exec (usher->pid, usher->pidfd, report, text, err) ||
           (text[0] ? fail_from_report (text, err) : false);
}

bool
sandbox_spawn (const struct spawn_request *request, struct spawned *out, struct mur_error **err)
{
    int report[2], calls[2] = { -1, -1 };
    if (pipe2 (report, O_CLOEXEC) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot make a pipe");
    if (request->is_heard && socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, calls) < 0)
        calls[0] = calls[1] = -1; /* what is refused stays refused */
    struct usher usher = {
        .request = request,
        .report_fd = report[1],
        .calls_fd = calls[1],
        .group_fd = request->nest    ? cgroup_nest_clone_fd (request->nest)
                    : request->scope ? cgroup_scope_clone_fd (request->scope)
                                     : -1,
        .pid = -1,
        .pidfd = -1,
    };
    bool is_started = start (&usher, report, err);
    *out = (struct spawned){ usher.pid, usher.pidfd, -1 };
    if (is_started && calls[0] >= 0)
        out->listener_fd = take_listener (calls[0]);
    for (int i = 0; i < 2; i++)
        if (calls[i] >= 0)
            close (calls[i]);
    return is_started;
}
