/* SPDX-License-Identifier: Apache-2.0
 *
 * One attempt to leave the sandbox, from inside a command: `escape-probe ATTEMPT [ARGUMENT...]`.
 *
 * Prints one line: `ok [detail]` when the kernel let it happen, `refused ERRNO` when not, and exits
 * 0 either way; any other end means the probe itself is broken. `without-landlock COMMAND...` is
 * for the driver: it runs a command on what looks like a kernel without Landlock.
 */
#include "tests/escape/probe.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *program_path = "";

int
tell (long result, const char *detail)
{
    if (result < 0)
        printf ("refused %s\n", strerrorname_np (errno));
    else
        printf ("ok%s%s\n", detail && *detail ? " " : "", detail ? detail : "");
    return 0;
}

/* --- files --- */

static int
try_read (char **a)
{
    char text[256] = "";
    int fd = open (a[0], O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return tell (-1, NULL);
    ssize_t n = read (fd, text, sizeof text - 1);
    text[strcspn (text, "\n")] = '\0';
    return tell (n, text);
}

static int
try_write (char **a)
{
    int fd = open (a[0], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    return tell (fd < 0 ? -1 : write (fd, "probe\n", 6), NULL);
}

static int
try_stat (char **a)
{
    struct stat st;
    return tell (stat (a[0], &st), NULL);
}

static int
try_list (char **a)
{
    DIR *dir = opendir (a[0]);
    return tell (dir ? 0 : -1, NULL);
}

static int
try_link (char **a)
{
    return tell (link (a[0], a[1]), NULL);
}

static int
try_rename (char **a)
{
    return tell (rename (a[0], a[1]), NULL);
}

static int
try_truncate (char **a)
{
    return tell (truncate (a[0], 0), NULL);
}

static int
try_unlink (char **a)
{
    return tell (unlink (a[0]), NULL);
}

static int
try_mknod (char **a)
{
    return tell (mknod (a[0], S_IFBLK | 0600, makedev (7, 0)), NULL);
}

/* Reopens a file through the link of a descriptor that was opened without the right to read. */
static int
try_reopen (char **a)
{
    char path[64];
    int fd = open (a[0], O_PATH | O_CLOEXEC);
    if (fd < 0)
        return tell (-1, NULL);
    snprintf (path, sizeof path, "/proc/self/fd/%d", fd);
    char *again[] = { path, NULL };
    return try_read (again);
}

static int
try_read_fd (char **a)
{
    char c;
    return tell (read (atoi (a[0]), &c, 1), NULL);
}

static int
list_fds (char **a)
{
    (void)a;
    char text[512] = "";
    for (int fd = 0; fd < 4096; fd++)
        if (fcntl (fd, F_GETFD) >= 0 && strlen (text) < 400)
            sprintf (text + strlen (text), "%s%d", *text ? "," : "", fd);
    return tell (0, text);
}

static int
read_nofile (char **a)
{
    (void)a;
    struct rlimit limit;
    char text[64];
    getrlimit (RLIMIT_NOFILE, &limit);
    snprintf (text, sizeof text, "%llu", (unsigned long long)limit.rlim_cur);
    return tell (0, text);
}

/* Copies this program into memory and runs that with the arguments. */
static int
memfd_exec (char **a)
{
    static char bytes[1 << 20];
    char *argv[8] = { "memfd" };
    for (int i = 0; i < 6 && a[i]; i++)
        argv[i + 1] = a[i];
    int self = open ("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (self < 0) /* /proc is no part of what may be read: by its own name then */
        self = open (program_path, O_RDONLY | O_CLOEXEC);
    ssize_t n = self < 0 ? -1 : read (self, bytes, sizeof bytes);
    int fd = memfd_create ("program", MFD_CLOEXEC);
    if (n < 0 || fd < 0 || write (fd, bytes, (size_t)n) != n)
        return tell (-1, NULL);
    execveat (fd, "", argv, environ, AT_EMPTY_PATH);
    return tell (-1, NULL);
}

/* --- swapping --- */

static volatile sig_atomic_t is_over;

static void
end_swapping (int number)
{
    (void)number;
    is_over = 1;
}

/* Puts a link to the target, a second name of it and a FIFO in the place of <name> and takes them
 * back, until a SIGTERM; tells how often. What lay there lies there again at the end. */
static int
swap (char **a)
{
    static const char *const others[] = { ".swap-link", ".swap-name", ".swap-fifo" };
    char text[64];
    unsigned long rounds = 0;
    signal (SIGTERM, end_swapping);
    if (chdir (a[0]) < 0 || symlink (a[2], others[0]) < 0 || mkfifo (others[2], 0600) < 0 ||
        (link (a[2], others[1]) < 0 && mkdir (others[1], 0700) < 0)) {
        perror ("escape-probe: swap");
        return 3;
    }
    for (; ! is_over; rounds++) {
        const char *other = others[rounds % 3];
        if (syscall (SYS_renameat2, AT_FDCWD, a[1], AT_FDCWD, other, RENAME_EXCHANGE) == 0)
            while (syscall (SYS_renameat2, AT_FDCWD, a[1], AT_FDCWD, other, RENAME_EXCHANGE) < 0 &&
                   errno == ENOENT && rename (other, a[1]) < 0 && errno == EINTR)
                ;
        if (rounds % 64 == 0)
            usleep (200); /* the others want to run too */
    }
    /* What the runtime made meanwhile may have kept the name: then the first stays aside. */
    for (int i = 0; i < 3; i++)
        if (unlink (others[i]) < 0 && rmdir (others[i]) < 0) {
            snprintf (text, sizeof text, ".swapped-%d-%d", getpid (), i);
            rename (others[i], text);
        }
    snprintf (text, sizeof text, "%lu", rounds);
    return tell (0, text);
}

/* --- programs --- */

static int
run_and_tell (int (*start) (char **), char **a)
{
    int fds[2], status, failed = 0;
    if (pipe2 (fds, O_CLOEXEC) < 0)
        return 3;
    pid_t pid = fork ();
    if (pid == 0) {
        start (a);
        failed = errno;
        (void)! write (fds[1], &failed, sizeof failed);
        _exit (0);
    }
    close (fds[1]);
    bool was_refused = read (fds[0], &failed, sizeof failed) == sizeof failed;
    waitpid (pid, &status, 0);
    errno = failed;
    return tell (was_refused ? -1 : 0, NULL);
}

static int
exec_quietly (char **a)
{
    int null = open ("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2 (null, 1);
    return execv (a[0], a);
}

static int
try_exec (char **a)
{
    return run_and_tell (exec_quietly, a);
}

/* --- network --- */

static int
try_connect (char **a)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons ((uint16_t)atoi (a[1])) };
    inet_pton (AF_INET, a[0], &to.sin_addr);
    int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect (fd, (struct sockaddr *)&to, sizeof to) < 0)
        return tell (-1, NULL);
    /* A relay that refuses closes without a byte. */
    char text[256] = "";
    struct timeval patience = { .tv_sec = 10 };
    setsockopt (fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    (void)! write (fd, "hello\n", 6);
    ssize_t n = read (fd, text, sizeof text - 1);
    if (n == 0 || (n < 0 && errno == ECONNRESET)) {
        errno = ECONNRESET;
        return tell (-1, NULL);
    }
    text[strcspn (text, "\r\n")] = '\0';
    return tell (n, text);
}

/* Sends one datagram and waits for any answer. */
static int
try_udp (char **a)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons ((uint16_t)atoi (a[1])) };
    char answer[64];
    inet_pton (AF_INET, a[0], &to.sin_addr);
    int fd = socket (AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return tell (-1, NULL);
    struct timeval patience = { .tv_usec = 300000 };
    setsockopt (fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect (fd, (struct sockaddr *)&to, sizeof to) < 0 || write (fd, "probe", 5) < 0)
        return tell (-1, NULL);
    return tell (read (fd, answer, sizeof answer), NULL);
}

/* Asks for a name's records of a type; prints the response code and the number of answers. */
static int
try_dns (char **a)
{
    unsigned char query[300] = { 0x12, 0x34, 1, 0, 0, 1 }, answer[512];
    size_t len = 12;
    for (const char *label = a[0]; *label;) {
        size_t n = strcspn (label, ".");
        query[len++] = (unsigned char)n;
        memcpy (query + len, label, n);
        len += n;
        label += n + (label[n] == '.');
    }
    len++;
    query[len + 1] = (unsigned char)atoi (a[1]);
    query[len + 3] = 1;
    len += 4;
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons (53) };
    inet_pton (AF_INET, "127.0.0.1", &to.sin_addr);
    int fd = socket (AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct timeval patience = { .tv_sec = 10 };
    setsockopt (fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect (fd, (struct sockaddr *)&to, sizeof to) < 0 || write (fd, query, len) < 0)
        return tell (-1, NULL);
    ssize_t n = read (fd, answer, sizeof answer);
    if (n < 12)
        return tell (-1, NULL);
    char text[64];
    snprintf (text, sizeof text, "rcode=%d answers=%d", answer[3] & 15, answer[6] << 8 | answer[7]);
    return tell (0, text);
}

static int
try_unix (char **a)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    bool is_abstract = a[0][0] == '@';
    strncpy (to.sun_path, a[0], sizeof to.sun_path - 1);
    if (is_abstract)
        to.sun_path[0] = '\0';
    int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t len = (socklen_t)(offsetof (struct sockaddr_un, sun_path) + strlen (a[0]));
    return tell (fd < 0 ? -1 : connect (fd, (struct sockaddr *)&to, len), NULL);
}

