/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "cli/chat/chat_options.h"
#include "cli/chat/commands.h"
#include "cli/deploy/commands.h"
#include "cli/deploy/deploy_options.h"
#include "cli/groups.h"
#include "cli/habits.h"
#include "cli/health/commands.h"
#include "cli/line/args.h"
#include "cli/line/fleet_options.h"
#include "cli/line/session_words.h"
#include "cli/mcp/commands.h"
#include "cli/mcp/mcp_options.h"
#include "cli/packages/commands.h"
#include "cli/packages/new_options.h"
#include "cli/packages/package_options.h"
#include "cli/records/commands.h"
#include "cli/records/trace_options.h"
#include "cli/replay/commands.h"
#include "cli/replay/replay_options.h"
#include "cli/run/commands.h"
#include "cli/run/run_options.h"
#include "cli/running/commands.h"
#include "cli/top/commands.h"
#include "cli/ui/commands.h"
#include "cli/ui/ui_options.h"

#define HELP_WORKDIR "work folder whose sessions are meant (default: ./workdir)"
#define OPT_WORKDIR                                                                                \
    {                                                                                              \
        .name = "--workdir", .kind = CLI_VALUE, .value_name = "<WORKDIR>", .help = HELP_WORKDIR    \
    }
#define OPT_JSON(text)                                                                             \
    {                                                                                              \
        .name = "--json", .help = text                                                             \
    }
#define OPT_GLOBAL(text)                                                                           \
    {                                                                                              \
        .name = "--global", .letter = 'g', .help = text                                            \
    }
#define OPT_RECORD                                                                                 \
    {                                                                                              \
        .name = "--record", .kind = CLI_VALUE, .value_name = "<NAME>",                             \
        .help = "the record store that holds it, when several do"                                  \
    }
#define NONE                                                                                       \
    {                                                                                              \
        0                                                                                          \
    }
#define HELP_SESSION "@N (newest first), a full session id, or its last characters (default: @1)"

static const struct cli_option top_options[] = {
    { .name = "--once", .help = "print the rows once, as without a terminal" }, NONE
};

static const struct cli_option ps_options[] = {
    { .name = "--verbose",
      .conflicts = "--json",
      .help = "one line for every record removed, and who started a delegated session" },
    OPT_JSON ("the same as JSON; removes and creates nothing"),
    CLI_FLEET_OPTIONS,
    NONE
};

static const struct cli_option watch_options[] = {
    { .name = "--url",
      .kind = CLI_VALUE,
      .value_name = "<HOST:PORT>",
      .conflicts = "SESSION",
      .help = "a door by address; its token comes from MURMUR_DOOR_TOKEN" },
    { .name = "--wait",
      .conflicts = "--url",
      .help = "when no such session runs yet, wait until it does" },
    CLI_FLEET_OPTIONS,
    NONE
};

#define OPT_DETACH(text)                                                                           \
    {                                                                                              \
        .name = "--detach", .help = text                                                           \
    }
#define OPT_URL                                                                                    \
    {                                                                                              \
        .name = "--url", .kind = CLI_VALUE, .value_name = "<HOST:PORT>", .conflicts = "TEXT",      \
        .help = "a door by address instead of a session; its token comes from MURMUR_DOOR_TOKEN"   \
    }

static const struct cli_option send_options[] = {
    { .name = "--context",
      .kind = CLI_VALUE,
      .value_name = "<ID>",
      .help = "go on with this conversation context" },
    OPT_DETACH ("print the new task's id and do not wait for its end"),
    OPT_URL,
    CLI_FLEET_OPTIONS,
    NONE
};

static const struct cli_option answer_options[] = {
    { .name = "--task",
      .kind = CLI_VALUE,
      .value_name = "<ID>",
      .help = "the task that asks (default: the only one)" },
    OPT_DETACH ("do not wait for the task's end"),
    OPT_URL,
    CLI_FLEET_OPTIONS,
    NONE
};

static const struct cli_option cancel_options[] = {
    { .name = "--url",
      .kind = CLI_VALUE,
      .value_name = "<HOST:PORT>",
      .help = "a door by address instead of a session; its token comes from MURMUR_DOOR_TOKEN" },
    CLI_FLEET_OPTIONS,
    NONE
};

static const struct cli_option stop_options[] = {
    { .name = "--timeout",
      .kind = CLI_VALUE,
      .value_name = "<SECONDS>",
      .fallback = "10",
      .is_number = true,
      .help = "how long it may take to end by itself; 0 kills at once" },
    CLI_FLEET_OPTIONS,
    NONE
};

