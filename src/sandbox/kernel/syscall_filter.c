/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/kernel/syscall_filter.h"

#include "base/alloc.h"
#include "base/fdio.h"
#include "sandbox/kernel/network_listeners.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* Names an architecture lacks are skipped, which leaves them denied. */
const char *const syscall_filter_allowed[] = {
    /* processes */
    "execve", "execveat", "fork", "vfork", "exit", "exit_group", "wait4", "waitid", "kill", "tkill",
    "tgkill", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigsuspend", "rt_sigpending",
    "rt_sigtimedwait", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "sigaltstack", "restart_syscall",
    "pause", "set_tid_address", "set_robust_list", "get_robust_list", "rseq", "prctl", "arch_prctl",
    "getpid", "getppid", "gettid", "getpgrp", "getpgid", "setpgid", "getsid", "setsid",
    "getpriority", "ioprio_get", "sched_yield", "sched_getaffinity", "sched_getparam",
    "sched_getscheduler", "sched_getattr", "sched_get_priority_max", "sched_get_priority_min",
    "sched_rr_get_interval", "getcpu", "capget", "capset", "getrlimit", "setrlimit", "getrusage",
    "getitimer", "setitimer", "times", "uname", "sysinfo", "pidfd_open", "pidfd_send_signal",
    /* memory */
    "mmap", "munmap", "mprotect", "mremap", "madvise", "brk", "mlock", "mlock2", "munlock",
    "mlockall", "munlockall", "membarrier", "msync", "mincore", "memfd_create", "pkey_alloc",
    "pkey_free", "pkey_mprotect", "cachestat", "map_shadow_stack", "mseal",
    /* files */
    "open", "openat", "openat2", "creat", "close", "close_range", "read", "write", "pread64",
    "pwrite64", "readv", "writev", "preadv", "pwritev", "preadv2", "pwritev2", "lseek", "dup",
    "dup2", "dup3", "fcntl", "flock", "fsync", "fdatasync", "sync", "syncfs", "sync_file_range",
    "fadvise64", "readahead", "truncate", "ftruncate", "fallocate", "stat", "fstat", "lstat",
    "newfstatat", "statx", "access", "faccessat", "faccessat2", "getdents", "getdents64", "getcwd",
    "chdir", "fchdir", "mkdir", "mkdirat", "rmdir", "unlink", "unlinkat", "rename", "renameat",
    "renameat2", "link", "linkat", "symlink", "symlinkat", "readlink", "readlinkat", "chmod",
    "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "fchownat", "lchown", "umask", "utime",
    "utimes", "utimensat", "futimesat", "mknod", "mknodat", "sendfile", "copy_file_range", "splice",
    "tee", "vmsplice", "ioctl", "poll", "ppoll", "select", "pselect6", "epoll_create",
    "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2", "eventfd",
    "eventfd2", "pipe", "pipe2", "inotify_init", "inotify_init1", "inotify_add_watch",
    "inotify_rm_watch", "signalfd", "signalfd4", "timerfd_create", "timerfd_settime",
    "timerfd_gettime", "statfs", "fstatfs", "name_to_handle_at", "io_setup", "io_destroy",
    "io_submit", "io_cancel", "io_getevents", "io_pgetevents",
    /* sockets, but for socket itself and senders below */
    "connect", "socketpair", "bind", "accept", "accept4", "getsockname", "getpeername",
    "getsockopt", "setsockopt", "shutdown", "recvfrom", "recvmsg", "recvmmsg",
    /* time */
    "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "time",
    "timer_create", "timer_settime", "timer_gettime", "timer_getoverrun", "timer_delete", "alarm",
    /* randomness, futexes, ids */
    "getrandom", "futex", "futex_waitv", "futex_wake", "futex_wait", "futex_requeue", "getuid",
    "geteuid", "getgid", "getegid", "setuid", "setgid", "setreuid", "setregid", "setresuid",
    "setresgid", "getresuid", "getresgid", "getgroups", "setgroups", "setfsuid", "setfsgid",
    /* a command may confine itself further */
    "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", NULL
};

static const char *const syscall_filter_ipc[] = {
    "shmget",          "shmat",      "shmdt",         "shmctl",    "msgget",
    "msgsnd",          "msgrcv",     "msgctl",        "semget",    "semop",
    "semctl",          "semtimedop", "mq_open",       "mq_unlink", "mq_timedsend",
    "mq_timedreceive", "mq_notify",  "mq_getsetattr", NULL
};

