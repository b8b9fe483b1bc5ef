/* SPDX-License-Identifier: Apache-2.0 */
#include "net/oci/oci_helper.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fdio.h"
#include "base/json.h"
#include "base/printable.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER_MAX ((size_t)65536)
#define TIMEOUT_MS 30000
#define LINGER_MS  5000 /* of one that has nothing more to say */
#define SHOWN_MAX  200

extern char **environ;

static bool
is_plain_name (const char *name)
{
    for (const char *p = name; *p; p++)
        if (! isascii (*p) || (! isalnum ((unsigned char)*p) && ! strchr ("._-", *p)))
            return false;
    return *name != '\0' && *name != '.';
}

struct helper {
    char *program;
    pid_t pid;
    int in, out; /* our ends */
};

static bool
start (struct helper *h, struct mur_error **err)
{
    int to[2], from[2];
    /* A socket, so that a helper which does not read is no SIGPIPE for us. */
    if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, to) < 0)
        return mur_fail_errno (err, E_REG_012, "cannot make a socket");
    if (pipe2 (from, O_CLOEXEC) < 0) {
        close (to[0]);
        close (to[1]);
        return mur_fail_errno (err, E_REG_012, "cannot make a pipe");
    }
    char *argv[] = { h->program, (char[]){ "get" }, NULL };
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init (&actions);
    posix_spawn_file_actions_adddup2 (&actions, to[0], 0);
    posix_spawn_file_actions_adddup2 (&actions, from[1], 1);
    int failed = posix_spawnp (&h->pid, h->program, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy (&actions);
    close (to[0]);
    close (from[1]);
    h->in = to[1];
    h->out = from[0];
    if (! failed)
        return true;
    errno = failed;
    mur_fail_errno (err, E_REG_012, "cannot run the credential helper %s", h->program);
    return mur_hint (err, "install %s, or take its name out of the file", h->program);
}

/* Takes one piece of its output; false: that has ended, or is too much. */
static bool
read_piece (int fd, struct buf *answer)
{
    char piece[4096];
    ssize_t n = read (fd, piece, sizeof piece);
    if (n < 0)
        return errno == EINTR;
    buf_append (answer, piece, (size_t)n);
    secret_wipe (piece, (size_t)n);
    return n > 0 && answer->len <= ANSWER_MAX;
}

/* Reads what it says until it has ended, which is not when its output does: something it started
 * may hold that open, and it may close it and stay. False when it says too much or takes too long.
 */
static bool
read_answer (struct helper *h, struct buf *answer)
{
    _cleanup_close_ int pidfd = (int)syscall (SYS_pidfd_open, h->pid, 0);
    uint64_t until = clock_monotonic_ms () + TIMEOUT_MS, soon;
    struct pollfd on[] = { { .fd = h->out, .events = POLLIN }, { .fd = pidfd, .events = POLLIN } };
    while (pidfd >= 0) {
        uint64_t now = clock_monotonic_ms ();
        int ready = now < until ? poll (on, ARRAY_LEN (on), (int)(until - now)) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return false;
        if (! on[0].revents)
            return true; /* it has ended and all is read */
        if (read_piece (h->out, answer))
            continue;
        if (answer->len > ANSWER_MAX)
            return false;
        on[0] = (struct pollfd){ .fd = -1 };
        soon = clock_monotonic_ms () + LINGER_MS;
        until = soon < until ? soon : until;
    }
    return false;
}

/* Its exit status; -1 when it had to be ended. */
static int
end (struct helper *h, bool is_over)
{
    int status = 0;
    if (! is_over)
        kill (h->pid, SIGKILL);
    while (waitpid (h->pid, &status, 0) < 0 && errno == EINTR)
        ;
    return is_over && WIFEXITED (status) ? WEXITSTATUS (status) : -1;
}

static bool
read_secret (const struct helper *h, const char *text, size_t len, struct oci_login *out,
             struct mur_error **err)
{
    _cleanup_json_ json_t *answer = json_parse (text, len, h->program, E_REG_012, NULL);
    const char *user = json_get_string (answer, "Username");
    const char *secret = json_get_string (answer, "Secret");
    if (! secret)
        return mur_fail (err, E_REG_012, "the credential helper %s gave no JSON with a Secret",
                         h->program);
    if (! *secret)
        return true;
    out->is_identity_token = str_eq (user, "<token>");
    out->user = user && ! out->is_identity_token ? x_strdup (user) : NULL;
    out->secret = secret_new (secret, strlen (secret));
    return true;
}

/* What a helper says in an exit other than 0: that it has nothing, or what stands in its way. */
static bool
judge_failure (const struct helper *h, const char *host, int status, const char *text,
               struct mur_error **err)
{
    if (strstr (text, "credentials not found") || strstr (text, "no credentials"))
        return true;
    _cleanup_buf_ struct buf shown = { 0 };
    size_t len = strcspn (text, "\r\n");
    buf_append_printable (&shown, text, len < SHOWN_MAX ? len : SHOWN_MAX, PRINTABLE_HEX);
    if (status < 0)
        return mur_fail (err, E_REG_012, "the credential helper %s did not end in time",
                         h->program);
    return mur_fail (err, E_REG_012, "the credential helper %s failed for %s (exit status %d)%s%s",
                     h->program, host, status, shown.len ? ": " : "", shown.data ? shown.data : "");
}

static bool
talk (struct helper *h, const char *host, struct oci_login *out, struct mur_error **err)
{
    if (! start (h, err))
        return false;
    struct buf answer = { 0 };
    fd_send_all (h->in, host, strlen (host), 5); /* one that does not read says why by its end */
    close (h->in);
    h->in = -1;
    bool is_over = read_answer (h, &answer);
    int status = end (h, is_over);
    const char *text = answer.data ? answer.data : "";
    bool ok = status == 0 ? read_secret (h, text, answer.len, out, err)
                          : judge_failure (h, host, status, text, err);
    if (answer.data)
        secret_wipe (answer.data, answer.len);
    buf_free (&answer);
    return ok;
}

bool
oci_helper_ask (const char *name, const char *host, struct oci_login *out, struct mur_error **err)
{
    if (! is_plain_name (name))
        return mur_fail (err, E_REG_012, "\"%s\" is no name of a credential helper", name);
    struct helper h = { .program = x_asprintf ("docker-credential-%s", name), .in = -1, .out = -1 };
    bool ok = talk (&h, host, out, err);
    if (h.in >= 0)
        close (h.in);
    if (h.out >= 0)
        close (h.out);
    free (h.program);
    return ok;
}
