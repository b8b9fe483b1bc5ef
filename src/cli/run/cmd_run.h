/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur run` with somebody looking on: what an evaluation does around a launch.
 */
#pragma once

#include "cli/line/args.h"
#include "session/launch.h"

struct player;

/* A record that runs again: where it was made, and what of it is taken as it was. Borrowed. */
struct run_replay {
    struct player *player;
    const char *work_root;     /* whose records group it belongs to */
    const char *manifest_dir;  /* absolute */
    const char *manifest_name; /* base name of the file; NULL: there is none */
    const char *manifest;      /* text */
    size_t manifest_len;
    const char *context_id; /* of the launch, or NULL */
    bool has_prompt;        /* prompt replaces the manifest's; NULL: none */
    const char *prompt;
    const char *model;           /* in place of the manifest's; NULL: that one */
    uint64_t max_session_tokens; /* the same; 0: that one */
    const char *artifact_name;   /* whose version is another; NULL: nobody's */
    const char *artifact_version;
    bool needs_host; /* commands run again */
    bool needs_keys; /* somebody is asked for real */
};

struct run_steps {
    const char *case_id;
    bool may_write_lock;
    const struct run_replay *replay; /* NULL: an ordinary launch */
    /* Staged, not launched. False refuses the launch. */
    bool (*staged) (void *ctx, struct session *s, struct mur_error **err);
    /* The launch is over and nothing of it runs. */
    void (*ended) (void *ctx, struct session *s);
    void *ctx;
};

/* Runs the parsed command line of `mur run` without a word on stdout. *ending is the status word's.
 */
bool run_with_steps (const struct cli_args *args, const struct run_steps *steps,
                     enum session_ending *ending, struct mur_error **err);
