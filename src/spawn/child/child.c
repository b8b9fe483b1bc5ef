/* SPDX-License-Identifier: Apache-2.0 */
#include "spawn/child/child.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/fdio.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define GRACE_MS 5000

struct mur_child *
child_new (void)
{
    struct mur_child *c = x_new0 (struct mur_child);
    pthread_mutex_init (&c->lock, NULL);
    c->state = CHILD_REAPED;
    c->status = -1;
    c->pidfd = c->lifeline_fd = c->workdir_fd = c->records_fd = -1;
    return c;
}

/* --- starting --- */

/* Only async-signal-safe calls: the parent may hold any lock. */
static _noreturn_ void
become (const struct mur_child *c, const struct child_stdio *stdio, int report_fd)
{
    sigset_t none;
    sigemptyset (&none);
    struct sigaction standard = { .sa_handler = SIG_DFL };
    sigaction (SIGPIPE, &standard, NULL);
    sigprocmask (SIG_SETMASK, &none, NULL);
    if (dup2 (stdio->in, STDIN_FILENO) >= 0 && dup2 (stdio->out, STDOUT_FILENO) >= 0 &&
        dup2 (stdio->err, STDERR_FILENO) >= 0 && fchdir (c->workdir_fd) == 0) {
        /* Last: no other started program may ever hold the read end. */
        int flags = fcntl (stdio->lifeline, F_GETFD);
        if (flags >= 0 && fcntl (stdio->lifeline, F_SETFD, flags & ~FD_CLOEXEC) == 0)
            execve (c->argv.items[0], c->argv.items, c->environment.items);
    }
    int fault = errno;
    if (write (report_fd, &fault, sizeof fault) < 0)
        _exit (126);
    _exit (127);
}

