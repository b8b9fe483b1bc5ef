/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/kernel/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Decimal text of a number, written backwards from the end of buf; returns its start. */
static char *
child_decimal (uint64_t value, char buf[21])
{
    char *at = buf + 20;
    *at = '\0';
    do {
        *--at = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    return at;
}

void
child_fail (int report_fd, const char *step, const char *detail)
{
    char digits[21], text[CHILD_REPORT_MAX];
    const char *number = child_decimal ((uint64_t)errno, digits);
    const char *const pieces[] = { step, "\n", number, "\n", detail ? detail : "" };
    size_t len = 0;
    for (size_t i = 0; i < ARRAY_LEN (pieces); i++) {
        size_t n = strlen (pieces[i]);
        if (n > sizeof text - len)
            n = sizeof text - len;
        memcpy (text + len, pieces[i], n);
        len += n;
    }
    ssize_t written _unused_ = write (report_fd, text, len);
    _exit (125);
}

static pid_t
plain_clone (const struct clone_args *args)
{
    unsigned long flags = (args->flags & ~CLONE_INTO_CGROUP) | args->exit_signal;
    int *pidfd = (int *)(uintptr_t)args->pidfd;
#ifdef __s390__
    return (pid_t)syscall (SYS_clone, 0, flags, pidfd, 0, 0);
#else
    return (pid_t)syscall (SYS_clone, flags, 0, pidfd, 0, 0);
#endif
}

pid_t
child_clone (struct clone_args *args, bool *is_outside)
{
    *is_outside = false;
    pid_t pid = (pid_t)syscall (SYS_clone3, args, sizeof *args);
    if (pid >= 0 || (errno != ENOSYS && errno != EPERM))
        return pid;
    *is_outside = args->flags & CLONE_INTO_CGROUP;
    return plain_clone (args);
}

/* A sanitizer keeps books on memory and descriptors that such a child would write into. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SHARES_MEMORY 0
#elif defined __x86_64__ || defined __aarch64__
#define SHARES_MEMORY 1
#else
#define SHARES_MEMORY 0
#endif

/* The child's half never comes back to the code the compiler made: its stack is another. */
static long
clone3_and_run (struct clone_args *args, int (*run) (void *), void *arg)
{
#if SHARES_MEMORY && defined __x86_64__
    register int (*r8) (void *) __asm__("r8") = run;
    register void *r9 __asm__("r9") = arg;
    long result = SYS_clone3;
    __asm__ volatile("syscall\n\t"
                     "testq %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xorl %%ebp, %%ebp\n\t"
                     "movq %%r9, %%rdi\n\t"
                     "callq *%%r8\n\t"
                     "ud2\n"
                     "1:"
                     : "+a"(result)
                     : "D"(args), "S"(sizeof *args), "r"(r8), "r"(r9)
                     : "rcx", "r11", "cc", "memory");
    return result;
#elif SHARES_MEMORY && defined __aarch64__
    register long x0 __asm__("x0") = (long)args;
    register size_t x1 __asm__("x1") = sizeof *args;
    register long x8 __asm__("x8") = SYS_clone3;
    register int (*x3) (void *) __asm__("x3") = run;
    register void *x4 __asm__("x4") = arg;
    __asm__ volatile("svc #0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x29, xzr\n\t"
                     "mov x0, x4\n\t"
                     "blr x3\n\t"
                     "brk #1\n"
                     "1:"
                     : "+r"(x0)
                     : "r"(x1), "r"(x8), "r"(x3), "r"(x4)
                     : "cc", "memory");
    return x0;
#else
    (void)args, (void)run, (void)arg;
    return -ENOSYS;
#endif
}

pid_t
child_clone_shared (struct clone_args *args, char *stack_top, size_t stack_bytes,
                    int (*run) (void *), void *arg)
{
    struct clone_args shared = *args;
    shared.flags |= CLONE_VM | CLONE_VFORK;
    shared.stack = (uint64_t)(uintptr_t)(stack_top - stack_bytes);
    shared.stack_size = stack_bytes;
    long result = clone3_and_run (&shared, run, arg);
    if (result >= 0)
        return (pid_t)result;
    errno = (int)-result;
    return -1;
}

int
child_enter_group (int group_fd)
{
    int fd = openat (group_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    bool is_in = fd >= 0 && write (fd, "0", 1) == 1;
    int saved = errno;
    if (fd >= 0)
        close (fd);
    errno = saved;
    return is_in ? 0 : -1;
}

pid_t
child_fork (struct clone_args *args, int *pidfd)
{
    args->flags |= CLONE_PIDFD;
    args->pidfd = (uint64_t)(uintptr_t)pidfd;
    args->exit_signal = SIGCHLD;
    sigset_t all, old;
    sigfillset (&all);
    pthread_sigmask (SIG_SETMASK, &all, &old);
    bool is_outside;
    pid_t pid = child_clone (args, &is_outside);
    if (pid != 0)
        pthread_sigmask (SIG_SETMASK, &old, NULL);
    return pid;
}

bool
child_await_exec (pid_t pid, int pidfd, const int report[2], char text[CHILD_REPORT_MAX + 1],
                  struct mur_error **err)
{
    int saved = errno;
    text[0] = '\0';
    close (report[1]);
    bool has_failed = pid < 0 || child_report_read (report[0], text);
    close (report[0]);
    if (! has_failed)
        return true;
    if (pid < 0) {
        errno = saved;
        return mur_fail_errno (err, E_IO_003, "cannot start a process");
    }
    close (pidfd);
    while (waitpid (pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return false;
}

void
child_reset_signals (void)
{
    sigset_t none;
    sigemptyset (&none);
    for (int s = 1; s < NSIG; s++)
        signal (s, SIG_DFL);
    sigprocmask (SIG_SETMASK, &none, NULL);
}

/* Through copies above them, so that no order can clobber another. */
const char *
child_place_streams (const int wanted[3])
{
    int copies[3];
    for (int i = 0; i < 3; i++)
        if ((copies[i] = fcntl (wanted[i], F_DUPFD_CLOEXEC, 3)) < 0)
            return "duplicate a stream";
    for (int i = 0; i < 3; i++)
        if (dup2 (copies[i], i) < 0)
            return "place a stream";
    return NULL;
}

bool
child_report_read (int report_fd, char text[CHILD_REPORT_MAX + 1])
{
    size_t len = 0;
    while (len < CHILD_REPORT_MAX) {
        ssize_t n = read (report_fd, text + len, CHILD_REPORT_MAX - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    text[len] = '\0';
    return len > 0;
}

bool
child_report_parse (char *text, const char **step, int *errno_value, const char **detail)
{
    char *rest = text;
    *step = strsep (&rest, "\n");
    const char *number = rest ? strsep (&rest, "\n") : NULL;
    *errno_value = number ? atoi (number) : 0;
    *detail = rest ? rest : "";
    return number != NULL;
}

static bool
write_file (const char *path, const char *text)
{
    int fd = open (path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    size_t len = strlen (text);
    bool is_written = write (fd, text, len) == (ssize_t)len;
    int saved = errno;
    close (fd);
    errno = saved;
    return is_written;
}

static bool
write_map (const char *path, unsigned id)
{
    char digits[21], line[64];
    const char *number = child_decimal (id, digits);
    strcpy (line, number);
    strcat (line, " ");
    strcat (line, number);
    strcat (line, " 1\n");
    return write_file (path, line);
}

const char *
child_write_id_maps (unsigned uid, unsigned gid)
{
    int was_dumpable = prctl (PR_GET_DUMPABLE, 0, 0, 0, 0);
    prctl (PR_SET_DUMPABLE, 1, 0, 0, 0);
    const char *failed = NULL;
    if (! write_file ("/proc/self/setgroups", "deny"))
        failed = "setgroups";
    else if (! write_map ("/proc/self/uid_map", uid))
        failed = "uid_map";
    else if (! write_map ("/proc/self/gid_map", gid))
        failed = "gid_map";
    int saved = errno;
    prctl (PR_SET_DUMPABLE, was_dumpable == 1 ? 1 : 0, 0, 0, 0);
    errno = saved;
    return failed;
}
