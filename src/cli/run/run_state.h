/* SPDX-License-Identifier: Apache-2.0
 *
 * One `mur run` on its way from the command line to a launch: what its checks find out, each the
 * part it knows.
 */
#pragma once

#include "base/arena.h"
#include "cli/line/args.h"
#include "cli/run/cmd_run.h"
#include "cli/run/launcher_inputs.h"
#include "cli/run/run_inputs.h"
#include "cli/run/run_view.h"
#include "manifest/settings/config.h"
#include "sandbox/host/host.h"

/* What staging is asked, filled by the check that knows each part, and what only the command needs.
 */
struct run {
    const struct cli_args *args;
    const char *version;           /* of --capsule */
    const struct run_steps *steps; /* NULL: nobody looks on */
    bool is_json, is_print, is_quiet;
    struct run_view *view; /* what the run shows of itself; NULL: nothing */
    struct arena *arena;   /* of the request's texts */
    struct stage_request request;
    /* The request has these as read only. */
    struct capsule_manifest *manifest;
    struct config *config;
    struct host_decision decision;
    bool has_said_status;
    int failure; /* how it exits when it did not end well */
    struct launcher_inputs launcher;
    struct policy_request policy_request;
    struct buf manifest_text;
    struct strv changed;    /* keys that the command line says otherwise */
    struct resumed resumed; /* --resume; all NULL without */
    struct buf task;
};

void run_clear (struct run *r);
/* The text (taken over) for as long as the request; NULL stays NULL. */
const char *run_keep (struct run *r, char *text);
/* The record that runs again, or NULL. */
const struct run_replay *run_replay_of (const struct run *r);
