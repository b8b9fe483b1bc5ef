/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/deploy/kubectl.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/fdio.h"
#include "base/printable.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHOWN_MAX   400 /* bytes of one line: some complaints hold a whole pod */
#define OUTPUT_MAX  ((size_t)16 << 20)
#define TIMEOUT_ARG "--request-timeout=30s"

extern char **environ;

void
kubectl_said_clear (struct kubectl_said *said)
{
    buf_free (&said->out);
    buf_free (&said->complaint);
}

/* --- asking --- */

/* A file in memory with these bytes, at its beginning; -1. */
static int
file_of (const struct buf *text)
{
    int fd = memfd_create ("kubectl", MFD_CLOEXEC);
    if (fd >= 0 && text &&
        (! fd_write_all (fd, text->data, text->len) || lseek (fd, 0, SEEK_SET) < 0)) {
        close (fd);
        return -1;
    }
    return fd;
}

static pid_t
start (const struct kubectl *k, const char *const *args, const int fds[3], struct mur_error **err)
{
    _cleanup_strv_ struct strv words = { 0 };
    strv_push (&words, "kubectl");
    if (k->kubeconfig)
        strv_printf (&words, "--kubeconfig=%s", k->kubeconfig);
    strv_printf (&words, "--namespace=%s", k->space);
    strv_push (&words, TIMEOUT_ARG);
    for (; *args; args++)
        strv_push (&words, *args);
    pid_t pid;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init (&actions);
    for (int i = 0; i < 3; i++)
        posix_spawn_file_actions_adddup2 (&actions, fds[i], i);
    int failed = posix_spawnp (&pid, words.items[0], &actions, NULL, words.items, environ);
    posix_spawn_file_actions_destroy (&actions);
    if (! failed)
        return pid;
    mur_fail (err, E_DEP_006, "kubectl cannot be started: %s", strerror (failed));
    mur_hint (err, "install kubectl, or hand over what `mur deploy render` prints");
    return -1;
}

/* Lines a caller can live with. */
static const char *const lesser[] = { "(Forbidden)", "(NotFound)", "field is immutable" };

static bool
is_shown (const struct kubectl_said *said, const char *line, bool is_quiet)
{
    for (size_t i = 0; is_quiet && i < ARRAY_LEN (lesser); i++)
        if (strstr (line, lesser[i]))
            return false;
    /* Its log of tries; the last of them it says in words. */
    if (strstr (line, "\"Unhandled Error\""))
        return false;
    return *line && ! (said->complaint.data && strstr (said->complaint.data, line));
}

/* To its end; a person may be asked to log in meanwhile, so nothing of it waits for the end. */
static void
read_complaint (int fd, bool is_quiet, struct kubectl_said *said)
{
    FILE *from = fdopen (fd, "r");
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    while (from && (len = getline (&line, &room, from)) > 0) {
        line[strcspn (line, "\r\n")] = '\0';
        _cleanup_buf_ struct buf shown = { 0 };
        size_t whole = strlen (line);
        buf_append_printable (&shown, line, whole < SHOWN_MAX ? whole : SHOWN_MAX, PRINTABLE_HEX);
        if (is_shown (said, line, is_quiet))
            diag_stderr_line ("%s%s", shown.data, whole > SHOWN_MAX ? " ..." : "");
        if (said->complaint.len < OUTPUT_MAX)
            buf_printf (&said->complaint, "%s\n", line);
    }
    free (line);
    if (from)
        fclose (from);
    else
        close (fd);
}

bool
kubectl_ask (const struct kubectl *k, const char *const *args, const struct buf *input,
             bool is_quiet, struct kubectl_said *said, struct mur_error **err)
{
    int ends[2], status;
    *said = (struct kubectl_said){ 0 };
    _cleanup_close_ int in = file_of (input), out = file_of (NULL);
    if (in < 0 || out < 0 || pipe2 (ends, O_CLOEXEC) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot hand the objects over");
    pid_t pid = start (k, args, (const int[]){ in, out, ends[1] }, err);
    close (ends[1]);
    if (pid < 0) {
        close (ends[0]);
        return false;
    }
    read_complaint (ends[0], is_quiet, said);
    while (waitpid (pid, &status, 0) < 0 && errno == EINTR)
        ;
    said->status = WIFEXITED (status) ? WEXITSTATUS (status) : -1;
    return (lseek (out, 0, SEEK_SET) == 0 && fd_read_all (out, OUTPUT_MAX, &said->out)) ||
           mur_fail_errno (err, E_IO_003, "cannot read what kubectl printed");
}
