/* SPDX-License-Identifier: Apache-2.0 */
#include "spawn/formation/member.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fdio.h"
#include "base/ids.h"
#include "base/json.h"
#include "spawn/child/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define CHANNEL_BYTES                                                                              \
    (1 << 20) /* a first line with many tokens is written before anybody reads                     \
               */
#define PROBE_MS       100
#define CLOSED_EXIT_MS 2000 /* a peer that closed its stdout exits within that */
#define TAIL_WAIT_MS   5000
#define LOOK_MS        250

/* --- lifeline and channel --- */

bool
member_open (struct member *m, struct mur_error **err)
{
    if (! pipe_open (&m->lifeline, "a member's lifeline", err) ||
        ! pipe_open (&m->channel, "a member's channel", err))
        return false;
    (void)fcntl (m->channel.write_end, F_SETPIPE_SZ, CHANNEL_BYTES);
    return true;
}

bool
member_tell (struct member *m, const char *line, struct mur_error **err)
{
    _cleanup_free_ char *whole = x_asprintf ("%s\n", line);
    size_t len = strlen (whole);
    /* A member that reads nothing must not hold its launcher. */
    (void)fcntl (m->channel.write_end, F_SETFL, O_NONBLOCK);
    ssize_t n = write (m->channel.write_end, whole, len);
    int saved = errno;
    secret_wipe (whole, len);
    errno = n < 0 ? saved : EAGAIN;
    return n == (ssize_t)len ||
           mur_fail_errno (err, E_IO_003, "cannot write to the channel of member %s",
                           m->declared->name);
}

/* --- starting --- */

static bool
keep_open (int fd)
{
    int flags = fcntl (fd, F_GETFD);
    return flags >= 0 && fcntl (fd, F_SETFD, flags & ~FD_CLOEXEC) == 0;
}

/* Only async-signal-safe calls. <out> and <error> are -1 for the entry, which has our streams. */
static _noreturn_ void
become (const struct member *m, char *const *argv, char *const *environment, int null_fd, int out,
        int error, int report_fd)
{
    sigset_t none;
    sigemptyset (&none);
    struct sigaction standard = { .sa_handler = SIG_DFL };
    sigaction (SIGPIPE, &standard, NULL);
    sigprocmask (SIG_SETMASK, &none, NULL);
    bool is_peer = out >= 0;
    if ((! is_peer || (setpgid (0, 0) == 0 && dup2 (out, STDOUT_FILENO) >= 0 &&
                       dup2 (error, STDERR_FILENO) >= 0)) &&
        dup2 (null_fd, STDIN_FILENO) >= 0 && keep_open (m->channel.read_end) &&
        keep_open (m->lifeline.read_end))
        execve (argv[0], argv, environment);
    int fault = errno;
    if (write (report_fd, &fault, sizeof fault) < 0)
        _exit (126);
    _exit (127);
}

static bool
not_started (const struct member *m, struct mur_error **err)
{
    return mur_fail_errno (err, E_RUN_045, "member '%s' (%s@%s) could not be started",
                           m->declared->name, m->declared->capsule, m->declared->version);
}

