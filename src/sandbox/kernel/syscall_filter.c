/* SPDX-License-Identifier: Apache-2.0
 *
 * The system-call filter. See syscall_filter.h.
 */
#include "sandbox/kernel/syscall_filter.h"

#include "base/alloc.h"
#include "base/fdio.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* Names an architecture lacks are skipped, which leaves them denied. */
const char *const syscall_filter_allowed[] = {
    /* processes */
    "execve", "execveat", "clone", "clone3", "fork", "vfork", "exit", "exit_group", "wait4",
    "waitid", "kill", "tkill", "tgkill", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn",
    "rt_sigsuspend", "rt_sigpending", "rt_sigtimedwait", "rt_sigqueueinfo", "rt_tgsigqueueinfo",
    "sigaltstack", "restart_syscall", "pause", "set_tid_address", "set_robust_list",
    "get_robust_list", "rseq", "prctl", "arch_prctl", "getpid", "getppid", "gettid", "getpgrp",
    "getpgid", "setpgid", "getsid", "setsid", "getpriority", "setpriority", "ioprio_get",
    "ioprio_set", "sched_yield", "sched_setaffinity", "sched_getaffinity", "sched_setparam",
    "sched_getparam", "sched_setscheduler", "sched_getscheduler", "sched_setattr", "sched_getattr",
    "sched_get_priority_max", "sched_get_priority_min", "sched_rr_get_interval", "getcpu", "capget",
    "capset", "prlimit64", "getrlimit", "setrlimit", "getrusage", "getitimer", "setitimer", "times",
    "uname", "sysinfo", "pidfd_open", "pidfd_send_signal",
    /* memory */
    "mmap", "munmap", "mprotect", "mremap", "madvise", "brk", "mlock", "mlock2", "munlock",
    "mlockall", "munlockall", "membarrier", "msync", "mincore", "memfd_create", "pkey_alloc",
    "pkey_free", "pkey_mprotect", "shmget", "shmat", "shmdt", "shmctl",
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
    "timerfd_gettime", "getxattr", "lgetxattr", "fgetxattr", "setxattr", "lsetxattr", "fsetxattr",
    "listxattr", "llistxattr", "flistxattr", "removexattr", "lremovexattr", "fremovexattr",
    "statfs", "fstatfs", "name_to_handle_at", "io_setup", "io_destroy", "io_submit", "io_cancel",
    "io_getevents",
    /* sockets, but for socket itself */
    "connect", "sendto", "socketpair", "bind", "listen", "accept", "accept4", "getsockname",
    "getpeername", "getsockopt", "setsockopt", "shutdown", "sendmsg", "sendmmsg", "recvfrom",
    "recvmsg", "recvmmsg",
    /* time */
    "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "time",
    "timer_create", "timer_settime", "timer_gettime", "timer_getoverrun", "timer_delete", "alarm",
    /* System V and POSIX IPC, randomness, futexes, ids */
    "msgget", "msgsnd", "msgrcv", "msgctl", "semget", "semop", "semctl", "semtimedop", "mq_open",
    "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr", "getrandom",
    "futex", "futex_waitv", "getuid", "geteuid", "getgid", "getegid", "setuid", "setgid",
    "setreuid", "setregid", "setresuid", "setresgid", "getresuid", "getresgid", "getgroups",
    "setgroups", "setfsuid", "setfsgid",
    /* a command may confine itself further */
    "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", NULL
};

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
                                              "personality",
                                              "kcmp",
                                              NULL };

/* EACCES says: looked at and refused. EPERM, the default: not in the surface at all. */
static const struct {
    unsigned family;
    uint32_t action;
} families[] = {
    { AF_INET, SCMP_ACT_ALLOW },
    { AF_INET6, SCMP_ACT_ALLOW },
    { AF_NETLINK, SCMP_ACT_ERRNO (EACCES) },
    { AF_PACKET, SCMP_ACT_ERRNO (EACCES) },
};

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
    };
    int number = seccomp_syscall_resolve_name (name);
    for (size_t i = 0; number == __NR_SCMP_ERROR && i < ARRAY_LEN (newer); i++)
        if (__builtin_strcmp (newer[i].name, name) == 0)
            return newer[i].number;
    return number;
}