static int
try_socket (char **a)
{
    return tell (socket (atoi (a[0]), atoi (a[1]), 0), NULL);
}

/* --- system calls that must not exist here --- */

static const struct {
    const char *name;
    long number;
} forbidden[] = {
    { "io_uring_setup", SYS_io_uring_setup },
    { "userfaultfd", SYS_userfaultfd },
    { "bpf", SYS_bpf },
    { "open_by_handle_at", SYS_open_by_handle_at },
    { "perf_event_open", SYS_perf_event_open },
    { "keyctl", SYS_keyctl },
    { "add_key", SYS_add_key },
    { "process_vm_readv", SYS_process_vm_readv },
    { "process_vm_writev", SYS_process_vm_writev },
    { "ptrace", SYS_ptrace },
    { "unshare", SYS_unshare },
    { "setns", SYS_setns },
    { "mount", SYS_mount },
    { "umount2", SYS_umount2 },
    { "pivot_root", SYS_pivot_root },
    { "chroot", SYS_chroot },
    { "seccomp", SYS_seccomp },
    { "kexec_load", SYS_kexec_load },
    { "init_module", SYS_init_module },
    { "reboot", SYS_reboot },
    { "kcmp", SYS_kcmp },
};

/* A forbidden call answers EPERM whatever its arguments are; these would be refused otherwise. */
static int
try_call (char **a)
{
    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++)
        if (strcmp (forbidden[i].name, a[0]) == 0)
            return tell (syscall (forbidden[i].number, -1L, 0L, -1L, -1L, -1L, -1L), NULL);
    return 4;
}

