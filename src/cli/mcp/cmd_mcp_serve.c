/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur mcp serve`: a launch whose session is served to the MCP client that started it.
 *
 * Always true: standard output holds the protocol alone. It is put away before anything of the
 * launch may write, and what is written there from then on goes to standard error.
 */
#include "base/alloc.h"
#include "base/diag.h"
#include "cli/line/parse.h"
#include "cli/mcp/commands.h"
#include "cli/run/cmd_run.h"
#include "session/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct streams {
    int in_fd, out_fd;
};

static bool
take_streams (struct streams *t, struct mur_error **err)
{
    t->in_fd = fcntl (STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    t->out_fd = fcntl (STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    int nothing = open ("/dev/null", O_RDONLY | O_CLOEXEC);
    if (t->in_fd < 0 || t->out_fd < 0 || nothing < 0 || dup2 (nothing, STDIN_FILENO) < 0 ||
        dup2 (STDERR_FILENO, STDOUT_FILENO) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot take over standard input and output");
    close (nothing);
    /* A client that stops reading holds up nobody but itself. */
    int flags = fcntl (t->out_fd, F_GETFL);
    if (! isatty (t->out_fd))
        (void)fcntl (t->out_fd, F_SETFL, flags | O_NONBLOCK);
    return true;
}

static bool
on_staged (void *ctx, struct session *s, struct mur_error **err)
{
    struct streams *t = ctx;
    return session_serve_stdio (s, t->in_fd, t->out_fd, err);
}

static void
on_ended (void *ctx, struct session *s)
{
    (void)ctx;
    (void)s;
}

/* A folder's manifest, a manifest, or a capsule by name and version. */
static void
push_capsule (struct strv *argv, const char *target)
{
    struct stat st;
    const char *at = strrchr (target, '@');
    if (stat (target, &st) == 0) {
        strv_push (argv, "--manifest");
        strv_printf (argv, S_ISDIR (st.st_mode) ? "%s/murmur.yaml" : "%s", target);
    } else if (at && strchr (target, '/')) {
        strv_push (argv, "--capsule");
        strv_take (argv, x_strndup (target, (size_t)(at - target)));
        strv_push (argv, "--capsule-version");
        strv_push (argv, at + 1);
    } else {
        strv_push (argv, "--manifest");
        strv_printf (argv, "%s/murmur.yaml", target);
    }
}

static void
push_options (struct strv *argv, const struct cli_args *args)
{
    static const char *const handed_on[] = { "--workdir", "--containment" };
    for (size_t i = 0; i < ARRAY_LEN (handed_on); i++)
        if (cli_has (args, handed_on[i])) {
            strv_push (argv, handed_on[i]);
            strv_push (argv, cli_value (args, handed_on[i]));
        }
    if (cli_has (args, "--no-env-file"))
        strv_push (argv, "--no-env-file");
}

int
cmd_mcp_serve (const struct cli_args *args, struct mur_error **err)
{
    static const char *const beginning[] = {
        "mur", "run", "--lifecycle-task-acceptance", "queue", "--lifecycle-after-task", "sleep"
    };
    _cleanup_strv_ struct strv argv = { 0 };
    _cleanup_ (cli_args_freep) struct cli_args *run_args = NULL;
    const char *target = cli_positional (args, "CAPSULE");
    struct streams streams;
    enum session_ending ending;
    if (! take_streams (&streams, err))
        return CLI_FAILED;
    for (size_t i = 0; i < ARRAY_LEN (beginning); i++)
        strv_push (&argv, beginning[i]);
    push_capsule (&argv, target ? target : ".");
    push_options (&argv, args);
    const struct run_steps steps = {
        .may_write_lock = true, .staged = on_staged, .ended = on_ended, .ctx = &streams
    };
    if (cli_parse (cli_table_of (args), (int)argv.len, argv.items, &run_args) != CLI_RUN)
        return CLI_USAGE;
    return run_with_steps (run_args, &steps, &ending, err) ? CLI_OK : CLI_FAILED;
}