static int
add_rules (scmp_filter_ctx ctx, bool allows_unix_sockets)
{
    for (size_t i = 0; syscall_filter_allowed[i]; i++) {
        int number = number_of (syscall_filter_allowed[i]);
        if (number < 0)
            continue;
        int status = seccomp_rule_add (ctx, SCMP_ACT_ALLOW, number, 0);
        if (status < 0)
            return status;
    }
    for (size_t i = 0; i < ARRAY_LEN (families); i++) {
        int status = seccomp_rule_add (ctx, families[i].action, SCMP_SYS (socket), 1,
                                       SCMP_A0_64 (SCMP_CMP_EQ, families[i].family));
        if (status < 0)
            return status;
    }
    return seccomp_rule_add (ctx, allows_unix_sockets ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO (EACCES),
                             SCMP_SYS (socket), 1, SCMP_A0_64 (SCMP_CMP_EQ, AF_UNIX));
}

/* libseccomp writes programs to descriptors only. */
static bool export(scmp_filter_ctx ctx, struct syscall_filter *program)
{
    _cleanup_close_ int fd = memfd_create ("seccomp", MFD_CLOEXEC);
    _cleanup_buf_ struct buf code = { 0 };
    if (fd < 0 || seccomp_export_bpf (ctx, fd) < 0 || lseek (fd, 0, SEEK_SET) < 0 ||
        ! fd_read_all (fd, 4096 * sizeof (struct sock_filter), &code))
        return false;
    program->len = (unsigned short)(code.len / sizeof (struct sock_filter));
    program->code = x_memdup (code.data, code.len);
    return true;
}

bool
syscall_filter_compile (bool allows_unix_sockets, struct syscall_filter *program,
                        struct mur_error **err)
{
    *program = (struct syscall_filter){ 0 };
    _cleanup_ (release) scmp_filter_ctx ctx = seccomp_init (SCMP_ACT_ERRNO (EPERM));
    if (! ctx)
        return mur_fail (err, E_IO_003, "cannot start a system-call filter");
    /* A call of another architecture or of x32 must not slip past numbers meant for this one. */
    seccomp_attr_set (ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO (EPERM));
    program->is_logged = seccomp_api_get () >= 3;
    int status = add_rules (ctx, allows_unix_sockets);
    if (status == 0 && export(ctx, program))
        return true;
    errno = status < 0 ? -status : errno;
    return mur_fail_errno (err, E_IO_003, "cannot compile the system-call filter");
}

void
syscall_filter_free (struct syscall_filter *program)
{
    free (program->code);
    *program = (struct syscall_filter){ 0 };
}

/* Typing into the terminal a person started mur from (TIOCSTI, TIOCLINUX): ioctl is allowed as a
 * call, these two requests are not. The kernel looks at the low half of the argument alone, so that
 * half is what is compared; libseccomp's comparisons cannot say both requests at once. */
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
    BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

int
syscall_filter_load (const struct syscall_filter *program)
{
    const struct sock_fprog terminal = { .len = ARRAY_LEN (terminal_filter),
                                         .filter =
                                             (struct sock_filter *)(uintptr_t)terminal_filter };
    struct sock_fprog fprog = { .len = program->len, .filter = program->code };
    unsigned flags = program->is_logged ? SECCOMP_FILTER_FLAG_LOG : 0;
    /* First: the other one takes the call away. */
    if (syscall (SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &terminal) < 0)
        return -1;
    if (syscall (SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &fprog) == 0)
        return 0;
    return flags ? (int)syscall (SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &fprog) : -1;
}