static const struct cli_option token_options[] = { { .name = "--credential",
                                                     .kind = CLI_VALUE,
                                                     .value_name = "<NAME>",
                                                     .fallback = "operator",
                                                     .help = "which of the door's credentials" },
                                                   NONE };

static const struct cli_option json_options[] = { OPT_JSON ("the answer as JSON"), NONE };
static const struct cli_option record_options[] = { OPT_RECORD, NONE };

static const struct cli_option conversation_ls_options[] = {
    { .name = "--record",
      .kind = CLI_VALUE,
      .value_name = "<NAME>",
      .help = "only this record store" },
    { .name = "--message",
      .kind = CLI_VALUE,
      .value_name = "<MSG-ID>",
      .help = "say where one message is, or was cut" },
    OPT_JSON ("the answer as JSON"),
    NONE
};

static const struct cli_option conversation_show_options[] = {
    OPT_RECORD,
    { .name = "--full", .help = "all lines of each message, not the first alone" },
    OPT_JSON ("the record as JSON"),
    NONE
};

static const struct cli_option conversation_truncate_options[] = {
    { .name = "--keep",
      .kind = CLI_VALUE,
      .value_name = "<N>",
      .is_number = true,
      .is_required = true,
      .help = "how many of the newest messages stay" },
    OPT_RECORD,
    NONE
};

static const struct cli_option workdir_json_options[] = { OPT_WORKDIR,
                                                          OPT_JSON ("the answer as JSON"), NONE };

static const struct cli_option eval_diff_options[] = {
    OPT_WORKDIR,
    { .name = "--run",
      .kind = CLI_VALUE_OR_NONE,
      .value_name = "[<RUN>]",
      .none_value = "@1",
      .conflicts = "A",
      .help = "compare the arms of one `mur eval run` instead" },
    OPT_JSON ("with --run: the answer as JSON"),
    NONE
};

static const struct cli_option publish_options[] = {
    { .name = "--platform",
      .kind = CLI_VALUE,
      .value_name = "<PLATFORM>",
      .help = "<os>-<arch> of a native payload (default: this host's)" },
    NONE
};

static const struct cli_option sign_options[] = { { .name = "--key",
                                                    .kind = CLI_VALUE,
                                                    .value_name = "<NAME>",
                                                    .is_required = true,
                                                    .help =
                                                        "the key, as `mur trust keygen` made it" },
                                                  NONE };

static const struct cli_option precompile_options[] = {
    { .name = "--workdir",
      .kind = CLI_VALUE,
      .value_name = "<WORKDIR>",
      .help = "the work folder of a later run: forms it could write to are not kept" },
    OPT_JSON ("the report as one line of JSON"),
    NONE
};

static const struct cli_option install_options[] = {
    OPT_GLOBAL ("into the global store instead of the project's"),
    { .name = "--all-platforms",
      .help = "native payloads of every platform, into the global store" },
    { .name = "--no-precompile", .help = "do not compile components now" },
    { .name = "--update",
      .conflicts = "--global --all-platforms",
      .help =
          "pin what is found now in place of what murmur.lock pins: of this artifact, else of all "
          "that come with mur" },
    { .name = "--resolve",
      .conflicts = "--global --all-platforms ARTIFACT",
      .help = "first put together the two sides of a murmur.lock with conflict marks" },
    NONE
};

static const struct cli_option list_options[] = {
    OPT_GLOBAL ("the global store"),
    { .name = "--all", .conflicts = "--global", .help = "every store" },
    { .name = "--contract",
      .kind = CLI_VALUE,
      .value_name = "<PREFIX>",
      .help = "only artifacts with an interface beginning so; shows the interfaces" },
    NONE
};

static const struct cli_option search_options[] = {
    { .name = "--index",
      .kind = CLI_VALUE,
      .value_name = "<PATH|URL|local>",
      .help = "the index to search (default: registry.index_url, else the published one)" },
    { .name = "--limit",
      .kind = CLI_VALUE,
      .value_name = "<LIMIT>",
      .fallback = "10",
      .is_number = true,
      .help = "at most this many rows" },
    NONE
};

static const struct cli_option doctor_options[] = {
    { .name = "--verbose",
      .help = "on a terminal too: all that was looked at, not only what is wrong" },
    { .name = "--bind",
      .kind = CLI_VALUE,
      .value_name = "<ADDR>",
      .fallback = "127.0.0.1",
      .help = "judge the door as `mur run --bind` would open it" },
    { .name = "--learn",
      .kind = CLI_VALUE,
      .value_name = "<PROGRAM>",
      .help =
          "run a program once on this host, with the arguments after --, and print the block of a "
          "manifest that lets it run inside" },
    NONE
};

