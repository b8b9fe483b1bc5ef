/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_options.h"

#include "base/alloc.h"
#include "base/json.h"
#include "cli/line/args.h"

/* Everything a roster launch does not take. */
#define NOT_WITH_ROSTER                                                                            \
    "--manifest --capsule --capsule-version --system-prompt --workdir --bind --context "           \
    "--forget-session --resume --resume-mode --lifecycle-task-acceptance --lifecycle-after-task "  \
    "--explain-scope --spawn-grant-stdin --readiness-tokens --inherited-deadline "                 \
    "--workdir-identity --capsule-sha256 --store-root --print --quiet"

const struct cli_option cli_run_options[] = {
    { .name = "--manifest",
      .kind = CLI_VALUE,
      .value_name = "<PATH>",
      .fallback = "./murmur.yaml",
      .conflicts = "--capsule",
      .help = "the capsule's manifest" },
    { .name = "--capsule",
      .kind = CLI_VALUE,
      .value_name = "<NAME>",
      .requires = "--capsule-version",
      .help = "run an installed capsule by its full name instead of a manifest" },
    { .name = "--capsule-version",
      .kind = CLI_VALUE,
      .value_name = "<VERSION>",
      .requires = "--capsule",
      .help = "its version" },
    { .name = "--roster",
      .kind = CLI_VALUE_OR_NONE,
      .value_name = "[<PATH>]",
      .none_value = "roster.yaml",
      .conflicts = NOT_WITH_ROSTER,
      .help = "launch every member of a roster (a project folder or a roster.yaml)" },
    { .name = "--task",
      .kind = CLI_VALUE,
      .value_name = "<TEXT|FILE|->",
      .help = "the first task: the content of an existing file, what standard input holds (-), "
              "else the text itself" },
    { .name = "--system-prompt",
      .kind = CLI_VALUE,
      .value_name = "<TEXT>",
      .help = "use this system prompt instead of the manifest's; empty for none" },
    { .name = "--deadline",
      .kind = CLI_VALUE,
      .value_name = "<SECS>",
      .is_number = true,
      .min = 1,
      .max = 315360000,
      .help = "end the session this many seconds after its start" },
    { .name = "--workdir",
      .kind = CLI_VALUE,
      .value_name = "<WORKDIR>",
      .help = "work folder (default: a new workdir/<session> beside the manifest)" },
    { .name = "--bind",
      .kind = CLI_VALUE,
      .value_name = "<ADDR>",
      .fallback = "127.0.0.1",
      .help = "address the capsule's door listens on" },
    { .name = "--context",
      .kind = CLI_VALUE,
      .value_name = "<ID>",
      .help = "continue or start this conversation context" },
    { .name = "--forget-session",
      .requires = "--context",
      .conflicts = "--resume",
      .help = "let a harness start its own session for the context anew" },
    { .name = "--resume",
      .kind = CLI_VALUE_OR_NONE,
      .value_name = "[<SESSION>]",
      .none_value = "@1",
      .help = "continue the conversation of a recorded session (bare: the newest)" },
    { .name = "--resume-mode",
      .kind = CLI_VALUE,
      .value_name = "<MODE>",
      .choices = "full|compact",
      .requires = "--resume",
      .help = "take the conversation over in full, or compacted" },
    { .name = "--lifecycle-task-acceptance",
      .kind = CLI_VALUE,
      .value_name = "<none|single|queue>",
      .help = "which tasks the door takes, instead of the manifest's choice" },
    { .name = "--lifecycle-after-task",
      .kind = CLI_VALUE,
      .value_name = "<exit|sleep>",
      .help = "what follows a task, instead of the manifest's choice" },
    { .name = "--lifecycle-conversation",
      .kind = CLI_VALUE,
      .value_name = "<stateless|threaded>",
      .is_hidden = true,
      .help = "whether a task sees what came before in its context" },
    { .name = "--containment",
      .kind = CLI_VALUE,
      .value_name = "<advisory|scoped|sealed>",
      .help = "the least containment this launch accepts; never lowers the manifest's or the "
              "configuration's" },
    { .name = "--unconfined",
      .help = "where this host makes no namespaces, run commands without them; the class is "
              "advisory then, and no child inherits this" },
    { .name = "--no-env-file", .help = "do not read .env" },
    { .name = "--explain-scope",
      .help = "print what the capsule would be granted and stop; nothing is created or started" },
    { .name = "--json",
      .help = "print one line of JSON once the capsule is reachable, and no other; with --print "
              "one at the end" },
    { .name = "--print",
      .letter = 'p',
      .help = "print the answer alone on standard output and everything else on standard error; "
              "with --json one object of answer, status and tokens" },
    { .name = "--quiet",
      .letter = 'q',
      .conflicts = "--verbose",
      .help = "say nothing of the session: the answer (with --print, or at a terminal) and errors "
              "only" },
    { .name = "--verbose",
      .letter = 'v',
      .help = "also print folders, manifest, driver and skills" },
    { .name = "--spawn-grant-stdin", .help = "read a spawn grant from standard input, one line" },
    { .name = "--capsule-sha256",
      .kind = CLI_VALUE,
      .value_name = "<HEX>",
      .requires = "--capsule --capsule-version",
      .is_hidden = true,
      .help = "the digest the capsule was admitted with" },
    { .name = "--store-root",
      .kind = CLI_VALUE,
      .value_name = "<DIR>",
      .requires = "--capsule --capsule-version --workdir",
      .is_hidden = true,
      .help = "the project whose store holds the capsule" },
    { .name = "--inherited-deadline",
      .kind = CLI_VALUE,
      .value_name = "<MS>",
      .is_number = true,
      .is_hidden = true,
      .help = "the launcher's own deadline, Unix milliseconds" },
    { .name = "--readiness-tokens",
      .requires = "--json",
      .is_hidden = true,
      .help = "add the door's tokens to the line of --json" },
    { .name = "--result-line",
      .requires = "--json",
      .is_hidden = true,
      .help = "end with a line that says how it ended" },
    { .name = "--manifest-fd",
      .kind = CLI_VALUE,
      .value_name = "<FD>",
      .is_number = true,
      .requires = "--manifest",
      .is_hidden = true,
      .help = "the descriptor that has the manifest's text; --manifest says where it would be" },
    { .name = "--workdir-identity",
      .kind = CLI_VALUE,
      .value_name = "<DEV:INO>",
      .requires = "--workdir",
      .is_hidden = true,
      .help = "what --workdir must be" },
    { .name = "--parent-workdir-snapshot",
      .kind = CLI_VALUE,
      .value_name = "<JSON>",
      .is_hidden = true,
      .help = "what the delegating session's work folder held" },
    { .name = "--contained-launch", .is_hidden = true, .help = "this launch is a delegated child" },
    { 0 },
};

char *
cli_run_check (const struct cli_args *args)
{
    static const char *const counts[] = { "files", "dirs",         "symlinks", "repointed_symlinks",
                                          "bytes", "skipped_count" };
    const char *text = cli_value (args, "--parent-workdir-snapshot");
    if (! text)
        return NULL;
    _cleanup_json_ json_t *report = json_loads (text, 0, NULL);
    bool is_report =
        json_get_string (report, "source") && json_is_array (json_object_get (report, "skipped"));
    for (size_t i = 0; i < ARRAY_LEN (counts); i++)
        is_report = is_report && json_is_integer (json_object_get (report, counts[i]));
    return is_report ? NULL : x_strdup ("--parent-workdir-snapshot is no report of a snapshot");
}
