/* SPDX-License-Identifier: Apache-2.0
 *
 * Protected paths: capabilities.filesystem.read_only judged on what a tool call asks for, before
 * anything runs (docs/spec/containment.md 13.1).
 *
 * Always true: a rule only subtracts; paths compare by component, after existing links were
 * resolved.
 */
#pragma once

#include "session/state/session.h"

struct read_only_hit {
    char *path;       /* resolved, relative to the work folder */
    const char *rule; /* as declared */
    char *signal;     /* the evidence */
};

void read_only_hit_clear (struct read_only_hit *h);

/* A path of a call, taken from <base>, relative to the work folder with existing links resolved;
 * NULL when it lies elsewhere. Owned. */
char *read_only_relative (const struct session *s, const char *base, const char *path);
/* True when the call would write below a protected path. */
bool read_only_hits (const struct session *s, const struct tool_entry *tool, const json_t *input,
                     struct read_only_hit *hit);
/* W-SEC-018 for each tool whose schema names no destination, when read-only paths are declared. */
void read_only_warn (const struct session *s);
