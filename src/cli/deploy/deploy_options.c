/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/deploy/deploy_options.h"

/* What is rendered, for which target. */
#define RENDERED                                                                                   \
    { .name = "--to",                                                                              \
      .kind = CLI_VALUE,                                                                           \
      .value_name = "<TARGET>",                                                                    \
      .is_required = true,                                                                         \
      .help = "kubernetes, kueue, systemd, quadlet, sandbox, kagent or nomad" },                   \
        { .name = "--manifest",                                                                    \
          .kind = CLI_VALUE,                                                                       \
          .value_name = "<PATH>",                                                                  \
          .fallback = "./murmur.yaml",                                                             \
          .help = "the capsule's manifest" },                                                      \
        { .name = "--roster",                                                                      \
          .kind = CLI_VALUE_OR_NONE,                                                               \
          .value_name = "[<PATH>]",                                                                \
          .none_value = "roster.yaml",                                                             \
          .conflicts = "--manifest --capsule",                                                     \
          .help = "every member of a roster (a project folder or a roster.yaml)" },                \
        { .name = "--placement",                                                                   \
          .kind = CLI_VALUE,                                                                       \
          .value_name = "<pod|fleet>",                                                             \
          .choices = "pod|fleet",                                                                  \
          .fallback = "pod",                                                                       \
          .requires = "--roster",                                                                  \
          .help = "all members in one pod, or a pod each, which mur-roost starts" },               \
        { .name = "--image",                                                                       \
          .kind = CLI_VALUE,                                                                       \
          .value_name = "<REF>",                                                                   \
          .help = "image that holds mur, and the capsule at /capsule; best named by digest" },     \
        { .name = "--capsule-image",                                                               \
          .kind = CLI_VALUE,                                                                       \
          .value_name = "<REF>",                                                                   \
          .help = "image of the capsule alone, which a pod has as a volume at /capsule" },         \
        { .name = "--layout",                                                                      \
          .kind = CLI_VALUE,                                                                       \
          .value_name = "<DIR>",                                                                   \
          .help =                                                                                  \
              "what `mur image build` wrote: the image that holds the capsule is named by its "    \
              "digest" },                                                                          \
        { .name = "--capsule",                                                                     \
          .kind = CLI_VALUE,                                                                       \
          .value_name = "<DIR>",                                                                   \
          .fallback = "/opt/murmur/capsule",                                                       \
          .help = "where the capsule lies on a server of systemd" },                               \
        { .name = "--namespace",                                                                   \
          .kind = CLI_VALUE,                                                                       \
          .value_name = "<NAME>",                                                                  \
          .fallback = "default",                                                                   \
          .help = "namespace of the objects" },                                                    \
        { .name = "--queue",                                                                       \
          .kind = CLI_VALUE,                                                                       \
          .value_name = "<NAME>",                                                                  \
          .fallback = "murmur",                                                                    \
          .help = "LocalQueue of Kueue" },                                                         \
        { .name = "--door",                                                                        \
          .kind = CLI_VALUE,                                                                       \
          .value_name = "<none|service|route>",                                                    \
          .choices = "none|service|route",                                                         \
          .fallback = "none",                                                                      \
          .help = "how the capsule's door is reached by others" },                                 \
        { .name = "--public-url",                                                                  \
          .kind = CLI_VALUE,                                                                       \
          .value_name = "<URL>",                                                                   \
          .help = "the address its agent card names" },                                            \
        { .name = "--roost-url",                                                                   \
          .kind = CLI_VALUE,                                                                       \
          .value_name = "<URL>",                                                                   \
          .help = "the fleet's mur-roost: its pod registers there, and may start others" },        \
        { .name = "--records-store",                                                               \
          .kind = CLI_VALUE,                                                                       \
          .value_name = "<URL>",                                                                   \
          .help =                                                                                  \
              "where its records go while it runs: s3://bucket/prefix, https://host/path, ..." },  \
        { .name = "--records-role",                                                                \
          .kind = CLI_VALUE,                                                                       \
          .value_name = "<ARN>",                                                                   \
          .help = "a role of Amazon's the pod takes for an s3:// store, instead of keys" },        \
        { .name = "--ca",                                                                          \
          .kind = CLI_VALUE,                                                                       \
          .value_name = "<CONFIGMAP>",                                                             \
          .help = "ConfigMap with ca.crt: authorities that are trusted beside the image's" },      \
        { .name = "--seccomp-profile",                                                             \
          .kind = CLI_VALUE,                                                                       \
          .value_name = "<NAME>",                                                                  \
          .help =                                                                                  \
              "the profile on the nodes a pod runs under, as murmur.json: mur deploy profile" },   \
        { .name = "--deadline",                                                                    \
          .kind = CLI_VALUE,                                                                       \
          .value_name = "<SECS>",                                                                  \
          .is_number = true,                                                                       \
          .min = 1,                                                                                \
          .max = 315360000,                                                                        \
          .help = "end it this many seconds after its start" },                                    \
    {                                                                                              \
        .name = "--task", .kind = CLI_VALUE, .value_name = "<TEXT>",                               \
        .help = "the task of a capsule that ends after it"                                         \
    }