/* Not mediated by Landlock, so a file whose content is refused would be read and marked by them.
 * The answer is a file system's that keeps none: programs copy on without. */
static const char *const attribute_readers[] = { "getxattr",  "lgetxattr",  "fgetxattr",
                                                 "listxattr", "llistxattr", "flistxattr",
                                                 NULL };
static const char *const attribute_writers[] = { "setxattr",    "lsetxattr",    "fsetxattr",
                                                 "removexattr", "lremovexattr", "fremovexattr",
                                                 NULL };

/* Not looked into here: whoever gets this answer falls back to the older call, which is. */
static const char *const newer_than_here[] = { "clone3",      "setxattrat",    "getxattrat",
                                               "listxattrat", "removexattrat", NULL };

/* Calls that name a process, allowed as far as they mean the caller. */
static const struct {
    const char *name;
    unsigned argument; /* that must be 0 */
    bool is_always;    /* else only where other processes than the session's can be named */
} own_only[] = {
    { "prlimit64", 0, true },           { "prlimit64", 2, true }, /* or nothing is set */
    { "sched_setaffinity", 0, false },  { "sched_setparam", 0, false },
    { "sched_setscheduler", 0, false }, { "sched_setattr", 0, false },
    { "setpriority", 1, false },        { "ioprio_set", 1, false },
};

/* Any namespace, as clone takes them; time namespaces have no flag there. */
#define NAMESPACE_FLAGS                                                                            \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |  \
     CLONE_NEWNET)
#ifdef __s390__
#define CLONE_FLAGS_ARGUMENT 1
#else
#define CLONE_FLAGS_ARGUMENT 0
#endif

/* Never to appear above. */
const char *const syscall_filter_denied[] = { "io_uring_setup",
                                              "io_uring_enter",
                                              "io_uring_register",
                                              "bpf",
                                              "userfaultfd",
                                              "perf_event_open",
                                              "process_vm_readv",
                                              "process_vm_writev",
                                              "open_by_handle_at",
                                              "keyctl",
                                              "add_key",
                                              "request_key",
                                              "ptrace",
                                              "mount",
                                              "umount2",
                                              "pivot_root",
                                              "chroot",
                                              "unshare",
                                              "setns",
                                              "init_module",
                                              "finit_module",
                                              "delete_module",
                                              "kexec_load",
                                              "kexec_file_load",
                                              "reboot",
                                              "swapon",
                                              "swapoff",
                                              "acct",
                                              "quotactl",
                                              "nfsservctl",
                                              "iopl",
                                              "ioperm",
                                              "vm86",
                                              "vm86old",
                                              "_sysctl",
                                              "sysfs",
                                              "uselib",
                                              "create_module",
                                              "get_kernel_syms",
                                              "query_module",
                                              "lookup_dcookie",
                                              "clock_adjtime",
                                              "clock_settime",
                                              "settimeofday",
                                              "stime",
                                              "adjtimex",
                                              "set_mempolicy",
                                              "get_mempolicy",
                                              "mbind",
                                              "migrate_pages",
                                              "move_pages",
                                              "fanotify_init",
                                              "fanotify_mark",
                                              "seccomp",
                                              "kcmp",
                                              NULL };

/* Those of them that mean something to whoever asked: the runtime is told when a command tries one.
 * What libraries try on their way (io_uring, memory policies) is refused without a word. The last
 * one stands for clone with a flag of a namespace. */
const char *const syscall_filter_told[] = {
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "pidfd_getfd",
    "mount",
    "umount2",
    "move_mount",
    "open_tree",
    "fsopen",
    "fsmount",
    "mount_setattr",
    "pivot_root",
    "chroot",
    "unshare",
    "setns",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "open_by_handle_at",
    "add_key",
    "request_key",
    "keyctl",
    "init_module",
    "finit_module",
    "delete_module",
    "kexec_load",
    "kexec_file_load",
    "reboot",
    "swapon",
    "swapoff",
    "acct",
    "quotactl",
    "clock_settime",
    "settimeofday",
    "iopl",
    "ioperm",
    "fanotify_init",
    "syslog",
    "sethostname",
    "setdomainname",
    "vhangup",
    "clone",
    NULL,
};

