/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/groups.h"

const struct cli_group cli_groups[] = {
    { "trace", "Read, compare and remove recorded sessions" },
    { "eval", "Score capsules on a data set" },
    { "conversation", "Read, cut and remove conversation records" },
    { "mcp", "Use MCP servers in capsules, and serve capsules to MCP clients" },
    { "control", "Settings and secrets of a running capsule" },
    { "beta", "Features that must be enabled" },
    { "deploy", "A capsule as a workload of other machines" },
    { "image", "A capsule as an image of containers and pods" },
    { "config", "Read and change the configuration" },
    { "trust", "Keys to sign with, and keys that are trusted" },
    { NULL, NULL },
};
