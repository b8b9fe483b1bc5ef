/* SPDX-License-Identifier: Apache-2.0
 *
 * A server of tools looked at outside of any session: started once in walls of its own, or reached
 * where it is, asked what it offers, ended.
 *
 * Always true: it gets a private folder that is removed afterwards, the variables and hosts that
 * are named, and nothing else of this machine.
 */
#pragma once

#include "base/cancel.h"
#include "base/secret.h"
#include "manifest/capsule/capsule.h"
#include "mcp/pinned.h"

struct review_request {
    const char *name;
    const struct mcp_pinned *pinned; /* what is started */
    bool is_unknown;                 /* era and tools are to be found out */
    const char *tree;                /* absolute, canonical */
    const char *const *args;         /* NULL-terminated */
    const char *const *env;          /* NAME=value; NULL-terminated */
    const char *work;                /* where it works; NULL: a private folder */
    struct str_list network;
    struct str_list programs; /* it may start beside its interpreter */
    const struct secret *key; /* shown to one far away; NULL: none */
    uint64_t startup_ms;
    bool may_be_unconfined, cgroup_is_optional;
};

struct review;

/* Starts it. E-MCP-*, E-CAP-005, E-IO-003. */
struct review *review_open (const struct review_request *request, struct mur_error **err);
/* Its tools, sorted, as they are pinned. A new array. */
json_t *review_tools (struct review *r, struct mur_error **err);
/* Names of tools it listed that cannot be called over HTTP. Borrowed. */
const struct strv *review_unsendable (const struct review *r);
/* What it said of itself: {revision, server?, instructions?}. A new object. */
json_t *review_said (const struct review *r);
/* Calls a tool; the whole result, a new value. */
json_t *review_call (struct review *r, const char *tool, const json_t *arguments,
                     uint64_t deadline_ms, struct mur_error **err);
/* Ends it and removes its folder. */
void review_close (struct review *r);
DEFINE_CLEANUP (struct review, review_close)
