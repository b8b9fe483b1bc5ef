/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/records/trace_options.h"

#include "cli/line/fleet_options.h"

#define OPT_WORKDIR                                                                                \
    {                                                                                              \
        .name = "--workdir", .kind = CLI_VALUE, .value_name = "<WORKDIR>",                         \
        .help = "work folder whose sessions are meant (default: ./workdir)"                        \
    }

const struct cli_option cli_trace_show_options[] = {
    OPT_WORKDIR,
    { .name = "--body",
      .kind = CLI_VALUE,
      .value_name = "<SELECTOR>",
      .help =
          "print one captured body instead: system, tools, response or message:<i> with --turn, "
          "or a digest" },
    { .name = "--turn",
      .kind = CLI_VALUE,
      .value_name = "<N>",
      .is_number = true,
      .help = "the turn --body means" },
    CLI_FLEET_OPTIONS,
    { .name = "--tree",
      .requires = "--fleet",
      .conflicts = "--body",
      .help = "the session and everything it started, one report a session" },
    { 0 },
};

const struct cli_option cli_trace_diff_options[] = {
    OPT_WORKDIR,
    { .name = "--steps", .help = "step by step, aligned by what each did" },
    { .name = "--json", .requires = "--steps", .help = "the steps as JSON" },
    { 0 },
};

const struct cli_option cli_trace_export_options[] = {
    { .name = "--otlp",
      .kind = CLI_VALUE,
      .value_name = "<FILE|URL>",
      .is_required = true,
      .help = "a file for OTLP's JSON (- is stdout), or a collector's address" },
    { .name = "--content",
      .kind = CLI_VALUE,
      .value_name = "<WHAT>",
      .help = "none (default), meta or full: what of the conversation goes along" },
    OPT_WORKDIR,
    CLI_FLEET_OPTIONS,
    { 0 },
};

const struct cli_option cli_trace_fetch_options[] = {
    { .name = "--tree", .help = "with the sessions it started, and those they started" },
    { .name = "--workdir",
      .kind = CLI_VALUE,
      .value_name = "<WORKDIR>",
      .help = "the work folder whose sessions it comes to stand among" },
    { .name = "--secrets-dir",
      .kind = CLI_VALUE,
      .value_name = "<DIR>",
      .help = "where the store's token is, in a file named MUR_RECORDS_TOKEN, or the AWS_... keys "
              "of one at s3://" },
    { 0 },
};

const struct cli_option cli_trace_steps_options[] = {
    { .name = "--verbose", .help = "add the first text of each call's input" },
    OPT_WORKDIR,
    CLI_FLEET_OPTIONS,
    { 0 },
};

const struct cli_option cli_trace_report_options[] = {
    { .name = "--last",
      .kind = CLI_VALUE,
      .value_name = "<LAST>",
      .is_number = true,
      .help = "the newest N sessions" },
    { .name = "--since",
      .kind = CLI_VALUE,
      .value_name = "<SINCE>",
      .help = "sessions started within 30m, 2h or 1d" },
    OPT_WORKDIR,
    { 0 },
};
