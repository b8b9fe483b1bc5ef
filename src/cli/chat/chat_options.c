/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/chat/chat_options.h"

const struct cli_option cli_chat_options[] = {
    { .name = "--with",
      .kind = CLI_VALUE,
      .value_name = "<PROVIDER>",
      .requires = "--model",
      .conflicts = "TARGET",
      .help = "a bundled agent with a model: anthropic, openai, or the address of a server that "
              "speaks OpenAI's protocol" },
    { .name = "--model",
      .kind = CLI_VALUE,
      .value_name = "<NAME>",
      .requires = "--with",
      .help = "the model's name at the provider" },
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
