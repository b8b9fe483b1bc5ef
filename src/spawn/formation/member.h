/* SPDX-License-Identifier: Apache-2.0
 *
 * One member of a formation as its launcher holds it: lifeline and channel, process, readiness, end
 * (spec/spawn.md C4, C5, C7).
 *
 * Always true: lifelines and channels exist before the first process; a member's group is signalled
 * only while its leader is not reaped; no token is in argv, environment or message.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/secret.h"
#include "manifest/settings/roster.h"
#include "spawn/child/output.h"
#include "spawn/child/start.h"

#include <stdatomic.h>
#include <sys/types.h>

struct member {
    const struct roster_member *declared;
    const char *sha256; /* what was admitted */
    char *workdir;      /* absolute */
    struct pipe lifeline, channel;

    pid_t pid; /* 0: not started, or reaped */
    int pidfd;
    int status;            /* of waitpid; -1 while unknown */
    struct output *output; /* NULL for the entry */

    /* Once it is ready. */
    char *session_id, *url; /* "http://host:port" */
    struct secret *door_token;

    struct mur_error *fault; /* why it did not come up */
};

/* Whether the door at "host:port" answers as that session. <token> may be NULL. */
typedef bool
member_probe_fn (void *ctx, const char *url, const struct secret *token, const char *session_id);

/* Makes lifeline and channel. E-IO-003. */
bool member_open (struct member *m, struct mur_error **err);
/* Puts one line on the channel. E-IO-003. */
bool member_tell (struct member *m, const char *line, struct mur_error **err);
/* Forks and executes; for a peer in a group of its own with its output taken, for the entry in ours
 * with our streams. E-RUN-045. */
bool member_start (struct member *m, char *const *argv, const struct strv *environment,
                   struct mur_error **err);

struct member_wait {
    const char *formation_id;
    uint64_t deadline_ms; /* monotonic */
    const atomic_bool *is_abandoned;
    member_probe_fn *probe;
    void *probe_ctx;
};
/* Waits until the peer's door answers as the session it reported; E-RUN-045 naming it and why it
 * does not. */
bool member_await (struct member *m, const struct member_wait *w, struct mur_error **err);

/* True once it is reaped; never blocks. */
bool member_has_exited (struct member *m);
/* The end of its lifeline, on which it winds down by itself. */
void member_let_go (struct member *m);
/* SIGKILL to its group (the entry: to itself alone). */
void member_kill (struct member *m);
void member_clear (struct member *m);
