/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/chat/chat_options.h"

const struct cli_option cli_chat_options[] = {
    { .name = "--context",
      .kind = CLI_VALUE,
      .value_name = "<ID>",
      .help = "go on with this conversation context" },
    { .name = "--workdir",
      .kind = CLI_VALUE,
      .value_name = "<WORKDIR>",
      .help = "work folder of a capsule that is launched" },
    { .name = "--no-env-file", .help = "do not read .env" },
    { 0 },
};