/* Without a network namespace: the runtime makes TCP sockets over IPv4; any other of the internet
 * is refused, and so is what would go on beside connect, which is judged. */
static const char *const senders[] = { "sendto", "sendmsg", "sendmmsg", "listen", NULL };
static const struct {
    const char *name;
    unsigned flags_argument;
} fast_openers[] = { { "sendto", 3 }, { "sendmsg", 2 }, { "sendmmsg", 3 } };

static void
release (scmp_filter_ctx *ctx)
{
    seccomp_release (*ctx);
}

static int
number_of (const char *name)
{
    /* Older tables lack the names; the numbers are the same on every architecture. */
    static const struct {
        const char *name;
        int number;
    } newer[] = {
        { "landlock_create_ruleset", 444 },
        { "landlock_add_rule", 445 },
        { "landlock_restrict_self", 446 },
        { "fchmodat2", 452 },
        { "futex_waitv", 449 },
        { "epoll_pwait2", 441 },
        { "process_mrelease", 448 },
        { "cachestat", 451 },
        { "map_shadow_stack", 453 },
        { "futex_wake", 454 },
        { "futex_wait", 455 },
        { "futex_requeue", 456 },
        { "mseal", 462 },
        { "setxattrat", 463 },
        { "getxattrat", 464 },
        { "listxattrat", 465 },
        { "removexattrat", 466 },
    };
    int number = seccomp_syscall_resolve_name (name);
    for (size_t i = 0; number == __NR_SCMP_ERROR && i < ARRAY_LEN (newer); i++)
        if (__builtin_strcmp (newer[i].name, name) == 0)
            return newer[i].number;
    return number;
}

static int
add_names (scmp_filter_ctx ctx, uint32_t action, const char *const *names)
{
    int status = 0;
    for (size_t i = 0; names[i] && status >= 0; i++) {
        int number = number_of (names[i]);
        if (number >= 0)
            status = seccomp_rule_add (ctx, action, number, 0);
    }
    return status;
}

/* Of such an argument the kernel looks at the low half alone. */
#define LOW_HALF(n, value) SCMP_CMP64 (n, SCMP_CMP_MASKED_EQ, UINT32_MAX, (uint32_t)(value))

/* Linux as it is, by an older name and number, at fixed addresses, with memory that can be executed
 * where it can be read (a Lisp saves its code as data), and asking which it is. Nobody but the
 * process that asks and what it starts is weaker for it. What maps the first page is not among
 * them. */
const uint32_t syscall_filter_personalities[SYSCALL_FILTER_PERSONALITIES] = {
    0,
    PER_LINUX32,
    UNAME26,
    UNAME26 | PER_LINUX32,
    ADDR_NO_RANDOMIZE,
    ADDR_NO_RANDOMIZE | PER_LINUX32,
    READ_IMPLIES_EXEC,
    READ_IMPLIES_EXEC | ADDR_NO_RANDOMIZE,
    UINT32_MAX,
};

static int
add_personalities (scmp_filter_ctx ctx)
{
    int status = 0;
    for (size_t i = 0; i < ARRAY_LEN (syscall_filter_personalities) && status >= 0; i++)
        status = seccomp_rule_add (ctx, SCMP_ACT_ALLOW, SCMP_SYS (personality), 1,
                                   LOW_HALF (0, syscall_filter_personalities[i]));
    return status;
}

static int
add_own_only (scmp_filter_ctx ctx, bool has_own_processes)
{
    int status = 0;
    for (size_t i = 0; i < ARRAY_LEN (own_only) && status >= 0; i++) {
        int number = number_of (own_only[i].name);
        if (number < 0)
            continue;
        if (own_only[i].is_always || ! has_own_processes)
            status = seccomp_rule_add (ctx, SCMP_ACT_ALLOW, number, 1,
                                       SCMP_CMP64 (own_only[i].argument, SCMP_CMP_EQ, 0));
        else
            status = seccomp_rule_add (ctx, SCMP_ACT_ALLOW, number, 0);
    }
    return status;
}

/* NETLINK_ROUTE alone: without a capability over its namespace a process reads there, and changes
 * nothing. */
