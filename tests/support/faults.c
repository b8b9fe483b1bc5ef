/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded into a program under test: lets its N-th change of a file system fail as on a full
 * disk (or an input/output error), or kills the program just before or after it.
 *
 * FAULT_PATH=END: only changes of paths that end so. FAULT_AT=N counts from 1 over write (regular
 * files), fsync, rename*, mkdir*, creating opens and, when killing, unlinkat.
 * FAULT_KIND=enospc|eio|kill, or nomem: then the N-th allocation of FAULT_LEAST bytes or more
 * fails, every FAULT_EVERY-th one counts, and no change of a file system does. FAULT_REPORT names a
 * file that receives the number of changes made when the program ends by itself. FAULT_CLOCK is
 * the number of seconds the wall clock is wrong by.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static atomic_long changes;

/* With FAULT_PATH only changes of files whose path ends so count. */
static int
counts (int fd, const char *name)
{
    const char *wanted = getenv ("FAULT_PATH");
    char link[64], path[4096];
    if (! wanted)
        return 1;
    if (! name) {
        snprintf (link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t len = readlink (link, path, sizeof path - 1);
        path[len > 0 ? len : 0] = '\0';
        name = path;
    }
    size_t len = strlen (name), wanted_len = strlen (wanted);
    return len >= wanted_len && strcmp (name + len - wanted_len, wanted) == 0;
}

static int
lacks_memory (void)
{
    const char *kind = getenv ("FAULT_KIND");
    return kind && strcmp (kind, "nomem") == 0;
}

static int
kills (void)
{
    const char *kind = getenv ("FAULT_KIND");
    return kind && strcmp (kind, "kill") == 0;
}

/* True when this change must fail with ENOSPC. */
static int
change (void)
{
    const char *at = getenv ("FAULT_AT");
    if (lacks_memory ())
        return 0;
    if (atomic_fetch_add (&changes, 1) + 1 != (at ? atol (at) : 0))
        return 0;
    if (kills ())
        syscall (SYS_kill, getpid (), SIGKILL);
    const char *kind = getenv ("FAULT_KIND");
    errno = kind && strcmp (kind, "eio") == 0 ? EIO : ENOSPC;
    return 1;
}

#define REAL(name) ((__typeof__ (&name))dlsym (RTLD_NEXT, #name))

int
clock_gettime (clockid_t id, struct timespec *t)
{
    int failed = (int)syscall (SYS_clock_gettime, id, t);
    const char *wrong = getenv ("FAULT_CLOCK");
    if (! failed && wrong && id == CLOCK_REALTIME)
        t->tv_sec += atol (wrong);
    return failed;
}

static int
is_file (int fd)
{
    struct stat st;
    return fd > 2 && fstat (fd, &st) == 0 && S_ISREG (st.st_mode);
}

ssize_t
write (int fd, const void *data, size_t len)
{
    if (is_file (fd) && counts (fd, NULL) && change ())
        return -1;
    return REAL (write) (fd, data, len);
}

int
fsync (int fd)
{
    return counts (fd, NULL) && change () ? -1 : REAL (fsync) (fd);
}

int
rename (const char *from, const char *to)
{
    return counts (-1, to) && change () ? -1 : REAL (rename) (from, to);
}

int
renameat (int from_fd, const char *from, int to_fd, const char *to)
{
    return counts (-1, to) && change () ? -1 : REAL (renameat) (from_fd, from, to_fd, to);
}

int
renameat2 (int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
    return counts (-1, to) && change () ? -1 : REAL (renameat2) (from_fd, from, to_fd, to, flags);
}

int
unlinkat (int fd, const char *name, int flags)
{
    /* A full disk never stops a removal. */
    return kills () && change () ? -1 : REAL (unlinkat) (fd, name, flags);
}

int
mkdir (const char *path, mode_t mode)
{
    return counts (-1, path) && change () ? -1 : REAL (mkdir) (path, mode);
}

int
mkdirat (int fd, const char *path, mode_t mode)
{
    return counts (-1, path) && change () ? -1 : REAL (mkdirat) (fd, path, mode);
}

static int
open_at (int fd, const char *path, int flags, mode_t mode)
{
    if ((flags & O_CREAT) && ! getenv ("FAULT_PATH") && change ())
        return -1;
    return (int)syscall (SYS_openat, fd, path, flags, mode);
}

#define OPEN(name, fd_param, fd)                                                                   \
    int name (fd_param const char *path, int flags, ...)                                           \
    {                                                                                              \
        va_list ap;                                                                                \
        va_start (ap, flags);                                                                      \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg (ap, mode_t) : 0;                   \
        va_end (ap);                                                                               \
        return open_at (fd, path, flags | O_LARGEFILE, mode);                                      \
    }
#define DIR_FD int dir_fd,
OPEN (open, , AT_FDCWD)
OPEN (open64, , AT_FDCWD)
OPEN (openat, DIR_FD, dir_fd)
OPEN (openat64, DIR_FD, dir_fd)

/* --- memory --- */

void *__libc_malloc (size_t size);
void *__libc_calloc (size_t count, size_t size);
void *__libc_realloc (void *p, size_t size);

static atomic_long allocations;
static pid_t first; /* the process that was started: memory ends for it alone */

__attribute__ ((constructor)) static void
begin (void)
{
    char text[24];
    const char *other = getenv ("FAULT_FIRST");
    first = other ? (pid_t)atol (other) : getpid ();
    snprintf (text, sizeof text, "%d", (int)first);
    setenv ("FAULT_FIRST", text, 1);
}

/* True when this allocation must fail. */
static int
allocation (size_t size)
{
    const char *least = getenv ("FAULT_LEAST"), *at = getenv ("FAULT_AT");
    if (! first || first != getpid () || ! lacks_memory () ||
        size < (size_t)(least ? atol (least) : 0))
        return 0;
    const char *every = getenv ("FAULT_EVERY");
    long step = every ? atol (every) : 1, number = atomic_fetch_add (&allocations, 1) + 1;
    if (number % step)
        return 0;
    atomic_fetch_add (&changes, 1);
    if (number / step != (at ? atol (at) : 0))
        return 0;
    errno = ENOMEM;
    return 1;
}

void *
malloc (size_t size)
{
    return allocation (size) ? NULL : __libc_malloc (size);
}

void *
calloc (size_t count, size_t size)
{
    return allocation (count * size) ? NULL : __libc_calloc (count, size);
}

void *
realloc (void *p, size_t size)
{
    return size && allocation (size) ? NULL : __libc_realloc (p, size);
}

__attribute__ ((destructor)) static void
report (void)
{
    const char *path = lacks_memory () && first != getpid () ? NULL : getenv ("FAULT_REPORT");
    int fd =
        path ? (int)syscall (SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
    if (fd >= 0)
        dprintf (fd, "%ld", atomic_load (&changes));
}