static int
try_personality (char **a)
{
    return tell (syscall (SYS_personality, strtoul (a[0], NULL, 16)), NULL);
}

static int
try_ptrace (char **a)
{
    return tell (ptrace (PTRACE_ATTACH, atoi (a[0]), NULL, NULL), NULL);
}

static int
try_kill (char **a)
{
    return tell (kill (atoi (a[0]), 0), NULL);
}

/* Types into the controlling terminal. The kernel ignores the upper half of the request, so a
 * filter must too: with an argument both are tried. */
static int
try_tiocsti (char **a)
{
    (void)a;
    int fd = open ("/dev/tty", O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return tell (-1, NULL);
    if (syscall (SYS_ioctl, fd, 0xffffffff00000000UL | TIOCSTI, "x") == 0)
        return tell (0, "by the upper half");
    return tell (ioctl (fd, TIOCSTI, "x"), NULL);
}

static int
read_capabilities (char **a)
{
    (void)a;
    struct {
        unsigned version;
        int pid;
    } header = { 0x20080522, 0 };
    struct {
        unsigned effective, permitted, inheritable;
    } sets[2] = { 0 };
    char text[96];
    syscall (SYS_capget, &header, sets);
    snprintf (text, sizeof text, "effective=%x%08x bounding=%d nnp=%d", sets[1].effective,
              sets[0].effective, prctl (PR_CAPBSET_READ, 21, 0, 0, 0),
              prctl (PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    return tell (0, text);
}

/* --- bombs: each goes on until it is stopped and says how far it came --- */

static int
fork_bomb (char **a)
{
    int limit = atoi (a[0]), count = 0;
    setpgid (0, 0); /* the children end with this group */
    char text[64];
    while (count < limit) {
        pid_t pid = fork ();
        if (pid < 0)
            break;
        if (pid == 0) {
            pause ();
            _exit (0);
        }
        count++;
    }
    int failed = errno;
    signal (SIGTERM, SIG_IGN);
    kill (0, SIGTERM);
    while (count > 0 && waitpid (-1, NULL, 0) > 0)
        ;
    errno = failed;
    snprintf (text, sizeof text, "%d children", count);
    return tell (count < limit ? -1 : 0, text);
}

static int
memory_hog (char **a)
{
    size_t step = 16 << 20;
    for (int i = 0; i < atoi (a[0]) / 16; i++) {
        char *p = mmap (NULL, step, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            return tell (-1, NULL);
        memset (p, 1, step);
    }
    return tell (0, NULL);
}

static int
file_bomb (char **a)
{
    static char block[1 << 20];
    signal (SIGXFSZ, SIG_IGN);
    int fd = open (a[0], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    for (int i = 0; i < atoi (a[1]); i++)
        if (write (fd, block, sizeof block) < 0)
            return tell (-1, NULL);
    return tell (fd, NULL);
}

static int
fd_bomb (char **a)
{
    char text[64];
    int count = 0, limit = atoi (a[0]);
    while (count < limit && dup (0) >= 0)
        count++;
    snprintf (text, sizeof text, "%d", count);
    return tell (count < limit ? -1 : 0, text);
}

/* --- for the driver --- */

/* Landlock's three calls answer as on a kernel that has none. */
static int
without_landlock (char **a)
{
    struct sock_filter program[] = {
        BPF_STMT (BPF_LD | BPF_W | BPF_ABS, offsetof (struct seccomp_data, nr)),
        BPF_JUMP (BPF_JMP | BPF_JGE | BPF_K, 444, 0, 2),
        BPF_JUMP (BPF_JMP | BPF_JGT | BPF_K, 446, 1, 0),
        BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = { sizeof program / sizeof *program, program };
    if (prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0) {
        perror ("escape-probe: seccomp");
        return 5;
    }
    execvp (a[0], a);
    perror (a[0]);
    return 5;
}

static int
preflight (char **a)
{
    (void)a;
    return tell (0, "the probe runs");
}

static const struct attempt_row attempts[] = {
    { "preflight", 0, preflight },
    { "read", 1, try_read },
    { "write", 1, try_write },
    { "stat", 1, try_stat },
    { "list", 1, try_list },
    { "link", 2, try_link },
    { "rename", 2, try_rename },
    { "truncate", 1, try_truncate },
    { "unlink", 1, try_unlink },
    { "mknod", 1, try_mknod },
    { "reopen", 1, try_reopen },
    { "read-fd", 1, try_read_fd },
    { "fds", 0, list_fds },
    { "nofile", 0, read_nofile },
    { "exec", 1, try_exec },
    { "swap", 3, swap },
    { "memfd-exec", 1, memfd_exec },
    { "connect", 2, try_connect },
    { "udp", 2, try_udp },
    { "dns", 2, try_dns },
    { "unix", 1, try_unix },
    { "socket", 2, try_socket },
    { "call", 1, try_call },
    { "ptrace", 1, try_ptrace },
    { "kill", 1, try_kill },
    { "personality", 1, try_personality },
    { "tiocsti", 0, try_tiocsti },
    { "capabilities", 0, read_capabilities },
    { "fork-bomb", 1, fork_bomb },
    { "memory-hog", 1, memory_hog },
    { "file-bomb", 2, file_bomb },
    { "fd-bomb", 1, fd_bomb },
    { "without-landlock", 1, without_landlock },
};

int
main (int argc, char **argv)
{
    static char path[4096];
    ssize_t len = readlink ("/proc/self/exe", path, sizeof path - 1);
    program_path = len > 0 ? path : argv[0];
    for (size_t i = 0; argc > 1 && i < sizeof attempts / sizeof *attempts; i++)
        if (strcmp (attempts[i].name, argv[1]) == 0 && argc - 2 >= attempts[i].arguments)
            return attempts[i].run (argv + 2);
    for (const struct attempt_row *row = wall_attempts; argc > 1 && row->name; row++)
        if (strcmp (row->name, argv[1]) == 0 && argc - 2 >= row->arguments)
            return row->run (argv + 2);
    fprintf (stderr, "escape-probe: no such attempt, or arguments missing\n");
    return 2;
}