static int
add_netlink (scmp_filter_ctx ctx, bool reads_interfaces)
{
    if (! reads_interfaces)
        return seccomp_rule_add (ctx, SCMP_ACT_ERRNO (EACCES), SCMP_SYS (socket), 1,
                                 SCMP_A0_64 (SCMP_CMP_EQ, AF_NETLINK));
    int status = seccomp_rule_add (ctx, SCMP_ACT_ALLOW, SCMP_SYS (socket), 2,
                                   SCMP_A0_64 (SCMP_CMP_EQ, AF_NETLINK),
                                   SCMP_A2_64 (SCMP_CMP_EQ, NETLINK_ROUTE));
    return status < 0 ? status
                      : seccomp_rule_add (ctx, SCMP_ACT_ERRNO (EACCES), SCMP_SYS (socket), 2,
                                          SCMP_A0_64 (SCMP_CMP_EQ, AF_NETLINK),
                                          SCMP_A2_64 (SCMP_CMP_NE, NETLINK_ROUTE));
}

static int
add_socket_rule (scmp_filter_ctx ctx, uint32_t action, unsigned family)
{
    return seccomp_rule_add (ctx, action, SCMP_SYS (socket), 1, SCMP_A0_64 (SCMP_CMP_EQ, family));
}

/* TCP by either of its numbers: other protocols of streams (MPTCP, SCTP) pass Landlock by. */
static int
add_given (scmp_filter_ctx ctx)
{
    static const uint64_t protocols[] = { 0, IPPROTO_TCP };
    int status = 0;
    for (size_t i = 0; i < ARRAY_LEN (protocols) && status >= 0; i++)
        status = seccomp_rule_add (ctx, SCMP_ACT_NOTIFY, SCMP_SYS (socket), 3,
                                   SCMP_A0_64 (SCMP_CMP_EQ, AF_INET),
                                   SCMP_A1_64 (SCMP_CMP_MASKED_EQ, 0xf, SOCK_STREAM),
                                   SCMP_A2_64 (SCMP_CMP_EQ, protocols[i]));
    for (uint64_t type = 0; type <= 0xf && status >= 0; type++)
        if (type != SOCK_STREAM)
            status = seccomp_rule_add (ctx, SCMP_ACT_ERRNO (EACCES), SCMP_SYS (socket), 2,
                                       SCMP_A0_64 (SCMP_CMP_EQ, AF_INET),
                                       SCMP_A1_64 (SCMP_CMP_MASKED_EQ, 0xf, type));
    return status;
}

static int
add_internet (scmp_filter_ctx ctx, const struct syscall_surface *surface)
{
    int status = 0;
    if (surface->internet == INTERNET_OF_NAMESPACE) {
        status = add_names (ctx, SCMP_ACT_ALLOW, senders);
        if (status >= 0)
            status = add_socket_rule (ctx, SCMP_ACT_ALLOW, AF_INET);
        return status < 0 ? status : add_socket_rule (ctx, SCMP_ACT_ALLOW, AF_INET6);
    }
    for (size_t i = 0; i < ARRAY_LEN (fast_openers) && status >= 0; i++)
        status = seccomp_rule_add (
            ctx, SCMP_ACT_ALLOW, number_of (fast_openers[i].name), 1,
            SCMP_CMP64 (fast_openers[i].flags_argument, SCMP_CMP_MASKED_EQ, MSG_FASTOPEN, 0));
    /* A socket that listens without a name has a port of the kernel's choice, unjudged. */
    if (status >= 0 && surface->allows_unix_sockets)
        status = seccomp_rule_add (ctx, SCMP_ACT_ALLOW, SCMP_SYS (listen), 0);
    if (status >= 0)
        status = add_socket_rule (ctx, SCMP_ACT_ERRNO (EAFNOSUPPORT), AF_INET6);
    if (status >= 0 && surface->internet == INTERNET_NONE)
        return add_socket_rule (ctx, SCMP_ACT_ERRNO (EACCES), AF_INET);
    return status < 0 ? status : add_given (ctx);
}

