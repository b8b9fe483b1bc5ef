/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/chat/chat_session.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/fdio.h"
#include "base/json.h"
#include "cli/line/own_command.h"
#include "cli/running/running_session.h"
#include "client/door_client.h"
#include "spawn/child/start.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define READY_LIMIT ((size_t)64 << 10)
#define END_MS      10000
#define LOOK_MS     20

/* --- a session that runs --- */

static bool
find (struct chat_session *s, const char *address, struct mur_error **err)
{
    const struct running_entry *e = running_session (address, &s->scan, err);
    if (! e)
        return false;
    s->record = &e->record;
    s->client = http_client_new ();
    if (door_answers (s->client, s->record))
        return true;
    return mur_fail (err, E_RUN_023, "%s is running (pid %ld), but its door at %s does not answer",
                     s->record->session_id, (long)s->record->pid, s->record->url);
}

bool
chat_session_join (struct chat_session *s, const char *address, struct mur_error **err)
{
    *s = (struct chat_session){ .lifeline_fd = -1, .errors_fd = -1 };
    return find (s, address, err);
}

/* --- launching --- */

static bool
launch_words (const struct chat_launch *l, struct strv *argv, struct mur_error **err)
{
    static const char *const beginning[] = { "run",
                                             "--json",
                                             "--readiness-tokens", /* it asks nobody by itself */
                                             "--lifecycle-task-acceptance",
                                             "queue",
                                             "--lifecycle-after-task",
                                             "sleep",
                                             "--lifecycle-conversation",
                                             "threaded",
                                             "--manifest" };
    if (! program_push (argv, err))
        return false;
    for (size_t i = 0; i < ARRAY_LEN (beginning); i++)
        strv_push (argv, beginning[i]);
    strv_push (argv, l->manifest);
    if (l->workdir) {
        strv_push (argv, "--workdir");
        strv_push (argv, l->workdir);
    }
    if (l->has_no_env_file)
        strv_push (argv, "--no-env-file");
    return true;
}

struct ends {
    int ready[2], lifeline[2];
};

/* Does not return. */
static void
become_session (const struct chat_session *s, const struct ends *e, char **argv)
{
    char number[16];
    int nothing = open ("/dev/null", O_RDONLY | O_CLOEXEC);
    snprintf (number, sizeof number, "%d", e->lifeline[0]);
    own_command_default_signals ();
    if (setpgid (0, 0) == 0 && nothing >= 0 && dup2 (nothing, STDIN_FILENO) >= 0 &&
        dup2 (e->ready[1], STDOUT_FILENO) >= 0 && dup2 (s->errors_fd, STDERR_FILENO) >= 0 &&
        fd_set_cloexec (e->lifeline[0], false) &&
        setenv ("MURMUR_SPAWNER_LIFELINE", number, 1) == 0)
        execv (argv[0], argv);
    _exit (127);
}

/* Reads the one line of readiness. False at an early end, or when a signal came. */
static bool
wait_until_ready (int fd, int signals_fd, struct buf *line)
{
    struct pollfd fds[] = { { .fd = fd, .events = POLLIN },
                            { .fd = signals_fd, .events = POLLIN } };
    while (! line->len || ! strchr (line->data, '\n')) {
        char piece[4096];
        if (poll (fds, ARRAY_LEN (fds), -1) < 0 && errno != EINTR)
            return false;
        if (fds[1].revents)
            return false;
        ssize_t len = fds[0].revents ? read (fd, piece, sizeof piece) : 0;
        if (fds[0].revents && (len <= 0 || line->len > READY_LIMIT))
            return false;
        buf_append (line, piece, (size_t)len);
    }
    return true;
}

static bool
take_ready (struct chat_session *s, const struct buf *line, struct mur_error **err)
{
    _cleanup_json_ json_t *ready = json_loads (line->data, JSON_DISABLE_EOF_CHECK, NULL);
    const char *id = json_get_string (ready, "session_id");
    const char *url = json_get_string (ready, "url");
    if (! id)
        return mur_fail (err, E_IO_003, "the session did not say that it is ready");
    if (! url || ! *url)
        return mur_fail (err, E_RUN_023, "%s has no door, so nobody can talk to it", id);
    return find (s, id, err);
}

static bool
start (struct chat_session *s, struct ends *e, const struct chat_launch *l, struct mur_error **err)
{
    _cleanup_strv_ struct strv argv = { 0 };
    if (! launch_words (l, &argv, err))
        return false;
    s->errors_fd = memfd_create ("mur-chat-errors", MFD_CLOEXEC);
    if (s->errors_fd < 0 || pipe2 (e->ready, O_CLOEXEC) < 0 || pipe2 (e->lifeline, O_CLOEXEC) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot make the pipes of a session");
    s->lifeline_fd = e->lifeline[1];
    s->pid = fork ();
    if (s->pid == 0)
        become_session (s, e, argv.items);
    close (e->lifeline[0]);
    close (e->ready[1]);
    return s->pid > 0 || mur_fail_errno (err, E_IO_003, "cannot start a session");
}

bool
chat_session_launch (struct chat_session *s, const struct chat_launch *l, struct mur_error **err)
{
    *s = (struct chat_session){ .lifeline_fd = -1,
                                .errors_fd = -1,
                                .manifest = x_strdup (l->manifest),
                                .workdir = l->workdir };
    struct ends e = { .ready = { -1, -1 }, .lifeline = { -1, -1 } };
    _cleanup_buf_ struct buf line = { 0 };
    if (! start (s, &e, l, err))
        return false;
    bool is_ready = wait_until_ready (e.ready[0], l->signals_fd, &line);
    close (e.ready[0]);
    /* What it wrote last is there before its standard output closes. */
    chat_session_tell (s);
    return is_ready && take_ready (s, &line, err);
}

/* --- while it runs --- */

void
chat_session_tell (struct chat_session *s)
{
    char piece[4096];
    ssize_t len;
    while (s->errors_fd >= 0 &&
           (len = pread (s->errors_fd, piece, sizeof piece, (off_t)s->errors_shown)) > 0) {
        s->errors_shown += (size_t)len;
        (void)fd_write_all (STDERR_FILENO, piece, (size_t)len);
    }
}

bool
chat_session_lives (struct chat_session *s)
{
    const char *reason;
    int status;
    if (! s->manifest)
        return running_check (s->record->pid, s->record->process_start, &reason) != RUNNING_GONE;
    if (s->pid > 0 && waitpid (s->pid, &status, WNOHANG) == s->pid)
        s->pid = 0;
    return s->pid > 0;
}

/* --- the end --- */

static void
end_launched (struct chat_session *s)
{
    if (s->lifeline_fd >= 0)
        close (s->lifeline_fd);
    if (s->pid <= 0)
        return;
    (void)kill (s->pid, SIGTERM);
    int status;
    for (unsigned waited = 0; waitpid (s->pid, &status, WNOHANG) == 0; waited += LOOK_MS) {
        struct timespec pause = { .tv_nsec = LOOK_MS * 1000000L };
        if (waited >= END_MS)
            (void)kill (s->pid, SIGKILL);
        (void)nanosleep (&pause, NULL);
    }
    s->pid = 0;
}

void
chat_session_clear (struct chat_session *s)
{
    end_launched (s);
    if (s->errors_fd >= 0)
        close (s->errors_fd);
    http_client_free (s->client);
    running_scan_free (&s->scan);
    free (s->manifest);
}