bool
child_start (struct mur_child *c, const struct child_stdio *stdio, struct mur_error **err)
{
    int report[2];
    if (pipe2 (report, O_CLOEXEC) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot start %s", c->argv.items[0]);
    _cleanup_close_ int told = report[0];
    pid_t pid = fork ();
    if (pid == 0)
        become (c, stdio, report[1]);
    int fork_errno = errno;
    close (report[1]);
    errno = fork_errno;
    if (pid < 0)
        return mur_fail_errno (err, E_IO_003, "cannot start %s", c->argv.items[0]);
    c->pid = pid;
    c->state = CHILD_RUNNING;
    /* Nobody else reaps it, so the pid is still its own. */
    c->pidfd = (int)syscall (SYS_pidfd_open, pid, 0);
    if (c->pidfd < 0) {
        mur_fail_errno (err, E_IO_003, "cannot watch %s", c->argv.items[0]);
        kill (pid, SIGKILL);
        while (waitpid (pid, &c->status, 0) < 0 && errno == EINTR)
            ;
        c->state = CHILD_REAPED;
        return false;
    }
    int fault;
    if (! fd_read_exact (told, &fault, sizeof fault))
        return true; /* it was replaced: the pipe closed on exec */
    errno = fault;
    mur_fail_errno (err, E_IO_003, "cannot start %s", c->argv.items[0]);
    mur_child_end (c);
    return false;
}

/* --- reaping --- */

static void
close_lifeline (struct mur_child *c)
{
    if (c->lifeline_fd >= 0)
        close (steal_fd (&c->lifeline_fd));
}

/* Reaps it if it has exited; under the lock. True when it is reaped. The lifeline goes after the
 * reap: closed earlier, a plain stop would look to the child like its parent's death. */
static bool
reap (struct mur_child *c)
{
    if (c->state == CHILD_REAPED)
        return true;
    pid_t got;
    while ((got = waitpid (c->pid, &c->status, WNOHANG)) < 0 && errno == EINTR)
        ;
    if (got == 0)
        return false;
    if (got < 0) {
        diag_stderr_line ("[capsule-runtime] cannot wait for process %d: %s", (int)c->pid,
                          strerror (errno));
        c->status = -1;
    }
    c->state = CHILD_REAPED;
    close_lifeline (c);
    return true;
}

bool
mur_child_has_exited (struct mur_child *c, int *status)
{
    pthread_mutex_lock (&c->lock);
    bool has = reap (c);
    if (has && status)
        *status = c->status;
    pthread_mutex_unlock (&c->lock);
    return has;
}

bool
mur_child_is_being_ended (struct mur_child *c)
{
    pthread_mutex_lock (&c->lock);
    bool is = c->state == CHILD_ENDING;
    pthread_mutex_unlock (&c->lock);
    return is;
}

bool
child_was_ended (struct mur_child *c)
{
    pthread_mutex_lock (&c->lock);
    bool was = c->ending_since_ms != 0;
    pthread_mutex_unlock (&c->lock);
    return was;
}

/* --- ending --- */

static void
send_signal (const struct mur_child *c, int number)
{
    syscall (SYS_pidfd_send_signal, c->pidfd, number, NULL, 0);
}

/* Under the lock. */
static void
begin (struct mur_child *c)
{
    if (c->state != CHILD_RUNNING || reap (c))
        return;
    c->state = CHILD_ENDING;
    c->ending_since_ms = clock_monotonic_ms ();
    send_signal (c, SIGTERM);
}

void
mur_child_begin_ending (struct mur_child *c)
{
    pthread_mutex_lock (&c->lock);
    begin (c);
    pthread_mutex_unlock (&c->lock);
}

void
mur_child_end (struct mur_child *c)
{
    pthread_mutex_lock (&c->lock);
    begin (c);
    bool leaves = c->has_ender || reap (c);
    c->has_ender = true;
    uint64_t kill_at_ms = c->ending_since_ms + GRACE_MS;
    pthread_mutex_unlock (&c->lock);
    if (leaves)
        return;
    uint64_t now = clock_monotonic_ms ();
    fd_wait (c->pidfd, POLLIN, now < kill_at_ms ? (int64_t)(kill_at_ms - now) : 0);
    pthread_mutex_lock (&c->lock);
    if (! reap (c))
        send_signal (c, SIGKILL);
    pthread_mutex_unlock (&c->lock);
    while (! mur_child_has_exited (c, NULL))
        fd_wait (c->pidfd, POLLIN, -1);
}

void
mur_child_free (struct mur_child *c)
{
    if (! c)
        return;
    mur_child_end (c);
    output_free (c->output);
    if (c->pidfd >= 0)
        close (c->pidfd);
    close_lifeline (c);
    if (c->workdir_fd >= 0)
        close (c->workdir_fd);
    if (c->records_fd >= 0)
        close (c->records_fd);
    strv_free (&c->argv);
    strv_free (&c->environment);
    free (c->workdir);
    free (c->records_dir);
    free (c->session_id);
    free (c->url);
    free (c->formation_id);
    free (c->snapshot_report);
    secret_free (c->door_token);
    pthread_mutex_destroy (&c->lock);
    free (c);
}

/* --- what is known of it --- */

char *
child_status_text (int status)
{
    if (status == -1)
        return x_strdup ("an unknown exit status");
    if (WIFSIGNALED (status))
        return x_asprintf ("signal %d (%s)", WTERMSIG (status), strsignal (WTERMSIG (status)));
    return x_asprintf ("exit status %d", WEXITSTATUS (status));
}

pid_t
mur_child_pid (const struct mur_child *c)
{
    return c->pid;
}

const char *const *
mur_child_argv (const struct mur_child *c)
{
    return (const char *const *)c->argv.items;
}

const char *const *
mur_child_environment (const struct mur_child *c)
{
    return (const char *const *)c->environment.items;
}

const char *
mur_child_session_id (const struct mur_child *c)
{
    return c->session_id;
}

const char *
mur_child_url (const struct mur_child *c)
{
    return c->url;
}

const char *
mur_child_door_token (const struct mur_child *c)
{
    return c->door_token ? secret_reveal (c->door_token) : NULL;
}

const char *
mur_child_formation_id (const struct mur_child *c)
{
    return c->formation_id;
}

const char *
mur_child_workdir (const struct mur_child *c)
{
    return c->workdir;
}

const char *
mur_child_records_dir (const struct mur_child *c)
{
    return c->records_dir;
}

const char *
mur_child_snapshot_report (const struct mur_child *c)
{
    return c->snapshot_report;
}

int
mur_child_workdir_fd (const struct mur_child *c)
{
    return c->workdir_fd;
}

int
mur_child_records_fd (const struct mur_child *c)
{
    return c->records_fd;
}

char *
mur_child_stderr_tail (struct mur_child *c)
{
    return output_stderr_tail (c->output, mur_child_has_exited (c, NULL) ? OUTPUT_TAIL_WAIT_MS : 0);
}
