/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/programs/observe.h"

#include "base/alloc.h"
#include "sandbox/programs/exec_allowlist.h"
#include "sandbox/programs/path_lists.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS_MAX 4096
#define FILES_MAX   4096 /* of each kind */

/* The call a thread is in: known at its entry, its result at the exit. */
struct thread {
    pid_t tid;
    uint64_t number;
    uint64_t arguments[6];
};

struct watch {
    struct observation *seen;
    struct thread *threads;
    size_t len;
};

static struct thread *
thread_of (struct watch *w, pid_t tid)
{
    for (size_t i = 0; i < w->len; i++)
        if (w->threads[i].tid == tid)
            return &w->threads[i];
    if (w->len == THREADS_MAX)
        return NULL;
    w->threads[w->len] = (struct thread){ .tid = tid, .number = UINT64_MAX };
    return &w->threads[w->len++];
}

static void
forget (struct watch *w, pid_t tid)
{
    for (size_t i = 0; i < w->len; i++)
        if (w->threads[i].tid == tid)
            w->threads[i] = w->threads[--w->len];
}

static void
note (struct watch *w, struct strv *list, const char *path)
{
    if (list->len >= FILES_MAX)
        w->seen->is_cut = true;
    else
        strv_push_once (list, path);
}

/* What a descriptor or the program of a thread leads to: the kernel's own word. */
static bool
link_of (pid_t tid, const char *name, char out[PATH_MAX])
{
    char link[64];
    snprintf (link, sizeof link, "/proc/%d/%s", (int)tid, name);
    ssize_t n = readlink (link, out, PATH_MAX - 1);
    out[n > 0 ? n : 0] = '\0';
    return n > 0 && out[0] == '/';
}

static void
note_opened (struct watch *w, pid_t tid, int64_t fd, uint64_t flags)
{
    char name[32], path[PATH_MAX];
    snprintf (name, sizeof name, "fd/%lld", (long long)fd);
    if ((flags & O_ACCMODE) == O_RDONLY && link_of (tid, name, path))
        note (w, &w->seen->read, path);
}

static void
note_socket (struct watch *w, const struct thread *t)
{
    struct sockaddr_un address = { 0 };
    struct iovec here = { &address, sizeof address },
                 there = { (void *)(uintptr_t)t->arguments[1], sizeof address };
    size_t len = t->arguments[2] < sizeof address ? t->arguments[2] : sizeof address;
    here.iov_len = there.iov_len = len;
    if (process_vm_readv (t->tid, &here, 1, &there, 1, 0) > 2 && address.sun_family == AF_UNIX &&
        address.sun_path[0])
        w->seen->uses_unix_sockets = true;
}

static void
at_exit_of_call (struct watch *w, const struct thread *t, int64_t result)
{
    if (t->number == SYS_openat && result >= 0)
        note_opened (w, t->tid, result, t->arguments[2]);
#ifdef SYS_open
    if (t->number == SYS_open && result >= 0)
        note_opened (w, t->tid, result, t->arguments[1]);
#endif
    if ((t->number == SYS_bind || t->number == SYS_connect) && result == 0)
        note_socket (w, t);
}

static void
at_call (struct watch *w, pid_t tid)
{
    struct __ptrace_syscall_info info = { 0 };
    struct thread *t = thread_of (w, tid);
    if (! t || ptrace (PTRACE_GET_SYSCALL_INFO, tid, sizeof info, &info) <= 0)
        return;
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
        t->number = info.entry.nr;
        memcpy (t->arguments, info.entry.args, sizeof t->arguments);
    } else if (info.op == PTRACE_SYSCALL_INFO_EXIT) {
        at_exit_of_call (w, t, info.exit.rval);
        t->number = UINT64_MAX;
    }
}

/* One stop; returns the signal the thread goes on with. */
static int
at_stop (struct watch *w, pid_t tid, int status)
{
    int number = WSTOPSIG (status), event = status >> 16;
    char path[PATH_MAX];
    if (number == (SIGTRAP | 0x80)) {
        at_call (w, tid);
        return 0;
    }
    if (event == PTRACE_EVENT_EXEC && link_of (tid, "exe", path))
        note (w, &w->seen->started, path);
    return event || number == SIGTRAP || number == SIGSTOP ? 0 : number;
}

static void
follow (struct watch *w, pid_t first)
{
    int status;
    for (pid_t tid; (tid = waitpid (-1, &status, __WALL)) > 0 || errno == EINTR;) {
        if (tid <= 0)
            continue;
        if (WIFSTOPPED (status)) {
            ptrace (PTRACE_SYSCALL, tid, NULL, (void *)(intptr_t)at_stop (w, tid, status));
            continue;
        }
        forget (w, tid);
        if (tid == first)
            w->seen->exit_code =
                WIFEXITED (status) ? WEXITSTATUS (status) : 128 + WTERMSIG (status);
    }
}

bool
observe_run (char *const *argv, struct observation *out, struct mur_error **err)
{
    *out = (struct observation){ 0 };
    pid_t pid = fork ();
    if (pid == 0) {
        if (ptrace (PTRACE_TRACEME, 0, NULL, NULL) == 0 && raise (SIGSTOP) == 0)
            execv (argv[0], argv);
        _exit (127);
    }
    int status;
    const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEFORK |
                         PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
    if (pid < 0 || waitpid (pid, &status, __WALL) < 0 || ! WIFSTOPPED (status) ||
        ptrace (PTRACE_SETOPTIONS, pid, NULL, (void *)options) < 0 ||
        ptrace (PTRACE_SYSCALL, pid, NULL, NULL) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot watch %s run", argv[0]);
    struct watch w = { out, x_new_array (struct thread, THREADS_MAX), 0 };
    follow (&w, pid);
    free (w.threads);
    return out->started.len || mur_fail (err, E_IO_003, "%s cannot be started", argv[0]);
}

void
observation_free (struct observation *o)
{
    strv_free (&o->started);
    strv_free (&o->read);
}
