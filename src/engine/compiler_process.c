/* SPDX-License-Identifier: Apache-2.0
 *
 * Both directions are files in memory: whole when the other side looks, and no pipe to be emptied
 * meanwhile. The status says what the answer is.
 */
#include "engine/compiler_process.h"

#include "base/cleanup.h"
#include "base/fdio.h"
#include "engine/engine.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMPILED 0
#define REFUSED  1
#define UNHEARD  2 /* the answer could not be written */

#define LARGEST_ANSWER ((size_t)2 << 30)

/* All of the environment that it gets: no key of a user, and nothing that was preloaded for us. */
static const char *const passed_on[] = { "LD_LIBRARY_PATH", "ASAN_OPTIONS", "LSAN_OPTIONS",
                                         "UBSAN_OPTIONS", "TSAN_OPTIONS" };

/* A file in memory with these bytes, to be read from its begin. -1 when there is no room. */
static int
memory_file (const void *bytes, size_t len)
{
    _cleanup_close_ int fd = memfd_create ("component", MFD_CLOEXEC);
    if (fd < 0 || ! fd_write_all (fd, bytes, len) || lseek (fd, 0, SEEK_SET) < 0)
        return -1;
    return steal_fd (&fd);
}

static struct strv
environment (void)
{
    struct strv entries = { 0 };
    for (size_t i = 0; i < ARRAY_LEN (passed_on); i++)
        if (getenv (passed_on[i]))
            strv_printf (&entries, "%s=%s", passed_on[i], getenv (passed_on[i]));
    return entries;
}

static pid_t
start (const char *program, int wasm_fd, int answer_fd)
{
    char *argv[] = { "mur", COMPILER_ARGUMENT, NULL }, *nothing[] = { NULL };
    _cleanup_strv_ struct strv entries = environment ();
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init (&actions);
    posix_spawn_file_actions_adddup2 (&actions, wasm_fd, STDIN_FILENO);
    posix_spawn_file_actions_adddup2 (&actions, answer_fd, STDOUT_FILENO);
    pid_t pid = -1;
    if (posix_spawn (&pid, program, &actions, NULL, argv,
                     entries.items ? entries.items : nothing) != 0)
        pid = -1;
    posix_spawn_file_actions_destroy (&actions);
    return pid;
}

static int
status_of (pid_t pid)
{
    int status = 0;
    while (waitpid (pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return status;
}

bool
compiler_process_run (const char *program, const void *wasm, size_t len, struct buf *form,
                      bool *is_there, struct mur_error **err)
{
    _cleanup_close_ int wasm_fd = memory_file (wasm, len);
    _cleanup_close_ int answer_fd = memfd_create ("form", MFD_CLOEXEC);
    pid_t pid = wasm_fd < 0 || answer_fd < 0 ? -1 : start (program, wasm_fd, answer_fd);
    *is_there = pid > 0;
    if (! *is_there)
        return false;
    int status = status_of (pid);
    if (WIFSIGNALED (status))
        return mur_fail (err, E_RUN_001,
                         "the component does not compile: the compiler was ended by signal %d (%s)",
                         WTERMSIG (status), strsignal (WTERMSIG (status)));
    _cleanup_buf_ struct buf answer = { 0 };
    if (status < 0 || WEXITSTATUS (status) == UNHEARD || lseek (answer_fd, 0, SEEK_SET) < 0 ||
        ! fd_read_all (answer_fd, LARGEST_ANSWER, &answer))
        return mur_fail (err, E_RUN_001,
                         "the component does not compile: the compiler gave no answer");
    if (WEXITSTATUS (status) != COMPILED)
        return mur_fail (err, E_RUN_001, "%.*s", (int)answer.len, answer.data ? answer.data : "");
    buf_append (form, answer.data, answer.len);
    return true;
}

int
compiler_process_serve (void)
{
    /* Of no use to anybody once the launch is gone. */
    (void)prctl (PR_SET_PDEATHSIG, SIGKILL);
    _cleanup_buf_ struct buf wasm = { 0 }, form = { 0 };
    _cleanup_error_ struct mur_error *err = NULL;
    if (! fd_read_all (STDIN_FILENO, LARGEST_ANSWER, &wasm))
        return UNHEARD;
    bool ok = component_precompile_apart (wasm.data, wasm.len, &form, &err);
    const char *text = ok ? form.data : err->message;
    if (! fd_write_all (STDOUT_FILENO, text, ok ? form.len : strlen (text)))
        return UNHEARD;
    return ok ? COMPILED : REFUSED;
}