static int
add_families (scmp_filter_ctx ctx, const struct syscall_surface *surface)
{
    int status = add_internet (ctx, surface);
    /* EACCES says: looked at and refused. EPERM, the default: not in the surface at all. */
    if (status >= 0)
        status = seccomp_rule_add (ctx, SCMP_ACT_ERRNO (EACCES), SCMP_SYS (socket), 1,
                                   SCMP_A0_64 (SCMP_CMP_EQ, AF_PACKET));
    if (status < 0)
        return status;
    status = seccomp_rule_add (
        ctx, surface->allows_unix_sockets ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO (EACCES),
        SCMP_SYS (socket), 1, SCMP_A0_64 (SCMP_CMP_EQ, AF_UNIX));
    return status < 0 ? status : add_netlink (ctx, surface->reads_interfaces);
}

/* A kernel that cannot ask the runtime refuses them by the default action. */
static int
add_told (scmp_filter_ctx ctx)
{
    static const uint64_t flags[] = { CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                      CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET };
    int status = 0;
    for (size_t i = 0; syscall_filter_told[i + 1] && status >= 0; i++) {
        int number = number_of (syscall_filter_told[i]);
        if (number >= 0)
            status = seccomp_rule_add (ctx, SCMP_ACT_NOTIFY, number, 0);
    }
    for (size_t i = 0; i < ARRAY_LEN (flags) && status >= 0; i++)
        status = seccomp_rule_add (
            ctx, SCMP_ACT_NOTIFY, SCMP_SYS (clone), 1,
            SCMP_CMP64 (CLONE_FLAGS_ARGUMENT, SCMP_CMP_MASKED_EQ, flags[i], flags[i]));
    return status;
}

static int
add_rules (scmp_filter_ctx ctx, const struct syscall_surface *surface)
{
    int status = add_names (ctx, SCMP_ACT_ALLOW, syscall_filter_allowed);
    if (status >= 0 && surface->has_own_ipc)
        status = add_names (ctx, SCMP_ACT_ALLOW, syscall_filter_ipc);
    if (status >= 0)
        status = add_names (
            ctx, surface->reads_attributes ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO (EOPNOTSUPP),
            attribute_readers);
    if (status >= 0)
        status = add_names (ctx, SCMP_ACT_ERRNO (EOPNOTSUPP), attribute_writers);
    if (status >= 0)
        status = add_names (ctx, SCMP_ACT_ERRNO (ENOSYS), newer_than_here);
    if (status >= 0)
        status = seccomp_rule_add (
            ctx, SCMP_ACT_ALLOW, SCMP_SYS (clone), 1,
            SCMP_CMP64 (CLONE_FLAGS_ARGUMENT, SCMP_CMP_MASKED_EQ, NAMESPACE_FLAGS, 0));
    if (status >= 0)
        status = add_own_only (ctx, surface->has_own_processes);
    if (status >= 0)
        status = add_personalities (ctx);
    if (status >= 0 && seccomp_api_get () >= 5)
        status = add_told (ctx);
    return status < 0 ? status : add_families (ctx, surface);
}

/* Typing into the terminal a person started mur from (TIOCSTI, TIOCLINUX): ioctl is allowed as a
 * call, these two requests are not. The kernel looks at the low half of the argument alone, so that
 * half is what is compared; libseccomp's comparisons cannot say both requests at once. Goes on
 * behind its end with every other call. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define REQUEST_OFFSET offsetof (struct seccomp_data, args[1])
#else
#define REQUEST_OFFSET (offsetof (struct seccomp_data, args[1]) + 4)
#endif

static const struct sock_filter terminal_filter[] = {
    BPF_STMT (BPF_LD | BPF_W | BPF_ABS, offsetof (struct seccomp_data, nr)),
    BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 4),
    BPF_STMT (BPF_LD | BPF_W | BPF_ABS, REQUEST_OFFSET),
    BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, TIOCSTI, 1, 0),
    BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, TIOCLINUX, 0, 1),
    BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
};

/* libseccomp writes programs to descriptors only. NULL with errno; the caller owns it. One program
 * with what comes first: each one loaded costs a command a tenth of a millisecond. */
