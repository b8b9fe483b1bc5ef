/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/worker.h"

#include "base/alloc.h"
#include "base/fdio.h"
#include "lib/program.h"
#include "lib/request.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINES_KEPT 20
#define SIGNALLED  128 /* a status above it: the signal */

/* The descriptors as the process has them. */
enum {
    ITS_LIFELINE = STDERR_FILENO + 1,
    ITS_CREDENTIALS,
    ITS_TEXT,
    ITS_CHANNEL,
    ITS_FORMATION,
    ITS_LAST,
};

/* One end is ours, the other goes to the process; all lie above the numbers it will have. */
struct ends {
    int theirs[ITS_LAST]; /* -1: none */
};

static int
lift (int fd)
{
    return fd_lift (fd, ITS_LAST);
}

static bool
open_pipe (int *ours, int *theirs, bool we_read)
{
    int fds[2];
    if (pipe2 (fds, O_CLOEXEC) < 0)
        return false;
    *ours = lift (fds[we_read ? 0 : 1]);
    *theirs = lift (fds[we_read ? 1 : 0]);
    return *ours >= 0 && *theirs >= 0;
}

static bool
open_socket (int *ours, int *theirs)
{
    int fds[2];
    if (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        return false;
    *ours = lift (fds[0]);
    *theirs = lift (fds[1]);
    return *ours >= 0 && *theirs >= 0;
}

/* All of it. A host with a limit to its files (RLIMIT_FSIZE) is told, not killed. */
static bool
write_text (int fd, const char *text, size_t len)
{
    static const struct timespec at_once;
    sigset_t limit, before;
    sigemptyset (&limit);
    sigaddset (&limit, SIGXFSZ);
    pthread_sigmask (SIG_BLOCK, &limit, &before);
    bool is_ok = fd_write_all (fd, text, len);
    int fault = errno;
    if (! is_ok && fault == EFBIG && ! sigismember (&before, SIGXFSZ))
        (void)sigtimedwait (&limit, NULL, &at_once);
    pthread_sigmask (SIG_SETMASK, &before, NULL);
    errno = fault;
    return is_ok;
}

static bool
open_text (const char *text, size_t len, const char *name, int *theirs)
{
    *theirs = lift (memfd_create (name, MFD_CLOEXEC));
    return *theirs >= 0 && write_text (*theirs, text, len) && lseek (*theirs, 0, SEEK_SET) == 0;
}

/* The first task is its standard input. */
static bool
open_texts (const struct mur_request *r, int *theirs)
{
    size_t task_len, manifest_len;
    const char *task = request_task (r, &task_len),
               *text = request_manifest_text (r, &manifest_len);
    if (task && ! open_text (task, task_len, "task", &theirs[STDIN_FILENO]))
        return false;
    if (! task)
        theirs[STDIN_FILENO] = lift (open ("/dev/null", O_RDONLY | O_CLOEXEC));
    return theirs[STDIN_FILENO] >= 0 &&
           (! text || open_text (text, manifest_len, "murmur.yaml", &theirs[ITS_TEXT]));
}

/* A copy of one this process was started with, by the variable that has its number. */
static bool
open_inherited (const char *variable, int *theirs, struct mur_error **err)
{
    const char *text = getenv (variable);
    if (! text || ! *text || text[strspn (text, "0123456789")])
        return mur_fail (err, E_RUN_046,
                         "%s %s: this process was started for no place in a formation", variable,
                         text ? "is no descriptor" : "is not set");
    *theirs = fcntl (atoi (text), F_DUPFD_CLOEXEC, ITS_LAST);
    return *theirs >= 0 || mur_fail_errno (err, E_RUN_046, "%s", variable);
}

static bool
open_membership (int *theirs, struct mur_error **err)
{
    return open_inherited ("MURMUR_FORMATION_CHANNEL", &theirs[ITS_CHANNEL], err) &&
           open_inherited ("MURMUR_FORMATION_LIFELINE", &theirs[ITS_FORMATION], err);
}

static bool
open_ends (struct worker *w, struct ends *e, const struct mur_request *r, struct mur_error **err)
{
    void *ctx;
    int *theirs = e->theirs;
    bool is_ok = open_texts (r, theirs) && open_pipe (&w->out_fd, &theirs[STDOUT_FILENO], true) &&
                 open_pipe (&w->errors_fd, &theirs[STDERR_FILENO], true) &&
                 open_pipe (&w->lifeline_fd, &theirs[ITS_LIFELINE], false) &&
                 (! request_credentials (r, &ctx) ||
                  open_socket (&w->credentials_fd, &theirs[ITS_CREDENTIALS]));
    if (! is_ok)
        return mur_fail_errno (err, E_IO_003, "cannot make the pipes of a session");
    return ! request_is_member (r) || open_membership (theirs, err);
}

/* Every signal as a new program has it; a group of its own. */
static int
spawn (pid_t *pid, char *const *argv, char *const *env, const struct ends *e)
{
    sigset_t all, none;
    sigfillset (&all);
    sigemptyset (&none);
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t files;
    posix_spawnattr_init (&attributes);
    posix_spawn_file_actions_init (&files);
    posix_spawnattr_setflags (&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
                                               POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setsigdefault (&attributes, &all);
    posix_spawnattr_setsigmask (&attributes, &none);
    posix_spawnattr_setpgroup (&attributes, 0);
    for (int i = 0; i < ITS_LAST; i++)
        if (e->theirs[i] >= 0)
            posix_spawn_file_actions_adddup2 (&files, e->theirs[i], i);
        else
            posix_spawn_file_actions_addclose (&files, i);
    posix_spawn_file_actions_addclosefrom_np (&files, ITS_LAST);
    int fault = posix_spawn (pid, argv[0], &files, &attributes, argv, env);
    posix_spawn_file_actions_destroy (&files);
    posix_spawnattr_destroy (&attributes);
    return fault;
}

static bool
start (struct worker *w, const struct ends *e, const struct mur_request *r,
       const char *const *words, struct mur_error **err)
{
    _cleanup_strv_ struct strv argv = { 0 }, env = { 0 };
    char *program = program_find (request_program (r), err);
    if (! program)
        return false;
    strv_take (&argv, program);
    strv_push (&argv, "run");
    for (; *words; words++)
        strv_push (&argv, *words);
    request_words (r, ITS_TEXT, &argv);
    request_environment (r, &env);
    strv_printf (&env, "MURMUR_SPAWNER_LIFELINE=%d", ITS_LIFELINE);
    if (w->credentials_fd >= 0)
        strv_printf (&env, "MURMUR_CREDENTIALS_FD=%d", ITS_CREDENTIALS);
    if (request_is_member (r)) {
        const char *id = getenv ("MURMUR_FORMATION_ID");
        strv_printf (&env, "MURMUR_FORMATION_ID=%s", id ? id : "");
        strv_printf (&env, "MURMUR_FORMATION_CHANNEL=%d", ITS_CHANNEL);
        strv_printf (&env, "MURMUR_FORMATION_LIFELINE=%d", ITS_FORMATION);
    }
    pid_t pid;
    int fault = errno = spawn (&pid, argv.items, env.items, e);
    if (fault) {
        mur_fail_errno (err, E_IO_003, "cannot start %s", argv.items[0]);
        if (fault == E2BIG)
            mur_hint (err, "a setting or a variable has 128 KiB or more: a long prompt belongs "
                           "into the manifest, what a task is about into the task");
        return false;
    }
    w->pidfd = lift ((int)syscall (SYS_pidfd_open, pid, 0));
    if (w->pidfd >= 0 || errno == ESRCH) /* it is over, and the host has reaped it */
        return true;
    mur_fail_errno (err, E_IO_003, "cannot watch %s", argv.items[0]);
    (void)kill (pid, SIGKILL);
    (void)waitpid (pid, NULL, 0);
    return false;
}

bool
worker_start (struct worker *w, const struct mur_request *r, const char *const *words,
              struct mur_error **err)
{
    *w = WORKER_NONE;
    struct ends e;
    for (int i = 0; i < ITS_LAST; i++)
        e.theirs[i] = -1;
    bool is_ok = open_ends (w, &e, r, err) && start (w, &e, r, words, err);
    for (int i = 0; i < ITS_LAST; i++)
        cleanup_closep (&e.theirs[i]);
    if (! is_ok)
        worker_clear (w);
    return is_ok;
}

/* --- what it says --- */

bool
worker_read (int fd, struct buf *into)
{
    char *room = buf_reserve (into, 16384);
    ssize_t len;
    while ((len = read (fd, room, 16384)) < 0 && errno == EINTR)
        ;
    if (len <= 0)
        return false;
    into->len += (size_t)len;
    into->data[into->len] = '\0';
    return true;
}

char *
worker_line (struct buf *from)
{
    char *end = from->len ? memchr (from->data, '\n', from->len) : NULL;
    if (! end)
        return NULL;
    size_t len = (size_t)(end - from->data);
    char *line = x_strndup (from->data, len);
    memmove (from->data, end + 1, from->len - len - 1);
    buf_truncate (from, from->len - len - 1);
    return line;
}

void
worker_note (struct worker *w, const char *line)
{
    if (w->told.len == LINES_KEPT) {
        free (w->told.items[0]);
        memmove (w->told.items, w->told.items + 1, w->told.len * sizeof *w->told.items);
        w->told.len--;
    }
    strv_push (&w->told, line);
}

/* "error[E-MAN-002]: message", lines that go on, "  hint: ...". */
static bool
fail_as_told (const struct worker *w, size_t first, struct mur_error **err)
{
    const char *line = w->told.items[first];
    _cleanup_free_ char *name =
        x_strndup (line + strlen ("error["), strcspn (line + strlen ("error["), "]"));
    const char *message = strstr (line, "]: ");
    enum diag_code code;
    if (! message || ! diag_code_find (name, &code))
        return false;
    _cleanup_buf_ struct buf text = { 0 };
    buf_puts (&text, message + strlen ("]: "));
    size_t i = first + 1;
    for (; i < w->told.len && ! str_starts (w->told.items[i], "  hint: "); i++)
        buf_printf (&text, "\n%s", w->told.items[i]);
    mur_fail (err, code, "%s", text.data);
    if (i < w->told.len)
        mur_hint (err, "%s", w->told.items[i] + strlen ("  hint: "));
    return true;
}

bool
worker_fail (const struct worker *w, int status, bool was_ready, struct mur_error **err)
{
    for (size_t i = w->told.len; i-- > 0;)
        if (str_starts (w->told.items[i], "error[") && fail_as_told (w, i, err))
            return false;
    /* A setting the command line refuses: what follows is how to type it. */
    for (size_t i = 0; i < w->told.len; i++)
        if (str_starts (w->told.items[i], "error: "))
            return mur_fail (err, E_IO_003, "%s", w->told.items[i] + strlen ("error: "));
    _cleanup_free_ char *all = strv_join (&w->told, "\n");
    _cleanup_free_ char *how = NULL;
    if (status > SIGNALLED)
        how = x_asprintf (", killed by signal %d", status - SIGNALLED);
    else if (was_ready && status >= 0)
        how = x_asprintf (" with status %d", status);
    return mur_fail (err, E_IO_003, "the session ended%s%s%s%s",
                     was_ready ? "" : " before it was ready", how ? how : "",
                     w->told.len ? ": " : "", w->told.len ? all : "");
}

static void
note_lines (struct worker *w)
{
    char *line;
    while ((line = worker_line (&w->errors))) {
        worker_note (w, line);
        free (line);
    }
}

char *
worker_output (struct worker *w, struct mur_error **err)
{
    bool is_out = true, is_errors = true;
    while (is_out || is_errors) {
        struct pollfd fds[] = { { is_out ? w->out_fd : -1, POLLIN, 0 },
                                { is_errors ? w->errors_fd : -1, POLLIN, 0 } };
        if (poll (fds, ARRAY_LEN (fds), -1) < 0 && errno != EINTR)
            break;
        if (fds[0].revents)
            is_out = worker_read (w->out_fd, &w->out);
        if (fds[1].revents)
            is_errors = worker_read (w->errors_fd, &w->errors);
        note_lines (w);
    }
    int status = worker_reap (w);
    if (status == 0 || (status < 0 && w->out.len))
        return buf_steal (&w->out);
    (void)worker_fail (w, status, false, err);
    return NULL;
}

/* --- its end --- */

/* By its descriptor: a host that reaps everything, or ignores SIGCHLD, may have given the number to
 * another. */
int
worker_reap (struct worker *w)
{
    siginfo_t how = { 0 };
    int failed = -1;
    while (w->pidfd >= 0 && (failed = waitid (P_PIDFD, (id_t)w->pidfd, &how, WEXITED)) < 0 &&
           errno == EINTR)
        ;
    w->is_reaped = true;
    if (failed < 0)
        return -1;
    return how.si_code == CLD_EXITED ? how.si_status : SIGNALLED + how.si_status;
}

void
worker_signal (const struct worker *w, int number)
{
    (void)syscall (SYS_pidfd_send_signal, w->pidfd, number, NULL, 0);
}

void
worker_close (struct worker *w)
{
    cleanup_closep (&w->pidfd);
    cleanup_closep (&w->lifeline_fd);
    cleanup_closep (&w->out_fd);
    cleanup_closep (&w->errors_fd);
    cleanup_closep (&w->credentials_fd);
}

void
worker_clear (struct worker *w)
{
    if (w->pidfd >= 0 && ! w->is_reaped) {
        worker_signal (w, SIGKILL);
        (void)worker_reap (w);
    }
    worker_close (w);
    buf_free (&w->out);
    buf_free (&w->errors);
    strv_free (&w->told);
}
