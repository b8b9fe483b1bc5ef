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
#include <sys/wait.h>

#define ANSWER_MAX ((size_t)65536)
#define TIMEOUT_MS 30000
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

/* Reads to the end of its output; false when it says too much or takes too long. */
static bool
read_answer (int fd, struct buf *answer)
{
    uint64_t until = clock_monotonic_ms () + TIMEOUT_MS;
    for (;;) {
        uint64_t now = clock_monotonic_ms ();
        if (now >= until || fd_wait (fd, POLLIN, (int64_t)(until - now)) <= 0)
            return false;
        char piece[4096];
        ssize_t n = read (fd, piece, sizeof piece);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0;
        buf_append (answer, piece, (size_t)n);
        secret_wipe (piece, (size_t)n);
        if (answer->len > ANSWER_MAX)
            return false;
    }
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
        return mur_fail (err, E_REG_012, "the credential helper %s did not end within %d s",
                         h->program, TIMEOUT_MS / 1000);
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
    bool is_over = read_answer (h->out, &answer);
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
