/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment of native subprocesses, built from nothing (spec/containment.md 15.1, 15.2).
 */
#pragma once

#include "base/buf.h"

struct environment_spec {
    char *const *host;            /* environ of the runtime */
    const char *const *recipes;   /* "NAME=value" of the programs' recipes; may be NULL */
    const char *path;             /* PATH in place of the host's; NULL: the host's */
    const char *const *overrides; /* "NAME=value" of the session's guest environment */
    const char *const *baseline;  /* shell.baseline_env names */
    const char *const *strip;     /* shell.strip_env patterns */
    const char *home_dir, *runtime_dir,
        *records_dir;     /* runtime_dir, records_dir: NULL removes the name */
    const char *temp_dir; /* as the command sees it */
};

/* Fills <env> with "NAME=value" entries, each name once, sorted. */
void command_environment_build (const struct environment_spec *spec, struct strv *env);
