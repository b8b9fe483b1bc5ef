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

/* The descriptors as the process has them. */
enum {
    ITS_LIFELINE = STDERR_FILENO + 1,
    ITS_CREDENTIALS,
    ITS_TEXT,
    ITS_LAST,
};

/* One end is ours, the other goes to the process; all lie above the numbers it will have. */
struct ends {
    int theirs[ITS_LAST]; /* -1: none */
};

static int
lift (int fd)
{
    int high = fd < 0 ? -1 : fcntl (fd, F_DUPFD_CLOEXEC, ITS_LAST);
    if (fd >= 0)
        close (fd);
    return high;
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

static bool
open_text (const struct mur_request *r, int *theirs)
{
    size_t len;
    const char *text = request_manifest_text (r, &len);
    if (! text)
        return true;
    *theirs = lift (memfd_create ("murmur.yaml", MFD_CLOEXEC));
    return *theirs >= 0 && fd_write_all (*theirs, text, len) && lseek (*theirs, 0, SEEK_SET) == 0;
}

static bool
open_ends (struct worker *w, struct ends *e, const struct mur_request *r, struct mur_error **err)
{
    void *ctx;
    int *theirs = e->theirs;
    theirs[STDIN_FILENO] = lift (open ("/dev/null", O_RDONLY | O_CLOEXEC));
    bool is_ok = theirs[STDIN_FILENO] >= 0 &&
                 open_pipe (&w->out_fd, &theirs[STDOUT_FILENO], true) &&
                 open_pipe (&w->errors_fd, &theirs[STDERR_FILENO], true) &&
                 open_pipe (&w->lifeline_fd, &theirs[ITS_LIFELINE], false) &&
                 (! request_credentials (r, &ctx) ||
                  open_socket (&w->credentials_fd, &theirs[ITS_CREDENTIALS])) &&
                 open_text (r, &theirs[ITS_TEXT]);
    return is_ok || mur_fail_errno (err, E_IO_003, "cannot make the pipes of a session");
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
    errno = spawn (&w->pid, argv.items, env.items, e);
    if (errno) {
        w->pid = 0;
        return mur_fail_errno (err, E_IO_003, "cannot start %s", argv.items[0]);
    }
    w->pidfd = (int)syscall (SYS_pidfd_open, w->pid, 0);
    return w->pidfd >= 0 || mur_fail_errno (err, E_IO_003, "cannot watch %s", argv.items[0]);
}

bool
worker_start (struct worker *w, const struct mur_request *r, const char *const *words,
              struct mur_error **err)
{
    *w = (struct worker){
        .pidfd = -1, .lifeline_fd = -1, .out_fd = -1, .errors_fd = -1, .credentials_fd = -1
    };
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
worker_fail (const struct worker *w, struct mur_error **err)
{
    for (size_t i = w->told.len; i-- > 0;)
        if (str_starts (w->told.items[i], "error[") && fail_as_told (w, i, err))
            return false;
    _cleanup_free_ char *all = strv_join (&w->told, "\n");
    return mur_fail (err, E_IO_003, "the session ended before it was ready%s%s",
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
    if (worker_reap (w) == 0)
        return buf_steal (&w->out);
    worker_fail (w, err);
    return NULL;
}

/* --- its end --- */

int
worker_reap (struct worker *w)
{
    int status = -1;
    while (w->pid > 0 && waitpid (w->pid, &status, 0) < 0 && errno == EINTR)
        ;
    w->pid = 0;
    return WIFEXITED (status) ? WEXITSTATUS (status) : 128 + WTERMSIG (status);
}

void
worker_clear (struct worker *w)
{
    if (w->pid > 0) {
        (void)kill (w->pid, SIGKILL);
        (void)worker_reap (w);
    }
    cleanup_closep (&w->pidfd);
    cleanup_closep (&w->lifeline_fd);
    cleanup_closep (&w->out_fd);
    cleanup_closep (&w->errors_fd);
    cleanup_closep (&w->credentials_fd);
    buf_free (&w->out);
    buf_free (&w->errors);
    strv_free (&w->told);
}
