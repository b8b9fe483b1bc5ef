/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/mcp/mcp_options.h"

#define OPT_SERVER_WALLS                                                                           \
    { .name = "--scope",                                                                           \
      .kind = CLI_VALUE,                                                                           \
      .value_name = "<FOLDER>",                                                                    \
      .help = "the folder it works in and sees (default: an empty one)" },                         \
        { .name = "--network",                                                                     \
          .kind = CLI_VALUE,                                                                       \
          .value_name = "<HOST,...>",                                                              \
          .help = "hosts it may reach, as in network.allow (default: none)" },                     \
        { .name = "--program",                                                                     \
          .kind = CLI_VALUE,                                                                       \
          .value_name = "<NAME,...>",                                                              \
          .help = "programs it may start beside its interpreter (default: none)" },                \
        { .name = "--key-env",                                                                     \
          .kind = CLI_VALUE,                                                                       \
          .value_name = "<NAME>",                                                                  \
          .help = "of a server far away: the credential or variable that holds its key" },         \
    {                                                                                              \
        .name = "--startup-secs", .kind = CLI_VALUE, .value_name = "<SECONDS>", .fallback = "30",  \
        .is_number = true, .min = 1, .max = 600,                                                   \
        .help = "how long it may take to start and list its tools"                                 \
    }

#define OPT_SERVER_SOURCE                                                                          \
    { .name = "--bin",                                                                             \
      .kind = CLI_VALUE,                                                                           \
      .value_name = "<NAME>",                                                                      \
      .help = "which of the package's programs, or the file of a folder" },                        \
        { .name = "--with",                                                                        \
          .kind = CLI_VALUE,                                                                       \
          .value_name = "<REQUIREMENT,...>",                                                       \
          .help = "packages beside those it asks for, such as mcp<2" },                            \
        { .name = "--allow-scripts",                                                               \
          .kind = CLI_VALUE,                                                                       \
          .value_name = "<PACKAGE,...>",                                                           \
          .help = "packages whose install scripts are run" },                                      \
    {                                                                                              \
        .name = "--accept", .help = "ask nothing about what was found or changed"                  \
    }

const struct cli_option cli_mcp_add_options[] = {
    { .name = "--name",
      .kind = CLI_VALUE,
      .value_name = "<NAME>",
      .help = "what it is called: local/mcp-<NAME> (default: from the package's name)" },
    { .name = "--version",
      .kind = CLI_VALUE,
      .value_name = "<VERSION>",
      .help = "of the package that is made (default: the source's)" },
    { .name = "--env",
      .kind = CLI_VALUE,
      .value_name = "<NAME=VALUE,...>",
      .help = "constants of its environment" },
    { .name = "--key-header",
      .kind = CLI_VALUE,
      .value_name = "<NAME>",
      .help = "of a server far away: the header its key goes into (default: authorization, as a "
              "bearer)" },
    OPT_SERVER_SOURCE,
    OPT_SERVER_WALLS,
    { 0 }
};

const struct cli_option cli_mcp_update_options[] = {
    { .name = "--source",
      .kind = CLI_VALUE,
      .value_name = "<SOURCE>",
      .help = "where the new version comes from (default: where the last one did)" },
    OPT_SERVER_SOURCE,
    OPT_SERVER_WALLS,
    { 0 }
};

const struct cli_option cli_mcp_list_options[] = {
    { .name = "--json", .help = "the same as JSON, digests whole" }, { 0 }
};

const struct cli_option cli_mcp_show_options[] = {
    { .name = "--json", .help = "everything that was reviewed, as JSON" }, { 0 }
};

const struct cli_option cli_mcp_diff_options[] = { OPT_SERVER_WALLS, { 0 } };

const struct cli_option cli_mcp_call_options[] = {
    { .name = "--input",
      .kind = CLI_VALUE,
      .value_name = "<JSON>",
      .fallback = "{}",
      .help = "the tool's arguments" },
    { .name = "--yes", .help = "do not ask where approvals of this folder cover the tool" },
    OPT_SERVER_WALLS,
    { 0 }
};

const struct cli_option cli_mcp_login_options[] = {
    { .name = "--scope",
      .kind = CLI_VALUE,
      .value_name = "<SCOPES>",
      .help = "what is asked for (default: what the server asks for)" },
    { .name = "--issuer",
      .kind = CLI_VALUE,
      .value_name = "<URL>",
      .help = "who gives the tokens, when you know better than the server, or on a private net" },
    { .name = "--client-id",
      .kind = CLI_VALUE,
      .value_name = "<ID>",
      .help = "a client registered there before, or the address of its metadata document" },
    { .name = "--client-secret-env",
      .kind = CLI_VALUE,
      .value_name = "<NAME>",
      .help = "the credential or variable that holds that client's secret" },
    { .name = "--port",
      .kind = CLI_VALUE,
      .value_name = "<PORT>",
      .fallback = "0",
      .is_number = true,
      .min = 0,
      .max = 65535,
      .help = "of the redirect to this machine (default: any that is free)" },
    { .name = "--timeout",
      .kind = CLI_VALUE,
      .value_name = "<SECONDS>",
      .fallback = "300",
      .is_number = true,
      .min = 1,
      .max = 3600,
      .help = "how long the browser's answer is waited for" },
    { .name = "--no-browser", .help = "print the address alone" },
    { 0 }
};

const struct cli_option cli_mcp_logout_options[] = { { 0 } };

const struct cli_option cli_mcp_connect_options[] = {
    { .name = "--write", .help = "put it into the client's own file instead of printing it" }, { 0 }
};

const struct cli_option cli_mcp_serve_options[] = {
    { .name = "--workdir",
      .kind = CLI_VALUE,
      .value_name = "<WORKDIR>",
      .help = "work folder (default: a new workdir/<session> beside the manifest)" },
    { .name = "--containment",
      .kind = CLI_VALUE,
      .value_name = "<advisory|scoped|sealed>",
      .help = "the least containment this launch accepts; never lowers the manifest's or the "
              "configuration's" },
    { .name = "--no-env-file", .help = "do not read .env" },
    { 0 }
};