static const struct cli_option config_set_options[] = {
    OPT_GLOBAL ("write ~/.murmur/config.yaml instead of the project's"), NONE
};

static const struct cli_option no_options[] = { NONE };

#define POS(...)                                                                                   \
    (const struct cli_positional[])                                                                \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }
#define NO_POS                                                                                     \
    (const struct cli_positional[])                                                                \
    {                                                                                              \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }
#define SESSION_POS POS ({ "SESSION", false, false, HELP_SESSION })
#define TEXT_POS                                                                                   \
    POS ({ "SESSION", false, false, HELP_SESSION },                                                \
         { "TEXT", false, false, "the text; - for what standard input holds" })
#define CONTEXT_POS POS ({ "CONTEXT_ID", true, false, "the conversation's context id" })

static char *
check_doctor (const struct cli_args *args)
{
    size_t count;
    (void)cli_positionals (args, "ARGS", &count);
    return count && ! cli_has (args, "--learn") ? x_strdup ("arguments go with --learn <PROGRAM>")
                                                : NULL;
}

static const struct cli_command commands[] = {
    { "run", "Launch a capsule, or every member of a roster",
      "Reads the manifest, checks what it asks for against this machine, starts the capsule and "
      "stays until it ends. "
      "What it may do is what the manifest grants; --explain-scope prints that and starts nothing. "
      "Records of the "
      "session are kept below ~/.murmur/records; `mur trace show` reads them.",
      "mur run --task \"summarise notes.txt\" --workdir .\n"
      "mur run --explain-scope\n"
      "mur run --json --manifest bots/triage/murmur.yaml",
      NO_POS, cli_run_options, cmd_run, cli_run_check, NULL, "--task",
      .exits = "1 when the task did not end well; with --roster the entry's status, or 128 and the "
               "signal that ended it." },
    { "chat", "Talk to a capsule",
      "Launches the capsule of a folder or manifest and ends it with the conversation, or joins a "
      "running session. /help lists what else a line may say; Ctrl-C cancels the turn, at the prompt "
      "it leaves. In a pipe each line of standard input is one message and standard output holds "
      "the answers alone. Where there is no capsule, a bundled one answers offline.",
      "mur chat\nmur chat bots/triage\nmur chat @1\necho \"What is here?\" | mur chat",
      POS ({ "TARGET", false, false,
             "capsule folder or manifest, or a running session: @N, its id or the id's last "
             "characters (default: .)" }),
      cli_chat_options, cmd_chat, .exits = "In a pipe 1 when one of the answers failed." },
    { "ps", "List running capsules",
      "Asks each recorded door whether it still answers. Records whose process is gone are "
      "removed, unless --json. DETACHED: yes when it goes on after whoever started it has ended; "
      "UPTIME: hours, minutes, seconds.",
      NULL, NO_POS, ps_options, cmd_ps },
    { "top", "Watch all running capsules",
      "One row a session of this host, those that ask something first: what it does, what it has "
      "used. Keys: j and k or the arrows choose, t shows its trace, w watches it, a answers what it "
      "asks, s stops it, q leaves. Without a terminal the rows are printed once, tabs between the "
      "cells: session, state, capsule, uptime, used.",
      NULL, NO_POS, top_options, cmd_top },
    { "ui", "Show all sessions of this host on a page",
      "Serves a page to a browser on this host, and prints its address, whose last part is the key "
      "to it. Sessions that run and those on record, what they do, ask, were refused and have used; "
      "questions are answered there, tasks sent, cancelled and stopped, runs searched, compared and "
      "replayed. Ctrl-C ends the page, and no session.",
      "mur ui --open\nmur ui --read-only --port 8700", NO_POS, cli_ui_options, cmd_ui },
    { "watch", "Follow what a running capsule does",
      "Shows turns, tool results and answers as they come, from the oldest event the capsule still "
      "holds. Ctrl-C ends the watch, not the capsule. At a terminal it is a live view, with "
      "thinking and tokens; a pipe gets plain lines.",
      "mur watch\nmur watch --url localhost:40123", SESSION_POS, watch_options, cmd_watch,
      .exits = "0 also when the session ended by itself, 1 when the connection to it was lost." },
    { "send", "Send a task to a running capsule",
      "Follows the task to its end: a live view at a terminal, the answer alone in a pipe. Without "
      "a session the newest is meant. A task that asks something ends the command with its "
      "question; `mur answer` goes on.",
      "mur send \"And now?\"\nmur send @2 \"How is it?\"\ngit diff | mur send @1 -", TEXT_POS,
      send_options, cmd_send, cli_check_text,
      .exits = "1 when the task failed, was cancelled or asks something." },
    { "answer", "Answer a task that asks", "Follows the task as `mur send` does.",
      "mur answer \"yes\"\nmur answer @2 \"the second one\"", TEXT_POS, answer_options, cmd_answer,
      cli_check_text, .exits = "1 when the task failed, was cancelled or asks again." },
    { "cancel", "Cancel one task of a running capsule", NULL, "mur cancel @1 tsk_0190f3c2",
      POS ({ "SESSION", false, false,
             "@N, a full session id, or its last characters (with --url: the task)" },
           { "TASK_ID", false, false, "the task" }),
      cancel_options, cmd_cancel, cli_check_cancel,
      .exits = "0 for every task the capsule holds, also one that had ended." },
    { "stop", "End a running capsule, or a whole formation",
      "Asks the capsule to end its tasks, then signals it, and says what was left running.",
      "mur stop @1 --timeout 30",
      POS (
          { "SESSION", true, false, "@N, a session id or its last characters, or a formation id" }),
      stop_options, cmd_stop },
    { "token", "Print a running capsule's door token", NULL,
      "curl -H \"Authorization: Bearer $(mur token)\" ...", SESSION_POS, token_options, cmd_token },
    { "control show", "Show the settings and secrets a running capsule lets you change", NULL, NULL,
      SESSION_POS, json_options, cmd_control_show },
    { "control set", "Change one setting", NULL, "mur control set inference.max_tokens 2048",
      POS ({ "SETTING", true, false, "the setting's name" },
           { "VALUE", true, false, "JSON, else taken as text" },
           { "SESSION", false, false, HELP_SESSION }),
      no_options, cmd_control_set },
    { "control secret", "Give a secret its value, read from standard input", NULL,
      "mur control secret API_KEY < key.txt",
      POS ({ "NAME", true, false, "the secret's name" }, { "SESSION", false, false, HELP_SESSION }),
      no_options, cmd_control_secret },
    { "control forget", "Take a secret's value away", NULL, NULL,
      POS ({ "NAME", true, false, "the secret's name" }, { "SESSION", false, false, HELP_SESSION }),
      no_options, cmd_control_forget },

    { "deploy render", "Print what a capsule is on another machine",
      "Pure: the same input gives the same bytes, and no key is in them.",
      "mur deploy render --to systemd\nmur deploy render --roster --to kubernetes --image mur:1 --task Go",
      NO_POS, cli_deploy_render_options, cmd_deploy_render },
    { "deploy check", "Have an API server judge that without taking it",
      "By kubectl, as you are logged in.", NULL, NO_POS, cli_deploy_check_options,
      cmd_deploy_check },
    { "deploy apply", "Hand it to an API server",
      "By kubectl, as you are logged in; all of it or, when the API server would refuse a part, "
      "nothing.",
      NULL, NO_POS, cli_deploy_apply_options, cmd_deploy_apply },
    { "deploy profile", "Print the filter of system calls for nodes that run capsules in pods",
      "With it in /var/lib/kubelet/seccomp of each node and --seccomp-profile, a pod that is otherwise "
      "as restricted as any keeps sealed: it may make the namespaces and mounts of murmur's walls.",
      "mur deploy profile >murmur.json\nmur deploy profile --operator --namespace agents", NO_POS,
      cli_deploy_profile_options, cmd_deploy_profile },
    { "deploy referee", "Print the referee of a fleet as objects of a cluster",
      "mur-roost with its account and rights, its address, and the account of the sessions it knows. "
      "Its keys and its certificate are Secrets you make.",
      "mur deploy referee --namespace agents --image registry.example.com/agents:1 local/lead | kubectl apply -f -",
      POS ({ "CAPSULE", true, true, "a capsule, by full name, whose sessions may start others" }),
      cli_deploy_referee_options, cmd_deploy_referee },

    { "image build", "Build an image of a capsule, in a folder",
      "Writes an OCI image layout of the capsule, its lock and its packages: the same packages give "
      "the same bytes. It is a pod's volume, or with --base what a container runs.",
      "mur image build -o image\nmur image build writer -o image --base base local/helper@1.0.0\n"
      "mur image build team -o image --roster",
      POS ({ "DIR", false, false, "folder of the capsule's murmur.yaml (default: here)" },
           { "CAPSULE", false, true, "capsules it delegates to: <scope>/<name>@<version>" }),
      cli_image_build_options, cmd_image_build },
    { "image push", "Carry a layout's image to a registry", "The tag comes last.",
      "mur image push image oci://registry.example.com/agents/writer:1.2.0",
      POS ({ "DIR", true, false, "folder of the OCI image layout" },
           { "TO", true, false, "oci://<host>/<repository>:<tag>" }),
      no_options, cmd_image_push },
    { "image pull", "Carry an image of a registry to a layout",
      "What came is compared with its digests.",
      "mur image pull oci://registry.example.com/base/mur:1 -o base",
      POS ({ "FROM", true, false, "oci://<host>/<repository>[:<tag>][@<digest>]" }),
      cli_image_pull_options, cmd_image_pull },

    { "replay", "Run a recorded session again and say where it differs",
      "The session runs inside the same walls; the model's answers and what came of tools are served "
      "by their place in the record, hooks run again. No network is used, no key is read, and nothing "
      "but the replay's own records changes. The first difference is told with its turn, part, byte "
      "and cause. Needs trace.capture: content.",
      "mur replay\nmur replay @2 --json\nmur replay --with-system-prompt new.txt", SESSION_POS,
      cli_replay_options, cmd_replay, .exits = "1 when something differs." },
    { "trace show", "Show what a recorded session did",
      "A report of one session: its grants, turns, tokens, calls and how it ended. With --body, "
      "the exact bytes of one "
      "captured request or response (trace.capture: content).",
      "mur trace show\nmur trace show @2\nmur trace show --body system --turn 0", SESSION_POS,
      cli_trace_show_options, cmd_trace_show },
    { "trace steps", "Show a session step by step, as a tree", NULL, NULL, SESSION_POS,
      cli_trace_steps_options, cmd_trace_steps },
    { "trace diff", "Compare two recorded sessions",
      "Without arguments the two newest: @2 with @1.",
      "mur trace diff\nmur trace diff @5 @1 --steps",
      POS ({ "BEFORE", false, false, "the older session" },
           { "AFTER", false, false, "the newer session" }),
      cli_trace_diff_options, cmd_trace_diff },
    { "trace report", "Summarise several recorded sessions", NULL, "mur trace report --last 20",
      POS ({ "SESSIONS", false, true, "sessions to include (default: all)" }),
      cli_trace_report_options, cmd_trace_report },
    { "trace export", "Send a recorded session as OpenTelemetry spans",
      "By the GenAI conventions, the same bytes each time. OTEL_EXPORTER_OTLP_HEADERS and "
      "OTEL_EXPORTER_OTLP_PROTOCOL are heeded.",
      "mur trace export --otlp spans.json\nmur trace export @2 --otlp http://127.0.0.1:4318",
      SESSION_POS, cli_trace_export_options, cmd_trace_export },
    { "trace pack", "Pack a recorded session as one file",
      "The trace, its bodies and the artifacts that ran, for `mur replay FILE` on another machine.",
      "mur trace pack\nmur trace pack @2 -o failed.murtrace --redact", SESSION_POS,
      cli_trace_pack_options, cmd_trace_pack },
    { "trace list", "List recorded sessions", NULL, NULL, NO_POS, workdir_json_options,
      cmd_trace_list },
    { "trace fetch", "Bring a session's records home from a records store",
      "Compared with what was shipped; of a session that was killed, up to its last closed part.",
      "mur trace fetch https://records.example.com/team ses_...",
      POS ({ "STORE", true, false, "the address given as --records-store" },
           { "SESSION", true, false, "the session's full id" }),
      cli_trace_fetch_options, cmd_trace_fetch },
    { "trace rm", "Remove a recorded session", "Refuses while the session's process lives.",
      "mur trace rm @3",
      POS ({ "SESSION", true, false, "@N, a full session id, or its last characters" }),
      workdir_json_options, cmd_trace_rm },

    { "eval show", "Show a session's scores", NULL, NULL, SESSION_POS, workdir_json_options,
      cmd_eval_show },
    { "eval diff", "Compare two sessions' scores, or the arms of one run", NULL,
      "mur eval diff @2 @1\nmur eval diff --run",
      POS ({ "A", false, false, "the first session" }, { "B", false, false, "the second session" }),
      eval_diff_options, cmd_eval_diff },
    { "eval run", "Run a data set of cases against a capsule", NULL,
      "mur eval run --repeat 3 --variant ../other",
      POS ({ "CAPSULE", false, false, "capsule folder or manifest (default: .)" }),
      cli_eval_run_options, cmd_eval_run },

    { "conversation ls", "List conversation records", NULL, NULL, NO_POS, conversation_ls_options,
      cmd_conversation_ls },
    { "conversation show", "Show one conversation", NULL, NULL, CONTEXT_POS,
      conversation_show_options, cmd_conversation_show },
    { "conversation rm", "Remove one conversation", NULL, NULL, CONTEXT_POS, record_options,
      cmd_conversation_rm },
    { "conversation truncate", "Drop all but the newest messages of one conversation", NULL,
      "mur conversation truncate ctx_0190f3c2 --keep 20", CONTEXT_POS,
      conversation_truncate_options, cmd_conversation_truncate },

    { "mcp serve", "Serve a capsule to one MCP client on standard input and output",
      "What the manifest names under exports.mcp is served, and nothing else: tools, the capsule "
      "itself as one tool, skills, files. Every call passes the gates, the policy and the trace a "
      "model's call passes. Standard output holds the protocol alone; it ends when the client "
      "does.",
      "mur mcp serve\nmur mcp serve ./reviewer --workdir .\nmur mcp serve acme/reviewer@1.2.0",
      POS ({ "CAPSULE", false, false,
             "capsule folder or manifest, or scope/name@version (default: .)" }),
      cli_mcp_serve_options, cmd_mcp_serve },
    { "mcp add", "Pack a server of tools, looked at once, for capsules to use",
      "SOURCE is npm:NAME@VERSION, pypi:NAME@VERSION, path:FOLDER, or the address of a server far "
      "away, of which the address and the texts are packed. Everything it needs is fetched by "
      "exact hashes without install scripts; it is started once in walls of its own, without "
      "network, and the text of each of its tools is shown. What is packed is local/mcp-NAME in the "
      "global store; a capsule uses it with runtime: mcp.",
      "mur mcp add npm:@modelcontextprotocol/server-filesystem@2026.8.31 -- .\n"
      "mur mcp add pypi:mcp-server-time@2026.10.19 -- --local-timezone UTC\n"
      "mur mcp add path:./my-server\n"
      "mur mcp add https://mcp.example.com/mcp --key-env EXAMPLE_TOKEN",
      POS ({ "SOURCE", true, false,
             "npm:NAME@VERSION, pypi:NAME@VERSION, path:FOLDER or https://HOST/PATH" },
           { "ARGS", false, true, "what stands after its command, behind --" }),
      cli_mcp_add_options, cmd_mcp_add },
    { "mcp list", "List the servers of tools of this folder, and those that were added",
      "What is declared here comes first: whether it is in a store, what runs it, how many of its "
      "tools are offered, whether murmur.lock pins that very package, and whether somebody is logged "
      "in where it is far away. Nothing is started.",
      "mur mcp list\nmur mcp list --json", NO_POS, cli_mcp_list_options, cmd_mcp_list },
    { "mcp show", "Show a server that was added, as it was reviewed", NULL,
      "mur mcp show filesystem",
      POS ({ "SERVER", true, false, "its name, with @version or the newest" }),
      cli_mcp_show_options, cmd_mcp_show },
    { "mcp diff", "Compare what a server says of its tools with what was reviewed", NULL,
      "mur mcp diff filesystem",
      POS ({ "SERVER", true, false, "its name, with @version or the newest" }),
      cli_mcp_diff_options, cmd_mcp_diff, .exits = "1 when something differs." },
    { "mcp update", "Review another version of a server and pack it",
      "Shows what is different and asks.", "mur mcp update filesystem@2026.9.14",
      POS ({ "SERVER", true, false, "its name, with the new version" }), cli_mcp_update_options,
      cmd_mcp_update },
    { "mcp call", "Call a tool of a server that was added, outside of any capsule",
      "The server is started in walls of its own and ended afterwards; what it answers is printed as "
      "JSON. Where approvals of this folder's murmur.yaml cover the tool, you are asked first.",
      "mur mcp call filesystem list_directory '{\"path\":\".\"}' --scope .",
      POS ({ "SERVER", true, false, "its name, with @version or the newest" },
           { "TOOL", false, false,
             "the tool, as the server calls it; without one you are told which there are" },
           { "INPUT", false, false, "its arguments as JSON, instead of --input" }),
      cli_mcp_call_options, cmd_mcp_call },
    { "mcp login", "Log in to a server far away, in your browser",
      "Who gives tokens for it is asked of the server; murmur registers itself there where that is "
      "offered. The login is kept in ~/.murmur/oauth, for you alone, and used wherever its entry has "
      "no key.",
      "mur mcp login docs\nmur mcp login https://mcp.example.com/mcp --no-browser",
      POS ({ "SERVER", true, false, "the name of a server that was added, or its address" }),
      cli_mcp_login_options, cmd_mcp_login },
    { "mcp logout", "Give a login back and forget it", NULL, "mur mcp logout docs",
      POS ({ "SERVER", true, false, "the name of a server that was added, or its address" }),
      cli_mcp_logout_options, cmd_mcp_logout },
    { "mcp connect", "Let an MCP client start `mur mcp serve` for a capsule",
      "Prints what the client's own file must hold, for claude-code, codex, vscode, cursor or "
      "claude-desktop; --write puts it there and keeps what else the file holds.",
      "mur mcp connect claude-code\nmur mcp connect codex ./reviewer --write",
      POS ({ "CLIENT", true, false, "claude-code, codex, vscode, cursor or claude-desktop" },
           { "CAPSULE", false, false,
             "capsule folder or manifest, or scope/name@version (default: .)" }),
      cli_mcp_connect_options, cmd_mcp_connect },

    { "new", "Create a capsule from a template",
      "Templates: `script` (a component that runs once), `agent` (a model with a task), "
      "`agent-tool` (an agent with a tool of its own, in C), `coder` (an agent that works on code with git and make, and runs what it "
      "made inside the walls), `harness` (claude-code or codex in the walls). Each builds and runs as it "
      "comes. `tool`, `hook` and `driver` are one component alone, in the language of --language. `mcp-server` is a server of tools of one file. --roster creates a formation of two "
      "capsules.",
      "mur new agent hello\nmur new hook watch --language python\nmur new harness claude-code coder\nmur new --roster team",
      POS ({ "TEMPLATE", false, false,
             "script, agent, agent-tool, tool, hook, driver, coder, mcp-server or harness" },
           { "NAME", false, false, "the new folder; of harness claude-code or codex" },
           { "FOLDER", false, false,
             "of harness alone: the new folder (default: the program's name)" }),
      cli_new_options, cmd_new, cli_new_check,
      "mur new reads the artifact index of --index, else of registry.index_url in the "
      "configuration" },
    { "build", "Pack a capsule, tool, driver, hook or skill",
      "Packs murmur.yaml and exactly the files it lists under requires_files into "
      "<name>-<version>.mur.zip; the manifest's `build:` command, if it has one, runs first.",
      "mur build\nmur build --skill ./notes-skill",
      POS ({ "SOURCE", false, false, "folder to pack (default: .)" }), cli_build_options,
      cmd_build },
    { "publish", "Put a packed artifact into the global store or a registry", NULL,
      "mur publish bot-0.1.0.mur.zip\nmur publish oci://ghcr.io/ana/bot",
      POS ({ "ARTIFACT_PATH", false, false,
             "the .mur.zip (default: the one `mur build` writes here)" },
           { "TO", false, false, "oci://host/repository[:tag] (default: the global store)" }),
      publish_options, cmd_publish, NULL,
      "mur publish writes to the global store, ~/.murmur/artifacts, or to the OCI registry it is "
      "given" },
    { "install", "Install artifacts and pin them",
      "Without an argument, everything the project's manifest names.",
      "mur install\nmur install acme/search@1.2.0\nmur install ./search-1.2.0.mur.zip",
      POS ({ "ARTIFACT", false, false,
             "scope/name[@version], github:owner/repo@tag, or a .mur.zip" }),
      install_options, cmd_install, NULL,
      "mur install looks in the stores, then asks the source that serves the scope "
      "(registry.sources in the configuration)" },
    { "list", "List installed artifacts", NULL, NULL, NO_POS, list_options, cmd_list },
    { "search", "Search an artifact index", NULL, "mur search calendar",
      POS ({ "QUERY", true, false, "text in a name, description or tag" }), search_options,
      cmd_search, NULL,
      "mur search reads one index: --index, else registry.index_url in the configuration, else the "
      "published one" },
    { "index", "Write the index of a folder of packed artifacts", NULL,
      "mur index dist --repo acme/tools --release v3",
      POS ({ "DIR", true, false, "folder with the .mur.zip files" }), cli_index_options,
      cmd_index },
    { "sign", "Sign packages with a key of one's own",
      "The signature is written beside each, as <package>.sig; publish and install take it along.",
      "mur sign bot-0.1.0.mur.zip --key ana", POS ({ "ZIP", true, true, "packed artifacts" }),
      sign_options, cmd_sign },
    { "verify", "Say who signed an artifact", NULL,
      "mur verify bot-0.1.0.mur.zip\nmur verify ana/tool-git@1.0.0",
      POS ({ "ARTIFACT", true, false, "a .mur.zip, or scope/name@version of a store" }), no_options,
      cmd_verify },
    { "trust keygen", "Make a key to sign with", NULL, "mur trust keygen ana",
      POS ({ "NAME", true, false, "what it is called" }), no_options, cmd_trust_keygen },
    { "trust add", "Trust somebody's public key",
      "trust.require in ~/.murmur/config.yaml says which scopes it may sign for.",
      "mur trust add ana ana.pub",
      POS ({ "NAME", true, false, "what it is called here" },
           { "FILE", true, false, "the public key, in PEM" }),
      no_options, cmd_trust_add },
    { "trust remove", "Trust a key no more", NULL, NULL,
      POS ({ "NAME", true, false, "what it is called here" }), no_options, cmd_trust_remove },
    { "trust list", "List one's own keys and those that are trusted", NULL, NULL, NO_POS,
      no_options, cmd_trust_list },
    { "precompile", "Compile components before their first run", NULL, NULL,
      POS ({ "ZIP", true, true, "packed artifacts" }), precompile_options, cmd_precompile,
      .exits = "1 when one of them failed." },

    { "doctor", "Check a project and this machine",
      "Never launches and never writes, but for the program of --learn. Each problem comes with the "
      "command that fixes it.",
      "mur doctor\nmur doctor --learn mytool -- --version",
      POS ({ "ARGS", false, true, "arguments of the program to learn" }), doctor_options,
      cmd_doctor, check_doctor, .exits = "1 when it found an error; warnings do not count." },
    { "config set", "Change one configuration key", NULL,
      "mur config set -g credentials.ANTHROPIC_API_KEY sk-...",
      POS ({ "KEY", true, false,
             "registry.index_url, inference.provider, .model, .api_key, .endpoint or "
             "credentials.<NAME>" },
           { "VALUE", true, false, "its value" }),
      config_set_options, cmd_config_set },
    { "config get", "Show the value of one configuration key",
      "The project's where it has one, else the global one. A credential is never shown, only said to "
      "be set.",
      "mur config get registry.index_url",
      POS ({ "KEY", true, false, "as `mur config list` names it" }), no_options, cmd_config_get },
    { "config list", "Show what is configured and where",
      "One row a key: the project's file first, whose values hold, then the global one. Secrets are "
      "not shown.",
      NULL, NO_POS, no_options, cmd_config_list },
    { "config unset", "Take one configuration key out", NULL,
      "mur config unset -g credentials.ANTHROPIC_API_KEY",
      POS ({ "KEY", true, false, "a key that `mur config set` takes" }), config_set_options,
      cmd_config_unset },
    { "config path", "Show which files are read",
      "The project's, then the global one; both are optional.", NULL, NO_POS, no_options,
      cmd_config_path },
    { "beta list", "List features that must be enabled", NULL, NULL, NO_POS, no_options,
      cmd_beta_list },
    { "beta enable", "Enable a feature", NULL, NULL, POS ({ "FEATURE", true, false, "its name" }),
      no_options, cmd_beta_set },
    { "beta disable", "Disable a feature", NULL, NULL, POS ({ "FEATURE", true, false, "its name" }),
      no_options, cmd_beta_set },
    { "version", "Show the version and the interfaces it serves", NULL, NULL, NO_POS, json_options,
      cmd_version },
    { "self", "Show which program this is and what it was built from", NULL, NULL, NO_POS,
      json_options, cmd_self },
    { "completions", "Print what completes a line of mur in a shell",
      "An installation brings them; else put `eval \"$(mur completions bash)\"` into ~/.bashrc.",
      NULL, POS ({ "SHELL", true, false, "bash, zsh or fish" }), no_options, cmd_completions },
    { "explain", "Say what a diagnostic code means and what to do",
      "Without a code, lists them all; with a family (SEC, E-RUN) or a word, those of it.",
      "mur explain E-CAP-003", POS ({ "CODE", false, false, "a code such as E-CAP-003" }),
      no_options, cmd_explain },
};

const struct cli_table cli_table = { commands, ARRAY_LEN (commands), cli_groups, cli_habits };