static struct sock_filter *
export_after (scmp_filter_ctx ctx, const struct sock_filter *first, size_t first_len,
              unsigned short *len)
{
    _cleanup_close_ int fd = memfd_create ("seccomp", MFD_CLOEXEC);
    _cleanup_buf_ struct buf code = { 0 };
    if (fd < 0 || seccomp_export_bpf (ctx, fd) < 0 || lseek (fd, 0, SEEK_SET) < 0 ||
        ! fd_read_all (fd, 4096 * sizeof (struct sock_filter), &code))
        return NULL;
    *len = (unsigned short)(first_len + code.len / sizeof (struct sock_filter));
    struct sock_filter *all = x_new_array (struct sock_filter, *len);
    if (first_len)
        memcpy (all, first, first_len * sizeof *first);
    memcpy (all + first_len, code.data, code.len);
    return all;
}

/* The same program where nobody can be asked: what nobody answers would not be EPERM. */
static void
make_silent (struct syscall_filter *program)
{
    program->silent = x_memdup (program->code, program->len * sizeof *program->code);
    for (size_t i = 0; i < program->len; i++)
        if (program->silent[i].code == (BPF_RET | BPF_K) &&
            program->silent[i].k == SECCOMP_RET_USER_NOTIF) {
            program->silent[i].k = SECCOMP_RET_ERRNO | EPERM;
            program->is_told = true;
        }
}

/* <status>: an error of libseccomp, or 0 where errno says more. */
static bool
fail_to_compile (int status, struct mur_error **err)
{
    errno = status < 0 ? -status : errno;
    return mur_fail_errno (err, E_IO_003, "cannot compile the system-call filter");
}

/* NULL with *err. */
static scmp_filter_ctx
begin (uint32_t action, struct mur_error **err)
{
    scmp_filter_ctx ctx = seccomp_init (action);
    if (! ctx)
        return mur_fail (err, E_IO_003, "cannot start a system-call filter"), NULL;
    /* A call of another architecture or of x32 must not slip past numbers meant for this one. */
    seccomp_attr_set (ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO (EPERM));
    return ctx;
}

