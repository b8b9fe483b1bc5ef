/* SPDX-License-Identifier: Apache-2.0
 *
 * The options by which a command means sessions of a cluster in place of this machine's: rows of a
 * table of options.
 */
#pragma once

#include "cli/line/command.h"

#define CLI_FLEET_OPTIONS                                                                          \
    { .name = "--fleet", .help = "sessions that are Jobs of a Kubernetes cluster instead" },       \
        { .name = "--kubeconfig",                                                                  \
          .kind = CLI_VALUE,                                                                       \
          .value_name = "<FILE>",                                                                  \
          .requires = "--fleet",                                                                   \
          .help = "access to the cluster (default: the pod's own, KUBECONFIG, ~/.kube/config)" },  \
    {                                                                                              \
        .name = "--namespace", .kind = CLI_VALUE, .value_name = "<NAME>", .requires = "--fleet",   \
        .help = "the sessions' namespace (default: the kubeconfig's)"                              \
    }
