/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ui/ui_launch.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fdio.h"
#include "base/ids.h"
#include "cli/line/own_command.h"
#include "spawn/child/start.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define READY_MS    180000 /* a large component is compiled first */
#define READY_BYTES ((size_t)64 << 10)
#define SAID_BYTES  ((size_t)4 << 10)

/* What a launch reads and writes. */
struct ends {
    int task, manifest, said; /* files without a name */
    int ready[2];
};

static void
ends_clear (struct ends *e)
{
    const int fds[] = { e->task, e->manifest, e->said, e->ready[0], e->ready[1] };
    for (size_t i = 0; i < ARRAY_LEN (fds); i++)
        if (fds[i] >= 0)
            close (fds[i]);
}

/* -1 when it cannot be made. */
static int
nameless (const char *name, const char *text, size_t len)
{
    int fd = memfd_create (name, MFD_CLOEXEC);
    if (fd >= 0 && (! fd_write_all (fd, text, len) || lseek (fd, 0, SEEK_SET) < 0)) {
        close (fd);
        return -1;
    }
    return fd;
}

static bool
ends_open (struct ends *e, const struct ui_launch *l, struct mur_error **err)
{
    e->task = nameless ("mur-ui-task", l->task, strlen (l->task));
    e->said = nameless ("mur-ui-said", "", 0);
    if (l->capsule->text)
        e->manifest = nameless ("mur-ui-manifest", l->capsule->text, l->capsule->len);
    bool is_ok = e->task >= 0 && e->said >= 0 && (e->manifest >= 0 || ! l->capsule->text) &&
                 pipe2 (e->ready, O_CLOEXEC) == 0;
    return is_ok || mur_fail_errno (err, E_IO_003, "cannot make the streams of a session");
}

static bool
launch_words (const struct ui_launch *l, int manifest_fd, struct strv *argv, struct mur_error **err)
{
    static const char *const lasting[] = { "--lifecycle-task-acceptance=queue",
                                           "--lifecycle-after-task=sleep",
                                           "--lifecycle-conversation=threaded" };
    if (! program_push (argv, err))
        return false;
    strv_push (argv, "run");
    strv_push (argv, "--json");
    strv_push (argv, "--task=-");
    if (l->capsule->text) {
        strv_push (argv, "--manifest=murmur.yaml");
        strv_printf (argv, "--manifest-fd=%d", manifest_fd);
    } else {
        strv_printf (argv, "--capsule=%s", l->capsule->name);
        strv_printf (argv, "--capsule-version=%s", l->capsule->version);
    }
    if (l->model)
        strv_printf (argv, "--model=%s", l->model);
    if (l->max_session_tokens)
        strv_printf (argv, "--max-session-tokens=%" PRIu64, l->max_session_tokens);
    if (l->deadline_secs)
        strv_printf (argv, "--deadline=%" PRIu64, l->deadline_secs);
    for (size_t i = 0; l->goes_on && i < ARRAY_LEN (lasting); i++)
        strv_push (argv, lasting[i]);
    if (l->goes_on) /* what the page sends later goes on with the same conversation */
        strv_printf (argv, "--context=%s", id_new ("ctx_").text);
    return true;
}

/* Does not return. The session is a grandchild: nobody here waits for it, and none of the signals
 * of the page's terminal are for it. */
static void
become_session (const struct ends *e, const char *folder, char **argv)
{
    own_command_default_signals ();
    if (setsid () < 0 || chdir (folder) < 0)
        _exit (127);
    pid_t pid = fork ();
    if (pid != 0)
        _exit (pid < 0 ? 127 : 0);
    if (dup2 (e->task, STDIN_FILENO) >= 0 && dup2 (e->ready[1], STDOUT_FILENO) >= 0 &&
        dup2 (e->said, STDERR_FILENO) >= 0 &&
        (e->manifest < 0 || fcntl (e->manifest, F_SETFD, 0) == 0))
        execv (argv[0], argv);
    _exit (127);
}

/* The line of readiness. False: it ended before, or it was not waited for any longer. */
static bool
wait_until_ready (int fd, int stop_fd, struct buf *line, bool *is_given_up)
{
    struct pollfd fds[] = { { .fd = fd, .events = POLLIN }, { .fd = stop_fd, .events = POLLIN } };
    uint64_t until_ms = clock_monotonic_ms () + READY_MS;
    while (! line->len || ! memchr (line->data, '\n', line->len)) {
        char piece[4096];
        uint64_t now = clock_monotonic_ms ();
        int count = now < until_ms ? poll (fds, ARRAY_LEN (fds), (int)(until_ms - now)) : 0;
        if (count < 0 && errno == EINTR)
            continue;
        *is_given_up = count <= 0 || fds[1].revents;
        ssize_t len = *is_given_up ? 0 : read (fd, piece, sizeof piece);
        if (len <= 0 || line->len > READY_BYTES)
            return false;
        buf_append (line, piece, (size_t)len);
    }
    return true;
}

/* Its own words are the message. */
static bool
fail_as_said (int said, struct mur_error **err)
{
    char text[SAID_BYTES + 1];
    off_t len = lseek (said, 0, SEEK_END);
    ssize_t got =
        pread (said, text, SAID_BYTES, len > (off_t)SAID_BYTES ? len - (off_t)SAID_BYTES : 0);
    while (got > 0 && strchr ("\r\n", text[got - 1]))
        got--;
    text[got > 0 ? got : 0] = '\0';
    return mur_fail (err, E_IO_003, "%s", got > 0 ? text : "it ended without a word");
}

char *
ui_launch (const struct ui_launch *l, int stop_fd, struct mur_error **err)
{
    _cleanup_ (ends_clear) struct ends e = { -1, -1, -1, { -1, -1 } };
    _cleanup_strv_ struct strv argv = { 0 };
    _cleanup_buf_ struct buf line = { 0 };
    if (! ends_open (&e, l, err) || ! launch_words (l, e.manifest, &argv, err))
        return NULL;
    pid_t pid = fork ();
    if (pid == 0)
        become_session (&e, l->capsule->folder, argv.items);
    int status = 0;
    while (pid > 0 && waitpid (pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (pid < 0 || status != 0) {
        mur_fail (err, E_IO_003, "cannot start a session in %s", l->capsule->folder);
        return NULL;
    }
    close (e.ready[1]);
    e.ready[1] = -1;
    bool is_given_up = false;
    if (! wait_until_ready (e.ready[0], stop_fd, &line, &is_given_up)) {
        if (is_given_up)
            mur_fail (err, E_IO_003, "it is starting still: the list will show it");
        else
            fail_as_said (e.said, err);
        return NULL;
    }
    _cleanup_json_ json_t *ready = json_loadb (line.data, line.len, JSON_DISABLE_EOF_CHECK, NULL);
    const char *id = json_get_string (ready, "session_id");
    if (! id)
        mur_fail (err, E_IO_003, "it did not say which session it is");
    return id ? x_strdup (id) : NULL;
}
