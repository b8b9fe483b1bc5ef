/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ui/ui_options.h"

#include "cli/line/fleet_options.h"

const struct cli_option cli_ui_options[] = {
    { .name = "--port",
      .kind = CLI_VALUE,
      .value_name = "<PORT>",
      .is_number = true,
      .max = 65535,
      .fallback = "0",
      .help = "listen on this port of 127.0.0.1 (default: a free one)" },
    { .name = "--workdir",
      .kind = CLI_VALUE,
      .value_name = "<WORKDIR>",
      .help = "show the records of this work folder alone (default: of all)" },
    { .name = "--read-only", .help = "show everything, change nothing" },
    { .name = "--open", .help = "open it in a browser" },
    { .name = "--allow-host",
      .kind = CLI_VALUE,
      .value_name = "<NAME[:PORT]>",
      .help = "answer to this name, too: of a forwarded port" },
    { .name = "--token-file",
      .kind = CLI_VALUE,
      .value_name = "<PATH>",
      .help = "keep the token in this file, so that open pages go on after a restart" },
    CLI_FLEET_OPTIONS,
    { .name = "--json", .help = "print address, port and process as JSON" },
    { 0 },
};
