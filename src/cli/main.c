/* SPDX-License-Identifier: Apache-2.0
 *
 * The program `mur`: parse, run one command, print its error, exit (spec/cli.md 1); or the compiler
 * that a launch of its own asked for.
 *
 * Always true: 0 success, 1 any error[CODE], 2 a usage error; a standard output that took less than
 * it was given (other than a reader that went away) is an error of its own.
 */
#include "base/alloc.h"
#include "base/diag.h"
#include "cli/first_process.h"
#include "cli/line/parse.h"
#include "cli/table.h"
#include "engine/compiler_process.h"
#include "home/roost_socket.h"
#include "home/session_dirs.h"
#include "home/supervisor.h"
#include "sandbox/kernel/cgroup_sweep.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

/* Nobody else may read our environment or memory through /proc: tokens and keys live there. */
static void
harden_process (void)
{
    if (prctl (PR_SET_DUMPABLE, 0) < 0)
        diag_plain_warning (
            "other processes of this user may be able to read this one's environment: %s",
            strerror (errno));
}

/* Too small a stack is a crash in the middle of something. */
static bool
has_stack (struct mur_error **err)
{
    size_t allowed = limit_small_stack_bytes ();
    if (! allowed)
        return true;
    mur_fail (err, E_IO_003, "`ulimit -s` allows a stack of %zu KiB, and mur needs %zu at least",
              allowed >> 10, LIMIT_STACK_LEAST_BYTES >> 10);
    mur_hint (err,
              "say `ulimit -s 8192` first, in a new shell where this one's limit cannot be raised");
    return false;
}

static int
run_command (const struct cli_args *args)
{
    const struct cli_command *command = cli_command_of (args);
    _cleanup_error_ struct mur_error *err = NULL;
    int status = CLI_FAILED;
    if (command->run && has_stack (&err)) {
        cgroup_sweep (); /* what a killed launch left */
        home_sweep ();
        status = command->run (args, &err);
    } else if (! err) {
        mur_fail (&err, E_IO_003, "this version of mur does not have `mur %s` yet", command->name);
        mur_hint (&err, "`mur --help` lists what there is; `mur help %s` says what it is for",
                  command->name);
    }
    if (! err)
        return status;
    supervisor_tell (NULL, "error[%s]: %s", diag_code_name (err->code), err->message);
    diag_error (err);
    return status == CLI_INTERRUPTED || status == CLI_STOPPED ? status : CLI_FAILED;
}

/* A daemon on the user's own socket is asked without being named. Before there are threads. */
static void
find_roost (void)
{
    const char *given = getenv ("MURMUR_ROOST_URL");
    _cleanup_free_ char *path = given ? NULL : roost_socket_path ();
    if (! path || access (path, F_OK) != 0)
        return;
    _cleanup_free_ char *url = x_asprintf ("unix:%s", path);
    setenv ("MURMUR_ROOST_URL", url, 0);
}

int
main (int argc, char **argv)
{
    first_process_begin ();
    alloc_init ();
    diag_init ();
    harden_process ();
    if (argc == 2 && strcmp (argv[1], COMPILER_ARGUMENT) == 0)
        return compiler_process_serve ();
    find_roost ();
    _cleanup_ (cli_args_freep) struct cli_args *args = NULL;
    int status = CLI_OK;
    switch (cli_parse (&cli_table, argc, argv, &args)) {
    case CLI_RUN:
        status = run_command (args);
        break;
    case CLI_SHOWN:
        break;
    case CLI_USAGE_ERROR:
        status = CLI_USAGE;
        break;
    }
    _cleanup_error_ struct mur_error *err = NULL;
    if (! out_finish (&err)) {
        diag_error (err);
        return CLI_FAILED;
    }
    return status;
}
