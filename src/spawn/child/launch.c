/* SPDX-License-Identifier: Apache-2.0 */
#include "spawn/child/launch.h"
#include "spawn/child/environment.h"
#include "spawn/child/readiness.h"
#include "spawn/child/snapshot.h"
#include "spawn/child/start.h"
#include "spawn/child/work_folder.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fdio.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#define READINESS_MS 180000
#define PARTING_MS   1000 /* from losing its stdin to its end */

/* --- what is executed --- */

static bool
build_argv (const struct mur_child_launch *l, const struct work_folder *folder,
            const char *snapshot_report, struct strv *argv, struct mur_error **err)
{
    if (! program_push (argv, err))
        return false;
    if (l->is_remote) {
        const char *const remote[] = { "run",           "--capsule",
                                       l->capsule,      "--capsule-version",
                                       l->version,      "--workdir",
                                       folder->path,    "--spawn-grant-stdin",
                                       "--remote-child" };
        for (size_t i = 0; i < ARRAY_LEN (remote); i++)
            strv_push (argv, remote[i]);
        return true;
    }
    const char *const words[] = { "run",      "--capsule", l->capsule,  "--capsule-version",
                                  l->version, "--workdir", folder->path };
    for (size_t i = 0; i < ARRAY_LEN (words); i++)
        strv_push (argv, words[i]);
    strv_push (argv, "--workdir-identity");
    strv_printf (argv, "%llu:%llu", (unsigned long long)folder->dev,
                 (unsigned long long)folder->ino);
    static const char *const fixed[] = { "--json", "--readiness-tokens", "--no-env-file",
                                         "--spawn-grant-stdin" };
    for (size_t i = 0; i < ARRAY_LEN (fixed); i++)
        strv_push (argv, fixed[i]);
    if (l->inherited_deadline_ms) {
        strv_push (argv, "--inherited-deadline");
        strv_printf (argv, "%llu", (unsigned long long)l->inherited_deadline_ms);
    }
    if (snapshot_report) {
        strv_push (argv, "--parent-workdir-snapshot");
        strv_push (argv, snapshot_report);
    }
    strv_push (argv, "--contained-launch");
    return true;
}

/* --- hearing from it --- */

/* Its stdout closed before it was ready: the reason is its exit status and what it said last. */
static bool
explain_end (struct mur_child *c, uint64_t deadline_ms, struct mur_error **err)
{
    uint64_t now = clock_monotonic_ms ();
    fd_wait (c->pidfd, POLLIN, now < deadline_ms ? (int64_t)(deadline_ms - now) : 0);
    int status = -1;
    bool has_exited = mur_child_has_exited (c, &status);
    _cleanup_free_ char *how =
        has_exited ? child_status_text (status) : x_strdup ("closed its stdout without exiting");
    _cleanup_free_ char *tail = mur_child_stderr_tail (c);
    return mur_fail (err, E_IO_003, "the child in %s ended before it was ready: %s%s%s", c->workdir,
                     how, *tail ? "\n" : "", tail);
}

/* The approval, a newline, the end: both in one write, so that nothing of it is ever left over. */
static bool
hand_over (struct mur_child *c, int fd, const char *approval, struct mur_error **err)
{
    _cleanup_free_ char *line = x_asprintf ("%s\n", approval);
    size_t len = strlen (line);
    bool was_written = fd_write_all (fd, line, len);
    int fault = errno;
    secret_wipe (line, len);
    if (was_written)
        return true;
    /* Most likely it ended at once: then its own words say more. */
    if (fault == EPIPE && fd_wait (c->pidfd, POLLIN, PARTING_MS) == 1)
        return explain_end (c, 0, err);
    errno = fault;
    return mur_fail_errno (err, E_IO_003, "the child in %s did not take its approval", c->workdir);
}

static void
leave_output (void *ctx)
{
    output_leave (ctx);
}

