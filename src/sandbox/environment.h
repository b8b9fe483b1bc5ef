/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment of native subprocesses, built from nothing (spec/containment.md 15.1, 15.2).
 */
#pragma once

#include "base/buf.h"

struct environment_spec {
    char *const *host;            /* environ of the runtime */
    const char *const *overrides; /* "NAME=value" of the session's guest environment */
    const char *const *baseline;  /* shell.baseline_env names */
    const char *const *strip;     /* shell.strip_env patterns */
    const char *home_dir, *runtime_dir,
        *records_dir;     /* runtime_dir, records_dir: NULL removes the name */
    const char *temp_dir; /* as the command sees it */
};

/* Fills <env> with "NAME=value" entries, each name once, sorted. */
void command_environment_build (const struct environment_spec *spec, struct strv *env);

/* "NAME" matches an exact pattern, "X*", "*X" or "*X*", case-sensitive. */
bool environment_pattern_matches (const char *pattern, const char *name);
/* The credential pattern that takes <name> away, or NULL. Static storage. */
const char *environment_credential_pattern (const char *name);