const struct cli_option cli_deploy_render_options[] = {
    RENDERED,
    { .name = "--out",
      .kind = CLI_VALUE,
      .value_name = "<DIR>",
      .help = "write a file for each object, instead of everything to standard output" },
    { 0 },
};

const struct cli_option cli_deploy_profile_options[] = {
    { .name = "--operator",
      .help = "as an object of the Security Profiles Operator, which puts it on the nodes" },
    { .name = "--namespace",
      .kind = CLI_VALUE,
      .value_name = "<NAME>",
      .requires = "--operator",
      .help = "namespace of the object (default: default)" },
    { 0 },
};

const struct cli_option cli_deploy_referee_options[] = {
    { .name = "--image",
      .kind = CLI_VALUE,
      .value_name = "<REF>",
      .is_required = true,
      .help =
          "image that holds mur, mur-roost, and the capsules at /artifacts; children are of it, too" },
    { .name = "--namespace",
      .kind = CLI_VALUE,
      .value_name = "<NAME>",
      .fallback = "default",
      .help = "namespace of it and of all its sessions" },
    { .name = "--roost-url",
      .kind = CLI_VALUE,
      .value_name = "<URL>",
      .help = "where pods reach it (default: https://mur-roost.<namespace>.svc)" },
    { .name = "--placement",
      .kind = CLI_VALUE,
      .value_name = "<local-first|fleet>",
      .choices = "local-first|fleet",
      .fallback = "fleet",
      .help = "whether children stay in the pod of their parent" },
    { .name = "--max-depth",
      .kind = CLI_VALUE,
      .value_name = "<N>",
      .help = "levels of children below a root (default: 3)" },
    { .name = "--max-concurrent",
      .kind = CLI_VALUE,
      .value_name = "<N>",
      .help = "children of one session at once (default: 4)" },
    { .name = "--max-live-capsules",
      .kind = CLI_VALUE,
      .value_name = "<N>",
      .help = "sessions at once (default: by the processors of its node)" },
    { .name = "--queue",
      .kind = CLI_VALUE,
      .value_name = "<NAME>",
      .help = "LocalQueue of Kueue for the children" },
    { .name = "--queue-timeout",
      .kind = CLI_VALUE,
      .value_name = "<SECONDS>",
      .help = "how long a child may wait for a place (default: 600)" },
    { .name = "--records-store",
      .kind = CLI_VALUE,
      .value_name = "<URL>",
      .help = "where the records of children go: s3://bucket/prefix?region=R, https://host/path" },
    { .name = "--records-role",
      .kind = CLI_VALUE,
      .value_name = "<ARN>",
      .help = "a role of Amazon's the children take for an s3:// store, instead of keys" },
    { .name = "--ca",
      .kind = CLI_VALUE,
      .value_name = "<CONFIGMAP>",
      .help = "ConfigMap with ca.crt: authorities that are trusted beside the image's" },
    { .name = "--seccomp-profile",
      .kind = CLI_VALUE,
      .value_name = "<NAME>",
      .help = "the profile on the nodes that children run under, as murmur.json" },
    { .name = "--out",
      .kind = CLI_VALUE,
      .value_name = "<DIR>",
      .help = "write a file for each object, instead of everything to standard output" },
    { 0 },
};

#define LOGIN                                                                                      \
    {                                                                                              \
        .name = "--kubeconfig", .kind = CLI_VALUE, .value_name = "<FILE>",                         \
        .help = "access to the cluster (default: what kubectl takes by itself)"                    \
    }

const struct cli_option cli_deploy_check_options[] = { RENDERED, LOGIN, { 0 } };

const struct cli_option cli_deploy_apply_options[] = {
    RENDERED,
    LOGIN,
    { .name = "--replace", .help = "end a Job that is there under this name, and start anew" },
    { 0 },
};

#define LAYOUT_OPTION                                                                              \
    {                                                                                              \
        .name = "--output", .letter = 'o', .kind = CLI_VALUE, .value_name = "<DIR>",               \
        .is_required = true,                                                                       \
        .help = "folder of the OCI image layout: new, empty, or one to be replaced"                \
    }

const struct cli_option cli_image_build_options[] = {
    LAYOUT_OPTION,
    { .name = "--roster",
      .help = "of every member of the folder's roster.yaml, in place of one capsule" },
    { .name = "--base",
      .kind = CLI_VALUE,
      .value_name = "<DIR>",
      .help = "layout of an image that has mur, to put the capsule on" },
    { 0 },
};

const struct cli_option cli_image_pull_options[] = {
    LAYOUT_OPTION,
    { .name = "--platform",
      .kind = CLI_VALUE,
      .value_name = "<PLATFORM>",
      .help = "of an image there is for several, as linux-aarch64 (default: this machine's)" },
    { 0 },
};