static bool
await_readiness (struct mur_child *c, uint64_t timeout_ms, struct cancel *cancel,
                 struct mur_error **err)
{
    _cleanup_free_ char *line = NULL;
    uint64_t deadline_ms = clock_monotonic_ms () + timeout_ms;
    uint64_t listener = cancel_add (cancel, leave_output, c->output);
    enum output_line found = output_first_line (c->output, deadline_ms, &line);
    cancel_remove (cancel, listener);
    switch (found) {
    case OUTPUT_LINE:
        return readiness_read (c, line, err);
    case OUTPUT_ENDED:
        return explain_end (c, deadline_ms, err);
    case OUTPUT_LEFT:
        return mur_fail (err, E_IO_003, "the launch of the child in %s was cancelled", c->workdir);
    default:
        return mur_fail (err, E_IO_003, "the child in %s was not ready within %llu s", c->workdir,
                         (unsigned long long)(timeout_ms / 1000));
    }
}

/* --- the launch --- */

/* From the fork to readiness; on failure the caller's cleanup ends what was started. */
static bool
run_child (struct mur_child *c, const struct mur_child_launch *l, struct pipe *lifeline,
           struct cancel *cancel, struct mur_error **err)
{
    _cleanup_pipe_ struct pipe in = NO_PIPE, out = NO_PIPE, error = NO_PIPE;
    if (! pipe_open (&in, "a pipe for the child", err) ||
        ! pipe_open (&out, "a pipe for the child", err) ||
        ! pipe_open (&error, "a pipe for the child", err))
        return false;
    const struct child_stdio stdio = { in.read_end, out.write_end, error.write_end,
                                       lifeline->read_end };
    bool has_started = child_start (c, &stdio, err);
    close (steal_fd (&lifeline->read_end));
    close (steal_fd (&in.read_end));
    close (steal_fd (&out.write_end));
    close (steal_fd (&error.write_end));
    if (! has_started)
        return false;
    c->output = output_new (steal_fd (&out.read_end), steal_fd (&error.read_end), err);
    if (! c->output || ! hand_over (c, in.write_end, l->approval, err))
        return false;
    close (steal_fd (&in.write_end));
    return await_readiness (c, l->readiness_timeout_ms ? l->readiness_timeout_ms : READINESS_MS,
                            cancel, err);
}

static bool
copy_work_folder (const struct mur_child_launch *l, const struct work_folder *folder,
                  struct cancel *cancel, char **report, struct mur_error **err)
{
    if (! l->snapshot_source)
        return true;
    const struct snapshot what = { .source_path = l->snapshot_source,
                                   .target_path = folder->path,
                                   .target_fd = folder->fd,
                                   .limit_bytes = l->snapshot_limit_bytes,
                                   .capsule = l->capsule,
                                   .cancel = cancel };
    *report = snapshot_take (&what, err);
    return *report != NULL;
}

/* What the folder is to hold and what is executed in it. */
static bool
prepare (struct mur_child *c, const struct mur_child_launch *l, const struct work_folder *folder,
         int lifeline_fd, struct cancel *cancel, struct mur_error **err)
{
    const struct child_environment environment = { l->env_allow, l->roost_url, lifeline_fd,
                                                   l->spawner, l->formation_id };
    environment_build (&environment, &c->environment);
    c->workdir = x_strdup (folder->path);
    c->workdir_fd = fcntl (folder->fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return copy_work_folder (l, folder, cancel, &c->snapshot_report, err) &&
           build_argv (l, folder, c->snapshot_report, &c->argv, err);
}

struct mur_child *
child_launch (const struct mur_child_launch *l, struct cancel *cancel, struct mur_error **err)
{
    _cleanup_pipe_ struct pipe lifeline = NO_PIPE;
    struct work_folder folder;
    if (! pipe_open (&lifeline, "the child's lifeline", err) ||
        ! work_folder_make (l->parent_records_dir, l->capsule, &folder, err))
        return NULL;
    _cleanup_ (mur_child_freep) struct mur_child *c = child_new ();
    bool is_prepared = prepare (c, l, &folder, lifeline.read_end, cancel, err);
    c->lifeline_fd = steal_fd (&lifeline.write_end);
    if (is_prepared && run_child (c, l, &lifeline, cancel, err)) {
        work_folder_close (&folder);
        return steal_ptr (&c);
    }
    mur_child_end (c);
    work_folder_discard (&folder);
    return NULL;
}

struct mur_child *
mur_child_launch (const struct mur_child_launch *l, struct mur_error **err)
{
    return child_launch (l, NULL, err);
}