/* Forks and waits for the exec. */
static bool
run (struct member *m, char *const *argv, const struct strv *environment, int out, int error,
     struct mur_error **err)
{
    int report[2];
    _cleanup_close_ int null_fd = open ("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null_fd < 0 || pipe2 (report, O_CLOEXEC) < 0)
        return not_started (m, err);
    _cleanup_close_ int told = report[0];
    pid_t pid = fork ();
    if (pid == 0)
        become (m, argv, environment->items, null_fd, out, error, report[1]);
    int saved = errno, fault;
    close (report[1]);
    errno = saved;
    if (pid < 0)
        return not_started (m, err);
    m->pid = pid;
    m->status = -1;
    m->pidfd = (int)syscall (SYS_pidfd_open, pid, 0);
    bool has_failed = fd_read_exact (told, &fault, sizeof fault);
    if (! has_failed && m->pidfd >= 0)
        return true;
    int why = has_failed ? fault : errno;
    kill (pid, SIGKILL);
    while (waitpid (pid, &m->status, 0) < 0 && errno == EINTR)
        ;
    m->pid = 0;
    errno = why;
    return not_started (m, err);
}

bool
member_start (struct member *m, char *const *argv, const struct strv *environment,
              struct mur_error **err)
{
    _cleanup_pipe_ struct pipe out = NO_PIPE, error = NO_PIPE;
    bool is_peer = ! m->declared->is_entry;
    if (is_peer && (! pipe_open (&out, "a pipe for a member", err) ||
                    ! pipe_open (&error, "a pipe for a member", err)))
        return false;
    bool is_running = run (m, argv, environment, is_peer ? out.write_end : -1,
                           is_peer ? error.write_end : -1, err);
    /* The member has its own ends now; nobody else may hold them. */
    cleanup_closep (&m->lifeline.read_end);
    cleanup_closep (&m->channel.read_end);
    m->lifeline.read_end = m->channel.read_end = -1;
    if (! is_running || ! is_peer)
        return is_running;
    m->output = output_new_of_member (steal_fd (&out.read_end), steal_fd (&error.read_end),
                                      m->declared->name, err);
    return m->output != NULL;
}

/* --- readiness --- */

static bool
not_up (const struct member *m, struct mur_error **err, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    _cleanup_free_ char *why = x_vasprintf (fmt, ap);
    va_end (ap);
    return mur_fail (err, E_RUN_045, "member '%s' (%s@%s) did not come up: %s", m->declared->name,
                     m->declared->capsule, m->declared->version, why);
}

/* What a member that ended, or closed its stdout, left to say. */
static bool
explain_end (struct member *m, const char *when, struct mur_error **err)
{
    if (! member_has_exited (m)) {
        fd_wait (m->pidfd, POLLIN, CLOSED_EXIT_MS);
        if (! member_has_exited (m))
            return not_up (m, err, "it closed its stdout %s without exiting", when);
    }
    _cleanup_free_ char *how = child_status_text (m->status);
    _cleanup_free_ char *tail = output_stderr_tail (m->output, TAIL_WAIT_MS);
    return not_up (m, err, "it ended %s (%s)%s%s", when, how, *tail ? "\n" : "", tail);
}

static bool
read_report (struct member *m, const char *line, const char *formation_id, struct mur_error **err)
{
    _cleanup_json_ json_t *o = json_loads (line, 0, NULL);
    const char *session_id = json_get_string (o, "session_id");
    const char *url = json_get_string (o, "url");
    const char *token = json_get_string (json_object_get (o, "tokens"), "operator");
    if (! session_id || ! id_is_valid (session_id, "ses_") || ! url)
        return not_up (m, err, "its first line is no readiness line");
    if (! *url)
        return not_up (m, err, "it has no door");
    if (! str_eq (json_get_string (o, "formation_id"), formation_id))
        return not_up (m, err, "it reported another formation, or none");
    m->session_id = x_strdup (session_id);
    m->url = x_asprintf ("http://%s", url);
    m->door_token = token ? secret_new (token, strlen (token)) : NULL;
    return true;
}

static bool
await_report (struct member *m, const struct member_wait *w, struct mur_error **err)
{
    char *line = NULL;
    enum output_line found = OUTPUT_TIMEOUT;
    /* A survivor of it may hold its stdout for ever: its own end is looked for too. */
    for (bool has_exited = false; found == OUTPUT_TIMEOUT && ! has_exited;) {
        uint64_t now_ms = clock_monotonic_ms (), slice_ms = now_ms + LOOK_MS;
        if (now_ms >= w->deadline_ms)
            break;
        found = output_first_line (m->output, slice_ms < w->deadline_ms ? slice_ms : w->deadline_ms,
                                   &line);
        has_exited = found == OUTPUT_TIMEOUT && member_has_exited (m);
        if (has_exited)
            found = OUTPUT_ENDED;
    }
    if (found == OUTPUT_ENDED)
        return explain_end (m, "before it reported", err);
    if (found != OUTPUT_LINE)
        return not_up (
            m, err, found == OUTPUT_LEFT ? "another member failed" : "it did not report in time");
    bool is_good = read_report (m, line, w->formation_id, err);
    secret_wipe (line, strlen (line));
    free (line);
    return is_good;
}

bool
member_await (struct member *m, const struct member_wait *w, struct mur_error **err)
{
    if (! await_report (m, w, err))
        return false;
    const char *address = m->url + strlen ("http://");
    while (! w->probe (w->probe_ctx, address, m->door_token, m->session_id)) {
        if (member_has_exited (m))
            return explain_end (m, "before its door answered", err);
        if (clock_monotonic_ms () >= w->deadline_ms)
            return not_up (m, err, "its door never answered as %s", m->session_id);
        if (atomic_load (w->is_abandoned))
            return not_up (m, err, "another member failed");
        fd_wait (m->pidfd, POLLIN, PROBE_MS);
    }
    return true;
}

/* --- the end --- */

/* A peer's group goes with it, and is signalled while its leader still pins the number. */
bool
member_has_exited (struct member *m)
{
    if (! m->pid)
        return true;
    siginfo_t info = { 0 };
    int got;
    while ((got = waitid (P_PID, (id_t)m->pid, &info, WEXITED | WNOHANG | WNOWAIT)) < 0 &&
           errno == EINTR)
        ;
    if (got == 0 && info.si_pid == 0)
        return false;
    if (! m->declared->is_entry)
        kill (-m->pid, SIGKILL);
    while (waitpid (m->pid, &m->status, 0) < 0 && errno == EINTR)
        ;
    m->pid = 0;
    return true;
}

void
member_let_go (struct member *m)
{
    cleanup_closep (&m->lifeline.write_end);
    m->lifeline.write_end = -1;
}

void
member_kill (struct member *m)
{
    if (! m->pid)
        return;
    kill (m->declared->is_entry ? m->pid : -m->pid, SIGKILL);
}

void
member_clear (struct member *m)
{
    output_free (m->output);
    pipe_close (&m->lifeline);
    pipe_close (&m->channel);
    if (m->pidfd >= 0)
        close (m->pidfd);
    free (m->workdir);
    free (m->session_id);
    free (m->url);
    secret_free (m->door_token);
    mur_error_free (m->fault);
}