bool
syscall_filter_compile (const struct syscall_surface *surface, struct syscall_filter *program,
                        struct mur_error **err)
{
    *program = (struct syscall_filter){ 0 };
    _cleanup_ (release) scmp_filter_ctx ctx = begin (SCMP_ACT_ERRNO (EPERM), err);
    if (! ctx)
        return false;
    /* A tree instead of a chain: at each load the kernel goes through it once for every call there
     * is, to know those that need no look at all. */
    seccomp_attr_set (ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    program->is_logged = seccomp_api_get () >= 3;
    int status = add_rules (ctx, surface);
    if (status == 0)
        program->code =
            export_after (ctx, terminal_filter, ARRAY_LEN (terminal_filter), &program->len);
    if (! program->code)
        return fail_to_compile (status, err);
    make_silent (program);
    return true;
}

void
syscall_filter_free (struct syscall_filter *program)
{
    free (program->code);
    free (program->silent);
    free (program->guard);
    *program = (struct syscall_filter){ 0 };
}

/* --- processes of the runtime, where a command could name them --- */

/* Ways to a process that is named by the first argument. */
static const int signalling[] = { SCMP_SYS (kill),
                                  SCMP_SYS (tkill),
                                  SCMP_SYS (tgkill),
                                  SCMP_SYS (rt_sigqueueinfo),
                                  SCMP_SYS (rt_tgsigqueueinfo),
                                  SCMP_SYS (pidfd_open) };

static int
refuse_to_signal (scmp_filter_ctx ctx, pid_t target)
{
    const uint32_t refused = SCMP_ACT_ERRNO (EPERM);
    int status = 0;
    for (size_t i = 0; i < ARRAY_LEN (signalling) && status == 0; i++)
        status = seccomp_rule_add (ctx, refused, signalling[i], 1, LOW_HALF (0, target));
    /* Who owns a file is sent the signal of its choice when something comes. */
    return status < 0 ? status
                      : seccomp_rule_add (ctx, refused, SCMP_SYS (fcntl), 2, LOW_HALF (1, F_SETOWN),
                                          LOW_HALF (2, target));
}

/* Ways that name nobody a filter could read: the number lies in memory, or behind a descriptor of
 * /proc. */
static int
refuse_unnamed (scmp_filter_ctx ctx)
{
    const uint32_t refused = SCMP_ACT_ERRNO (EPERM);
    static const unsigned long owners[] = { FIOSETOWN, SIOCSPGRP };
    int status = seccomp_rule_add (ctx, refused, SCMP_SYS (pidfd_send_signal), 0);
    if (status == 0)
        status = seccomp_rule_add (ctx, refused, SCMP_SYS (fcntl), 1, LOW_HALF (1, F_SETOWN_EX));
    for (size_t i = 0; i < ARRAY_LEN (owners) && status == 0; i++)
        status = seccomp_rule_add (ctx, refused, SCMP_SYS (ioctl), 1, LOW_HALF (1, owners[i]));
    return status;
}

static bool
is_named_before (const pid_t *pids, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (pids[i] == pids[at])
            return true;
    return false;
}

bool
syscall_filter_guard (struct syscall_filter *program, const pid_t *pids, size_t count,
                      struct mur_error **err)
{
    _cleanup_ (release) scmp_filter_ctx ctx = begin (SCMP_ACT_ALLOW, err);
    if (! ctx)
        return false;
    /* Every process, then each of <pids> and its group. */
    int status = refuse_to_signal (ctx, -1);
    for (size_t i = 0; i < count && status == 0; i++) {
        if (is_named_before (pids, i))
            continue;
        status = refuse_to_signal (ctx, pids[i]);
        if (status == 0)
            status = refuse_to_signal (ctx, -pids[i]);
    }
    if (status == 0)
        status = refuse_unnamed (ctx);
    if (status == 0)
        program->guard = export_after (ctx, NULL, 0, &program->guard_len);
    return program->guard || fail_to_compile (status, err);
}

/* Its listener is in *listener where the runtime can be told; one there can be in a chain of
 * filters, and it may be somebody else's. */
static int
load_main (const struct syscall_filter *program, int *listener)
{
    unsigned flags = program->is_logged ? SECCOMP_FILTER_FLAG_LOG : 0;
    struct sock_fprog fprog = { .len = program->len, .filter = program->code };
    int fd = -1;
    if (program->is_told && listener)
        fd = (int)syscall (SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                           flags | SECCOMP_FILTER_FLAG_NEW_LISTENER, &fprog);
    if (listener)
        *listener = fd;
    if (fd >= 0)
        return 0;
    fprog.filter = program->silent;
    if (syscall (SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &fprog) == 0)
        return 0;
    return flags ? (int)syscall (SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &fprog) : -1;
}

int
syscall_filter_load (const struct syscall_filter *program, int *listener)
{
    const struct sock_fprog guard = { .len = program->guard_len, .filter = program->guard };
    /* First: the other one takes the call away. */
    if (guard.len && syscall (SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &guard) < 0)
        return -1;
    return load_main (program, listener);
}

/* --- hearing of it --- */

static uint64_t
bit_of (const struct seccomp_data *data)
{
    for (size_t i = 0; syscall_filter_told[i]; i++)
        if (number_of (syscall_filter_told[i]) == data->nr)
            return 1ULL << i;
    return 0;
}

/* Whatever became of it, whoever asked has an answer, or is gone. */
static void
give_socket (int listener, const struct seccomp_notif *asked)
{
    int type = (int)asked->data.args[1];
    _cleanup_close_ int fd = network_loopback_socket (SOCK_CLOEXEC | (type & SOCK_NONBLOCK));
    int errno_value = fd < 0 ? errno : 0;
    if (fd >= 0) {
        struct seccomp_notif_addfd give = { .id = asked->id,
                                            .flags = SECCOMP_ADDFD_FLAG_SEND,
                                            .srcfd = (__u32)fd,
                                            .newfd_flags = type & SOCK_CLOEXEC ? O_CLOEXEC : 0 };
        if (ioctl (listener, SECCOMP_IOCTL_NOTIF_ADDFD, &give) >= 0 || errno == ENOENT)
            return;
        errno_value = errno;
    }
    struct seccomp_notif_resp answer = { .id = asked->id, .error = -errno_value };
    (void)ioctl (listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

bool
syscall_filter_answer (int listener, uint64_t *told)
{
    struct seccomp_notif asked = { 0 };
    if (ioctl (listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) < 0)
        return errno == ENOENT || errno == EINTR;
    if (asked.data.nr == SYS_socket) {
        give_socket (listener, &asked);
        return true;
    }
    *told |= bit_of (&asked.data);
    struct seccomp_notif_resp answer = { .id = asked.id, .error = -EPERM };
    (void)ioctl (listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    return true;
}
